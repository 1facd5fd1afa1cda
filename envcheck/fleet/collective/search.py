"""Find the nodes, or the links between two, that slow a collective down or make it fail, by measuring few groups.

A collective over a group is as fast as its slowest node. The groups that are measured:

1. all nodes;
2. disjoint groups, one more than the binary logarithm of the number of nodes (below ``_FEW`` nodes: every pair). As
   long as fewer nodes are slow than there are groups, the fastest group holds healthy nodes only, and is what the
   others are compared with;
3. halves of every slow group, filled up with healthy nodes to its size, so that figures of like groups are compared;
4. each suspect in a pair with a healthy node, compared with a pair of healthy nodes. This alone decides.

A slow group without a slow node may have two that are slow together only. Each of its halves is fast then, or has both;
halves of the halves lead to the pair. Where all groups are fast and all nodes together are slow, the two are in
different groups: unions of two groups are compared with each other.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import combinations
from typing import Any

import msgspec

from envcheck.model.checks import Status

SLOWER = 0.10  # Share by which a group must be slower than the fastest one to be searched
_FAILS = 0.15  # Share by which a node, or a link, must be slower to fail
_FEW = 6


class GroupOutcome(msgspec.Struct, frozen=True):
    """What came of a collective over a group of nodes."""

    value: float | None = None  # Bus bandwidth in bytes per second; None: it failed
    problem: str = ""  # Why it failed
    at_fault: Mapping[str, str] = {}
    """The nodes that made it fail, where that is known, and how; they are measured no more."""


class MeasuredNode(msgspec.Struct, frozen=True, kw_only=True):
    """A node, and whether it could be measured."""

    name: str  # Its name, as the engine calls it
    host: str | None = None  # Its own name; null where it did not answer
    gpus: int = 0  # GPUs that took part
    nccl: str = ""  # Release of NCCL; empty where it took part in no measurement that ended
    transports: tuple[str, ...] = ()
    """Over what NCCL connected its GPUs, in the words of NCCL's log, the most frequent first."""
    problem: str = ""  # Why it was not measured, or no longer; empty where it was


class MeasuredGroup(msgspec.Struct, frozen=True, kw_only=True):
    """An all-reduce over a group of nodes."""

    nodes: tuple[str, ...]  # Names of the nodes
    bandwidth: float | None  # Bus bandwidth in bytes per second, as nccl-tests defines it; null: it failed
    problem: str = ""  # Why it failed


class SlowNode(msgspec.Struct, frozen=True, kw_only=True):
    """A node that is slower than others, or fails, together with a healthy one."""

    status: Status  # ``warn``, or ``fail`` below 85 % of what healthy nodes reach, or where it fails
    node: str  # Name of the node
    beside: str  # The healthy node with which it was measured
    bandwidth: float | None  # Bus bandwidth of the two in bytes per second; null: it failed
    expected: float  # Bus bandwidth of two healthy nodes
    problem: str = ""  # Why it failed


class SlowLink(msgspec.Struct, frozen=True, kw_only=True):
    """Two nodes that are slow, or fail, together, while each is faster with a third."""

    status: Status  # ``warn``, or ``fail`` below 85 % of what they reach with the third, or where it fails
    nodes: tuple[str, str]  # Names of the two
    beside: str  # The third node
    bandwidth: float | None  # Bus bandwidth of the two in bytes per second; null: it failed
    expected: float  # Bus bandwidth with the third node, of the slower of the two
    problem: str = ""  # Why it failed


Measure = Callable[[tuple[str, ...]], GroupOutcome]


class Search:
    """A search and what it has found, also where ``measure`` ended it by an exception."""

    def __init__(self, nodes: Sequence[str], measure: Measure) -> None:
        self.left = list(dict.fromkeys(nodes))
        """Nodes that can be measured."""
        self.lost: dict[str, str] = {}
        """Nodes that cannot, and why."""
        self.groups: list[MeasuredGroup] = []
        self.suspects: list[SlowNode] = []
        self.links: list[SlowLink] = []
        self.unsettled: list[tuple[str, ...]] = []
        """Slow groups in which no pair is slow."""
        self.healthy: list[str] = []
        """Nodes of groups that are as fast as the fastest."""
        self.reference: float | None = None
        """What the fastest of the groups that are compared reaches."""
        self.finished = False
        self._measure = measure
        self._known: dict[tuple[str, ...], GroupOutcome] = {}

    def run(self) -> None:
        """Measure until every slow node is found."""
        self._outcome(self.left)
        if len(self.left) > 2:  # two are slow or not, but neither can be told from the other
            count = min(len(self.left) // 2, math.ceil(math.log2(len(self.left))) + 1)
            groups: list[tuple[str, ...]] = [tuple(self.left[number::count]) for number in range(count)]
            groups = list(combinations(self.left, 2)) if len(self.left) < _FEW else groups
            # Some may have been lost since: their groups were measured without them.
            measured = [(group, self._outcome(group)) for group in groups]
            values = [outcome.value for _, outcome in measured if outcome.value is not None]
            self.reference = max(values, default=None)
            if self.reference is not None:
                fast = [group for group, outcome in measured if not self._slow(outcome, self.reference)]
                self.healthy = self._not_lost(node for group in fast for node in group)
                slow = [group for group, outcome in measured if self._slow(outcome, self.reference)]
                searched: set[str] = set()
                for group in slow:
                    left = [node for node in self._not_lost(group) if node not in {*self.healthy, *searched}]
                    searched.update(left)
                    if left:
                        self._divide(left, len(group))
                    if not {each.node for each in self.suspects} & {*group} and not {*self.lost} & {*group}:
                        self._settle_links(group)
                if not slow and self._slow(self._outcome(self.left), self.reference):
                    # Each group is fast, and all nodes together are slow: two of different groups are slow together.
                    unions = [(first, second) for first, second in combinations(groups, 2) if not {*first} & {*second}]
                    joined = [(first, second, self._outcome([*first, *second])) for first, second in unions]
                    speeds = [outcome.value for *_, outcome in joined if outcome.value is not None]
                    for first, second, outcome in joined:
                        if speeds and self._slow(outcome, max(speeds)) and not self._joins(first, second, max(speeds)):
                            self.unsettled.append((*first, *second))
        self.finished = True

    def _divide(self, group: Sequence[str], size: int) -> None:
        """Search ``group``, which is slow; its halves are measured among healthy nodes, ``size`` in all."""
        if len(group) == 1:
            node, healthy = group[0], self._not_lost(self.healthy)
            if node in self.lost or len(healthy) < 2:
                return
            expected = self._outcome(healthy[:2]).value
            outcome = self._outcome([node, healthy[0]])
            if expected is not None and node not in self.lost and self._slow(outcome, expected):
                found = _judged(outcome, expected)
                self.suspects.append(SlowNode(node=node, beside=healthy[0], expected=expected, **found))
            return
        half = len(group) // 2
        first, second = group[:half], group[half:]
        if self._halts(first, size):
            self._divide(first, size)
            if self._halts(second, size):
                self._divide(second, size)
        else:
            self._divide(second, size)

    def _halts(self, part: Sequence[str], size: int) -> bool:
        """Whether ``part`` is slow; one node is settled by a pair, and not before."""
        if len(part) == 1:
            return True
        filled = [*part, *self._not_lost(self.healthy)][: max(size, len(part) + 1)]
        return self.reference is not None and self._slow(self._outcome(filled), self.reference)

    def _settle_links(self, group: Sequence[str]) -> None:
        """Find the two nodes that make ``group`` slow, in which no node alone is slow."""
        reference = self.reference or 0.0
        part, size = self._not_lost(group), len(group)
        while len(part) > 1:
            first, second = part[: len(part) // 2], part[len(part) // 2 :]
            slow = [half for half in (first, second) if len(half) > 1 and self._slow_among(half, group, reference)]
            if not slow:
                break
            part = slow[0]
        if len(part) < 2 or not self._joins(first, second, reference, size):
            self.unsettled.append(tuple(group))

    def _joins(self, first: Sequence[str], second: Sequence[str], reference: float, size: int = 0) -> bool:
        """Whether a node of ``first`` and one of ``second`` are slow together: each part is fast, and both are not."""
        every = (*first, *second)
        one = self._shrunk(first, second, every, reference, size or len(every))
        other = self._shrunk(second, [one], every, reference, size or len(every))
        beside = next((node for node in self._not_lost(self.healthy) if node not in (one, other)), None)
        if beside is None:
            return False
        pairs = [self._outcome([node, beside]).value for node in (one, other)]
        known = [value for value in pairs if value is not None]
        outcome = self._outcome([one, other])
        if len(known) == len(pairs) and self._slow(outcome, min(known)) and not {one, other} & {*self.lost}:
            found = _judged(outcome, min(known))
            self.links.append(SlowLink(nodes=(one, other), beside=beside, expected=min(known), **found))
            return True
        return False

    def _shrunk(
        self, part: Sequence[str], other: Sequence[str], every: Sequence[str], reference: float, size: int
    ) -> str:
        """The node of ``part`` that is slow together with ``other``."""
        while len(part) > 1:
            first, second = part[: len(part) // 2], part[len(part) // 2 :]
            part = first if self._slow_among([*first, *other], every, reference, size) else second
        return part[0]

    def _slow_among(self, part: Sequence[str], without: Sequence[str], reference: float, size: int = 0) -> bool:
        """Whether ``part`` is slow among healthy nodes, none of them of ``without``; ``size`` in all."""
        others = [node for node in self._not_lost(self.healthy) if node not in without]
        return self._slow(self._outcome([*part, *others][: max(size or len(without), len(part))]), reference)

    def _slow(self, outcome: GroupOutcome, reference: float) -> bool:
        return outcome.value is None or outcome.value < (1 - SLOWER) * reference

    def _not_lost(self, nodes: Iterable[str]) -> list[str]:
        return [node for node in dict.fromkeys(nodes) if node not in self.lost]

    def _outcome(self, nodes: Sequence[str]) -> GroupOutcome:
        """The outcome of a group, measured once; without the nodes that turn out to be at fault."""
        while True:
            group = tuple(sorted(self._not_lost(nodes)))
            if group in self._known:
                return self._known[group]
            if len(group) < 2:
                return GroupOutcome(problem="fewer than two nodes are left")
            outcome = self._measure(group)
            self.groups.append(MeasuredGroup(nodes=group, bandwidth=outcome.value, problem=outcome.problem))
            blamed = [node for node in outcome.at_fault if node in group]
            if not blamed:
                self._known[group] = outcome
                return outcome
            for node in blamed:
                self.lost[node] = outcome.at_fault[node]
                self.left.remove(node)


def _judged(outcome: GroupOutcome, expected: float) -> dict[str, Any]:
    """What records of slow nodes and links have in common."""
    fails = outcome.value is None or outcome.value < (1 - _FAILS) * expected
    return {"status": "fail" if fails else "warn", "bandwidth": outcome.value, "problem": outcome.problem}
