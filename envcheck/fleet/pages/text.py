"""A fleet on one page, however many nodes it has: what stands out first, names folded, long lists cut with a count."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from envcheck.fleet.pages.rows import MOST_LINES, VERDICTS, by_reason, row, section
from envcheck.fleet.record import Difference, Drift, Fleet, Place, Slow, Split, counted
from envcheck.model.checks import Status
from envcheck.report import Options
from envcheck.report.page.pen import Line, Pen, StyledSpan
from envcheck.rules.facts.measurements import quantity

_ROWS = 8
"""Rows of a section; ``verbose`` shows all."""
_GROUPS = 4


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
    yield from section(pen, "No report", [row(pen, "unknown", *reason) for reason in unanswered(fleet)], most)
    problems = [row(pen, each.status, f"{each.rule}: {each.title}", each.nodes) for each in fleet.problems]
    yield from section(pen, "Findings of the nodes", problems, most)
    yield from section(pen, "Different from the majority", list(_differences(fleet, pen)), most)
    yield from section(pen, "No majority", list(_splits(fleet, pen)), most)
    yield from section(pen, "Slow compared with the same GPU model", list(_slow(fleet.slow, pen, options)), most)
    since = f"Changed since {head.since}"
    yield from section(pen, since, [*_drifts(fleet, pen), *_slowed(fleet, pen), *_came_or_went(fleet, pen)], most)
    yield from section(pen, "Nodes that agree", list(_groups(fleet, pen)), most if options.verbose else _GROUPS)
    if head.superseded:
        yield from pen.hang("", f"{left_out(head.superseded)}.", "dim", MOST_LINES)


def counts(fleet: Fleet) -> str:
    """How many nodes there are, with how many GPUs, and how many have which verdict."""
    head = fleet.head
    verdicts = ", ".join(f"{count:,} {name}" for name, count in head.verdicts.items() if count)
    gpus = counted(head.gpus, "GPU", "GPUs") or "no GPU"
    return f"{counted(head.nodes, 'node', 'nodes')}, {gpus}: {verdicts}" if verdicts else "no reports"


def unanswered(fleet: Fleet) -> list[tuple[str, list[str]]]:
    """Why there is no report, and of which nodes; what most have first."""
    return by_reason((node.name, node.problem) for node in fleet.nodes if node.problem)


def _differences(fleet: Fleet, pen: Pen) -> Iterator[list[Line]]:
    # Few nodes first: one that departs alone is more likely to be the fault than a part of the fleet.
    for difference in sorted(fleet.differences, key=lambda each: (len(each.places), each.aspect, each.what)):
        many = f" ({difference.share:,} of {difference.known:,})"
        common = value_text(difference.common)
        text = f"{fact_text(difference)}: {value_text(difference.value)}, not {common}{many}"
        yield _places(pen, "warn", text, difference.places)


def _splits(fleet: Fleet, pen: Pen) -> Iterator[list[Line]]:
    for split in fleet.splits:
        pairs = list(zip(split.values, split.counts, strict=False))[:4]
        values = ", ".join(f"{value_text(value)} ({count:,})" for value, count in pairs)
        more = f", {len(split.values) - 4:,} others" if len(split.values) > len(pairs) else ""
        yield row(pen, "note", f"{fact_text(split)}: {values}{more}", ())


def _slow(figures: Sequence[Slow], pen: Pen, options: Options) -> Iterator[list[Line]]:
    """The figures, the slowest first; of a GPU only the slowest, unless all are asked for."""
    rest = Counter((each.node, each.subject) for each in figures)
    for figure in sorted(figures, key=lambda each: (each.ratio, each.node)):
        others = 0 if options.verbose else rest.pop((figure.node, figure.subject), 0) - 1
        if others < 0:
            continue
        unit = figure.quantity.unit
        where = " ".join(filter(None, (figure.node, figure.subject or "processor")))
        serial = f" (serial {figure.serial})" if figure.serial else ""
        values = f"{quantity(figure.value, unit)}, {figure.ratio:.0%} of the median {quantity(figure.median, unit)}"
        more = f"; {counted(others, 'other figure is slow', 'other figures are slow')}" if others else ""
        text = f"{where}{serial}: {figure.quantity.title} {values}{more}"
        yield row(pen, figure.status, text, ())


def _drifts(fleet: Fleet, pen: Pen) -> Iterator[list[Line]]:
    for drift in sorted(fleet.drifts, key=lambda each: (-len(each.places), each.aspect, each.what)):
        text = f"{fact_text(drift)}: {value_text(drift.before)}, now {value_text(drift.after)}"
        yield _places(pen, "note", text, drift.places)


def _slowed(fleet: Fleet, pen: Pen) -> Iterator[list[Line]]:
    for figure in sorted(fleet.slowed, key=lambda each: each.ratio):
        unit = figure.quantity.unit
        where = " ".join(filter(None, (figure.node, figure.subject)))
        text = f"{quantity(figure.after, unit)}, was {quantity(figure.before, unit)} ({figure.ratio:.0%})"
        yield row(pen, "warn", f"{where}: {figure.quantity.title} {text}", ())


def _came_or_went(fleet: Fleet, pen: Pen) -> Iterator[list[Line]]:
    moved = fleet.came_or_went
    if moved and moved.went:
        yield row(pen, "warn", "without a report now", moved.went)
    if moved and moved.came:
        yield row(pen, "note", "without an earlier report", moved.came)


def _groups(fleet: Fleet, pen: Pen) -> Iterator[list[Line]]:
    for group in fleet.groups:
        facts = ", ".join(filter(None, (group.gpus, f"driver {group.driver}" if group.driver else "", group.kernel)))
        differs = f"; differs in {', '.join(group.differs_in)}" if group.differs_in else ""
        yield row(pen, "pass", f"{facts}{differs}", group.nodes, sign=f"{group.number}.")


def _places(pen: Pen, status: Status, text: str, places: Sequence[Place]) -> list[Line]:
    return row(pen, status, text, [each.node for each in places], parts=["+".join(each.subjects) for each in places])


def left_out(count: int) -> str:
    """That older reports were not compared."""
    return counted(count, "older report of the same node was left out", "older reports of the same nodes were left out")


def fact_text(found: Difference | Split | Drift) -> str:
    """A fact's name after its aspect, unless they are the same word."""
    return found.what if found.what == found.aspect else f"{found.aspect}, {found.what}"


def value_text(value: str | None) -> str:
    """A fact's value as people read it."""
    return "absent" if value is None else value or "(empty)"
