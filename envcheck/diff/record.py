"""One difference, and one thing that could not be compared."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal, TypeAlias

import msgspec

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

    section: Section
    """The part of the report that it belongs to."""
    subject: str = ""
    """The subject as the first report names it: a GPU, an environment; empty for the machine."""
    what: str
    """The fact, distribution, check or quantity."""
    kind: Kind
    """How it differs."""
    before: str | None = None
    """The value as text; null if it appeared."""
    after: str | None = None
    """The value as text; null if it disappeared."""
    ratio: float | None = None
    """The second measured figure divided by the first."""
    faster: bool | None = None
    """Whether the second measured figure is better."""
    tolerated: float | None = None
    """Share of the speed by which chance may move a measured figure: beyond it the figure has changed."""
    why: tuple[str, ...] = ()
    """What differs in the conditions of the runs of a measured figure, in words."""


class ComparedFigure(msgspec.Struct, frozen=True, kw_only=True):
    """A measured figure that both sides have."""

    subject: str
    """The GPU as the first report names it; empty for the processor."""
    what: str
    """The quantity, as people read it."""
    name: str
    """The quantity with its precision, shape and variant, as ``Figure.name`` has it."""
    unit: str
    """``B/s``, ``FLOP/s``, ``OP/s`` or ``s``."""
    runs: int
    """Number of earlier reports that have it."""
    before: float
    """The earlier figure, or the median of several, in ``unit``."""
    before_low: float
    """The least of the earlier figures."""
    before_high: float
    """The greatest of the earlier figures."""
    after: float
    """The later figure, in ``unit``."""
    ratio: float
    """``after`` divided by ``before``."""
    tolerated: float
    """Share of the speed by which chance may move it: the noise of both sides, and 5 %, or 2 % for several runs."""
    changed: bool
    """Whether it moved by more than that."""


class Note(msgspec.Struct, frozen=True, kw_only=True):
    """A fact that was not compared, and why."""

    section: Section
    """The part of the report that it belongs to."""
    why: str
    """Why it was not compared."""


Facts: TypeAlias = Mapping[str, str | None]
"""Facts by name, as text; None where a fact is unknown."""


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
