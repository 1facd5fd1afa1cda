"""What prints this text, and what it tells."""

from __future__ import annotations

import re

from envcheck.importers.importer import Rank, line_importer
from envcheck.importers.paste import SOURCE
from envcheck.model.snapshot import Driver, Snapshot

# An importer gathers and never judges. What the text does not say stays None; a text that holds nothing of the format
# gives an empty Snapshot. The rank says which importer counts where two pieces of a text differ.
_LINE = re.compile(r"example-thing: driver ([0-9]{3}(?:\.[0-9]{1,4}){1,2})")


@line_importer("example-thing", Rank.OUTPUT)
def driver_in(line: str) -> Snapshot | None:
    """What one line states; patterns have a limit for every repetition, since text may be hostile."""
    found = _LINE.match(line.strip())
    return Snapshot(driver=Driver(source=SOURCE, release=found[1])) if found else None
