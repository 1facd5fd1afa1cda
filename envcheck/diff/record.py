"""One difference, one thing that could not be compared, and the GPUs and environments of two reports that match."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter
from typing import Literal, TypeAlias, TypeVar

import msgspec

from envcheck.model.checks import Report
from envcheck.model.snapshot import Environment, Gpu
from envcheck.redact import HOST

T = TypeVar("T")

Section: TypeAlias = Literal[
    "verdict",
    "system",
    "driver",
    "gpus",
    "toolkits",
    "libraries",
    "environments",
    "variables",
    "checks",
    "measurements",
]

Kind: TypeAlias = Literal["changed", "appeared", "vanished"]


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """Something that differs."""

    section: Section  # The part of the report that it belongs to
    subject: str = ""  # The subject as the first report names it: a GPU, an environment; empty for the machine
    what: str  # The fact, distribution, check or quantity
    kind: Kind  # How it differs
    before: str | None = None  # The value as text; null if it appeared
    after: str | None = None  # The value as text; null if it disappeared
    ratio: float | None = None  # The second measured figure divided by the first
    faster: bool | None = None  # Whether the second measured figure is better
    tolerated: float | None = None
    """Share of the speed by which chance may move a measured figure: beyond it the figure has changed."""
    why: tuple[str, ...] = ()  # What differs in the conditions of the runs of a measured figure, in words


class ComparedFigure(msgspec.Struct, frozen=True, kw_only=True):
    """A measured figure that both sides have."""

    subject: str  # The GPU as the first report names it; empty for the processor
    what: str  # The quantity, as people read it
    name: str  # The quantity with its precision, shape and variant, as ``Figure.name`` has it
    unit: str  # ``B/s``, ``FLOP/s``, ``OP/s`` or ``s``
    runs: int  # Number of earlier reports that have it
    before: float  # The earlier figure, or the median of several, in ``unit``
    before_low: float  # The least of the earlier figures
    before_high: float  # The greatest of the earlier figures
    after: float  # The later figure, in ``unit``
    ratio: float  # ``after`` divided by ``before``
    tolerated: float
    """Share of the speed by which chance may move it: the noise of both sides, and 5 %, or 2 % for several runs."""
    changed: bool  # Whether it moved by more than that


class Note(msgspec.Struct, frozen=True, kw_only=True):
    """A fact that was not compared, and why."""

    section: Section  # The part of the report that it belongs to
    why: str  # Why it was not compared


Facts: TypeAlias = Mapping[str, str | None]  # Facts by name, as text; None where a fact is unknown


def changed(section: Section, subject: str, before: Facts, after: Facts) -> Iterator[Change]:
    """The facts that both sides have and that differ."""
    for what, old in before.items():
        new = after.get(what)
        if old is not None and new is not None and old != new:
            yield Change(section=section, subject=subject, what=what, kind="changed", before=old, after=new)


def added_and_removed(
    section: Section, subject: str, before: Facts, after: Facts, *, complete: tuple[bool, bool]
) -> Iterator[Change]:
    """The names that only one side has, where the other side's list is complete."""
    for what in sorted(before.keys() - after.keys()) if complete[1] else ():
        yield Change(section=section, subject=subject, what=what, kind="vanished", before=before[what] or "present")
    for what in sorted(after.keys() - before.keys()) if complete[0] else ():
        yield Change(section=section, subject=subject, what=what, kind="appeared", after=after[what] or "present")


@dataclass(frozen=True)
class Match:
    """The pairs, with the first report's member first, and the unmatched rest of both sides."""

    gpus: tuple[tuple[Gpu, Gpu], ...]
    gpus_left: tuple[tuple[Gpu, ...], tuple[Gpu, ...]]
    environments: tuple[tuple[Environment, Environment], ...]
    environments_left: tuple[tuple[Environment, ...], tuple[Environment, ...]]
    one_machine: bool  # Whether both reports are about the same machine, by its GPUs and its name

    def as_first(self, text: str) -> str:
        """A key or name of the second report, translated to the first."""
        if self._words is None:
            return text
        return self._words.sub(lambda found: self._names[found[0]], text)

    @cached_property
    def _names(self) -> dict[str, str]:
        names: dict[str, str] = {}
        for ours, theirs in self.gpus:
            if ours.uuid and theirs.uuid:
                names[theirs.uuid] = ours.uuid
            if ours.pci_bus_id and theirs.pci_bus_id:
                names[theirs.pci_bus_id] = ours.pci_bus_id
        for mine, other in self.environments:
            names[other.key] = mine.key
        return {theirs: ours for theirs, ours in names.items() if theirs != ours}

    @cached_property
    def _words(self) -> re.Pattern[str] | None:
        ordered = sorted(self._names, key=len, reverse=True)
        return re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, ordered))})(?![\w-])") if ordered else None


def match(first: Report, second: Report) -> Match:
    """Pair what is the same."""
    # GPUs by UUID, then by bus id, then by another identity (of an assumed or pasted one).
    by = [attrgetter(identity) for identity in ("uuid", "pci_bus_id", "label")]
    gpus, gpus_left = _matched(first.gpus, second.gpus, by)
    order = {id(gpu): place for place, gpu in enumerate(first.gpus)}
    gpus.sort(key=lambda pair: order[id(pair[0])])
    # The judged environments, and the others by folder.
    judged: list[Callable[[Environment], Hashable]] = [attrgetter("judged"), attrgetter("key")]
    environments, environments_left = _matched(first.environments, second.environments, judged)
    known = {gpu.uuid for gpu in first.gpus if gpu.uuid}
    return Match(
        gpus=tuple(gpus),
        gpus_left=gpus_left,
        environments=tuple(environments),
        environments_left=environments_left,
        one_machine=any(gpu.uuid in known for gpu in second.gpus)
        or (first.host is not None and first.host == second.host != HOST),
    )


def _matched(
    first: Sequence[T], second: Sequence[T], identities: Iterable[Callable[[T], Hashable]]
) -> tuple[list[tuple[T, T]], tuple[tuple[T, ...], tuple[T, ...]]]:
    """The pairs with an identity in common, by the first identities first; and the rest of both sides."""
    ours, theirs = list(first), list(second)
    pairs: list[tuple[T, T]] = []
    for identity in identities:
        others = {value: thing for thing in theirs if (value := identity(thing))}
        for thing in list(ours):
            other = others.pop(identity(thing), None)
            if other is not None:
                pairs.append((thing, other))
                ours.remove(thing)
                theirs.remove(other)
    return pairs, (tuple(ours), tuple(theirs))
