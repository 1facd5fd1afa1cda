"""The tables of CUDA's sample ``p2pBandwidthLatencyTest``: copies between GPUs through host memory, and directly."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from envcheck.importers.kit.paste import SOURCE, Paste
from envcheck.importers.kit.protocol import Rank
from envcheck.snapshot import Snapshot, Told

NAME = "p2pBandwidthLatencyTest"
RANK = Rank.OUTPUT

_TITLE = re.compile(r"(Uni|Bi)directional P2P=(Disabled|Enabled) Bandwidth\b.*\(GB/s\)")
_HEADER = re.compile(r"D\\D(?:\s+[0-9]{1,3}){1,64}$")
_ROW = re.compile(r"([0-9]{1,3})((?:\s+[0-9]{1,6}\.[0-9]{1,4}){1,64})$")
_LONGEST_LINE = 1_000

_Table = dict[tuple[int, int], float]
"""GB/s by the two GPUs."""


def read(paste: Paste) -> Snapshot:
    """The pair of GPUs that loses most by direct copies, or gains least."""
    staged: dict[str, _Table] = {}
    direct: dict[str, _Table] = {}
    for way, switch, table in _tables(paste.lines):
        (direct if switch == "Enabled" else staged).setdefault(way, table)
    pairs = [
        (table[pair], without)
        for way, table in direct.items()
        for pair, without in staged.get(way, {}).items()
        if pair in table and pair[0] != pair[1] and without > 0
    ]
    if not pairs:
        return Snapshot()
    worst = min(pairs, key=lambda pair: pair[0] / pair[1])
    return Snapshot(told=Told(source=SOURCE, direct_copies=worst[0], staged_copies=worst[1]))


def _tables(lines: Sequence[str]) -> Iterator[tuple[str, str, _Table]]:
    """The title's two words and the figures of each table."""
    for place, line in enumerate(lines):
        title = _TITLE.search(line[:_LONGEST_LINE]) if "P2P=" in line else None
        if title is None:
            continue
        table: _Table = {}
        for below in lines[place + 1 :]:
            text = below[:_LONGEST_LINE].strip()
            row = _ROW.search(text)
            if row:
                table |= {(int(row[1]), other): float(value) for other, value in enumerate(row[2].split())}
            elif not _HEADER.search(text):
                break
        yield title[1], title[2], table
