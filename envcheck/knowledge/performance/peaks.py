"""The most that a GPU can do: operations per second by precision, and bytes per second of its memory.

A data sheet's figure where the matrix has one; otherwise the formula

    peak      = multiprocessors * clock (Hz) * operations per clock of one multiprocessor
    bandwidth = 2 * memory clock (Hz) * bus width (bits) / 8

with what was read on the machine. Peaks are dense. Nothing reaches its peak: 80 to 95 % is usual for large matrices.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from envcheck.knowledge.matrix import Matrix
from envcheck.knowledge.relations.fit import WEAKEST_FIRST
from envcheck.knowledge.tables import ByPrecision, GpuRow, Precision, RateRow, Row
from envcheck.model.versions import ComputeCapability
from envcheck.sources import Confidence, Source

Basis: TypeAlias = Literal["sheet", "formula"]

_FULL_CLOCK = frozenset({"fp64", "fp64_tensor", "fp32"})
"""Precisions whose peak refers to the full clock also where the tensor cores have a lower one."""

_SAME_CLOCK: dict[str, tuple[Precision, ...]] = {"fp32": ("fp32",), "fp16": ("fp16", "fp8", "fp4", "fp32")}
"""Peaks to start from where a sheet leaves one out, best first: sheets with a lower tensor clock all state FP16."""


class Peak(msgspec.Struct, frozen=True, kw_only=True):
    """A ceiling, and where it comes from."""

    value: float
    """Operations per second, or bytes per second."""
    basis: Basis
    rows: tuple[str, ...] = ()
    """Ids of the rows that it rests on, such as ``gpu/l40s``; none where it rests on measured clocks alone."""
    sources: tuple[Source, ...] = ()
    confidence: Confidence = "high"
    """A formula is never of high confidence: some models run their tensor cores at a lower clock than they may."""


def peak(
    matrix: Matrix,
    gpu: GpuRow | None,
    capability: ComputeCapability,
    precision: Precision,
    *,
    sms: int | None = None,
    clock: float | None = None,
    geforce: bool = False,
) -> Peak | None:
    """The dense peak of a GPU in one precision, in operations per second; None where nothing tells.

    ``gpu`` is its model, where that is known. ``sms`` and ``clock`` (in Hz, the greatest of its multiprocessors) are as
    read on the machine; where they are None, those of the model's row count. The data sheet's figure holds for all
    multiprocessors of the model, and a part of them (a MIG device) has that part of it. ``geforce`` says whether an
    unlisted model is a GeForce: some of these accumulate in FP32 at half the rate.
    """
    rate = _rate(matrix, gpu, capability, geforce=geforce)
    if gpu is not None and gpu.peaks is not None:
        whole = _of_sheet(matrix, gpu, gpu.peaks, rate, precision)
        if whole is not None and sms is not None and gpu.sms is not None and sms != gpu.sms:
            value, least = whole.value * sms / gpu.sms, min(whole.confidence, "medium", key=WEAKEST_FIRST.index)
            return msgspec.structs.replace(whole, value=value, basis="formula", confidence=least)
        if whole is not None:
            return whole
    operations = rate.operations.of(precision) if rate is not None else None
    sms = sms or (gpu.sms if gpu is not None else None)
    if gpu is not None:  # for tensor cores no higher than the model's
        limit = None if precision in _FULL_CLOCK else gpu.tensor_clock
        known = clock or gpu.clock
        clock = min(known, limit) if known and limit else known or limit
    if operations is None or not sms or not clock:
        return None
    used = gpu if gpu is not None and gpu.sheet_confidence != "high" else None
    sheet = used.sheet_confidence if used is not None else "high"
    return _conclude(matrix, sms * clock * operations, "formula", sheet, rate, used)


def operations_per_clock(
    matrix: Matrix, gpu: GpuRow | None, capability: ComputeCapability, precision: Precision
) -> tuple[float | None, RateRow | None]:
    """What one multiprocessor does in a clock, and the row that says so; None where nothing tells."""
    geforce = gpu is not None and gpu.kind == "geforce"
    rate = _rate(matrix, gpu, capability, geforce=geforce)
    return (rate.operations.of(precision) if rate is not None else None), rate


def bandwidth(
    matrix: Matrix, gpu: GpuRow | None, *, memory_clock: float | None = None, bus_width: int | None = None
) -> Peak | None:
    """The bandwidth of a GPU's memory in bytes per second; None where nothing tells.

    ``memory_clock`` is NVML's greatest one in Hz, which is half of the rate at which each line of the bus moves bits,
    whatever the kind of memory. ``bus_width`` is in bits.
    """
    if gpu is not None and gpu.bandwidth is not None:
        return _conclude(matrix, gpu.bandwidth, "sheet", gpu.sheet_confidence, gpu)
    if not memory_clock or not bus_width:
        return None
    return _conclude(matrix, 2 * memory_clock * bus_width / 8, "formula", "high")


def _rate(matrix: Matrix, gpu: GpuRow | None, capability: ComputeCapability, *, geforce: bool) -> RateRow | None:
    variants = {row.variant: row for row in matrix.rates if row.compute_capability == str(capability)}
    if gpu is not None and not gpu.tensor_cores:
        return variants.get("no-tensor-cores")
    half = geforce or (gpu is not None and gpu.name.startswith("GeForce"))
    return (variants.get("geforce") if half else None) or variants.get("")


def _of_sheet(
    matrix: Matrix, gpu: GpuRow, peaks: ByPrecision, rate: RateRow | None, precision: Precision
) -> Peak | None:
    """What the sheet says; or what follows from another of its peaks by the proportion of their rates."""
    stated = peaks.of(precision)
    if stated is not None:
        return _conclude(matrix, stated, "sheet", gpu.sheet_confidence, gpu)
    own = rate.operations.of(precision) if rate is not None else None
    if rate is None or own is None:
        return None
    for other in _SAME_CLOCK["fp32" if precision in _FULL_CLOCK else "fp16"]:
        reference, others = peaks.of(other), rate.operations.of(other)
        if reference is not None and others is not None:
            return _conclude(matrix, reference * own / others, "formula", gpu.sheet_confidence, gpu, rate)
    return None


def _conclude(matrix: Matrix, value: float, basis: Basis, sheet: Confidence, *rows: Row | None) -> Peak:
    cited = [row for row in rows if row is not None]
    least: list[Confidence] = [sheet, *(row.confidence for row in cited)]
    if basis == "formula":
        least.append("medium")
    return Peak(
        value=value,
        basis=basis,
        rows=tuple(row.id for row in cited),
        sources=matrix.cite(*cited),
        confidence=min(least, key=WEAKEST_FIRST.index),
    )
