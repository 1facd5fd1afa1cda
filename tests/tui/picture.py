"""A screen as text that can be kept and compared: its words, then for each look the styles of every row.

A row of styles is runs of ``LETTER COLUMNS``; the letters stand for colours and weight, and are told above the rows.
"""

from collections.abc import Sequence
from itertools import groupby
from string import ascii_letters

from rich.segment import Segment
from rich.style import Style

from envcheck.tui.app import EnvcheckApp

_WEIGHTS = ("bold", "dim", "italic", "underline", "reverse")


def rows_of(app: EnvcheckApp) -> list[list[Segment]]:
    """What is drawn, row by row."""
    return [list(strip) for strip in app.screen._compositor.render_strips()]


def words_of(rows: Sequence[Sequence[Segment]]) -> str:
    """The characters alone."""
    return "\n".join("".join(segment.text for segment in row).rstrip() for row in rows) + "\n"


def styles_of(rows: Sequence[Sequence[Segment]]) -> str:
    """The styles alone: what each letter means, and the rows."""
    letters: dict[str, str] = {}
    lines = []
    for row in rows:
        cells = [(_told(segment.style), segment.cell_length) for segment in row]
        runs = [(told, sum(length for _, length in run)) for told, run in groupby(cells, key=lambda cell: cell[0])]
        lines.append(" ".join(f"{_letter(told, letters)}{length}" for told, length in runs if length))
    return "\n".join([*(f"{letter} = {told}" for told, letter in letters.items()), *lines]) + "\n"


def _letter(told: str, letters: dict[str, str]) -> str:
    return letters.setdefault(told, ascii_letters[len(letters) % 52] + "'" * (len(letters) // 52))


def _told(style: Style | None) -> str:
    """``#e6edf3 on #0d1117 bold``."""
    if style is None:
        return "plain"
    colours = [colour.get_truecolor().hex if colour else "none" for colour in (style.color, style.bgcolor)]
    return " ".join([" on ".join(colours), *(weight for weight in _WEIGHTS if getattr(style, weight))])
