"""What importers share: how much their word counts, and how they say that a piece could not be read."""

from __future__ import annotations

from enum import IntEnum

from envcheck.snapshot import Snapshot


class Rank(IntEnum):
    """Whose word counts where two pieces of a paste say different things: the lower one's."""

    OUTPUT = 0
    """What a tool prints about the machine."""
    MESSAGE = 1
    """What a program says when it fails."""
    PROSE = 2
    """What people write in their own words."""


class Unreadable(Exception):  # noqa: N818 - it names a state of the text, as in the sentence it carries
    """A piece was recognised, and not all of it could be read; ``partial`` is what could."""

    def __init__(self, reason: str, partial: Snapshot | None = None) -> None:
        super().__init__(reason)
        self.partial = partial or Snapshot()
