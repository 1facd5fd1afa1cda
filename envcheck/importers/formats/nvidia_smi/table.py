"""The table that ``nvidia-smi`` prints, in its several widths, and ``nvidia-smi --version``.

The banner has been ``Driver Version`` and ``CUDA Version``, and is ``KMD Version`` and ``CUDA UMD Version`` in newer
drivers; the oldest have no CUDA version. A truncated name ("NVIDIA GeForce ...") is ignored.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import takewhile
from typing import Literal

import msgspec

from envcheck.importers.formats.nvidia_smi.fields import MOST_GPUS, bus_id, error_in, flag, label, quantity, whole
from envcheck.importers.formats.nvidia_smi.lists import by_index
from envcheck.importers.importer import Rank, importer
from envcheck.importers.paste import SOURCE, Paste
from envcheck.model.snapshot import (
    Driver,
    Ecc,
    Gpu,
    Memory,
    Mig,
    MigInstance,
    Platform,
    Power,
    Process,
    Snapshot,
    Temperature,
)
from envcheck.text.lazy import lazy_pattern

_RELEASE = r"([0-9]{2,4}(?:\.[0-9]{1,4}){1,2})"
_BANNER = lazy_pattern(
    rf"\bNVIDIA-SMI:?\s{{1,8}}{_RELEASE}(?:\s{{1,40}}(?:Driver|KMD) Version:\s{{0,8}}{_RELEASE})?"
    r"(?:\s{1,40}CUDA (?:UMD )?Version:\s{0,8}([0-9]{1,2}\.[0-9]{1,2}))?"
)
_TWO_VERSIONS = lazy_pattern(
    rf"\b(?:Driver|KMD) Version:\s{{0,8}}{_RELEASE}\s{{1,40}}\|?\s{{0,8}}"
    r"CUDA (?:UMD )?Version:\s{0,8}([0-9]{1,2}\.[0-9]{1,2})"
)
_VERSION_LINE = lazy_pattern(
    r"(NVIDIA-SMI|NVML|DRIVER|KMD|CUDA(?: UMD)?) version {0,12}: ([0-9]{1,4}(?:\.[0-9]{1,4}){1,2})$", re.IGNORECASE
)
"""The lines of ``nvidia-smi --version`` and the head of ``nvidia-smi -q``, padded before the colon."""

_WINDOWS_HEADER = lazy_pattern(r"\| GPU  Name .{0,40}(?:TCC/WDDM|Driver-Model)")
_USED_OF_TOTAL = lazy_pattern(r"([0-9]{1,9}(?:\.[0-9]{1,3})?[MG]iB) {0,4}/ {0,4}([0-9]{1,9}(?:\.[0-9]{1,3})?[MG]iB)")
_STATE = lazy_pattern(r"(?:\S{1,4} {1,9})?(?P<degrees>[0-9]{2,3})C {1,9}P[0-9]{1,2}\b")
_DRAW_OF_LIMIT = lazy_pattern(r"([0-9]{1,6}(?:\.[0-9]{1,3})?W) {0,4}/ {0,4}([0-9]{1,6}(?:\.[0-9]{1,3})?W)")
_USE_AND_MODE = lazy_pattern(r"([0-9]{1,3})% {1,12}(Default|E\. Process|E\. Thread|Prohibited)$")
"""The last cell of the second row: how much the GPU is used, and its compute mode."""
_MODES: dict[str, Literal["default", "exclusive_process", "exclusive_thread", "prohibited"]] = {
    "Default": "default", "E. Process": "exclusive_process", "E. Thread": "exclusive_thread",
    "Prohibited": "prohibited",
}  # fmt: skip
_PROCESS = lazy_pattern(
    r"\| {1,4}([0-9]{1,3})(?: {1,6}(?:N/A|[0-9]{1,3}) {1,6}(?:N/A|[0-9]{1,3}))? {1,9}([0-9]{1,9})"
    r" {1,9}(?:M\+)?(C|G|C\+G) {1,9}(\S.{0,120}?) {1,99}(?:([0-9]{1,9}MiB)|N/A) {0,4}\|$"
)
"""GPU, process, kind, program and memory."""
_MIG_BOX = lazy_pattern(r"\| MIG devices: {1,200}\|$")
_MIG_ROW = lazy_pattern(r"\| {1,4}([0-9]{1,3})(?: {1,6}[0-9]{1,3}){3} {1,6}\|")
"""Numbers of the GPU, the GPU instance, the compute instance and the MIG device."""
_LONGEST_ROW = 200
_MOST_ROWS = 500


@importer(
    "nvidia-smi",
    Rank.OUTPUT,
    recognise=lambda paste: _driver(paste.lines) is not None or any(map(_first_row, paste.lines)),
)
def read(paste: Paste) -> Snapshot:
    # Only on Windows has the table a column for the driver model; elsewhere that is persistence mode.
    windows = any(_WINDOWS_HEADER.search(line[:_LONGEST_ROW]) for line in paste.lines)
    platform = Platform(source=SOURCE, os="windows") if windows else None
    # The GPUs of the first table: the first row names a GPU, the next two have its state.
    gpus: dict[int, Gpu] = {}
    below: Gpu | None = None
    for line in paste.lines:
        first = _first_row(line)
        if first and first.index is not None and len(gpus) < MOST_GPUS:
            below = gpus.setdefault(first.index, first)
        elif below is not None and below.index is not None and line.lstrip().startswith("|"):
            below = gpus[below.index] = _with_row(below, _cells(line))
        else:
            below = None
    # The processes of the last box by GPU. An empty box is no proof: in a container it lists none.
    found: dict[int, list[Process]] = {}
    for row in filter(None, (_PROCESS.match(line.strip()[:_LONGEST_ROW]) for line in paste.lines)):
        kind: Literal["compute", "graphics"] = "compute" if row[3] == "C" else "graphics"  # desktops are C+G
        server = row[4].endswith("nvidia-cuda-mps-server")
        memory = whole(row[5]) if row[5] else None
        found.setdefault(int(row[1]), []).append(
            Process(source=SOURCE, pid=int(row[2]), kind=kind, memory=memory, mps_server=server)
        )
    for index, running in found.items():
        if index in gpus:
            gpus[index] = msgspec.structs.replace(gpus[index], processes=tuple(running[:_MOST_ROWS]))
    numbers = _mig_box(paste.lines)
    for index, gpu in gpus.items() if numbers is not None else ():
        if numbers is not None and gpu.mig and gpu.mig.enabled:
            instances = (MigInstance(source=SOURCE),) * numbers.count(index)
            gpus[index] = msgspec.structs.replace(gpu, mig=msgspec.structs.replace(gpu.mig, instances=instances))
    return Snapshot(platform=platform, driver=_driver(paste.lines), gpus=by_index(gpus))


def _driver(lines: Sequence[str]) -> Driver | None:
    """The driver from the first banner; nvidia-smi's own release is used only where there is no other."""
    for line in lines:
        banner, pair = _BANNER.search(line[:_LONGEST_ROW]), _TWO_VERSIONS.search(line[:_LONGEST_ROW])
        if banner:
            return Driver(source=SOURCE, installed=True, release=banner[2] or banner[1], cuda=banner[3])
        if pair:
            return Driver(source=SOURCE, installed=True, release=pair[1], cuda=pair[2])
    versions: dict[str, str] = {}
    for line in lines:
        found = _VERSION_LINE.match(line.strip()[:_LONGEST_ROW])
        if found:
            versions.setdefault(found[1].lower(), found[2])
    release = versions.get("driver") or versions.get("kmd")
    # "CUDA Version : 12.4" alone may come from any tool; below a driver version it is nvidia-smi's.
    if release is None or not any(" :" in line for line in lines if line.strip().lower().startswith(("driver", "kmd"))):
        return None
    cuda = versions.get("cuda") or versions.get("cuda umd")
    return Driver(source=SOURCE, installed=True, release=release, cuda=cuda, nvml_version=versions.get("nvml"))


# --- the rows of GPUs ---------------------------------------------------------------------------------------------


def _mig_box(lines: Sequence[str]) -> list[int] | None:
    """The GPU number of each row in the first box of MIG devices; None without a box, or if it is cut off."""
    start = next((place for place, line in enumerate(lines) if _MIG_BOX.match(line.strip()[:_LONGEST_ROW])), None)
    if start is None:
        return None
    rest = (line.strip()[:_LONGEST_ROW] for line in lines[start : start + _MOST_ROWS])
    box = tuple(takewhile(lambda line: line.startswith(("|", "+")), rest))
    head = next((place for place, line in enumerate(box) if line.startswith("|==")), None)
    if head is None or not box[-1].startswith("+"):
        return None
    return [int(row[1]) for line in box[head:] if (row := _MIG_ROW.match(line))]


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip()[:_LONGEST_ROW].strip("|").split("|")]


def _first_row(line: str) -> Gpu | None:
    """``| 0  NVIDIA H200   On | 00000000:00:06.0 Off | 0 |``"""
    if "|" not in line or ":" not in line:
        return None
    cells = _cells(line)
    named = re.match(r"([0-9]{1,3}) {1,4}(\S.*)$", cells[0])
    place = cells[1].split(" ")[0] if len(cells) >= 3 else ""
    if named is None or bus_id(place) is None:
        return None
    column = re.match(r"(.*?)\s+(On|Off|WDDM|TCC|MCDM|N/A)$", named[2])
    name = (column[1] if column else named[2]).strip()
    ecc = Ecc(source=SOURCE, enabled=False) if cells[2] == "Off" else None
    if re.fullmatch("[0-9]{1,9}", cells[2]):  # of volatile uncorrected errors
        ecc = Ecc(source=SOURCE, enabled=True, volatile_uncorrected=int(cells[2]))
    return Gpu(
        source=SOURCE,
        pci_bus_id=bus_id(place),
        label=label(int(named[1])),
        index=int(named[1]),
        name=None if name.endswith("...") or error_in(name) or name.startswith("ERR!") else name,
        persistence_mode=flag(column[2]) if column else None,
        ecc=ecc,
    )


def _with_row(gpu: Gpu, cells: list[str]) -> Gpu:
    """The GPU with a further row: the second has power and memory, the third (in newer drivers) the MIG mode."""
    memory = next((found for cell in cells if (found := _USED_OF_TOTAL.search(cell))), None)
    power = next((found for cell in cells if (found := _DRAW_OF_LIMIT.search(cell))), None)
    if memory:
        gpu = msgspec.structs.replace(gpu, memory=Memory(source=SOURCE, used=whole(memory[1]), total=whole(memory[2])))
    if power:
        draw, limit = quantity(power[1]), quantity(power[2])
        gpu = msgspec.structs.replace(gpu, power=Power(source=SOURCE, draw=draw, limit=limit))
        state = re.search(r"(?:^|\s)(P[0-9]{1,2})\s", cells[0])
        gpu = msgspec.structs.replace(gpu, performance_state=state[1] if state else None)
    if now := _STATE.match(cells[0]):
        gpu = msgspec.structs.replace(gpu, temperature=Temperature(source=SOURCE, gpu=float(now["degrees"])))
    if memory and (use := _USE_AND_MODE.match(cells[-1])):
        gpu = msgspec.structs.replace(gpu, utilisation=int(use[1]) / 100, compute_mode=_MODES[use[2]])
    if not memory and gpu.memory and cells[-1] in ("Enabled", "Disabled"):
        gpu = msgspec.structs.replace(gpu, mig=Mig(source=SOURCE, enabled=flag(cells[-1])))
    return gpu
