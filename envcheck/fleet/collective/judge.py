"""What a search over groups of nodes amounts to."""

from __future__ import annotations

from collections.abc import Mapping

from envcheck.checks import Status, Verdict
from envcheck.fleet.collective.record import FleetBench, MeasuredGroup, MeasuredNode, SlowLink, SlowNode
from envcheck.fleet.collective.search import SLOWER, Link, Search, Suspect
from envcheck.fleet.collective.together import SIZE, Member
from envcheck.fleet.overall import Circumstances, counted
from envcheck.rules.facts.machine import plural
from envcheck.rules.facts.measurements import quantity

_FAILS = 0.15
"""Share by which a node must be slower to fail."""


def judged(
    search: Search, members: Mapping[str, Member], problems: Mapping[str, str], how: Circumstances, unfinished: str
) -> FleetBench:
    """The report: of the nodes that took part (``members``), and of those that did not, or failed (``problems``)."""
    slow = tuple(sorted(map(_slow, search.suspects), key=lambda each: (each.bandwidth or 0.0, each.node)))
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


def _node(name: str, member: Member | None, problem: str) -> MeasuredNode:
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


def _slow(suspect: Suspect) -> SlowNode:
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
    told = [
        counted(len(failing), "node fails beside a healthy one", "nodes fail beside a healthy one"),
        counted(len(slow) - len(failing), "node is slow", "nodes are slow"),
        counted(len(search.links), "link between two nodes is slow", "links between two nodes are slow"),
        counted(len(search.lost), "node aborted a measurement", "nodes aborted measurements"),
        counted(len(set(problems) - set(search.lost)), "node was not measured", "nodes were not measured"),
        "no group of nodes works" if _nothing_works(search) else "",
        counted(len(search.unsettled), "group is slow for an unknown reason", "groups are slow for unknown reasons"),
        unfinished,
    ]
    if any(told):
        return ", ".join(filter(None, told))
    if search.reference is None:
        return _too_few(search)
    return f"{plural(len(search.left), 'node')}: none is slower than the others by more than {SLOWER:.0%}"


def _too_few(search: Search) -> str:
    if len(search.left) < 2:
        return "an all-reduce between nodes takes two of them"
    value = search.groups[0].outcome.value if search.groups else None
    told = f"two nodes reach {quantity(value, 'B/s')}" if value else "two nodes were measured"
    return f"{told}; which of them is slow can only be told beside a third"
