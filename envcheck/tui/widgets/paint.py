"""Styled lines as Textual shows them, in the colours of the theme."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.style import Style as RichStyle
from rich.text import Text
from textual.theme import Theme

from envcheck.report.page.pen import Line, Style
from envcheck.text.clean import clean

_STYLES: Mapping[Style, tuple[str, str]] = {
    "fail": ("bold #ff7b72", "bold #b00020"),
    "warn": ("bold #e3b341", "bold #7d4e00"),
    "unknown": ("bold #d2a8ff", "bold #7a1fa2"),
    "note": ("#79c0ff", "#005f87"),
    "pass": ("#7ee787", "#1b6e2d"),
    "skipped": ("#8b949e", "#59636e"),
    "title": ("bold", "bold"),
    "command": ("bold #79c0ff", "bold #005f87"),
    "dim": ("#8b949e", "#59636e"),
}
"""Of each style, its colour on a dark screen and on a light one; so below."""
_COLOURS = {
    "primary": ("#58a6ff", "#0969da"),
    "secondary": ("#79c0ff", "#005f87"),
    "accent": ("#58a6ff", "#0969da"),
    "foreground": ("#e6edf3", "#1f2328"),
    "background": ("#0d1117", "#ffffff"),
    "surface": ("#0d1117", "#ffffff"),
    "panel": ("#1c2430", "#eaeef2"),
    "success": ("#7ee787", "#1b6e2d"),
    "warning": ("#e3b341", "#7d4e00"),
    "error": ("#ff7b72", "#b00020"),
}
_VARIABLES = {
    "border": ("#e6edf3", "#1f2328"),
    "border-blurred": ("#30363d", "#c4ccd4"),
    "block-cursor-background": ("#263445", "#d5e3f0"),
    "block-cursor-foreground": ("#e6edf3", "#1f2328"),
    "block-cursor-blurred-background": ("#1c2430", "#eaeef2"),
    "footer-key-foreground": ("#58a6ff", "#0969da"),
    "scrollbar": ("#30363d", "#c4ccd4"),
    "scrollbar-background": ("#0d1117", "#f6f8fa"),
    "scrollbar-corner-color": ("#0d1117", "#f6f8fa"),
    "input-selection-background": ("#58a6ff 35%", "#0969da 30%"),
}


def _theme(name: str, *, dark: bool) -> Theme:
    def chosen(pairs: Mapping[str, tuple[str, str]]) -> dict[str, Any]:
        return {key: on_dark if dark else on_light for key, (on_dark, on_light) in pairs.items()}

    return Theme(name=name, **chosen(_COLOURS), dark=dark, variables=chosen(_VARIABLES))


THEMES = (_theme("envcheck-dark", dark=True), _theme("envcheck-light", dark=False))
"""Textual's own themes can be chosen from the palette as well."""

_BRIGHT_BACKGROUNDS = ("7", "15")


def first_theme(variables: Mapping[str, str]) -> str:
    """Light where the terminal says that its background is bright (COLORFGBG), else dark."""
    background = variables.get("COLORFGBG", "").rpartition(";")[2]
    return "envcheck-light" if background in _BRIGHT_BACKGROUNDS else "envcheck-dark"


class Paint:
    """Colours of styles on a dark or a light screen."""

    def __init__(self, *, dark: bool, ascii_only: bool) -> None:
        self.dark, self.ascii = dark, ascii_only

    def line(self, line: Line) -> Text:
        """One line; its text is cleaned and never read as markup."""
        text = Text()
        for span in line:
            text.append(clean(span.text, ascii_only=self.ascii), self.colour(span.style))
        text.rstrip()
        return text

    def lines(self, lines: Iterable[Line], columns: int = 0) -> Text:
        """Lines; of so many columns, what is longer goes on below, as far in as it began."""
        return Text("\n").join([row for line in lines for row in _folded(self.line(line), columns)])

    def page(self, lines: Iterable[Line], columns: int) -> Text:
        """Lines whose commands are tinted over the whole width; the first ends in the key that copies it."""
        laid_out, chip = [], " c copy "
        copies = RichStyle.parse(f"{self.colour('note')} reverse") + RichStyle(meta={"@click": "app.copy"})
        for line in lines:
            shown = self.line(line)
            if not any(span.style == "command" for span in line):
                laid_out += _folded(shown, columns)
                continue
            rows = textwrap.wrap(shown.plain, columns - 1, subsequent_indent="  ", break_on_hyphens=False)
            if chip and len(rows[-1]) + len(chip) > columns:
                rows.append("")
            for row in rows:
                text, key = Text(row, self.colour("command")), chip if row is rows[-1] else ""
                text.append(" " * (columns - text.cell_len - len(key))).append(key, copies)
                text.stylize(f"on {self.track}")
                laid_out.append(text)
            chip = ""
        return Text("\n").join(laid_out)

    def headed(self, lines: Sequence[Line]) -> Text:
        """Lines with the status in front as a badge, two columns wider than the word; other titled lines move along."""
        (first, *rest), *others = lines
        word = first.text.rstrip()
        badge = (f" {word} ", f"{self.colour(first.style)} reverse")
        laid_out = [Text.assemble(badge, " " * (len(first.text) - len(word))).append_text(self.line(tuple(rest)))]
        for line in others:
            moved = len(line) > 1 and line[1].style == "title"
            laid_out.append(Text("  " * moved).append_text(self.line(line)))
        return Text("\n").join(laid_out)

    def text(self, foreign: str, style: Style = "") -> Text:
        return Text(clean(foreign, ascii_only=self.ascii), self.colour(style))

    @property
    def track(self) -> str:
        """The colour behind bars and commands."""
        return str(_COLOURS["panel"][not self.dark])

    def colour(self, style: Style) -> str:
        on_dark, on_light = _STYLES.get(style, ("", ""))
        return on_dark if self.dark else on_light


def _folded(text: Text, columns: int) -> list[Text]:
    if not columns or text.cell_len <= columns:
        return [text]
    rows, end = list[Text](), 0
    indent = text.plain[: -len(text.plain.lstrip())]
    for row in textwrap.wrap(text.plain, columns, subsequent_indent=indent, break_on_hyphens=False):
        start = text.plain.index(row.strip(), end)
        end = start + len(row.strip())
        rows.append(Text(indent).append_text(text[start:end]))
    return rows
