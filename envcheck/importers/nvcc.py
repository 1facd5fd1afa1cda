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
_TARGET = re.compile(r"(?:sm|compute)_[0-9]{2,3}[af]?$")
_FEWEST, _MOST = 4, 60
"""Lines of a list; fewer may be anything."""


def read(paste: Paste) -> Snapshot:
    found = next(filter(None, map(_RELEASE.search, paste.lines)), None)
    targets = _targets(paste)
    version = (found[2] or found[1]) if found else None
    if version is None and not targets:
        return Snapshot()
    toolkit = Toolkit(source=SOURCE, path="unknown folder", version=version, targets=targets or None, on_path=True)
    return Snapshot(toolkits=Listing(items=(toolkit,)))


def _targets(paste: Paste) -> tuple[str, ...]:
    """The targets that stand on lines of their own, as ``nvcc --list-gpu-code`` and ``--list-gpu-arch`` print them."""
    found = tuple(dict.fromkeys(line.strip() for line in paste.statements if _TARGET.match(line.strip())))
    return found[:_MOST] if len(found) >= _FEWEST else ()
