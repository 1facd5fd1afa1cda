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
    subject: str = ""
    """What it is about, as the first report calls it: a GPU, an environment; empty for the machine."""
    what: str
    """The fact, distribution, check or quantity."""
    kind: Kind
    before: str | None = None
    """In words; null for what appeared."""
    after: str | None = None
    """In words; null for what vanished."""
    ratio: float | None = None
    """Of a measured figure: the second over the first."""
    faster: bool | None = None
    """Of a measured figure: whether the second is the better one."""


class Note(msgspec.Struct, frozen=True, kw_only=True):
    """What was not compared, and why."""

    section: Section
    why: str


Facts: TypeAlias = Mapping[str, str | None]
"""Facts by name, in words; None for what nobody told."""


def changed(section: Section, subject: str, before: Facts, after: Facts) -> Iterator[Change]:
    """The facts that both sides know and that differ."""
    for what, old in before.items():
        new = after.get(what)
        if old is not None and new is not None and old != new:
            yield Change(section=section, subject=subject, what=what, kind="changed", before=old, after=new)


def came_and_went(
    section: Section, subject: str, before: Facts, after: Facts, *, complete: tuple[bool, bool]
) -> Iterator[Change]:
    """The names that only one side has, as far as the other side's list is complete."""
    for what in sorted(before.keys() - after.keys()) if complete[1] else ():
        yield Change(section=section, subject=subject, what=what, kind="vanished", before=before[what] or "present")
    for what in sorted(after.keys() - before.keys()) if complete[0] else ():
        yield Change(section=section, subject=subject, what=what, kind="appeared", after=after[what] or "present")
