"""Lines of the pages, as Textual shows them: the same words, in the colours of the theme."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from rich.text import Text

from envcheck.report.clean import clean
from envcheck.report.pen import Line, Style

_DARK: Mapping[Style, str] = {
    "fail": "bold #ff6b6b",
    "warn": "bold #ffd166",
    "unknown": "bold #d59bf6",
    "note": "#6fd3ff",
    "pass": "#7ddf8c",
    "skipped": "dim",
    "title": "bold",
    "command": "bold #6fd3ff",
    "dim": "dim",
}
_LIGHT: Mapping[Style, str] = {
    "fail": "bold #b00020",
    "warn": "bold #8a5a00",
    "unknown": "bold #7a1fa2",
    "note": "#005f87",
    "pass": "#1b6e2d",
    "skipped": "dim",
    "title": "bold",
    "command": "bold #005f87",
    "dim": "dim",
}


class Paint:
    """How spans are coloured, on a dark or a light screen."""

    def __init__(self, *, dark: bool, ascii_only: bool) -> None:
        self._colours = _DARK if dark else _LIGHT
        self._ascii = ascii_only

    def line(self, line: Line) -> Text:
        """One line; foreign text in it is cleaned, and never read as markup."""
        text = Text(no_wrap=True, overflow="ellipsis")
        for span in line:
            text.append(clean(span.text, ascii_only=self._ascii), self._colours.get(span.style, ""))
        text.rstrip()
        return text

    def lines(self, lines: Iterable[Line]) -> Text:
        """Several, as one text."""
        return Text("\n", no_wrap=True).join([self.line(line) for line in lines])

    def colour(self, style: Style) -> str:
        """The colour of a style."""
        return self._colours.get(style, "")
