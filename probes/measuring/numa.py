"""Which NUMA nodes' memory can be used for copies to a GPU: its own, and the one farthest from it, as sysfs tells."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from ..kit.tree import Tree

NODES = "/sys/devices/system/node"


@dataclass(frozen=True)
class Place:
    """Where host memory is taken."""

    node: int | None
    """None: wherever the kernel takes it."""
    words: str = ""
    """``near`` or ``far``; empty where sysfs does not say."""


@dataclass(frozen=True)
class Places:
    """The places of one GPU; without a far one, ``why_not_far`` says why."""

    near: Place
    far: Place | None = None
    why_not_far: str = ""


def places(tree: Tree, own: int | None) -> Places:
    """For a GPU on the NUMA node ``own``; None where sysfs does not say which that is."""
    names = tree.list_names(NODES) or ()
    present = sorted(int(name[4:]) for name in names if name.startswith("node") and name[4:].isdecimal())
    # The nodes that the process's cpuset gives it memory of.
    status = tree.read_text("/proc/self/status") or ""
    told = [line.partition(":")[2].strip() for line in status.splitlines() if line.startswith("Mems_allowed_list:")]
    usable = {node for node in present if _cpus(tree, node) & os.sched_getaffinity(0)} & (
        _listed(told[0]) if told else set(present)
    )
    if len(present) < 2:
        return Places(Place(None), why_not_far="sysfs shows no second NUMA node")
    if own is None:
        return Places(Place(None), why_not_far="sysfs does not say which NUMA node the GPU is on")
    if own not in usable:
        return Places(Place(None), why_not_far=f"this process may not use NUMA node {own}, which the GPU is on")
    # Whether no part of the process's memory follows the default policy.
    lines = (tree.read_text("/proc/self/numa_maps") or "").splitlines()
    policies = {words[1] for words in map(str.split, lines) if len(words) > 1}
    if policies and "default" not in policies:
        return Places(Place(None), why_not_far="a memory policy (numactl) holds this process's memory in place")
    near = Place(own, "near")
    others = usable - {own}
    if not others:
        return Places(near, why_not_far=f"this process may use NUMA node {own} alone")
    away = _distances(tree, own, present)
    farthest = max(sorted(others), key=lambda node: away.get(node, 0))
    return Places(near, Place(farthest, "far"))


@contextmanager
def on_node(tree: Tree, place: Place) -> Iterator[None]:
    """Run this thread on the CPUs of the place's node, so that host memory is taken there (Linux's default policy)."""
    before = os.sched_getaffinity(0)
    if place.node is not None:
        os.sched_setaffinity(0, _cpus(tree, place.node) & before)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def _cpus(tree: Tree, node: int) -> set[int]:
    return _listed(tree.read_line(f"{NODES}/node{node}/cpulist"))


def _distances(tree: Tree, own: int, present: list[int]) -> dict[int, int]:
    """How far each node is, in the firmware's units: 10 is the node itself."""
    told = (tree.read_line(f"{NODES}/node{own}/distance") or "").split()
    numbers = [int(word) for word in told if word.isdecimal()]
    return dict(zip(present, numbers, strict=True)) if len(numbers) == len(present) else {}


def _listed(text: str | None) -> set[int]:
    """The numbers of ``0-7,16-23``."""
    found: set[int] = set()
    for part in (text or "").split(","):
        first, _, last = part.partition("-")
        if first.isdecimal() and (not last or last.isdecimal()):
            found |= set(range(int(first), min(int(last or first), int(first) + 65535) + 1))
    return found
