"""The size of ``/dev/shm``, from ``df`` and from DeepSpeed's report."""

from __future__ import annotations

import re

from envcheck.importers.kit.paste import SOURCE, Paste
from envcheck.importers.kit.protocol import Rank, each_line
from envcheck.snapshot import Platform, Snapshot

NAME = "shared memory"
RANK = Rank.OUTPUT

_DF = re.compile(r"(?:shm|tmpfs|none)\s{1,40}([0-9.]{1,12})([KMGT]?)i?B?\s.{0,80}?\s/dev/shm$", re.IGNORECASE)
_DEEPSPEED = re.compile(r"shared memory \(/dev/shm\) size \.{2,} ([0-9.]{1,8}) ([KMGT])i?B", re.IGNORECASE)
_FACTORS = {"": 1 << 10, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
"""Without a letter, df counts blocks of 1 KiB."""
_LONGEST_LINE = 300


def read(paste: Paste) -> Snapshot:
    return each_line(paste, _read_line)


def _read_line(line: str) -> Snapshot | None:
    text = line.strip()[:_LONGEST_LINE]
    found = _DF.match(text) or _DEEPSPEED.search(text)
    try:
        size = float(found[1]) if found else None
    except ValueError:
        return None
    if found is None or size is None:
        return None
    return Snapshot(platform=Platform(source=SOURCE, shared_memory=int(size * _FACTORS[found[2].upper()])))
