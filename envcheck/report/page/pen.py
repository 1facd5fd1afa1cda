"""How text gets onto the page, cleaned and at the very end coloured: how much of it, and in which lines."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

import msgspec

from envcheck.report import Options
from envcheck.text.clean import clean, shell_line
from envcheck.text.wrap import clip, fill, fill_items, width

if TYPE_CHECKING:
    from envcheck.model.checks import Check, Fix, Status

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


LINES = 23  # Lines of a page: a terminal of 24 without the prompt that follows

UNLIMITED = 10_000


class Room(NamedTuple):
    """Most lines (or entries of a line each) of every part of the page."""

    title: int = 2
    seen: int = 2
    why: int = 2
    fixes: int = 2
    fix: int = 2  # Lines of the words of one fix; its command is never cut
    docs: int = 1
    also: int = 3
    ask: int = 2
    gpus: int = 4  # Groups of equal GPUs
    row: int = 2  # Lines of one row of the stack
    probes: int = 3
    others: int = 8  # Findings after the first


ROOMS = (
    Room(seen=4, why=4, fixes=3, fix=3, also=6, gpus=8, row=3, probes=6),
    Room(),
    Room(also=2, gpus=3, row=1, probes=2, others=4),
    Room(seen=1, why=1, fixes=1, fix=1, docs=0, also=1, ask=1, gpus=3, row=1, probes=1, others=3),
    Room(title=1, seen=1, why=1, fixes=1, fix=1, docs=0, also=1, ask=1, gpus=2, row=1, probes=1, others=1),
)
"""From the roomiest to the tightest; the last one fits whatever the report."""

EVERYTHING = Room(**{part: UNLIMITED for part in Room._fields if part != "docs"})

LONGEST_COMMAND = 1000  # Columns of a command that a page of limited length prints, whole or not at all

LABEL = 8  # Columns before the text of a labelled line: ``  seen  ``

_WORD = 6  # Columns of a status word before a title


def title_lines(word: str, style: Style, title: str, rule: str, pen: Pen, most: int) -> list[Line]:
    """``FAIL  title      [rule]``: the rule stands at the right margin, on the last of at most ``most`` lines."""
    indent = max(_WORD, len(word) + 2)
    room = pen.width - indent
    tag = pen.clip(f"[{rule}]", room // 2) if rule else ""
    last_room = room - width(tag) - 2 if tag else room
    texts = pen.fill(title, room, most + 1) or [""]
    if len(texts) > most or (width(texts[-1]) > last_room and len(texts) == most):
        texts = [*texts[: most - 1], pen.clip(" ".join(texts[most - 1 :]), last_room)]
    if width(texts[-1]) > last_room:
        texts.append("")
    heads = [StyledSpan(word.ljust(indent), style)] + [StyledSpan(" " * indent)] * (len(texts) - 1)
    lines: list[Line] = [(head, StyledSpan(text, "title")) for head, text in zip(heads, texts, strict=True)]
    if tag:
        gap = StyledSpan(" " * (room - width(texts[-1]) - width(tag)))
        lines[-1] = (*lines[-1], gap, StyledSpan(tag, "dim"))
    return lines


def labelled(label: str, text: str, pen: Pen, most: int = UNLIMITED) -> list[Line]:
    """``  label text``, in at most ``most`` lines."""
    return _labelled(label, pen.fill(text, pen.width - LABEL, most))


def labelled_items(label: str, items: Sequence[str], pen: Pen, most: int) -> list[Line]:
    """``  label item; item``, in at most ``most`` lines."""
    return _labelled(label, pen.fill_items(items, pen.width - LABEL, most))


def _labelled(label: str, texts: Sequence[str]) -> list[Line]:
    return [
        (StyledSpan(f"  {label if number == 0 else '':<6}", "dim"), StyledSpan(line))
        for number, line in enumerate(texts)
    ]


def tagged(label: str, text: str, rule: str, pen: Pen) -> Line:
    """``  label text      [rule]`` on one line."""
    room = pen.width - LABEL
    tag = pen.clip(f"[{rule}]", room // 2)
    shown = pen.clip(text, room - width(tag) - 2)
    gap = " " * (room - width(shown) - width(tag))
    return (StyledSpan(f"  {label:<6}", "dim"), StyledSpan(shown), StyledSpan(gap), StyledSpan(tag, "dim"))


WHO = {"user": "", "root": "as root: ", "cluster-admin": "by the cluster's administrator: "}
"""What stands before a step that not everybody may take."""

ACTIONS = {
    "reset": "reset the GPU",
    "reboot": "reboot the machine",
    "drain": "drain the node",
    "replace": "have the GPU replaced",
}


def fix_lines(check: Check, pen: Pen, room: Room) -> list[Line]:
    """The ways to fix ``check``, what the user can do first, each with all its steps; its action where it has none."""
    from envcheck.model.checks import ways_in_order  # an answer of the matrix has no fixes, and loads no report

    ordered = ways_in_order(check.fixes)
    if not ordered:
        action = ACTIONS.get(check.action)
        return labelled("fix", action, pen, 1) if action else []
    lines: list[Line] = []
    for way in ordered[: room.fixes]:
        # In the tightest room the steps of a way are its commands alone, in their order.
        bare = len(way) > 1 and room.fixes == 1
        for step, fix in steps(way):
            lines += _one_fix(fix, pen, room, words_of("" if room.fixes == 1 else step, fix), bare=bare)
    left_out = len(ordered[room.fixes :])
    more = f"+{left_out} more {'fix' if left_out == 1 else 'fixes'} (-v)"
    return [*lines, *(labelled("", more, pen, 1) if left_out else [])]


def steps(way: tuple[Fix, ...]) -> list[tuple[str, Fix]]:
    """Each step with the words that say which one it is; no words where there is one."""
    return [(f"step {number} of {len(way)}: " if len(way) > 1 else "", fix) for number, fix in enumerate(way, start=1)]


def words_of(step: str, fix: Fix) -> str:
    """What a step does, and who can do it; a command that starts with sudo says that by itself."""
    return step + ("" if fix.command[:1] == ("sudo",) else WHO[fix.who]) + fix.text


def _one_fix(fix: Fix, pen: Pen, room: Room, words: str, *, bare: bool) -> list[Line]:
    """One fix: what it does and then its command; the command alone where ``bare`` and it fits."""
    command = pen.command(fix.command)
    beside = width(command) <= pen.width - LABEL
    alone = bool(command) and (not words or (bare and beside))
    lines = [] if alone else labelled("fix", f"{words.rstrip(' .:')}:" if command else words, pen, room.fix)
    label = "fix" if alone else ""
    if command and beside:
        lines.append((StyledSpan(f"  {label:<6}", "dim"), StyledSpan(command, "command")))
    elif command and room.fixes < UNLIMITED and width(command) > LONGEST_COMMAND:
        lines += labelled(label, f"a command of {len(command):,} characters (-v prints it)", pen, 1)
    elif command:  # on a line of its own, and whole
        lines += labelled(label, "run:", pen, 1) if label else []
        lines.append((StyledSpan("  "), StyledSpan(command, "command")))
    if fix.risk:
        lines += labelled("", f"risk: {fix.risk}", pen, room.fix)
    return lines
