"""What ``envcheck bench --fleet --json`` prints."""

from __future__ import annotations

from typing import Any

from envcheck.checks import Status
from envcheck.fleet.overall import Overall, Part
from envcheck.report.saved.descriptions import described

SCHEMA_VERSION = "1.0"
"""Readers accept any minor of their major."""


class MeasuredNode(Part, frozen=True, kw_only=True):
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


class MeasuredGroup(Part, frozen=True, kw_only=True):
    """An all-reduce over a group of nodes."""

    nodes: tuple[str, ...]
    """Names of the nodes."""
    bandwidth: float | None
    """Bus bandwidth in bytes per second, as nccl-tests defines it; null: it failed."""
    problem: str = ""
    """Why it failed."""


class SlowNode(Part, frozen=True, kw_only=True):
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


class SlowLink(Part, frozen=True, kw_only=True):
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
