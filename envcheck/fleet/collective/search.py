"""Find the nodes that slow a collective down, or make it fail, by measuring few groups of them.

A collective over a group is as fast as its slowest node. The groups that are measured:

1. all nodes;
2. disjoint groups, one more than the binary logarithm of the number of nodes (below ``_FEW`` nodes: every pair). As
   long as fewer nodes are slow than there are groups, the fastest group holds healthy nodes only, and is what the
   others are compared with;
3. halves of every slow group, filled up with healthy nodes to its size, so that figures of like groups are compared;
4. each suspect in a pair with a healthy node, compared with a pair of healthy nodes. This alone decides.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import combinations

import msgspec

SLOWER = 0.10
"""Share by which a group must be slower than the fastest one to be searched."""
_FEW = 6


class Outcome(msgspec.Struct, frozen=True):
    """What came of a collective over a group of nodes."""

    value: float | None = None
    """Bus bandwidth in bytes per second; None: it failed."""
    problem: str = ""
    """Why it failed."""
    at_fault: Mapping[str, str] = {}
    """The nodes that made it fail, where that is known, and how; they are measured no more."""


class Group(msgspec.Struct, frozen=True):
    """A measured group."""

    nodes: tuple[str, ...]
    outcome: Outcome


class Suspect(msgspec.Struct, frozen=True):
    """A node that is slower than others, or fails, in a pair with a healthy node."""

    node: str
    outcome: Outcome
    beside: str
    """The healthy node of the pair."""
    expected: float
    """What a pair of healthy nodes reaches."""


Measure = Callable[[tuple[str, ...]], Outcome]


class Search:
    """A search and what it has found, also where ``measure`` ended it by an exception."""

    def __init__(self, nodes: Sequence[str], measure: Measure) -> None:
        self.left = list(dict.fromkeys(nodes))
        """Nodes that can be measured."""
        self.lost: dict[str, str] = {}
        """Nodes that cannot, and why."""
        self.groups: list[Group] = []
        self.suspects: list[Suspect] = []
        self.unsettled: list[tuple[str, ...]] = []
        """Slow groups in which no node is slow in a pair."""
        self.healthy: list[str] = []
        """Nodes of groups that are as fast as the fastest."""
        self.reference: float | None = None
        """What the fastest of the groups that are compared reaches."""
        self.finished = False
        self._measure = measure
        self._known: dict[tuple[str, ...], Outcome] = {}

    def run(self) -> None:
        """Measure until every slow node is found."""
        self._outcome(self.left)
        if len(self.left) > 2:  # two are slow or not, but neither can be told from the other
            groups = self._base()
            # Some may have been lost since: their groups were measured without them.
            measured = [(group, self._outcome(group)) for group in groups]
            values = [outcome.value for _, outcome in measured if outcome.value is not None]
            self.reference = max(values, default=None)
            if self.reference is not None:
                fast = [group for group, outcome in measured if not self._slow(outcome, self.reference)]
                self.healthy = self._alive(node for group in fast for node in group)
                slow = [group for group, outcome in measured if self._slow(outcome, self.reference)]
                self._search(slow)
        self.finished = True

    def _base(self) -> list[tuple[str, ...]]:
        if len(self.left) < _FEW:
            return list(combinations(self.left, 2))
        count = min(len(self.left) // 2, math.ceil(math.log2(len(self.left))) + 1)
        return [tuple(self.left[number::count]) for number in range(count)]

    def _search(self, slow: Sequence[tuple[str, ...]]) -> None:
        searched: set[str] = set()
        for group in slow:
            whole = [node for node in self._alive(group) if node not in self.healthy and node not in searched]
            searched.update(whole)
            if whole:
                self._divide(whole, len(group))
            if not {each.node for each in self.suspects} & {*group} and not {*self.lost} & {*group}:
                self.unsettled.append(group)

    def _divide(self, group: Sequence[str], size: int) -> None:
        """Search ``group``, which is slow; its halves are measured among healthy nodes, ``size`` in all."""
        if len(group) == 1:
            self._settle(group[0])
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
        filled = [*part, *self._alive(self.healthy)][: max(size, len(part) + 1)]
        return self.reference is not None and self._slow(self._outcome(filled), self.reference)

    def _settle(self, node: str) -> None:
        healthy = self._alive(self.healthy)
        if node in self.lost or len(healthy) < 2:
            return
        expected = self._outcome(healthy[:2]).value
        outcome = self._outcome([node, healthy[0]])
        if expected is not None and node not in self.lost and self._slow(outcome, expected):
            self.suspects.append(Suspect(node, outcome, healthy[0], expected))

    def _slow(self, outcome: Outcome, reference: float) -> bool:
        return outcome.value is None or outcome.value < (1 - SLOWER) * reference

    def _alive(self, nodes: Iterable[str]) -> list[str]:
        return [node for node in dict.fromkeys(nodes) if node not in self.lost]

    def _outcome(self, nodes: Sequence[str]) -> Outcome:
        """The outcome of a group, measured once; without the nodes that turn out to be at fault."""
        while True:
            group = tuple(sorted(self._alive(nodes)))
            if group in self._known:
                return self._known[group]
            if len(group) < 2:
                return Outcome(problem="fewer than two nodes are left")
            outcome = self._measure(group)
            self.groups.append(Group(group, outcome))
            blamed = [node for node in outcome.at_fault if node in group]
            if not blamed:
                self._known[group] = outcome
                return outcome
            for node in blamed:
                self.lost[node] = outcome.at_fault[node]
                self.left.remove(node)
