"""What prints this text, and what it tells."""

from __future__ import annotations

import re

from envcheck.importers.kit.paste import SOURCE, Paste
from envcheck.importers.kit.protocol import Rank, each_line
from envcheck.snapshot import Driver, Snapshot

# An importer gathers and never judges. What the text does not say stays None; a text that holds nothing of the format
# gives an empty Snapshot. Below this room: envcheck/importers/kit, which every importer shares.
NAME = "example-thing"
RANK = Rank.OUTPUT  # which importer counts where two pieces of a text differ

_LINE = re.compile(r"example-thing: driver ([0-9]{3}(?:\.[0-9]{1,4}){1,2})")


def read(paste: Paste) -> Snapshot:
    return each_line(paste, _read_line)


def _read_line(line: str) -> Snapshot | None:
    """What one line states; patterns have a limit for every repetition, since text may be hostile."""
    found = _LINE.match(line.strip())
    return Snapshot(driver=Driver(source=SOURCE, release=found[1])) if found else None
