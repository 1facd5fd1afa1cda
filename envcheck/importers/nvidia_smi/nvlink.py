"""``nvidia-smi nvlink --status``: below each GPU its links, with their speed or ``<inactive>``."""

from __future__ import annotations

import re

import msgspec

from envcheck.importers.kit import gpu_lines
from envcheck.importers.kit.paste import SOURCE, Paste
from envcheck.importers.kit.protocol import Rank
from envcheck.snapshot import Gpu, Listing, NvLink, Snapshot

NAME = "nvidia-smi nvlink"
RANK = Rank.OUTPUT

_LINK = re.compile(
    r"\s{0,20}Link (?P<number>[0-9]{1,2}): (?:(?P<speed>[0-9.]{1,8}) GB/s|(?P<off><?inactive>?))", re.IGNORECASE
)
_GIGA = 1e9
_MOST_LINKS = 64


def read(paste: Paste) -> Snapshot:
    """The links of each GPU that is named above them."""
    gpus: dict[int, Gpu] = {}
    last: int | None = None
    for line in paste.lines:
        if gpu_lines.is_gpu_line(line):
            listed = gpu_lines.listing([line])
            last = listed.items[0].index if listed else last
            if listed and last is not None and len(gpus) < gpu_lines.MOST_GPUS:
                gpus.setdefault(last, listed.items[0])
        elif last in gpus and (found := _LINK.match(line)):
            gpus[last] = _with_link(gpus[last], found)
    having = {index: gpu for index, gpu in gpus.items() if gpu.nvlinks}
    return Snapshot(gpus=Listing(items=tuple(having.values()))) if having else Snapshot()


def _with_link(gpu: Gpu, found: re.Match[str]) -> Gpu:
    known, number = gpu.nvlinks or (), int(found["number"])
    if len(known) >= _MOST_LINKS or number in {link.link for link in known}:
        return gpu
    speed = float(found["speed"]) * _GIGA if found["speed"] and found["speed"].count(".") < 2 else None
    link = NvLink(source=SOURCE, link=number, active=found["off"] is None, bandwidth=speed)
    return msgspec.structs.replace(gpu, nvlinks=(*known, link))
