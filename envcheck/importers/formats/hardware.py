"""GPUs and what is around them: ``lspci`` and the Fabric Manager."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise, takewhile

from envcheck.importers.formats.nvidia_smi.fields import MOST_GPUS
from envcheck.importers.importer import Rank, importer
from envcheck.importers.paste import SOURCE, Paste
from envcheck.model.snapshot import Fabric, Gpu, Kernel, Listing, Snapshot
from envcheck.text.lazy import lazy_pattern

_DEVICE = lazy_pattern(r"((?:[0-9a-f]{4,8}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]) (\S.{3,200})$", re.IGNORECASE)
_PCI_GPU = lazy_pattern(
    r"(?:VGA compatible controller|3D controller|Display controller)(?: \[[0-9a-f]{4}\])?: NVIDIA Corporation\b"
    r"(?P<rest>.*)",
    re.IGNORECASE,
)
_NAMED = lazy_pattern(r"\[((?:GeForce|Tesla|Quadro|TITAN|NVS|GRID|RTX|[A-Z][0-9]{1,3}[A-Z]?\b)[^\]\n]{0,80})\]")
_PLAIN = lazy_pattern(r"\s(?P<name>(?:GeForce|Tesla|Quadro|TITAN|A[0-9]+|H[0-9]+)\b[^\[(\n]{0,60})")
_IDS = lazy_pattern(r"\[(10de:[0-9a-f]{4})\]", re.IGNORECASE)
_IN_USE = lazy_pattern(r"Kernel driver in use: ([a-z0-9_-]{2,30})")
_SEARCH = lazy_pattern(r".{0,80}[$#>%] ?(?:sudo )?lspci\b[^|]{0,30}\| ?grep\b.{0,20}\bnvidia\b.{0,3}$", re.IGNORECASE)
_PROMPT = lazy_pattern(r".{0,80}?[$#>%] ?[a-z]\w")
_LONGEST_PCI_LINE = 300


def _lists_pci(paste: Paste) -> bool:
    if "NVIDIA Corporation" in paste.text:
        return next(_pci_gpus(paste), None) is not None
    # The next command stands below a search for NVIDIA, which printed nothing.
    return "lspci" in paste.text and any(
        _SEARCH.match(line[:_LONGEST_PCI_LINE]) and _PROMPT.match(below[:_LONGEST_PCI_LINE])
        for line, below in pairwise(paste.lines)
        if "lspci" in line
    )


@importer("lspci", Rank.OUTPUT, recognise=_lists_pci)
def read_lspci(paste: Paste) -> Snapshot:
    found = tuple(gpu for gpu, _ in zip(_pci_gpus(paste), range(MOST_GPUS), strict=False))
    drivers = {gpu.kernel_driver for gpu in found}
    kernel = Kernel(source=SOURCE, nouveau_loaded=True) if "nouveau" in drivers else None
    return Snapshot(gpus=Listing(items=found, complete=not found), kernel=kernel)


def _pci_gpus(paste: Paste) -> Iterator[Gpu]:
    for place, line in enumerate(paste.lines):
        device = _DEVICE.match(line.strip()[:_LONGEST_PCI_LINE])
        found = _PCI_GPU.search(device[2]) if device else None
        if device and found:
            below = paste.lines[place + 1 : place + 40]
            own = takewhile(lambda text: not _DEVICE.match(text.strip()[:_LONGEST_PCI_LINE]), below)
            address, rest = device[1].lower(), found["rest"]
            named, ids = _NAMED.search(rest) or _PLAIN.search(rest), _IDS.search(rest)
            yield Gpu(
                source=SOURCE,
                pci_bus_id=address if address.count(":") > 1 else f"0000:{address}",
                name=named[1].strip() if named and "/" not in named[1] else None,  # slashes divide models of one chip
                pci_device_id=ids[1].lower() if ids else None,
                kernel_driver=next((use[1] for text in own if (use := _IN_USE.search(text[:_LONGEST_PCI_LINE]))), None),
            )


_STATE = lazy_pattern(r"\bActive: (?P<state>active \(running\)|inactive|failed)\b", re.IGNORECASE)
_NEAR = 5  # Lines from the name of a unit on among which its state stands


@importer("systemd service", Rank.OUTPUT)
def read_service(paste: Paste) -> Snapshot:
    """What ``systemctl status`` says of the Fabric Manager: a unit's name, and its state some lines below."""
    states = [
        found["state"].lower().startswith("active")
        for place, line in enumerate(paste.lines)
        if "abricmanager" in line and re.search(r"nvidia-fabricmanager(?:\.service)?\b", line, re.IGNORECASE)
        for near in paste.lines[place : place + _NEAR]
        if (found := _STATE.search(near))
    ]
    return Snapshot(fabric=Fabric(source=SOURCE, manager_running=states[-1])) if states else Snapshot()
