"""Rows and sections of the pages about many nodes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from envcheck.checks import Status
from envcheck.fleet.names import folded
from envcheck.report.page.pen import WORDS, Line, Pen, Span

MOST_NAMES = 12
"""Names, or runs of names, after a row."""
VERDICTS: dict[str, str] = {"pass": "PASS", "warn": "WARN", "fail": "FAIL", "unknown": "UNKNOWN"}


def section(
    pen: Pen, title: str, rows: Sequence[Sequence[Line]], most: int, whole: str = "--format jsonl"
) -> Iterator[Line]:
    """A title and ``most`` of ``rows``, which are lines each; nothing where there are none."""
    if not rows:
        return
    yield ()
    yield (Span(title, "title"),)
    for lines in rows[:most]:
        yield from lines
    if len(rows) > most:
        left = f"… and {len(rows) - most:,} more (-v shows them, {whole} has all)"
        yield (Span(pen.text(f"  {left}"), "dim"),)


def row(
    pen: Pen, status: Status, text: str, names: Sequence[str], sign: str = "", *, parts: Sequence[str] = ()
) -> list[Line]:
    """``text`` after the word for ``status``, or after ``sign``, and the nodes that it is about.

    Where there are few, ``parts`` says of each which part of it.
    """
    lines = list(filled(pen, f"  {sign or WORDS[status]:<5}", text, "" if sign else status))
    if names:
        runs = folded(names)
        if any(parts) and len(names) <= MOST_NAMES:
            runs = [" ".join([*folded([name]), *filter(None, [part])]) for name, part in zip(names, parts, strict=True)]
        shown = ", ".join(runs[:MOST_NAMES]) + (", …" if len(runs) > MOST_NAMES else "")
        count = f"{len(set(names)):,} nodes: " if len(set(names)) > 1 else ""
        lines += [(Span("       "), Span(line, "dim")) for line in pen.fill(count + shown, pen.width - 7, 2)]
    return lines


def filled(pen: Pen, lead: str, text: str, style: str = "", *, title: bool = False) -> Iterator[Line]:
    """``text`` after ``lead``, in at most three lines."""
    for place, line in enumerate(pen.fill(text, pen.width - len(lead), 3)):
        mark = Span(lead if not place else " " * len(lead), style)  # type: ignore[arg-type]
        yield (mark, Span(line, "title" if title else ""))
