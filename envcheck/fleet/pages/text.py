"""A fleet on one page, however many nodes it has: what stands out first, names folded, long lists cut with a count."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from envcheck.fleet.pages.rows import MOST_LINES, VERDICTS, NodeRow, by_reason, section
from envcheck.fleet.record import Difference, Drift, Fleet, Place, Slow, Split, counted
from envcheck.model.checks import Status
from envcheck.report import Options
from envcheck.report.page.pen import Line, Pen, StyledSpan
from envcheck.rules.facts.measurements import quantity

_ROWS = 8
"""Rows of a section; ``verbose`` shows all."""
_GROUPS = 4
_AGREE = "Nodes that agree"


def render(fleet: Fleet, options: Options) -> str:
    """``fleet`` as a page."""
    pen = Pen(options)
    return pen.show(page_lines(fleet, pen, options))


def page_lines(fleet: Fleet, pen: Pen, options: Options) -> list[Line]:
    """The lines of the page."""
    return list(_page(fleet, pen, options))


def _page(fleet: Fleet, pen: Pen, options: Options) -> Iterator[Line]:
    head = fleet.head
    yield from pen.hang((StyledSpan(f"{VERDICTS[head.verdict]}  ", head.verdict),), head.headline, "title", MOST_LINES)
    yield from pen.hang("  ", counts(fleet), most=MOST_LINES)
    if options.quiet:
        return
    most = len(fleet.nodes) + len(fleet.differences) + len(fleet.slow) + 1 if options.verbose else _ROWS
    for each in sections(fleet, whole=options.verbose):
        groups = each.title == _AGREE and not options.verbose
        yield from section(pen, each.title, each.rows, _GROUPS if groups else most)
    if head.superseded:
        yield from pen.hang("", f"{left_out(head.superseded)}.", "dim", MOST_LINES)


@dataclass(frozen=True)
class FleetSection:
    """A part of the page."""

    title: str
    heads: Sequence[str]
    """Above the cells of its rows: that of the status is empty, that of the nodes is last where rows name any."""
    rows: Sequence[NodeRow]


def sections(fleet: Fleet, *, whole: bool) -> Iterator[FleetSection]:
    """What stands out, then the nodes that agree; ``whole``: all slow figures of a GPU."""
    reasons = [NodeRow("unknown", why, names, cells=(why,)) for why, names in unanswered(fleet)]
    yield FleetSection("No report", ("Reason", "Nodes"), reasons)
    problems = [
        NodeRow(each.status, f"{each.rule}: {each.title}", each.nodes, cells=(each.rule, each.title))
        for each in fleet.problems
    ]
    yield FleetSection("Findings of the nodes", ("", "Rule", "Problem", "Nodes"), problems)
    heads: tuple[str, ...] = ("Fact", "Value", "Most have", "Share", "Where")
    yield FleetSection("Different from the majority", heads, [*_differences(fleet)])
    yield FleetSection("No majority", ("Fact", "Values"), [*_splits(fleet)])
    heads = ("", "Node", "GPU or link", "Serial", "Quantity", "Value", "Median", "Of median")
    yield FleetSection("Slow compared with the same GPU model", heads, [*_slow(fleet.slow, whole=whole)])
    changes = [*_drifts(fleet), *_came_or_went(fleet)]
    yield FleetSection(f"Changed since {fleet.head.since}", ("Fact", "Before", "Now", "Where"), changes)
    heads = ("", "Node", "GPU or link", "Quantity", "Before", "Now")
    yield FleetSection("Slower than before", heads, [*_slowed(fleet)])
    heads = ("Group", "GPUs", "Driver", "Kernel", "Differs in", "Nodes")
    yield FleetSection(_AGREE, heads, [*_groups(fleet)])


def counts(fleet: Fleet) -> str:
    """How many nodes there are, with how many GPUs, and how many have which verdict."""
    head = fleet.head
    verdicts = ", ".join(f"{count:,} {name}" for name, count in head.verdicts.items() if count)
    gpus = counted(head.gpus, "GPU", "GPUs") or "no GPU"
    return f"{counted(head.nodes, 'node', 'nodes')}, {gpus}: {verdicts}" if verdicts else "no reports"


def unanswered(fleet: Fleet) -> list[tuple[str, list[str]]]:
    """Why there is no report, and of which nodes; what most have first."""
    return by_reason((node.name, node.problem) for node in fleet.nodes if node.problem)


def _differences(fleet: Fleet) -> Iterator[NodeRow]:
    # Few nodes first: one that departs alone is more likely to be the fault than a part of the fleet.
    for each in sorted(fleet.differences, key=lambda each: (len(each.places), each.aspect, each.what)):
        fact, value, common = fact_text(each), value_text(each.value), value_text(each.common)
        share = f"{each.share:,} of {each.known:,}"
        yield _placed("warn", f"{fact}: {value}, not {common} ({share})", each.places, (fact, value, common, share))


def _splits(fleet: Fleet) -> Iterator[NodeRow]:
    for split in fleet.splits:
        values = [f"{value_text(value)} ({count:,})" for value, count in zip(split.values, split.counts, strict=False)]
        more = f", {len(split.values) - 4:,} others" if len(split.values) > len(values[:4]) else ""
        fact = fact_text(split)
        yield NodeRow("note", f"{fact}: {', '.join(values[:4])}{more}", cells=(fact, ", ".join(values)))


def _slow(figures: Sequence[Slow], *, whole: bool) -> Iterator[NodeRow]:
    """The figures, the slowest first; of a GPU only the slowest, unless all are asked for."""
    rest = Counter((each.node, each.subject) for each in figures)
    for figure in sorted(figures, key=lambda each: (each.ratio, each.node)):
        others = 0 if whole else rest.pop((figure.node, figure.subject), 0) - 1
        if others < 0:
            continue
        title, unit, share = figure.quantity.title, figure.quantity.unit, f"{figure.ratio:.0%}"
        value, median = quantity(figure.value, unit), quantity(figure.median, unit)
        where = " ".join(filter(None, (figure.node, figure.subject or "processor")))
        serial = f" (serial {figure.serial})" if figure.serial else ""
        more = f"; {counted(others, 'other figure is slow', 'other figures are slow')}" if others else ""
        text = f"{where}{serial}: {title} {value}, {share} of the median {median}{more}"
        model = f"{title} ({figure.quantity.model})"
        yield NodeRow(
            figure.status, text, cells=(figure.node, figure.subject, figure.serial, model, value, median, share)
        )


def _drifts(fleet: Fleet) -> Iterator[NodeRow]:
    for each in sorted(fleet.drifts, key=lambda each: (-len(each.places), each.aspect, each.what)):
        fact, before, after = fact_text(each), value_text(each.before), value_text(each.after)
        yield _placed("note", f"{fact}: {before}, now {after}", each.places, (fact, before, after))


def _came_or_went(fleet: Fleet) -> Iterator[NodeRow]:
    moved = fleet.came_or_went
    if moved and moved.went:
        yield NodeRow("warn", "without a report now", moved.went, cells=("report", "present", "absent"))
    if moved and moved.came:
        yield NodeRow("note", "without an earlier report", moved.came, cells=("report", "absent", "present"))


def _slowed(fleet: Fleet) -> Iterator[NodeRow]:
    for figure in sorted(fleet.slowed, key=lambda each: each.ratio):
        title, unit = figure.quantity.title, figure.quantity.unit
        where = " ".join(filter(None, (figure.node, figure.subject)))
        before, after = quantity(figure.before, unit), quantity(figure.after, unit)
        share = f"({figure.ratio:.0%})"
        text = f"{where}: {title} {after}, was {before} {share}"
        yield NodeRow("warn", text, cells=(figure.node, figure.subject, title, before, f"{after} {share}"))


def _groups(fleet: Fleet) -> Iterator[NodeRow]:
    for group in fleet.groups:
        facts = ", ".join(filter(None, (group.gpus, f"driver {group.driver}" if group.driver else "", group.kernel)))
        differs = ", ".join(group.differs_in)
        cells = (str(group.number), group.gpus, group.driver, group.kernel, differs)
        text = f"{facts}; differs in {differs}" if differs else facts
        yield NodeRow("pass", text, group.nodes, sign=f"{group.number}.", cells=cells)


def _placed(status: Status, text: str, places: Sequence[Place], cells: Sequence[str]) -> NodeRow:
    parts = ["+".join(each.subjects) for each in places]
    return NodeRow(status, text, [each.node for each in places], parts, cells=cells)


def left_out(count: int) -> str:
    """That older reports were not compared."""
    return counted(count, "older report of the same node was left out", "older reports of the same nodes were left out")


def fact_text(found: Difference | Split | Drift) -> str:
    """A fact's name after its aspect, unless they are the same word."""
    return found.what if found.what == found.aspect else f"{found.aspect}, {found.what}"


def value_text(value: str | None) -> str:
    """A fact's value as people read it."""
    return "absent" if value is None else value or "(empty)"
