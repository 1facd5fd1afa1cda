"""The report of ``envcheck bench --fleet``: its record (``--json``), the verdict over a search, and its page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from envcheck.fleet.collective.search import SLOWER, MeasuredGroup, MeasuredNode, Search, SlowLink, SlowNode
from envcheck.fleet.collective.together import SIZE
from envcheck.fleet.pages.text import MOST_LINES, NodeRow, by_reason, section
from envcheck.fleet.record import Circumstances, Overall, counted
from envcheck.model.checks import Verdict
from envcheck.report import Options
from envcheck.report.page.pen import Line, Pen, StyledSpan
from envcheck.rules.facts.machine import plural
from envcheck.rules.facts.measurements import quantity

SCHEMA_VERSION = "1.0"  # Readers accept any minor of their major


class FleetBench(Overall, frozen=True, kw_only=True):
    """All-reduce over groups of nodes."""

    schema_version: str = SCHEMA_VERSION
    size: int  # Bytes that every GPU sums with the others
    nodes: tuple[MeasuredNode, ...]  # All nodes
    groups: tuple[MeasuredGroup, ...] = ()  # All measurements in their order; the first is that of all nodes
    reference: float | None = None  # Bus bandwidth of the fastest of the groups that were compared; null where none was
    slow: tuple[SlowNode, ...] = ()  # The nodes that were found
    links: tuple[SlowLink, ...] = ()  # The slow links between two nodes that were found
    unsettled: tuple[tuple[str, ...], ...] = ()  # Slow groups in which neither a node nor a link was found to be slow
    unfinished: str = ""  # Why the search ended early; empty where it did not


def judged(
    search: Search,
    members: Mapping[str, MeasuredNode],
    problems: Mapping[str, str],
    how: Circumstances,
    unfinished: str,
) -> FleetBench:
    """The report: of the nodes that took part (``members``), and of those that did not, or failed (``problems``)."""
    slow = tuple(sorted(search.suspects, key=lambda each: (each.bandwidth or 0.0, each.node)))
    nodes = {name: members.get(name) or MeasuredNode(name=name) for name in sorted({*members, *problems})}
    found: list[SlowNode | SlowLink] = [*search.suspects, *search.links]
    compared = search.finished and search.reference is not None
    verdict: Verdict = "pass" if compared and not problems else "unknown"
    if any(each.status == "fail" for each in found) or search.lost or (search.finished and _nothing_works(search)):
        verdict = "fail"
    elif found or search.unsettled:
        verdict = "warn"
    return FleetBench(
        **how.overall_fields(),
        headline=_headline(search, slow, problems, unfinished),
        verdict=verdict,
        exit_code=how.exit_code(verdict, lacking=bool(problems or unfinished)),
        size=SIZE,
        nodes=tuple(msgspec.structs.replace(node, problem=problems.get(name, "")) for name, node in nodes.items()),
        groups=tuple(search.groups),
        reference=search.reference,
        slow=slow,
        links=tuple(search.links),
        unsettled=tuple(search.unsettled),
        unfinished=unfinished,
    )


def _nothing_works(search: Search) -> bool:
    return bool(search.groups) and all(group.bandwidth is None for group in search.groups)


def _headline(search: Search, slow: tuple[SlowNode, ...], problems: Mapping[str, str], unfinished: str) -> str:
    failing = [each for each in slow if each.bandwidth is None]
    parts = [
        counted(len(failing), "node fails beside a healthy one", "nodes fail beside a healthy one"),
        counted(len(slow) - len(failing), "node is slow", "nodes are slow"),
        counted(len(search.links), "link between two nodes is slow", "links between two nodes are slow"),
        counted(len(search.lost), "node aborted a measurement", "nodes aborted measurements"),
        counted(len(set(problems) - set(search.lost)), "node was not measured", "nodes were not measured"),
        "no group of nodes works" if _nothing_works(search) else "",
        counted(len(search.unsettled), "group is slow for an unknown reason", "groups are slow for unknown reasons"),
        unfinished,
    ]
    if any(parts):
        return ", ".join(filter(None, parts))
    if search.reference is None:
        if len(search.left) < 2:
            return "an all-reduce between nodes takes two of them"
        value = search.groups[0].bandwidth if search.groups else None
        measured = f"two nodes reach {quantity(value, 'B/s')}" if value else "two nodes were measured"
        return f"{measured}; which of the two is slow shows only with a third"
    return f"{plural(len(search.left), 'node')}: none is slower than the others by more than {SLOWER:.0%}"


_ROWS = 8  # Rows of a section; ``verbose`` shows all


def render(found: FleetBench, options: Options) -> str:
    pen = Pen(options)
    return pen.show(_page(found, pen, options))


def _page(found: FleetBench, pen: Pen, options: Options) -> Iterator[Line]:
    verdict = StyledSpan(f"{found.verdict.upper()}  ", found.verdict)
    yield from pen.hang((verdict,), found.headline, "title", MOST_LINES)
    measured = [node for node in found.nodes if node.host is not None]
    gpus = plural(sum(node.gpus for node in measured), "GPU")
    size = f"{found.size >> 20} MiB"
    text = f"{plural(len(measured), 'node')}, {gpus}, all-reduce of {size}: {plural(len(found.groups), 'measurement')}"
    yield from pen.hang("  ", text, most=MOST_LINES)
    if options.quiet:
        return
    most = len(found.nodes) + len(found.groups) if options.verbose else _ROWS
    gone = by_reason((node.name, node.problem) for node in found.nodes if node.problem)
    yield from section(pen, "Not measured", [NodeRow("unknown", *text) for text in gone], most, "--json")
    yield from section(pen, "Slow beside a healthy node", [*map(_slow_row, found.slow)], most, "--json")
    yield from section(pen, "Slow with each other only", [*map(_slow_row, found.links)], most, "--json")
    text = "slow, although neither a node nor a link of it was found to be"
    unsettled = [NodeRow("warn", text, names) for names in found.unsettled]
    yield from section(pen, "Not settled", unsettled, most, "--json")
    rows = []  # a group is not judged by itself: whether it is slow depends on the groups of its size
    for group in found.groups:
        failed = group.bandwidth is None
        text = group.problem if group.bandwidth is None else quantity(group.bandwidth, "B/s")
        whole = "all: " if group is found.groups[0] else ""
        rows.append(NodeRow("fail" if failed else "pass", f"{whole}{text}", group.nodes, sign="" if failed else "-"))
    yield from section(pen, "Measured groups", rows, most, "--json")


def _slow_row(each: SlowNode | SlowLink) -> NodeRow:
    figure, expected = each.problem, quantity(each.expected, "B/s")
    if each.bandwidth is not None:
        figure = f"{quantity(each.bandwidth, 'B/s')}, {each.bandwidth / each.expected:.0%}"
    if isinstance(each, SlowNode):
        text = f"{each.node} with {each.beside}: {figure}; two healthy nodes reach {expected}"
    else:
        text = f"{' with '.join(each.nodes)}: {figure}; with {each.beside} each reaches {expected}"
    return NodeRow(each.status, text)
