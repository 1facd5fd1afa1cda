"""MIG mode in fragments: ``MIG M. Enabled``, "MIG mode is on", and in nvidia-smi's list ``Current : Enabled`` below it.

A sentence names no GPU; the mode belongs to the one that the rest of the text names.
"""

from __future__ import annotations

import re
from itertools import pairwise

from envcheck.importers.kit.assemble import IN_MIG_MODE
from envcheck.importers.kit.paste import SOURCE, Paste
from envcheck.importers.kit.protocol import Rank
from envcheck.snapshot import Gpu, Listing, Mig, Snapshot

NAME = "MIG mode"
RANK = Rank.PROSE

_ON = re.compile(
    r"\bmig(?: m\.| mode|\.mode\.current)?(?: ?[:=|] ?| (?:is|was|has been) )?(?:now |still |currently |set to )?"
    r"(?:enabled|on)\b(?! (?:the|a|an|this|my|our|all|both|each|every|some|[a-z]{0,3}[0-9])\b)"
    r"|\benabled mig\b|\bmig-enabled\b",
    re.IGNORECASE,
)
_UNDECIDED = re.compile(
    r"\b(?:if|whether|when|unless|without|not|never|no|disabl\w+|should|could|would|can|tried)\b|n't\b|\?",
    re.IGNORECASE,
)
_HEADING = re.compile(r"\s{0,40}MIG Mode\s{0,40}:?\s{0,40}$", re.IGNORECASE)
_CURRENT = re.compile(r"\s{0,40}Current\s{0,60}: Enabled\b", re.IGNORECASE)
_LONGEST_LINE = 400


def read(paste: Paste) -> Snapshot:
    if not _is_on(paste):
        return Snapshot()
    gpu = Gpu(source=SOURCE, label=IN_MIG_MODE, mig=Mig(source=SOURCE, enabled=True))
    return Snapshot(gpus=Listing(items=(gpu,)))


def _is_on(paste: Paste) -> bool:
    if any(_says_on(line[:_LONGEST_LINE]) for line in paste.statements if "MIG" in line or "mig" in line):
        return True
    return any(_HEADING.match(line) and _CURRENT.match(below) for line, below in pairwise(paste.lines))


def _says_on(text: str) -> bool:
    found = _ON.search(text)
    return found is not None and not _UNDECIDED.search(text)
