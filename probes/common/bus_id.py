"""The canonical form of PCI bus ids."""

from __future__ import annotations

import re


def canonical_bus_id(text: str) -> str | None:
    """``0000:1b:00.0`` for ``00000000:1B:00.0`` or ``0000:1B:00.0``; None for anything else.

    Lower case; the domain has four digits, or more where it does not fit.
    """
    match = re.fullmatch(r"([0-9a-fA-F]{1,8}):([0-9a-fA-F]{1,2}):([0-9a-fA-F]{1,2})\.([0-7])", text)
    if not match:
        return None
    domain, bus, device = (int(part, 16) for part in match.groups()[:3])
    return f"{domain:04x}:{bus:02x}:{device:02x}.{match[4]}"
