"""``lspci``, with ``-k`` and ``-nn``: the NVIDIA GPUs on the PCI bus, and the kernel driver that holds each; or that a
search of its list for NVIDIA finds nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from envcheck.importers.kit.gpu_lines import MOST_GPUS
from envcheck.importers.kit.paste import SOURCE, Paste
from envcheck.importers.kit.protocol import Rank
from envcheck.snapshot import Gpu, Kernel, Listing, Snapshot

NAME = "lspci"
RANK = Rank.OUTPUT

_DEVICE = re.compile(r"((?:[0-9a-f]{4,8}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]) (\S.{3,200})$", re.IGNORECASE)
_GPU = re.compile(
    r"(?:VGA compatible controller|3D controller|Display controller)(?: \[[0-9a-f]{4}\])?: NVIDIA Corporation\b"
    r"(?P<rest>.*)",
    re.IGNORECASE,
)
_NAMED = re.compile(r"\[((?:GeForce|Tesla|Quadro|TITAN|NVS|GRID|RTX|[A-Z][0-9]{1,3}[A-Z]?\b)[^\]\n]{0,80})\]")
_PLAIN = re.compile(r"\s(?P<name>(?:GeForce|Tesla|Quadro|TITAN|A[0-9]+|H[0-9]+)\b[^\[(\n]{0,60})")
_IDS = re.compile(r"\[(10de:[0-9a-f]{4})\]", re.IGNORECASE)
_IN_USE = re.compile(r"Kernel driver in use: ([a-z0-9_-]{2,30})")
_SEARCH = re.compile(r".{0,80}[$#>%] ?(?:sudo )?lspci\b[^|]{0,30}\| ?grep\b.{0,20}\bnvidia\b.{0,3}$", re.IGNORECASE)
_PROMPT = re.compile(r".{0,80}?[$#>%] ?[a-z]\w")
_LONGEST_LINE = 300
_MOST_LINES_OF_A_DEVICE = 40


def recognise(paste: Paste) -> bool:
    if "NVIDIA Corporation" in paste.text:
        return next(_gpus(paste), None) is not None
    return (
        "lspci" in paste.text
        and any(  # the next command stands below a search for NVIDIA, which printed nothing
            _SEARCH.match(line[:_LONGEST_LINE]) and _PROMPT.match(below[:_LONGEST_LINE])
            for line, below in pairwise(paste.lines)
            if "lspci" in line
        )
    )


def read(paste: Paste) -> Snapshot:
    found = tuple(gpu for gpu, _ in zip(_gpus(paste), range(MOST_GPUS), strict=False))
    drivers = {gpu.kernel_driver for gpu in found}
    kernel = Kernel(source=SOURCE, nouveau_loaded=True) if "nouveau" in drivers else None
    return Snapshot(gpus=Listing(items=found, complete=not found), kernel=kernel)


def _gpus(paste: Paste) -> Iterator[Gpu]:
    for place, line in enumerate(paste.lines):
        device = _DEVICE.match(line.strip()[:_LONGEST_LINE])
        found = _GPU.search(device[2]) if device else None
        if device and found:
            yield _gpu(device[1], found["rest"], _driver(paste.lines[place + 1 : place + _MOST_LINES_OF_A_DEVICE]))


def _driver(below: tuple[str, ...]) -> str | None:
    """The driver in the lines that belong to a device; None where they do not say."""
    for line in below:
        if _DEVICE.match(line.strip()[:_LONGEST_LINE]):
            return None
        if found := _IN_USE.search(line[:_LONGEST_LINE]):
            return found[1]
    return None


def _gpu(place: str, rest: str, driver: str | None) -> Gpu:
    place = place.lower() if place.count(":") > 1 else f"0000:{place.lower()}"
    named = _NAMED.search(rest) or _PLAIN.search(rest)
    ids = _IDS.search(rest)
    return Gpu(
        source=SOURCE,
        pci_bus_id=place,
        name=named[1].strip() if named and "/" not in named[1] else None,  # slashes divide models that share a chip
        pci_device_id=ids[1].lower() if ids else None,
        kernel_driver=driver,
    )
