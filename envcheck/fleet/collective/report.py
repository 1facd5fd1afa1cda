"""The report of ``envcheck bench --fleet``: its record (``--json``), the verdict over a search, and its page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from envcheck.fleet.collective.search import SLOWER, Link, Search, Suspect
from envcheck.fleet.collective.together import SIZE, MeasuringNode
from envcheck.fleet.pages.rows import VERDICTS, by_reason, filled, row, section
from envcheck.fleet.record import Circumstances, FleetPart, Overall, counted
from envcheck.model.checks import Status, Verdict
from envcheck.report import Options
from envcheck.report.page.pen import Line, Pen
from envcheck.report.saved.descriptions import described
from envcheck.rules.facts.machine import plural
from envcheck.rules.facts.measurements import quantity

SCHEMA_VERSION = "1.0"
"""Readers accept any minor of their major."""


class MeasuredNode(FleetPart, frozen=True, kw_only=True):
    """A node, and whether it could be measured."""

    name: str
    """Its name, as the engine calls it."""
    host: str | None = None
    """Its own name; null where it did not answer."""
    gpus: int = 0
    """GPUs that took part."""
    nccl: str = ""
    """Release of NCCL; empty where it took part in no measurement that ended."""
    transports: tuple[str, ...] = ()
    """Over what NCCL connected its GPUs, in the words of NCCL's log, the most frequent first."""
    problem: str = ""
    """Why it was not measured, or no longer; empty where it was."""


class MeasuredGroup(FleetPart, frozen=True, kw_only=True):
    """An all-reduce over a group of nodes."""

    nodes: tuple[str, ...]
    """Names of the nodes."""
    bandwidth: float | None
    """Bus bandwidth in bytes per second, as nccl-tests defines it; null: it failed."""
    problem: str = ""
    """Why it failed."""


class SlowNode(FleetPart, frozen=True, kw_only=True):
    """A node that is slower than others, or fails, together with a healthy one."""

    status: Status
    """``warn``, or ``fail`` below 85 % of what healthy nodes reach, or where it fails."""
    node: str
    """Name of the node."""
    beside: str
    """The healthy node with which it was measured."""
    bandwidth: float | None
    """Bus bandwidth of the two in bytes per second; null: it failed."""
    expected: float
    """Bus bandwidth of two healthy nodes."""
    problem: str = ""
    """Why it failed."""


class SlowLink(FleetPart, frozen=True, kw_only=True):
    """Two nodes that are slow, or fail, together, while each is faster with a third."""

    status: Status
    """``warn``, or ``fail`` below 85 % of what they reach with the third, or where it fails."""
    nodes: tuple[str, str]
    """Names of the two."""
    beside: str
    """The third node."""
    bandwidth: float | None
    """Bus bandwidth of the two in bytes per second; null: it failed."""
    expected: float
    """Bus bandwidth with the third node, of the slower of the two."""
    problem: str = ""
    """Why it failed."""


class FleetBench(Overall, frozen=True, kw_only=True):
    """All-reduce over groups of nodes."""

    schema_version: str = SCHEMA_VERSION
    size: int
    """Bytes that every GPU sums with the others."""
    nodes: tuple[MeasuredNode, ...]
    """All nodes."""
    groups: tuple[MeasuredGroup, ...] = ()
    """All measurements in their order; the first is that of all nodes."""
    reference: float | None = None
    """Bus bandwidth of the fastest of the groups that were compared; null where none was."""
    slow: tuple[SlowNode, ...] = ()
    """The nodes that were found."""
    links: tuple[SlowLink, ...] = ()
    """The slow links between two nodes that were found."""
    unsettled: tuple[tuple[str, ...], ...] = ()
    """Slow groups in which neither a node nor a link was found to be slow."""
    unfinished: str = ""
    """Why the search ended early; empty where it did not."""


def schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12)."""
    return described(FleetBench, "fleet-bench", SCHEMA_VERSION)


_FAILS = 0.15
"""Share by which a node must be slower to fail."""


def judged(
    search: Search,
    members: Mapping[str, MeasuringNode],
    problems: Mapping[str, str],
    how: Circumstances,
    unfinished: str,
) -> FleetBench:
    """The report: of the nodes that took part (``members``), and of those that did not, or failed (``problems``)."""
    slow = tuple(sorted(map(_slow_node, search.suspects), key=lambda each: (each.bandwidth or 0.0, each.node)))
    links = tuple(map(_slow_link, search.links))
    nodes = tuple(_node(name, members.get(name), problems.get(name, "")) for name in sorted({*members, *problems}))
    verdict = _verdict(search, (*slow, *links), problems)
    return FleetBench(
        tool=how.tool,
        created=how.created,
        duration_s=how.duration_s,
        engine=how.engine,
        headline=_headline(search, slow, problems, unfinished),
        verdict=verdict,
        exit_code=how.exit_code(verdict, lacking=bool(problems or unfinished)),
        size=SIZE,
        nodes=nodes,
        groups=tuple(
            MeasuredGroup(nodes=group.nodes, bandwidth=group.outcome.value, problem=group.outcome.problem)
            for group in search.groups
        ),
        reference=search.reference,
        slow=slow,
        links=links,
        unsettled=tuple(search.unsettled),
        unfinished=unfinished,
    )


def _node(name: str, member: MeasuringNode | None, problem: str) -> MeasuredNode:
    if member is None:
        return MeasuredNode(name=name, problem=problem)
    return MeasuredNode(
        name=name,
        host=member.host,
        gpus=len(member.gpus),
        nccl=member.nccl,
        transports=member.transports,
        problem=problem,
    )


def _slow_node(suspect: Suspect) -> SlowNode:
    return SlowNode(
        status=_status(suspect),
        node=suspect.node,
        beside=suspect.beside,
        bandwidth=suspect.outcome.value,
        expected=suspect.expected,
        problem=suspect.outcome.problem,
    )


def _slow_link(link: Link) -> SlowLink:
    return SlowLink(
        status=_status(link),
        nodes=link.nodes,
        beside=link.beside,
        bandwidth=link.outcome.value,
        expected=link.expected,
        problem=link.outcome.problem,
    )


def _status(found: Suspect | Link) -> Status:
    value = found.outcome.value
    return "fail" if value is None or value < (1 - _FAILS) * found.expected else "warn"


def _verdict(search: Search, slow: tuple[SlowNode | SlowLink, ...], problems: Mapping[str, str]) -> Verdict:
    whole = search.groups[0].outcome if search.groups else None
    if any(each.status == "fail" for each in slow) or search.lost or (search.finished and _nothing_works(search)):
        return "fail"
    if slow or search.unsettled:
        return "warn"
    compared = search.finished and search.reference is not None and whole is not None
    return "pass" if compared and not problems else "unknown"


def _nothing_works(search: Search) -> bool:
    return bool(search.groups) and all(group.outcome.value is None for group in search.groups)


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
        value = search.groups[0].outcome.value if search.groups else None
        measured = f"two nodes reach {quantity(value, 'B/s')}" if value else "two nodes were measured"
        return f"{measured}; which of them is slow can only be told beside a third"
    return f"{plural(len(search.left), 'node')}: none is slower than the others by more than {SLOWER:.0%}"


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
    text = f"{plural(len(measured), 'node')}, {gpus}, all-reduce of {size}: {plural(len(found.groups), 'measurement')}"
    yield from filled(pen, "  ", text)
    if options.quiet:
        return
    most = len(found.nodes) + len(found.groups) if options.verbose else _ROWS
    gone = by_reason((node.name, node.problem) for node in found.nodes if node.problem)
    yield from section(pen, "Not measured", [row(pen, "unknown", *text) for text in gone], most, "--json")
    yield from section(pen, "Slow beside a healthy node", [_slow_row(pen, each) for each in found.slow], most, "--json")
    yield from section(pen, "Slow with each other only", [_link_row(pen, each) for each in found.links], most, "--json")
    text = "slow, although neither a node nor a link of it was found to be"
    unsettled = [row(pen, "warn", text, names) for names in found.unsettled]
    yield from section(pen, "Not settled", unsettled, most, "--json")
    yield from section(
        pen, "Measured groups", [_group_row(pen, group, found) for group in found.groups], most, "--json"
    )


def _slow_row(pen: Pen, each: SlowNode) -> list[Line]:
    healthy = f"two healthy nodes reach {quantity(each.expected, 'B/s')}"
    return row(pen, each.status, f"{each.node} with {each.beside}: {_figure(each)}; {healthy}", ())


def _link_row(pen: Pen, each: SlowLink) -> list[Line]:
    others = f"with {each.beside} each reaches {quantity(each.expected, 'B/s')}"
    return row(pen, each.status, f"{' with '.join(each.nodes)}: {_figure(each)}; {others}", ())


def _figure(each: SlowNode | SlowLink) -> str:
    if each.bandwidth is None:
        return each.problem
    return f"{quantity(each.bandwidth, 'B/s')}, {each.bandwidth / each.expected:.0%}"


def _group_row(pen: Pen, group: MeasuredGroup, found: FleetBench) -> list[Line]:
    """A group is not judged by itself: whether it is slow depends on the groups of its size."""
    failed: Status = "fail" if group.bandwidth is None else "pass"
    text = group.problem if group.bandwidth is None else quantity(group.bandwidth, "B/s")
    whole = "all: " if group is found.groups[0] else ""
    return row(pen, failed, f"{whole}{text}", group.nodes, sign="" if group.bandwidth is None else "-")
