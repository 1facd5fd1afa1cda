"""The measured figures of a report that are compared with the same GPU model elsewhere, and when one is slow.

The center is the median and the width 1.4826 times the median absolute deviation, which estimates the standard
deviation without being moved by the outliers that are looked for (Iglewicz and Hoaglin, How to Detect and Handle
Outliers, 1993, whose 3.5 is the least distance here). Among many figures some are far off by chance: the distance grows
until a normal distribution would put one figure in a hundred such quantities beyond it. A figure must also be slower by
5 %, since healthy GPUs of one model can lie very close together.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from functools import lru_cache
from math import isfinite
from operator import attrgetter
from statistics import NormalDist
from typing import Any

import msgspec

from envcheck.fleet.facts import gpus_of
from envcheck.knowledge.performance.expected import at_work
from envcheck.knowledge.performance.spread import DEVIATION
from envcheck.model.checks import Report, Status
from envcheck.model.snapshot import Gpu, Measurement
from envcheck.rules.facts.measurements import measurement_name

_MOST = 4096
"""Figures of one node."""
_KEY = ("name", "precision", "shape", "burst", "variant")
"""What distinguishes quantities."""
_key = attrgetter(*_KEY)
_NOBODY: tuple[str, Gpu | None] = ("", None)


class Quantity(msgspec.Struct, frozen=True, order=True):
    """What was measured, on what."""

    model: str
    """GPU model, or the model of the processor."""
    title: str
    """As in ``BF16 matrix product 8192^3, sustained``."""
    unit: str
    """``B/s``, ``FLOP/s``, ``OP/s`` or ``s``; in seconds less is better."""


class NodeFigure(msgspec.Struct, frozen=True):
    """A figure of one node."""

    quantity: Quantity
    subject: str
    """``GPU 3``, ``GPU 0 to GPU 3``; empty for the processor."""
    value: float


class NodeFigures(msgspec.Struct, frozen=True):
    """The figures of a node, in little memory: of thousands of nodes, most have measured the same."""

    what: tuple[tuple[Quantity, str], ...] = ()
    """Quantity and subject of each."""
    values: bytes = b""
    """Their values, as floats of eight bytes."""

    @classmethod
    def of(cls, found: Iterable[NodeFigure]) -> NodeFigures:
        """The figures that were ``found``."""
        listed = [*found]
        what = tuple((each.quantity, each.subject) for each in listed)
        return cls(_alike(what), array("d", (each.value for each in listed)).tobytes())

    def __iter__(self) -> Iterator[float]:
        """The values."""
        return iter(memoryview(self.values).cast("d"))


@lru_cache(maxsize=4096)
def _alike(what: tuple[tuple[Quantity, str], ...]) -> tuple[tuple[Quantity, str], ...]:
    """One object for all nodes that measured the same."""
    return what


def figures(report: Report) -> Iterator[NodeFigure]:
    """The usable figures: not those of a GPU that others used, nor of one that computed wrongly."""
    named: dict[str | None, tuple[str, Gpu | None]] = {
        gpu.uuid: (name, gpu) for name, gpu in gpus_of(report) if gpu.uuid
    }
    platform = report.snapshot.platform if report.snapshot else None
    processor = (platform.cpu_model if platform else None) or "processor"
    for measured in report.measurements[:_MOST]:
        wrong = measured.verification is not None and not measured.verification.right
        if wrong or not (measured.value and isfinite(measured.value) and measured.value > 0):
            continue
        name, gpu = named.get(measured.gpu, _NOBODY)
        if measured.gpu is None:
            yield _figure(measured, processor, "")
        elif gpu is not None and gpu.name:
            seen, total = measured.conditions, gpu.memory.total if gpu.memory else None
            before = seen.utilisation_before if seen else None
            if seen and at_work(before / 100 if before is not None else None, seen.memory_before, total):
                continue
            peer = named.get(measured.peer, _NOBODY)[0] if measured.peer else ""
            yield _figure(measured, gpu.name, f"{name} to {peer}" if peer else name)


def _figure(measured: Measurement, model: str, subject: str) -> NodeFigure:
    return NodeFigure(_quantity(model, measured.unit, *_key(measured)), subject, measured.value or 0.0)


@lru_cache(maxsize=4096)
def _quantity(model: str, unit: str, *key: Any) -> Quantity:
    """One object for each quantity: a fleet has a few dozen, and a million figures."""
    alike = Measurement(**dict(zip(_KEY, key, strict=True)))
    return Quantity(model, measurement_name(alike), unit)


BINS = 24
MOST_MOVED = 0.05
"""Share by which a figure may be worse than an earlier one."""
_LEAST_SCORE = 3.5
_BY_CHANCE = 0.01
"""Figures of a quantity that a normal distribution may put beyond the limit."""
_SLOWER = 0.05
_FAILS = 0.15
"""Shares by which a figure must be slower than the median to warn and to fail."""
_FEWEST = 4
"""With fewer figures none is called slow."""


class FigureLimits(msgspec.Struct, frozen=True):
    """Limits outside which a figure is slow."""

    median: float
    low: float = float("-inf")
    high: float = float("inf")
    sigma: float = 0.0

    @property
    def limit(self) -> float | None:
        """The limit that exists."""
        return next((edge for edge in (self.low, self.high) if abs(edge) != float("inf")), None)

    def status(self, value: float) -> Status:
        """How bad a figure outside the limits is."""
        ratio = self.median / value if self.high != float("inf") else value / self.median
        return "fail" if ratio < 1 - _FAILS else "warn"

    def score(self, value: float) -> float | None:
        """Distance from the median in robust standard deviations; None where there is none."""
        return (value - self.median) / self.sigma if self.sigma > 0 else None


def limits(unit: str, count: int, median: float, mad: float) -> FigureLimits:
    """The limits of a quantity with ``count`` figures."""
    if count < _FEWEST:
        return FigureLimits(median)
    sigma = DEVIATION * mad
    distance = max(_LEAST_SCORE, NormalDist().inv_cdf(1 - min(_BY_CHANCE / count, 0.5))) * sigma
    if unit == "s":
        return FigureLimits(median, high=max(median + distance, median / (1 - _SLOWER)), sigma=sigma)
    return FigureLimits(median, low=min(median - distance, median * (1 - _SLOWER)), sigma=sigma)
