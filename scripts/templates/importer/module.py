"""What prints this text, and what it tells."""

from __future__ import annotations

import re

from envcheck.importers.importer import Rank, importer, joined
from envcheck.importers.paste import SOURCE, Paste
from envcheck.model.snapshot import Driver, Snapshot

# What a line tells by itself is a row of matrix/readings.toml. An importer gathers and never judges. What the text does
# not say stays None; a text without the format gives an empty Snapshot. The rank counts where two pieces differ.
_LINE = re.compile(r"example-thing: driver ([0-9]{3}(?:\.[0-9]{1,4}){1,2})")


@importer("example-thing", Rank.OUTPUT)
def read(paste: Paste) -> Snapshot:
    """The driver; patterns have a limit for every repetition, since text may be hostile."""
    found = filter(None, (_LINE.match(line.strip()) for line in paste.statements))
    return joined(Snapshot(driver=Driver(source=SOURCE, release=match[1])) for match in found)
