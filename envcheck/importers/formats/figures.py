"""Figures that other tools measured: CUDA's p2pBandwidthLatencyTest and bandwidthTest, nvbandwidth and nccl-tests.

They become measurements, which the rules of ``envcheck bench`` judge by what the GPU and its links can do. Only the
lowest figure of a kind is kept, with the GPUs that the tool names.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from operator import itemgetter

from msgspec.structs import replace

from envcheck.importers.formats.nvidia_smi.fields import MOST_GPUS, label
from envcheck.importers.formats.nvidia_smi.lists import NOT_NVLINK, by_index
from envcheck.importers.importer import Rank, importer
from envcheck.importers.paste import SOURCE, Paste
from envcheck.importers.readings import compiled, rows_of
from envcheck.model.snapshot import Collective, Conditions, Gpu, Measurement, Snapshot, Told
from envcheck.text.lazy import lazy_pattern

_P2P = lazy_pattern(r"(Uni|Bi)directional P2P=(Disabled|Enabled) Bandwidth\b.*\(GB/s\)")
_HEAD = lazy_pattern(r"(?:D\\D)?(?:\s*[0-9]{1,3}){1,64}$|mem(?:cpy|ory)\b.{1,80}\(GB/s\)$")
_ROW = lazy_pattern(r"([0-9]{1,3})((?:\s+(?:[0-9]{1,6}\.[0-9]{1,4}|N/A)){1,64})$")
_LONGEST_TABLE_LINE = 1_000

_Table = dict[tuple[int, int], float]  # GB/s by row and column; a row of the host is 0


def _table(lines: Sequence[str]) -> _Table:
    """The matrix at the beginning of these lines, which stand below its title."""
    figures: _Table = {}
    for line in lines:
        text = line[:_LONGEST_TABLE_LINE].strip()
        if row := _ROW.match(text):
            values = enumerate(row[2].split())
            figures |= {(int(row[1]), other): float(value) for other, value in values if value != "N/A"}
        elif not _HEAD.match(text):
            break
    return figures


@importer("p2pBandwidthLatencyTest", Rank.OUTPUT)
def read_peer_copies(paste: Paste) -> Snapshot:
    """The pair of GPUs that loses most by direct copies, or gains least."""
    staged, direct = dict[str, _Table](), dict[str, _Table]()
    for place, line in enumerate(paste.lines):
        if "P2P=" in line and (title := _P2P.search(line[:_LONGEST_TABLE_LINE])):
            (direct if title[2] == "Enabled" else staged).setdefault(title[1], _table(paste.lines[place + 1 :]))
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


_DEVICE = lazy_pattern(
    r"(?:#\s+Rank\s+[0-9]{1,4} .{1,80}? on\s+(?P<host>\S{1,80})\s+device\s+(?P<rank>[0-9]{1,2}) \[\S{1,20}\]"
    r"|\s*Device:? (?P<device>[0-9]{1,2})[:,]) (?P<name>[A-Z][^(,\"]{2,60}?)(?: \(|,|\s*$)"
)
_COLLECTIVE = lazy_pattern(
    r"\s*(?P<size>[0-9]{6,14})\s+[0-9]{1,13}\s+[a-z]\w{2,10}(?:\s+[a-z]{2,6})?(?:\s+-?[0-9]{1,2})?"
    r"\s+[0-9.]{1,12}\s+[0-9.]{1,9}\s+(?P<busbw>[0-9]{1,6}\.[0-9]{1,3})\s"
)
_PINNED = lazy_pattern(r"\s*[0-9]{5,12}\s+([0-9]{1,6}\.[0-9])\s*$")
_WITHOUT_NVLINK = lazy_pattern(rf"GPU[0-9]{{1,2}}(?=\s+(?:{NOT_NVLINK})\s)(?:\s+(?:{NOT_NVLINK}))+")
_LEAST = Conditions(source=SOURCE, pcie_generation=3, pcie_width=8)  # What boards for computing have at least
_CLEARLY_LESS = 4.5e9  # Than such a link; a text tells of no other, and what is faster is not judged
_FORMAT = "tables of benchmarks"


@importer(_FORMAT, Rank.OUTPUT)
def read_figures(paste: Paste) -> Snapshot:
    """The lowest figure of each kind of table, of the GPUs that the same tool names."""
    devices = [found for line in paste.lines if "evice" in line and (found := _DEVICE.match(line[:300]))]
    titles: dict[str, int] = {}  # The line of the first title by quantity
    for place, line in enumerate(paste.lines if devices else ()):
        text = line[:_LONGEST_TABLE_LINE].lower()
        for row in rows_of(_FORMAT):
            if any(map(text.__contains__, row.has)) and any(compiled(each).search(line) for each in row.patterns):
                titles.setdefault(row.name, place)
    named = ((int(each["rank"] or each["device"]), each["name"]) for each in devices[:MOST_GPUS] if titles)
    gpus = {at: Gpu(source=SOURCE, label=label(at), index=at, name=name) for at, name in named}
    ranks = [each for each in devices if each["host"]]
    figures = (each for name, place in titles.items() for each in _figures(name, paste, place, ranks))
    return Snapshot(gpus=by_index(gpus), measurements=tuple(figures))


def _figures(name: str, paste: Paste, place: int, ranks: list[re.Match[str]]) -> Iterator[Measurement]:
    """The lowest copy of two GPUs, those of each GPU and its host, or the best of the largest collective of a host."""
    measured = Measurement(source=SOURCE, name=name, unit="B/s", method="copy engine", detail="in the text")
    below = paste.lines[place + 1 :]
    if name == "peer-to-peer":
        pairs = {at: value for at, value in _table(below).items() if at[0] != at[1]}
        if pairs and not any(_WITHOUT_NVLINK.match(line.strip()[:_LONGEST_TABLE_LINE]) for line in paste.lines):
            (first, second), value = min(pairs.items(), key=itemgetter(1))
            yield replace(measured, gpu=label(first), peer=label(second), value=value * 1e9, variant="one direction")
    elif name != "nccl-all-reduce":
        alone = next(filter(None, map(_PINNED.match, below[:4])), None)  # bandwidthTest's, of its first GPU
        unit = 1e6 if any("(MB/s)" in line for line in below[:4]) else 1e9
        for (_, gpu), value in ({(0, 0): float(alone[1])} if alone else _table(below)).items():
            link = _LEAST if value * unit < _CLEARLY_LESS else None
            yield replace(measured, gpu=label(gpu), value=value * unit, conditions=link)
    else:
        rows = (_COLLECTIVE.match(line[:300]) for line in below)
        size, value = max(((int(row["size"]), float(row["busbw"])) for row in rows if row), default=(0, 0.0))
        gpus = tuple(label(int(each["rank"])) for each in ranks)
        if value and len({each["host"] for each in ranks}) == 1:
            together = Collective(ranks=len(gpus), processes=1, gpus=gpus)
            yield replace(measured, gpu=gpus[0], value=value * 1e9, size=size, method="NCCL", collective=together)
