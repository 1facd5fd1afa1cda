"""``nvcc --version`` and ``nvcc --list-gpu-code``: the toolkit on the user's PATH, and what it compiles for."""

from __future__ import annotations

import re

from envcheck.importers.kit.paste import SOURCE, Paste
from envcheck.importers.kit.protocol import Rank
from envcheck.snapshot import Listing, Snapshot, Toolkit

NAME = "nvcc --version"
RANK = Rank.OUTPUT

_RELEASE = re.compile(
    r"Cuda compilation tools, release ([0-9]{1,2}\.[0-9]{1,2})(?:, V([0-9]{1,2}(?:\.[0-9]{1,4}){1,3}))?"
)


def recognise(paste: Paste) -> bool:
    return "Cuda compilation tools, release" in paste.text


def read(paste: Paste) -> Snapshot:
    for line in paste.lines:
        found = _RELEASE.search(line)
        if found:
            toolkit = Toolkit(source=SOURCE, path="unknown folder", version=found[2] or found[1], on_path=True)
            return Snapshot(toolkits=Listing(items=(toolkit,)))
    return Snapshot()
