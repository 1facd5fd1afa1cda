"""The measured figures of a report that can be held against those of the same GPU model elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from math import isfinite

import msgspec

from envcheck.checks import Report
from envcheck.compat.performance.expected import at_work
from envcheck.fleet.facts import gpus_of
from envcheck.rules.facts.measurements import measurement_name
from envcheck.snapshot import Gpu, Measurement

_MOST = 4096
"""Figures of one node."""
_NOBODY: tuple[str, Gpu | None] = ("", None)


class Quantity(msgspec.Struct, frozen=True, order=True):
    """What was measured, on what."""

    model: str
    """GPU model, or the model of the processor."""
    title: str
    """As in ``BF16 matrix product 8192^3, sustained``."""
    unit: str
    """``B/s``, ``FLOP/s``, ``OP/s`` or ``s``; in seconds less is better."""


class Measured(msgspec.Struct, frozen=True):
    """A figure of one node."""

    quantity: Quantity
    subject: str
    """``GPU 3``, ``GPU 0 to GPU 3``; empty for the processor."""
    value: float


def figures(report: Report) -> Iterator[Measured]:
    """The usable figures: not those of a GPU that others used, nor of one that computed wrongly."""
    named: dict[str | None, tuple[str, Gpu | None]] = {
        gpu.uuid: (name, gpu) for name, gpu in gpus_of(report) if gpu.uuid
    }
    platform = report.snapshot.platform if report.snapshot else None
    processor = (platform.cpu_model if platform else None) or "processor"
    for measured in report.measurements[:_MOST]:
        if not _usable(measured):
            continue
        name, gpu = named.get(measured.gpu, _NOBODY)
        if measured.gpu is None:
            yield _figure(measured, processor, "")
        elif gpu is not None and gpu.name and not _busy(measured, gpu):
            peer = named.get(measured.peer, _NOBODY)[0] if measured.peer else ""
            yield _figure(measured, gpu.name, f"{name} to {peer}" if peer else name)


def _figure(measured: Measurement, model: str, subject: str) -> Measured:
    told = (measured.name, measured.precision, measured.shape, measured.burst, measured.variant)
    return Measured(_quantity(model, measured.unit, *told), subject, measured.value or 0.0)


@lru_cache(maxsize=4096)
def _quantity(
    model: str,
    unit: str,
    name: str,
    precision: str | None,
    shape: tuple[int, ...],
    burst: bool | None,  # noqa: FBT001  a fact
    variant: str | None,
) -> Quantity:
    """One object for each quantity: a fleet has a few dozen, and a million figures."""
    alike = Measurement(name=name, precision=precision, shape=shape, burst=burst, variant=variant)
    return Quantity(model, measurement_name(alike), unit)


def _usable(measured: Measurement) -> bool:
    wrong = measured.verification is not None and not measured.verification.right
    return bool(measured.value and isfinite(measured.value) and measured.value > 0) and not wrong


def _busy(measured: Measurement, gpu: Gpu) -> bool:
    seen = measured.conditions
    if seen is None:
        return False
    before = seen.utilisation_before
    total = gpu.memory.total if gpu.memory else None
    return bool(at_work(before / 100 if before is not None else None, seen.memory_before, total))
