"""A fleet made from recorded machines, with planted differences, slow GPUs and nodes that did not answer properly.

Each planted fault is listed as the comparison should tell it, so that what it finds can be held against the list: all
of them, and nothing else.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from tests.test_machines import report_on

FIGURES = (
    ("gemm", "bf16", (8192, 8192, 8192), False, "FLOP/s", 690e12, 0.008),
    ("gemm", "bf16", (8192, 8192, 8192), True, "FLOP/s", 730e12, 0.006),
    ("gemm", "fp8", (8192, 8192, 8192), False, "FLOP/s", 1310e12, 0.010),
    ("gemm", "tf32", (8192, 8192, 8192), False, "FLOP/s", 380e12, 0.008),
    ("device-memory-copy", None, (), None, "B/s", 4.1e12, 0.004),
    ("device-memory-read", None, (), None, "B/s", 4.3e12, 0.004),
    ("host-to-device", None, (), None, "B/s", 55e9, 0.003),
    ("device-to-host", None, (), None, "B/s", 56e9, 0.003),
    ("launch-latency", None, (), None, "s", 2.4e-6, 0.02),
)
"""Name, precision, shape, burst, unit, median and relative standard deviation of each GPU's figures."""
LINK = ("peer-to-peer", "B/s", 380e9, 0.004)
KIND = "4 x NVIDIA H200"


@dataclass
class Planted:
    """What the comparison should find."""

    differences: set[tuple[str, str, str, str | None]] = field(default_factory=set)
    """Node, subject, fact, value."""
    slow: set[tuple[str, str]] = field(default_factory=set)
    """Node and subject."""
    unanswered: set[str] = field(default_factory=set)


def make_fleet(folder: Path, nodes: int, seed: int = 1) -> Planted:
    """Write ``nodes`` reports to ``folder``, and return what was planted: each fault in one of 2,000."""
    chance = random.Random(seed)
    bases = [_base("h200x4"), _base("h200")]
    planted = Planted()
    order = list(range(nodes))
    chance.shuffle(order)
    each = max(1, nodes // 2000)
    faults: dict[int, Fault] = {}
    for fault in FAULTS:
        for _ in range(each):
            faults[order.pop()] = fault
    for number in range(nodes):
        # A sixth has one GPU; faults are planted in the others.
        single = number % 6 == 5 and number not in faults
        name = f"node{number:05d}"
        report = _node(bases[1 if single else 0], name, number, chance)
        if number in faults:
            faults[number](report, name, chance, planted)
        (folder / f"{name}.json").write_bytes(msgspec.json.format(msgspec.json.encode(report), indent=2))
    for number, rubbish in enumerate(
        (b"", b"{", b"\x00\xff" * 100, b"Segmentation fault\n", b'{"schema_version": "1.0"}')
    ):
        name = f"rubbish{number}"
        (folder / f"{name}.json").write_bytes(rubbish)
        planted.unanswered.add(name)
    return planted


def healthy(nodes: int) -> list[dict[str, Any]]:
    """Reports of equal nodes with four GPUs, to be changed by a test."""
    chance = random.Random(7)
    made = (_node(_base("h200x4"), f"node{number:05d}", number, chance) for number in range(nodes))
    return list(map(_copied, made))


def _copied(values: Any) -> Any:
    """A tenth of what ``copy.deepcopy`` takes."""
    return msgspec.json.decode(msgspec.json.encode(values))


@cache
def _base(name: str) -> dict[str, Any]:
    """A recorded machine, judged, as JSON values."""
    found: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(report_on(name)))
    return found


def _node(base: dict[str, Any], name: str, number: int, chance: random.Random) -> dict[str, Any]:
    """A healthy node: its own names, identifiers and readings, figures as the chance has them."""
    report = {**base, "host": name, "created": f"2026-11-23T{number // 3600 % 24:02d}:{number // 60 % 60:02d}:00Z"}
    snapshot = report["snapshot"] = {**base["snapshot"]}
    snapshot["platform"] = {**snapshot["platform"], "host": name}
    snapshot["variables"] = _copied(snapshot["variables"])
    snapshot["variables"]["values"]["RANK"] = str(number)
    snapshot["gpus"] = _copied(snapshot["gpus"])
    gpus = snapshot["gpus"]["items"]
    for place, gpu in enumerate(gpus):
        gpu["uuid"] = f"GPU-{number:08x}-{place:04x}-4000-8000-{chance.getrandbits(48):012x}"
        gpu["serial"] = str(1650000000000 + number * 8 + place)
        gpu["temperature"] = {**(gpu["temperature"] or {}), "gpu": chance.randint(24, 44)}
        gpu["power"] = {**(gpu["power"] or {}), "draw": chance.uniform(70, 90)}
    report["measurements"] = [figure for place in range(len(gpus)) for figure in _figures(gpus, place, chance)]
    return report


def _figures(gpus: list[dict[str, Any]], place: int, chance: random.Random) -> list[dict[str, Any]]:
    uuid = gpus[place]["uuid"]
    found = [
        {
            "name": name, "gpu": uuid, "precision": precision, "shape": shape, "burst": burst, "unit": unit,
            "value": middle * chance.gauss(1, width),
        }
        for name, precision, shape, burst, unit, middle, width in FIGURES
    ]  # fmt: skip
    name, unit, middle, width = LINK
    link = {"name": name, "gpu": uuid, "variant": "NVLink", "unit": unit}
    return found + [
        {**link, "peer": peer["uuid"], "value": middle * chance.gauss(1, width)}
        for peer in gpus
        if peer["uuid"] != uuid
    ]


# Faults. Each changes a report and says what of it should be found.

Fault = Callable[[dict[str, Any], str, random.Random, Planted], None]


def _changed(path: tuple[str | int, ...], what: str, value: Any, told: str | None = None) -> Fault:
    """Another value in the snapshot or, where ``path`` begins with ``gpu``, in one of its GPUs, told as ``what``."""

    def change(report: dict[str, Any], name: str, chance: random.Random, planted: Planted) -> None:
        where, keys, subject = report["snapshot"], path, ""
        if path[0] == "gpu":
            place = chance.randrange(4)
            where, keys, subject = where["gpus"]["items"][place], path[1:], f"GPU {place}"
        for key in keys[:-1]:
            where[key] = _copied(where[key])  # other nodes may share it
            where = where[key]
        where[keys[-1]] = value
        planted.differences.add((name, subject, what, told or value))

    return change


def _slowed(field: str, which: str, least: float, most: float) -> Fault:
    """Those figures of a GPU whose ``field`` is ``which``, times a factor between ``least`` and ``most``."""

    def change(report: dict[str, Any], name: str, chance: random.Random, planted: Planted) -> None:
        place = chance.randrange(4)
        uuid = report["snapshot"]["gpus"]["items"][place]["uuid"]
        factor = chance.uniform(least, most)
        for figure in report["measurements"]:
            if figure["gpu"] == uuid and figure[field] == which:
                figure["value"] *= factor
        planted.slow.add((name, f"GPU {place}"))

    return change


def _gpu_gone(report: dict[str, Any], name: str, _: random.Random, planted: Planted) -> None:
    gone = report["snapshot"]["gpus"]["items"].pop()["uuid"]
    report["measurements"] = [
        figure for figure in report["measurements"] if gone not in (figure["gpu"], figure.get("peer"))
    ]
    planted.differences.add((name, "", "number of NVIDIA H200", "3"))


def _environment(report: dict[str, Any]) -> dict[str, Any]:
    listing = report["snapshot"]["environments"] = _copied(report["snapshot"]["environments"])
    found: dict[str, Any] = next(each for each in listing["items"] if each["judged"])
    return found


def _package(report: dict[str, Any], name: str, _: random.Random, planted: Planted) -> None:
    next(each for each in _environment(report)["distributions"] if each["name"] == "numpy")["version"] = "1.0.0"
    planted.differences.add((name, "", "numpy", "1.0.0"))


def _package_gone(report: dict[str, Any], name: str, _: random.Random, planted: Planted) -> None:
    environment = _environment(report)
    environment["distributions"] = [each for each in environment["distributions"] if each["name"] != "numpy"]
    planted.differences.add((name, "", "numpy", None))


def _package_more(report: dict[str, Any], name: str, _: random.Random, planted: Planted) -> None:
    _environment(report)["distributions"].append({"name": "planted", "version": "1.2.3"})
    planted.differences.add((name, "", "planted", "1.2.3"))


def _slow_link(report: dict[str, Any], name: str, chance: random.Random, planted: Planted) -> None:
    first, second = chance.sample(range(4), 2)
    uuids = [gpu["uuid"] for gpu in report["snapshot"]["gpus"]["items"]]
    for figure in report["measurements"]:
        if (figure["gpu"], figure.get("peer")) == (uuids[first], uuids[second]):
            figure["value"] *= 0.8
    planted.slow.add((name, f"GPU {first} to GPU {second}"))


FAULTS: tuple[Fault, ...] = (
    _changed(("driver", "release"), "release", "575.57.08"),
    _changed(("platform", "kernel_release"), "kernel", "5.15.0-1-planted"),
    _changed(("gpu", "vbios"), "VBIOS", "96.00.00.00.01"), _changed(("gpu", "pcie", "width"), "PCIe width", 8, "8"),
    _changed(("gpu", "ecc", "enabled"), "ECC", False, "no"),
    _changed(("fabric", "links", 0, "nvlinks"), "GPU 0 - GPU 1: NVLinks", 2, "2"),
    _changed(("variables", "values", "NCCL_P2P_DISABLE"), "NCCL_P2P_DISABLE", "1"), _gpu_gone, _package, _package_gone,
    _package_more, _slowed("name", "gemm", 0.7, 0.9), _slowed("unit", "s", 1.5, 1.5), _slow_link,
)  # fmt: skip
