"""All-reduce between nodes on one page."""

from __future__ import annotations

from collections.abc import Iterator

from envcheck.checks import Status
from envcheck.fleet.collective.record import FleetBench, MeasuredGroup, SlowLink, SlowNode
from envcheck.fleet.names import by_reason
from envcheck.fleet.pages.rows import VERDICTS, filled, row, section
from envcheck.report import Options
from envcheck.report.page.pen import Line, Pen
from envcheck.rules.facts.machine import plural
from envcheck.rules.facts.measurements import quantity

_ROWS = 8
"""Rows of a section; ``verbose`` shows all."""


def render(found: FleetBench, options: Options) -> str:
    """``found`` as a page."""
    pen = Pen(options)
    return pen.show(_page(found, pen, options))


def _page(found: FleetBench, pen: Pen, options: Options) -> Iterator[Line]:
    yield from filled(pen, f"{VERDICTS[found.verdict]}  ", found.headline, style=found.verdict, title=True)
    measured = [node for node in found.nodes if node.host is not None]
    gpus = plural(sum(node.gpus for node in measured), "GPU")
    size = f"{found.size >> 20} MiB"
    told = f"{plural(len(measured), 'node')}, {gpus}, all-reduce of {size}: {plural(len(found.groups), 'measurement')}"
    yield from filled(pen, "  ", told)
    if options.quiet:
        return
    most = len(found.nodes) + len(found.groups) if options.verbose else _ROWS
    gone = by_reason((node.name, node.problem) for node in found.nodes if node.problem)
    yield from section(pen, "Not measured", [row(pen, "unknown", *told) for told in gone], most, "--json")
    yield from section(pen, "Slow beside a healthy node", [_slow(pen, each) for each in found.slow], most, "--json")
    yield from section(pen, "Slow with each other only", [_link(pen, each) for each in found.links], most, "--json")
    told = "slow, although neither a node nor a link of it was found to be"
    unsettled = [row(pen, "warn", told, names) for names in found.unsettled]
    yield from section(pen, "Not settled", unsettled, most, "--json")
    yield from section(pen, "Measured groups", [_group(pen, group, found) for group in found.groups], most, "--json")


def _slow(pen: Pen, each: SlowNode) -> list[Line]:
    healthy = f"two healthy nodes reach {quantity(each.expected, 'B/s')}"
    return row(pen, each.status, f"{each.node} with {each.beside}: {_figure(each)}; {healthy}", ())


def _link(pen: Pen, each: SlowLink) -> list[Line]:
    others = f"with {each.beside} each reaches {quantity(each.expected, 'B/s')}"
    return row(pen, each.status, f"{' with '.join(each.nodes)}: {_figure(each)}; {others}", ())


def _figure(each: SlowNode | SlowLink) -> str:
    if each.bandwidth is None:
        return each.problem
    return f"{quantity(each.bandwidth, 'B/s')}, {each.bandwidth / each.expected:.0%}"


def _group(pen: Pen, group: MeasuredGroup, found: FleetBench) -> list[Line]:
    """A group is not judged by itself: whether it is slow depends on the groups of its size."""
    failed: Status = "fail" if group.bandwidth is None else "pass"
    text = group.problem if group.bandwidth is None else quantity(group.bandwidth, "B/s")
    whole = "all: " if group is found.groups[0] else ""
    return row(pen, failed, f"{whole}{text}", group.nodes, sign="" if group.bandwidth is None else "-")
