"""Join partial Snapshots into one: the only place where sources meet.

Things are joined by identity (a GPU by PCI bus id or UUID, a file by its real path), never by position. The first
Snapshot that knows a fact decides it; a later one that says otherwise is kept as a ``Disagreement``. Lists of records
without identity (processes, links) are taken whole from the first that has them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

import msgspec

from envcheck.model.snapshot import Disagreement, Identified, Listing, Reading, Record, Snapshot

R = TypeVar("R", bound=Record)

VOLATILE = frozenset(
    {
        "used", "free", "sm", "draw", "gpu", "generation", "utilisation", "memory_utilisation", "reasons", "seconds",
        "fan",
    }
)  # fmt: skip
"""Fields that two honest sources may read differently a moment apart; a difference in them says nothing."""

_JOINED = ("unreadable", "measurements", "baseline", "observed_errors", "runs", "disagreements")


def merge(parts: Iterable[Snapshot]) -> Snapshot:
    """Join ``parts``; where two know the same fact, the earlier one decides."""
    clashes: list[Disagreement] = []
    merged = Snapshot()
    for part in parts:
        sections: dict[str, Any] = {}
        for name in Snapshot.__struct_fields__:
            ours, theirs = getattr(merged, name), getattr(part, name)
            sections[name] = ours + theirs if name in _JOINED else _merge_values(name, ours, theirs, clashes)
        merged = Snapshot(**sections)
    return msgspec.structs.replace(merged, disagreements=merged.disagreements + tuple(clashes))


def _merge_values(path: str, ours: Any, theirs: Any, clashes: list[Disagreement]) -> Any:
    """Join two values of which neither is a plain scalar of a record (those are joined in ``_merge_records``)."""
    if ours is None or theirs is None:
        return theirs if ours is None else ours
    if isinstance(ours, Record):
        return _merge_records(path, ours, theirs, clashes)
    if isinstance(ours, Listing):
        items: list[Identified] = list(ours.items)
        places: dict[str, int] = {}  # The first item with each identity
        for place, item in enumerate(items):
            for identity in item.identities():
                places.setdefault(identity, place)
        for other in theirs.items:
            place = min((places[identity] for identity in other.identities() if identity in places), default=len(items))
            if place == len(items):
                items.append(other)
            else:
                name = next(iter(items[place].identities()))
                items[place] = _merge_records(f"{path}[{name}]", items[place], other, clashes)
            for identity in items[place].identities():
                places[identity] = min(place, places.get(identity, place))
        return Listing(items=tuple(items), complete=ours.complete or theirs.complete)
    if isinstance(ours, dict):
        return {**theirs, **ours}
    return ours or theirs


def _merge_records(path: str, ours: R, theirs: R, clashes: list[Disagreement]) -> R:
    changed: dict[str, Any] = {}
    read = dict(ours.read)
    for name in ours.__struct_fields__:
        if name in {"source", "read"}:
            continue
        mine, other = getattr(ours, name), getattr(theirs, name)
        if other is None or other == mine or _is_empty(other):
            continue
        if name.endswith("complete"):
            changed[name] = mine or other
            continue
        if mine is None or _is_empty(mine):
            changed[name] = other
            source = theirs.source_of(name)
            if source and source != ours.source:
                read[name] = source
        elif isinstance(mine, Record | Listing | dict):
            changed[name] = _merge_values(f"{path}.{name}", mine, other, clashes)
        elif not isinstance(mine, tuple) and name not in VOLATILE:
            readings = [
                Reading(
                    value=value if isinstance(value, str) else msgspec.json.encode(value).decode(),
                    source=record.source_of(name),
                )
                for value, record in ((mine, ours), (other, theirs))
            ]
            clashes.append(Disagreement(path=f"{path}.{name}", readings=tuple(readings)))
    if not changed:
        return ours
    return msgspec.structs.replace(ours, **changed, read=read)


def _is_empty(value: Any) -> bool:
    return isinstance(value, tuple | dict | str) and not value
