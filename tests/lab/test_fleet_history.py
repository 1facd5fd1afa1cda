"""A month of 2,000 nodes in a store: who becomes slower is named within two days, and hardly anyone else.

Twice a day each GPU is measured. What moves all figures, or those of many nodes, is no node's fault: a daily and a
weekly load, which the two halls have at other times, and a release of the driver that makes one quantity slower.
"""

from __future__ import annotations

import math
import random
from array import array
from datetime import date, datetime, timedelta, timezone
from pathlib import Path

import pytest

from envcheck.fleet.compare import compare
from envcheck.fleet.examine import Examined
from envcheck.fleet.facts import NodeFigures, Quantity
from envcheck.fleet.record import NodeGpu
from envcheck.fleet.store import remember

pytestmark = pytest.mark.lab

NODES, GPUS, DAYS = 2000, 8, 30
QUANTITIES = ((690e12, 0.008, "FLOP/s"), (4.1e12, 0.004, "B/s"), (2.4e-6, 0.02, "s"))
"""Median, relative standard deviation and unit."""
START = datetime(2026, 10, 30, tzinfo=timezone.utc)


class Fault:
    """From ``day`` on, until it is repaired, ``share`` of the speed of some GPUs, at once or within so many days."""

    def __init__(self, chance: random.Random) -> None:
        self.day = chance.randrange(6, DAYS - 4)
        self.share = chance.uniform(0.8, 0.94)
        self.ramp = chance.choice((0, 0, 5))
        self.gpus = chance.choice((range(GPUS), (chance.randrange(GPUS),), (1, 2)))
        self.only = chance.choice((None, None, 0, 1))
        self.ends = self.day + chance.randrange(5, 12) if chance.random() < 0.4 else DAYS
        self.replaced = chance.random() < 0.5

    def speed(self, day: int, gpu: int, quantity: int) -> float:
        if gpu not in self.gpus or self.only not in (None, quantity) or not self.day <= day < self.ends:
            return 1.0
        return 1 - (1 - self.share) * min(1.0, (day - self.day + 1) / (self.ramp + 1))

    @property
    def visible(self) -> int:
        """The first day on which it is slower than it need be to be told."""
        days = range(self.day, self.ends)
        return next(day for day in days if self.speed(day, self.gpus[0], self.only or 0) < 0.96)


class Site:
    """The nodes, and what each measures when."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.faults = {f"gpu{node:05d}": Fault(self.chance) for node in self.chance.sample(range(NODES), 40)}
        self.own = {(node, gpu): self.chance.gauss(1, 0.01) for node in range(NODES) for gpu in range(GPUS)}
        named = [Quantity("NVIDIA H200", f"quantity {number}", each[2]) for number, each in enumerate(QUANTITIES)]
        self.what = tuple((each, f"GPU {gpu}") for gpu in range(GPUS) for each in named)

    def look(self, day: int, hour: int) -> list[Examined]:
        created = (START + timedelta(days=day, hours=hour)).strftime("%Y-%m-%dT%H:%M:%SZ")
        return [self._node(node, day, hour, created) for node in range(NODES)]

    def _node(self, node: int, day: int, hour: int, created: str) -> Examined:
        name = f"gpu{node:05d}"
        fault, hall = self.faults.get(name), node % 2
        load = 0.01 * math.sin((hour + 12 * hall) / 24 * math.tau) + 0.005 * math.sin((day + 3 * hall) / 7 * math.tau)
        values = array("d")
        for gpu in range(GPUS):
            for number, (middle, width, unit) in enumerate(QUANTITIES):
                speed = (1 - load) * self.own[node, gpu] * self.chance.gauss(1, width)
                speed *= fault.speed(day, gpu, number) if fault else 1
                speed *= 0.96 if number == 1 and day >= 15 else 1
                speed *= 0.7 if self.chance.random() < 1e-4 else 1  # somebody else was there for a moment
                values.append(middle / speed if unit == "s" else middle * speed)
        again = int(fault is not None and fault.replaced and day >= fault.ends)
        gpus = (NodeGpu(name=f"GPU {gpu}", model="NVIDIA H200", uuid=f"{node}-{gpu}-{again}") for gpu in range(GPUS))
        return Examined(
            name=name, created=created, verdict="pass", models="NVIDIA H200", gpus=tuple(gpus),
            figures=NodeFigures(self.what, values.tobytes()),
        )  # fmt: skip


def test_every_drift_is_named_within_two_days_and_hardly_any_other(tmp_path: Path) -> None:
    site = Site(48)
    named: dict[str, int] = {}
    wrong: set[tuple[int, str]] = set()
    apart = []
    for day in range(DAYS):
        for hour in (3, 15):
            nodes = site.look(day, hour)
            found = remember(compare(nodes, {}), nodes[0].created, str(tmp_path / "store"), 90)
        for each in found.declines:
            named.setdefault(each.node, day)
            fault = site.faults.get(each.node)
            if fault is None or not fault.day <= day < fault.ends + 2:  # two days tell that it is repaired
                wrong.add((day, each.node))
            elif day >= fault.day + fault.ramp + 3:
                since = date.fromisoformat(each.since) - START.date()
                apart.append(abs(since.days - fault.day))
    late = {name: each.visible for name, each in site.faults.items() if named.get(name, DAYS) > each.visible + 1}
    assert not late
    assert len(wrong) <= DAYS / 7
    assert max(apart) <= 4
