"""``nvidia-smi --query-gpu=… --format=csv``: a head with the names of the fields, and a row for each GPU.

Without a head the fields are those of the command line above. Units stand in the head or behind the values.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from envcheck.importers.kit.gpu_lines import MOST_GPUS, by_index, label
from envcheck.importers.kit.paste import SOURCE, Paste
from envcheck.importers.kit.protocol import Rank
from envcheck.importers.kit.smi.fields import bus_id, flag, quantity, whole
from envcheck.importers.kit.smi.records import REASONS
from envcheck.snapshot import Driver, Gpu, Memory, Mig, Pcie, Power, Snapshot, Temperature, Throttle

NAME = "nvidia-smi CSV"
RANK = Rank.OUTPUT

_COMMAND = re.compile(r"nvidia-smi\b.{0,80}?--query-gpu[ =][\"']?([a-z0-9_.,]{4,600})")
_FIELDS = frozenset(
    {
        "name", "gpu_name", "index", "count", "uuid", "gpu_uuid", "driver_version", "compute_cap", "pci.bus_id",
        "gpu_bus_id", "memory.total", "memory.used", "memory.free", "mig.mode.current", "persistence_mode",
        "power.draw", "power.limit", "temperature.gpu", "pcie.link.width.current", "pcie.link.width.max",
        "pcie.link.gen.max", "utilization.gpu", "timestamp", "pstate", "vbios_version", "serial",
    }
)  # fmt: skip
"""Fields by their names in the query; of some only the name is needed, to know the head."""
_ALONE = ("name", "compute_cap", "mig.mode.current")
"""Fields that people ask for alone."""
_FIELD = re.compile(r"[a-z][a-z0-9_]{1,40}(?:\.[a-z0-9_]{1,40}){0,3}")
_REASON = re.compile(r"clocks_(?:event|throttle)_reasons\.(?P<name>\w{1,40})")
_UNIT = re.compile(r"\s?\[[^\]]{0,12}\]$")
_LONGEST_LINE = 2_000


def read(paste: Paste) -> Snapshot:
    gpus: dict[int, Gpu] = {}
    release = None
    for row in _rows(paste):
        index = whole(row.get("index", "")) if row.get("index") else len(gpus)
        if index is None or len(gpus) >= MOST_GPUS:
            continue
        gpus.setdefault(index, _gpu(row, index))
        number = re.fullmatch(r"[0-9]{3}(?:\.[0-9]{2,3}){1,2}", row.get("driver_version", ""))
        release = release or (number[0] if number else None)
    driver = Driver(source=SOURCE, installed=True, release=release) if release else None
    return Snapshot(driver=driver, gpus=by_index(gpus))


def _rows(paste: Paste) -> Iterator[dict[str, str]]:
    """The rows below a head, or below a command that names the fields."""
    fields: list[str] = []
    for line in paste.lines:
        text = line.strip()[:_LONGEST_LINE]
        if command := _COMMAND.search(text):
            fields = command[1].strip(",").split(",")
        elif head := _head(text):
            fields = head
        elif fields:
            values = text.split(",")
            row = (
                dict(zip(fields, (value.strip() for value in values), strict=True))
                if len(values) == len(fields)
                else {}
            )
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
        return names if names[0] in _ALONE else []
    known = sum(name in _FIELDS for name in names)
    return names if known >= min(2, len(names) - 1) and all(map(_FIELD.fullmatch, names)) else []


def _is_row(row: dict[str, str]) -> bool:
    name = row.get("name") or row.get("gpu_name")
    if name is not None:
        return bool(re.match(r"(?:NVIDIA|GeForce|Tesla|Quadro|TITAN|GRID|Graphics)\b", name))
    return bool(row) and any(_is_value(field, value) for field, value in row.items())


def _is_value(field: str, value: str) -> bool:
    if field.startswith("pcie.link.width."):
        return bool(re.fullmatch(r"[0-9]{1,2}", value))
    if field == "mig.mode.current":
        return value in ("Enabled", "Disabled")
    return (field == "compute_cap" and bool(re.fullmatch(r"[0-9]{1,2}\.[0-9]", value))) or (
        field == "driver_version" and bool(re.fullmatch(r"[0-9]{3}\.[0-9.]{2,8}", value))
    )


def _gpu(row: dict[str, str], index: int) -> Gpu:
    place = row.get("pci.bus_id") or row.get("gpu_bus_id") or ""
    uuid = row.get("uuid") or row.get("gpu_uuid") or ""
    capability = row.get("compute_cap", "")
    mig, temperature = row.get("mig.mode.current"), row.get("temperature.gpu", "")
    total, used = (whole(_with_unit(row.get(field, ""), "MiB")) for field in ("memory.total", "memory.used"))
    draw, limit = (quantity(_with_unit(row.get(field, ""), "W")) for field in ("power.draw", "power.limit"))
    width, most = (whole(row.get(field, "")) for field in ("pcie.link.width.current", "pcie.link.width.max"))
    reasons = {
        REASONS.get(found["name"]): flag(value) for field, value in row.items() if (found := _REASON.match(field))
    }
    active = tuple(name for name, is_active in reasons.items() if name and is_active)
    looked = any(is_active is not None for name, is_active in reasons.items() if name)
    return Gpu(
        source=SOURCE,
        label=label(index),
        index=index,
        pci_bus_id=bus_id(place),
        uuid=uuid if re.fullmatch(r"GPU-[0-9a-fA-F-]{8,40}", uuid) else None,
        name=row.get("name") or row.get("gpu_name"),
        compute_capability=capability if re.fullmatch(r"[0-9]{1,2}\.[0-9]", capability) else None,
        persistence_mode=flag(row["persistence_mode"]) if "persistence_mode" in row else None,
        mig=Mig(source=SOURCE, enabled=mig == "Enabled") if mig in ("Enabled", "Disabled") else None,
        memory=Memory(source=SOURCE, total=total, used=used) if total is not None or used is not None else None,
        power=Power(source=SOURCE, draw=draw, limit=limit) if draw is not None or limit is not None else None,
        throttle=Throttle(source=SOURCE, reasons=active) if looked else None,
        temperature=Temperature(source=SOURCE, gpu=float(temperature))
        if re.fullmatch(r"[0-9]{1,3}", temperature)
        else None,
        pcie=Pcie(source=SOURCE, width=width, width_max=most) if width is not None or most is not None else None,
    )


def _with_unit(value: str, unit: str) -> str:
    """The value with its unit, which ``nounits`` leaves to the head."""
    return f"{value} {unit}" if re.fullmatch(r"[0-9]{1,9}(?:\.[0-9]{1,4})?", value) else value
