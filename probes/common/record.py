"""Build a record of the Snapshot from values that were read in several places."""

from __future__ import annotations

from collections import Counter
from typing import Any, Dict, NamedTuple

Record = Dict[str, Any]
"""A part of the Snapshot, as JSON has it."""


class Found(NamedTuple):
    """A value and its source; the value None means "unknown"."""

    value: Any
    source: str


def record(**fields: Found | None) -> dict[str, Any]:
    """A record with the known fields; its ``source`` is that of most fields, ``read`` has the sources of the others."""
    known = {name: found for name, found in fields.items() if found is not None and found.value is not None}
    places = Counter(found.source for found in known.values())
    main = places.most_common(1)[0][0] if places else ""
    built: dict[str, Any] = {"source": main} if main else {}
    elsewhere = {name: found.source for name, found in known.items() if found.source != main}
    if elsewhere:
        built["read"] = elsewhere
    built.update((name, found.value) for name, found in known.items())
    return built
