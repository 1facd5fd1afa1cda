"""How text gets onto the page: cleaned, with ``~`` for the home folder, and coloured at the very end."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Literal, TypeAlias

import msgspec

from envcheck.report import Options
from envcheck.text.clean import clean, shell_line
from envcheck.text.wrap import clip, fill, fill_items, width

if TYPE_CHECKING:
    from envcheck.model.checks import Status

Style: TypeAlias = Literal["", "fail", "warn", "unknown", "note", "pass", "skipped", "title", "command", "dim"]

_SGR: dict[Style, str] = {
    "fail": "1;31", "warn": "1;33", "unknown": "1;35", "note": "36", "pass": "32", "skipped": "2", "title": "1",
    "command": "1;36", "dim": "2",
}  # fmt: skip

WORDS: dict[Status, str] = {
    "fail": "FAIL", "warn": "WARN", "unknown": "?", "note": "note", "pass": "ok", "skipped": "-",
}  # fmt: skip
"""The word for a status in the rows: a status is never shown by colour alone."""

_LONGEST_PATH = 4096
NARROWEST, WIDEST = 40, 100  # Columns between which a page is readable


class StyledSpan(msgspec.Struct, frozen=True):
    """A piece of a line in one style."""

    text: str
    style: Style = ""


Line: TypeAlias = tuple[StyledSpan, ...]


class Pen:
    """Writes for one terminal. Foreign text enters by ``text`` and ``command``, and is cleaned again on the way out."""

    def __init__(self, options: Options) -> None:
        self.width = min(max(options.width, NARROWEST), WIDEST)
        self.ascii = options.ascii
        self.mark = "..." if options.ascii else "…"
        self._color = options.color
        home = options.home.rstrip("/")
        self._home = re.compile(rf"(?<![\w./~-]){re.escape(home)}(?![\w.-])") if home.startswith("/") else None

    def text(self, foreign: str) -> str:
        """``foreign`` on one line, safe to print, with ``~`` for the home folder."""
        shortened = self._home.sub("~", foreign) if self._home else foreign
        return clean(shortened, ascii_only=self.ascii)

    def command(self, argv: tuple[str, ...]) -> str:
        """``argv`` as a shell line, whole."""
        return shell_line(argv, ascii_only=self.ascii)

    def clip(self, text: str, columns: int) -> str:
        """Cleaned ``text``, cut to ``columns``."""
        return clip(self.text(_start(text, columns)), columns, self.mark)

    def fill(self, text: str, columns: int, lines: int | None = None) -> list[str]:
        """Cleaned ``text`` in at most ``lines`` lines of ``columns``."""
        shown = text if lines is None else _start(text, columns * lines)
        return fill(self.text(shown), columns, lines, self.mark)

    def fill_items(self, items: Sequence[str], columns: int, lines: int) -> list[str]:
        """Cleaned ``items``, joined by ``; ``, in at most ``lines`` lines of ``columns``."""
        return fill_items([self.text(_start(item, columns * lines)) for item in items], columns, lines, self.mark)

    def hang(self, lead: Line | str, text: str, style: Style = "", most: int | None = None) -> list[Line]:
        """``text`` beside ``lead``, in at most ``most`` lines of which the further ones are indented; one at least."""
        first: Line = (StyledSpan(lead),) if isinstance(lead, str) else lead
        indent = columns(first)
        texts = self.fill(text, self.width - indent, most) or [""]
        blank: Line = (StyledSpan(" " * indent),)
        return [(*(blank if number else first), StyledSpan(line, style)) for number, line in enumerate(texts)]

    def show(self, lines: Iterable[Line]) -> str:
        return "".join("".join(map(self._paint, line)).rstrip() + "\n" for line in lines)

    def _paint(self, span: StyledSpan) -> str:
        safe = clean(span.text, ascii_only=self.ascii)
        if not self._color or not span.style or not safe.strip():
            return safe
        return f"\x1b[{_SGR[span.style]}m{safe}\x1b[0m"


def columns(line: Line) -> int:
    return sum(width(span.text) for span in line)


def screen_rows(lines: Iterable[Line], page: int) -> int:
    """Rows of a terminal of ``page`` columns that ``lines`` take, long commands wrapped."""
    return sum(max(1, -(-columns(line) // page)) for line in lines)


def _start(text: str, columns: int) -> str:
    """All of ``text`` that can show within ``columns``, so that a text of megabytes costs no more than what is seen.

    A column takes up to four characters (one with its combining marks), and ``~`` a whole path.
    """
    return text.lstrip()[: 4 * columns + _LONGEST_PATH]
