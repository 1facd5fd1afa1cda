"""nvidia-smi's lists: ``-L`` (which collect_env quotes) with MIG devices, ``nvlink --status``, ``topo -m``,
``--query-gpu=… --format=csv``, ``dmon`` and ``pmon``.

A CSV has a head with the names of the fields, and a row for each GPU; without a head the fields are those of the
command line above. Units stand in the head or behind the values. Of a GPU that was watched for a while, the row counts
in which it was used most. How GPUs are linked tells of no fault by itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any

import msgspec

from envcheck.importers.formats.nvidia_smi.fields import MOST_GPUS, bus_id, flag, label, quantity, whole
from envcheck.importers.formats.nvidia_smi.gpu import REASONS, made
from envcheck.importers.importer import Rank, importer
from envcheck.importers.paste import SOURCE, Paste
from envcheck.model.snapshot import (
    Driver,
    Gpu,
    Listing,
    Mig,
    MigInstance,
    NvLink,
    Process,
    Snapshot,
    Throttle,
    items_in,
)
from envcheck.text.lazy import lazy_pattern

_GPU = lazy_pattern(
    r"GPU ([0-9]{1,3}): ?(?![^(\n]{0,60}\b(?:AMD|Intel|ATI|Radeon)\b)"
    r"(\S[^(,\n]{0,100})(?:\(UUID: (GPU-[0-9a-fA-F-]{8,40})\))?"
)
_MIG = lazy_pattern(
    r"MIG ([0-9]{1,2}[cg]\.\S{1,40})\s+Device\s+([0-9]{1,2})(?::|$)(?:\s*\(UUID: (MIG-[^)\s]{1,100})\))?"
)
_KIND = lazy_pattern(r" \[(?:Discrete|Integrated)\]$")  # What fastfetch adds
_LINK = lazy_pattern(
    r"Link (?P<number>[0-9]{1,2}): (?:(?P<speed>[0-9.]{1,8}) GB/s|(?P<off><?inactive>?))", re.IGNORECASE
)
_MOST_LINKS = 64


def is_gpu_line(line: str) -> bool:
    """Whether this is a line of ``nvidia-smi -L``."""
    line = line.strip()
    return bool(_GPU.match(line) or _MIG.match(line))


def listed_gpus(lines: Iterable[str]) -> Listing[Gpu] | None:
    """The GPUs in these lines, with the MIG devices and the NVLinks below each, or None if there are none."""
    gpus: dict[int, Gpu] = {}
    last: int | None = None
    for line in map(str.strip, lines):
        if gpu := _GPU.match(line):
            last = int(gpu[1])
            if len(gpus) < MOST_GPUS:
                name = _KIND.sub("", gpu[2].strip())
                gpus.setdefault(last, Gpu(source=SOURCE, label=label(last), index=last, name=name, uuid=gpu[3]))
        elif last is None or last not in gpus:
            continue
        elif instance := _MIG.match(line):
            mig = gpus[last].mig
            known = mig.instances or () if mig else ()
            new = MigInstance(source=SOURCE, uuid=instance[3], name=instance[1])
            if len(known) < 8 and not (new.uuid and new.uuid in {other.uuid for other in known}):
                mig = Mig(source=SOURCE, enabled=True, instances=(*known, new))
                gpus[last] = msgspec.structs.replace(gpus[last], mig=mig)
        elif found := _LINK.match(line):
            links, number = gpus[last].nvlinks or (), int(found["number"])
            if len(links) < _MOST_LINKS and number not in {link.link for link in links}:
                speed = float(found["speed"]) * 1e9 if found["speed"] and found["speed"].count(".") < 2 else None
                link = NvLink(source=SOURCE, link=number, active=found["off"] is None, bandwidth=speed)
                gpus[last] = msgspec.structs.replace(gpus[last], nvlinks=(*links, link))
    return by_index(gpus)


def by_index(gpus: Mapping[int, Gpu]) -> Listing[Gpu] | None:
    """The GPUs by nvidia-smi's index, or None if there are none; complete if the numbers run from 0."""
    if not gpus:
        return None
    return Listing(items=tuple(gpus.values()), complete=sorted(gpus) == list(range(len(gpus))))


@importer("nvidia-smi -L", Rank.OUTPUT)
def read_list(paste: Paste) -> Snapshot:
    """``nvidia-smi -L``: ``GPU 0: NVIDIA A10 (UUID: GPU-…)`` and the MIG devices below each."""
    return Snapshot(gpus=listed_gpus(line for line in paste.lines if is_gpu_line(line)))


@importer("nvidia-smi nvlink", Rank.OUTPUT)
def read_nvlink(paste: Paste) -> Snapshot:
    """The links of each GPU that is named above them."""
    having = tuple(gpu for gpu in items_in(listed_gpus(paste.lines)) if gpu.nvlinks)
    return Snapshot(gpus=Listing(items=having)) if having else Snapshot()


NOT_NVLINK = "X|SYS|NODE|PHB|PXB|PIX"  # How `topo -m` names a GPU itself, and ways over PCI Express
_KIND_OF_LINK = rf"(?:{NOT_NVLINK}|NV[0-9]{{1,2}}|OK|NS|CNS|GNS|TNS|DR)"
_TOPO_ROW = lazy_pattern(rf"GPU([0-9]{{1,3}})(?=(?:\s{{1,8}}{_KIND_OF_LINK}(?:\s|$)))(?:.{{0,400}}?\bX\b)")


@importer("nvidia-smi topo", Rank.OUTPUT)
def read_topo(paste: Paste) -> Snapshot:
    """``nvidia-smi topo -m``: how many GPUs there are."""
    indices = sorted({int(row[1]) for line in paste.statements if (row := _TOPO_ROW.match(line.strip()))})[:MOST_GPUS]
    return Snapshot(gpus=by_index({index: Gpu(source=SOURCE, label=label(index), index=index) for index in indices}))


_UNREAD = ("index", "count", "driver_version", "memory.free", "serial", "timestamp", "vbios_version")
"""Fields of the query that no field of a Gpu is read from, but by which a head is known."""
_FIELD = lazy_pattern(r"[a-z][a-z0-9_]{1,40}(?:\.[a-z0-9_]{1,40}){0,3}")
_REASON = lazy_pattern(r"clocks_(?:event|throttle)_reasons\.(?P<name>\w{1,40})")
_REASON_BITS = (
    *("gpu_idle", "applications_clocks_setting", "sw_power_cap", "hw_slowdown", "sync_boost", "sw_thermal_slowdown"),
    *("hw_thermal_slowdown", "hw_power_brake_slowdown", "display_clock_setting"),
)
"""The reasons of which ``active`` is the sum, from its lowest bit."""
_QUANTITY = lazy_pattern(r"[0-9]{1,9}(?:\.[0-9]{1,4})? (?:MHz|MiB|W|%)")
_UNIT = lazy_pattern(r"\s?\[[^\]]{0,12}\]$")
_LOOP = lazy_pattern(r"nvidia-smi\b[^\n]{0,20}--query-gpu[^\n]{0,500}(?:\s-l(?:ms)?\b|\s--loop)")


@importer("nvidia-smi CSV", Rank.OUTPUT)
def read_csv(paste: Paste) -> Snapshot:
    """``nvidia-smi --query-gpu=… --format=csv``: a head with the names of the fields, and a row for each GPU."""
    gpus: dict[int, Gpu] = {}
    places: dict[str, int] = {}
    release, second, place = None, "", 0
    loops = _LOOP.search(paste.text)
    for row in _rows(paste):
        # Without an index the GPUs are in its order, of each moment again.
        place, second = place + 1 if row.get("timestamp", "")[:19] == second else 0, row.get("timestamp", "")[:19]
        new = places.setdefault(row.get("name", ""), len(places)) if loops else len(gpus)  # then each model counts once
        index = whole(row["index"]) if row.get("index") else place if second else new
        if index is None or len(gpus) >= MOST_GPUS:
            continue
        found = {_READ[field][0]: _READ[field][1](text) for field, text in row.items() if field in _READ}
        _keep_busiest(gpus, index, msgspec.structs.replace(made(found), throttle=_throttle(row)))
        number = re.fullmatch(r"[0-9]{3}(?:\.[0-9]{2,3}){1,2}", row.get("driver_version", ""))
        release = release or (number[0] if number else None)
    driver = Driver(source=SOURCE, installed=True, release=release) if release else None
    return Snapshot(driver=driver, gpus=by_index(gpus))


def _keep_busiest(gpus: dict[int, Gpu], index: int, gpu: Gpu) -> None:
    known = gpus.get(index)
    if known is None or (gpu.utilisation or 0.0) > (known.utilisation or 0.0):
        gpus[index] = msgspec.structs.replace(gpu, label=label(index), index=index)


def _throttle(row: Mapping[str, str]) -> Throttle | None:
    """The reasons of which each has a field, or of the field for all of them."""
    reasons: dict[str | None, bool | None] = {}
    for field, value in row.items():
        known = _REASON.match(field)
        if known and known["name"] == "active" and re.fullmatch("0x[0-9a-f]{16}", value):
            reasons |= {name: bool(int(value, 16) >> bit & 1) for bit, name in enumerate(_REASON_BITS)}
        elif known:
            reasons[REASONS.get(known["name"])] = flag(value)
    looked = any(is_active is not None for name, is_active in reasons.items() if name)
    active = tuple(name for name, is_active in reasons.items() if name and is_active)
    return Throttle(source=SOURCE, reasons=active) if looked else None


_COLUMNS = {
    "pwr": ("power.draw", "W"), "gtemp": ("temperature.gpu", ""), "temp": ("temperature.gpu", ""),
    "mtemp": ("temperature.memory", ""), "sm": ("utilisation", "%"), "mem": ("memory_utilisation", "%"),
    "mclk": ("clocks.memory", "MHz"), "pclk": ("clocks.sm", "MHz"),
}  # fmt: skip
"""The field of a Gpu for each column of ``dmon``, and its unit, which stands in the second line of the head."""
_VIOLATIONS = {"pviol": (50, "sw_power_cap"), "tviol": (1, "sw_thermal_slowdown")}
"""The columns of what holds the clocks down, from which value on (percent of the time; whether), and the reason."""
_COLUMN_HEAD = lazy_pattern(r"# gpu\s|#Date\s{1,12}Time\s{1,12}gpu\s")
_MOST_PROCESSES = 64


@importer("nvidia-smi dmon", Rank.OUTPUT)
def read_watched(paste: Paste) -> Snapshot:
    """``nvidia-smi dmon`` and ``pmon``: columns, and a row for each GPU or process each second."""
    gpus: dict[int, Gpu] = {}
    running: dict[int, dict[int, Process]] = {}
    columns: list[str] = []
    for line in paste.lines if any(map(paste.lowered.__contains__, ("# gpu", "#date"))) else ():
        text = line.strip()[:400]
        if _COLUMN_HEAD.match(text):
            columns = text.lstrip("# ").split()
        row = dict(zip(columns, text.split(), strict=False)) if columns and not text.startswith("#") else {}
        index, pid = whole(row.get("gpu", "")), whole(row.get("pid", ""))
        if index is None or len(gpus) >= MOST_GPUS or len(row) < len(columns):
            columns = columns if text.startswith("#") else []
        elif "pid" not in columns:
            found = {
                _COLUMNS[name][0]: quantity(value + _COLUMNS[name][1])
                for name, value in row.items()
                if name in _COLUMNS
            }
            held = [name for each, (least, name) in _VIOLATIONS.items() if (whole(row.get(each, "")) or 0) >= least]
            throttle = Throttle(source=SOURCE, reasons=tuple(held)) if held else None
            _keep_busiest(gpus, index, msgspec.structs.replace(made(found), throttle=throttle))
        elif pid is not None and len(running.setdefault(index, {})) < _MOST_PROCESSES:
            kind: Any = {"C": "compute", "C+G": "graphics", "G": "graphics"}.get(row.get("type", ""))
            running[index].setdefault(pid, Process(source=SOURCE, pid=pid, kind=kind))
    for index, processes in running.items():
        gpu = gpus.get(index, Gpu(source=SOURCE))
        gpus[index] = msgspec.structs.replace(gpu, label=label(index), index=index, processes=tuple(processes.values()))
    return Snapshot(gpus=by_index(gpus))


def _rows(paste: Paste) -> Iterator[dict[str, str]]:
    """The rows below a head, or below a command that names the fields."""
    fields: list[str] = []
    for line in paste.lines:
        text = line.strip()[:2_000]
        if command := re.search(
            r"nvidia-smi\b.{0,80}?--query-(?:gpu|remapped-rows)[ =][\"']?([a-z0-9_.,]{4,600})", text
        ):
            fields = command[1].strip(",").split(",")
        elif head := _head(text):
            fields = head
        elif fields:
            values = [value.strip() for value in text.split(",")]
            row = dict(zip(fields, values, strict=True)) if len(values) == len(fields) else {}
            if _is_row(row):
                yield row
            else:
                fields = []
        elif bare := _of_bare_row(text):
            yield bare


def _of_bare_row(text: str) -> dict[str, str] | None:
    """A row without a head or a command, where it begins with a GPU's name and has a driver's release."""
    name, *others = (part.strip() for part in text.split(","))
    releases = [value for value in others if _is_value("driver_version", value)]
    row = {"name": name, "driver_version": releases[0]} if len(releases) == 1 else {}
    return row if row and _is_row(row) else None


def _head(text: str) -> list[str]:
    """The fields of a head; none where the line is no head."""
    names = [_UNIT.sub("", part.strip()) for part in text.split(",")] if "," in text else [text]
    if len(names) == 1:
        return names if names[0] in ("name", "compute_cap", "mig.mode.current") else []
    known = sum(name in _READ or name in _UNREAD for name in names)
    return names if known >= min(2, len(names) - 1) and all(map(_FIELD.fullmatch, names)) else []


def _is_row(row: dict[str, str]) -> bool:
    name = row.get("name") or row.get("gpu_name")
    if name is not None:
        return bool(re.match(r"(?:NVIDIA|GeForce|Tesla|Quadro|TITAN|GRID|Graphics)\b", name))
    known = [value for field, value in row.items() if field in _READ]
    if any(_QUANTITY.fullmatch(value) or bus_id(value) for value in known):
        return True
    return bool(row) and any(_is_value(field, value) for field, value in row.items())


def _is_value(field: str, value: str) -> bool:
    if field.startswith("pcie.link.width."):
        return bool(re.fullmatch(r"[0-9]{1,2}", value))
    if field == "mig.mode.current":
        return value in ("Enabled", "Disabled")
    return (field == "compute_cap" and bool(re.fullmatch(r"[0-9]{1,2}\.[0-9]", value))) or (
        field == "driver_version" and bool(re.fullmatch(r"[0-9]{3}\.[0-9.]{2,8}", value))
    )


def _measured(unit: str, text: str) -> float | int | None:
    """A value with its unit, which ``nounits`` leaves to the head."""
    of_head = re.fullmatch(r"[0-9]{1,9}(?:\.[0-9]{1,4})?", text)
    return (whole if unit == "MiB" else quantity)(f"{text} {unit}" if of_head else text)


_MEASURED = {
    "MiB": {"memory.total": "memory.total", "memory.used": "memory.used"},
    "%": {"utilization.gpu": "utilisation", "utilization.memory": "memory_utilisation"},
    "W": {
        "power.draw": "power.draw", "power.draw.average": "power.draw", "power.draw.instant": "power.draw",
        "power.limit": "power.limit", "enforced.power.limit": "power.limit", "power.max_limit": "power.limit_max",
        "power.default_limit": "power.limit_default",
    },
    "MHz": {
        "clocks.gr": "clocks.sm", "clocks.current.graphics": "clocks.sm", "clocks.sm": "clocks.sm",
        "clocks.current.sm": "clocks.sm", "clocks.max.gr": "clocks.sm_max", "clocks.max.graphics": "clocks.sm_max",
        "clocks.max.sm": "clocks.sm_max", "clocks.mem": "clocks.memory", "clocks.current.memory": "clocks.memory",
        "clocks.max.mem": "clocks.memory_max", "clocks.max.memory": "clocks.memory_max",
    },
}  # fmt: skip
"""The fields that are numbers, by their unit."""
_READ: dict[str, tuple[str, Callable[[str], Any]]] = {
    "pci.bus_id": ("pci_bus_id", bus_id),
    "gpu_bus_id": ("pci_bus_id", bus_id),
    **dict.fromkeys(
        ("uuid", "gpu_uuid"), ("uuid", lambda text: text if re.fullmatch(r"GPU-[0-9a-fA-F-]{8,40}", text) else None)
    ),
    "name": ("name", str),
    "gpu_name": ("name", str),
    "compute_cap": ("compute_capability", lambda text: text if re.fullmatch(r"[0-9]{1,2}\.[0-9]", text) else None),
    "persistence_mode": ("persistence_mode", flag),
    "mig.mode.current": ("mig.enabled", {"Enabled": True, "Disabled": False}.get),
    "temperature.gpu": ("temperature.gpu", lambda text: quantity(text) if text.isdecimal() else None),
    "temperature.memory": ("temperature.memory", lambda text: quantity(text) if text.isdecimal() else None),
    "ecc.errors.uncorrected.volatile.total": ("ecc.volatile_uncorrected", whole),
    "remapped_rows.pending": ("row_remap.pending", {"Yes": True, "1": True, "No": False, "0": False}.get),
    "remapped_rows.failure": ("row_remap.failed", {"Yes": True, "1": True, "No": False, "0": False}.get),
    "pcie.link.width.current": ("pcie.width", whole),
    "pcie.link.width.max": ("pcie.width_max", whole),
    "pcie.link.gen.current": ("pcie.generation", whole),
    "pcie.link.gen.max": ("pcie.generation_max", whole),
    "pcie.link.gen.gpumax": ("pcie.generation_device_max", whole),
    "pstate": ("performance_state", lambda text: text if re.fullmatch(r"P\d{1,2}", text) else None),
    **{
        name: (field, partial(_measured, unit))
        for unit, of_unit in _MEASURED.items()
        for name, field in of_unit.items()
    },
}
"""The field of a Gpu for each of the query, and what reads its text."""
