"""What a store knows of a node, on one page: its verdicts, what it said since when, and its speed by week."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from statistics import median

from envcheck.fleet.pages.text import MOST_LINES, NodeRow, decline_text, section
from envcheck.fleet.record import counted
from envcheck.fleet.store import History
from envcheck.report import Options
from envcheck.report.page.pen import Line, Pen

_VERDICTS, _SAID, _WEEKS = 12, 20, 8
_APART = 0.02
"""Share of the node's median by which a GPU has to be off in a week to be told on its own."""


def render(found: History, options: Options) -> str:
    """``found`` as a page."""
    pen = Pen(options)
    return pen.show(_lines(found, pen))


def _lines(found: History, pen: Pen) -> Iterator[Line]:
    since, looks = found.verdicts[0].first, sum(each.looks for each in found.verdicts)
    yield from pen.hang("", f"{found.node}: {counted(looks, 'look', 'looks')} since {since}", "title", MOST_LINES)
    rows = [NodeRow("warn", decline_text(each)) for each in found.declines]
    yield from section(pen, "Became slower", rows, len(rows))
    rows = [
        NodeRow(
            "note",
            f"{_days(each.first, each.last)}: {each.told} ({counted(each.looks, 'look', 'looks')})",
            sign=each.verdict[:4],
        )
        for each in reversed(found.verdicts)
    ]
    yield from section(pen, "Verdicts, the latest first", rows, _VERDICTS, "the store")
    rows = [
        NodeRow(each.status, f"{about}: {each.told} ({since})", sign="" if each.lasts else "was")
        for each in found.said
        for about in [" ".join(filter(None, (each.subject, each.what)))]
        for since in [f"since {each.first}" if each.lasts else _days(each.first, each.last)]
    ]
    yield from section(pen, "What it said", rows, _SAID, "the store")
    weeks = sorted({each.week for each in found.weeks})[-_WEEKS:]
    speeds: dict[str, dict[str, dict[str, float]]] = defaultdict(lambda: defaultdict(dict))
    for each in found.weeks:
        speeds[each.title][each.subject][each.week] = each.share
    rows = [
        NodeRow("note", f"{title}, {who}: {', '.join(cells)}", sign="")
        for title, by_subject in speeds.items()
        for who, by_week in _alike(by_subject, weeks)
        for cells in [[f"{by_week[week]:.0%}" if week in by_week else "-" for week in weeks]]
    ]
    title = f"Speed as a share of the fleet's median, in the weeks from {', '.join(week[5:] for week in weeks)}"
    yield from section(pen, title, rows, len(rows))


def _days(first: str, until: str) -> str:
    return first if first == until else f"{first} to {until}"


def _alike(
    by_subject: Mapping[str, Mapping[str, float]], weeks: list[str]
) -> Iterator[tuple[str, Mapping[str, float]]]:
    """The median of all in each week, and who is apart from it in one."""
    every = by_subject.values()
    middle = {week: median(found) for week in weeks if (found := [each[week] for each in every if week in each])}
    if len(every) > 1:
        yield f"median of {len(every)}", middle
    for subject, each in by_subject.items():
        if len(every) == 1 or any(abs(share - middle.get(week, share)) > _APART for week, share in each.items()):
            yield subject or "processor", each
