"""How much of the page each part may take. A report is laid out in the first room in which it fits."""

from __future__ import annotations

from dataclasses import dataclass

LINES = 23
"""Lines of a page: a terminal of 24 without the prompt that follows."""

UNLIMITED = 10_000


@dataclass(frozen=True)
class Room:
    """Most lines (or entries of a line each) of every part of the page."""

    title: int = 2
    seen: int = 2
    why: int = 2
    fixes: int = 2
    fix: int = 2
    """Lines of the words of one fix; its command is never cut."""
    docs: int = 1
    also: int = 3
    ask: int = 2
    gpus: int = 4
    """Groups of equal GPUs."""
    row: int = 2
    """Lines of one row of the stack."""
    probes: int = 3
    others: int = 8
    """Findings after the first."""


ROOMS = (
    Room(seen=4, why=4, fixes=3, fix=3, also=6, gpus=8, row=3, probes=6),
    Room(),
    Room(also=2, gpus=3, row=1, probes=2, others=4),
    Room(seen=1, why=1, fixes=1, fix=1, docs=0, also=1, ask=1, gpus=3, row=1, probes=1, others=3),
    Room(title=1, seen=1, why=1, fixes=1, fix=1, docs=0, also=1, ask=1, gpus=2, row=1, probes=1, others=1),
)
"""From the roomiest to the tightest; the last one fits whatever the report."""

EVERYTHING = Room(
    title=UNLIMITED,
    seen=UNLIMITED,
    why=UNLIMITED,
    fixes=UNLIMITED,
    fix=UNLIMITED,
    also=UNLIMITED,
    ask=UNLIMITED,
    gpus=UNLIMITED,
    row=UNLIMITED,
    probes=UNLIMITED,
    others=UNLIMITED,
)

LONGEST_COMMAND = 1000
"""Columns of a command that a page of limited length still prints; it is printed whole or not at all."""
