"""Records of the Snapshot from values that were read in several places; the canonical form of PCI bus ids."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any, Dict, NamedTuple

Record = Dict[str, Any]  # A part of the Snapshot, as JSON has it


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


def canonical_bus_id(text: str) -> str | None:
    """``0000:1b:00.0`` for ``00000000:1B:00.0`` or ``0000:1B:00.0``; None for anything else.

    Lower case; the domain has four digits, or more where it does not fit.
    """
    match = re.fullmatch(r"([0-9a-fA-F]{1,8}):([0-9a-fA-F]{1,2}):([0-9a-fA-F]{1,2})\.([0-7])", text)
    if not match:
        return None
    domain, bus, device = (int(part, 16) for part in match.groups()[:3])
    return f"{domain:04x}:{bus:02x}:{device:02x}.{match[4]}"
