"""What a measured quantity should have been: its ceiling, the share that healthy GPUs reach and the share reached; and
whether others are at work on the GPU.

    ceiling   = multiprocessors * SM clock (Hz) * operations per clock of one multiprocessor, by the model's own peak
                                                                                                (computations)
              = bandwidth of the data sheet                                                     (memory)
              = what the links between the two carry                                            (links)
    share     = value / ceiling

The clock of a ceiling is the highest that was seen during the run where the run was a burst, and the median where it
was sustained: a long product at the default power limit runs at a lower clock, and should then use that one well. Peaks
are dense. Nothing reaches its peak: 80 to 95 % is usual for large matrices.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

import msgspec

from envcheck.knowledge.matrix import Matrix
from envcheck.knowledge.performance.quantities import quantity_of
from envcheck.knowledge.relations.driver import architecture_name
from envcheck.knowledge.relations.fit import WEAKEST_FIRST
from envcheck.knowledge.tables import Row
from envcheck.knowledge.tables.hardware import ByPrecision, EfficiencyRow, GpuRow, LinkRow, Precision, RateRow
from envcheck.model.versions import ComputeCapability
from envcheck.sources import Confidence, Source

if TYPE_CHECKING:
    from envcheck.model.snapshot import Fabric, Gpu, Measurement


Basis: TypeAlias = Literal["sheet", "formula"]

_FULL_CLOCK = frozenset({"fp64", "fp64_tensor", "fp32"})
"""Precisions whose peak refers to the full clock also where the tensor cores have a lower one."""

_SAME_CLOCK: dict[str, tuple[Precision, ...]] = {"fp32": ("fp32",), "fp16": ("fp16", "fp8", "fp4", "fp32")}
"""Peaks to start from where a sheet leaves one out, best first: sheets with a lower tensor clock all state FP16."""


class Peak(msgspec.Struct, frozen=True, kw_only=True):
    """A ceiling, and where it comes from."""

    value: float  # Operations per second
    basis: Basis
    rows: tuple[str, ...] = ()  # Ids of the rows that it rests on, such as ``gpu/l40s``
    sources: tuple[Source, ...] = ()
    confidence: Confidence = "high"
    """A formula is never of high confidence: some models run their tensor cores at a lower clock than they may."""


def peak(matrix: Matrix, gpu: GpuRow, precision: Precision) -> Peak | None:
    """The dense peak of a model in one precision, in operations per second; None where nothing tells.

    Some GeForce models accumulate in FP32 at half the rate.
    """
    variants = {row.variant: row for row in matrix.rates if row.compute_capability == gpu.compute_capability}
    rate = variants.get("geforce") if gpu.name.startswith("GeForce") else None
    rate = (rate or variants.get("")) if gpu.tensor_cores else variants.get("no-tensor-cores")
    whole = _of_sheet(matrix, gpu, gpu.peaks, rate, precision) if gpu.peaks is not None else None
    if whole is not None:
        return whole
    operations = rate.operations.of(precision) if rate is not None else None
    # For tensor cores, the clock is no higher than theirs.
    limit = None if precision in _FULL_CLOCK else gpu.tensor_clock
    clock = min(gpu.clock, limit) if gpu.clock and limit else gpu.clock or limit
    if operations is None or not gpu.sms or not clock:
        return None
    used = gpu if gpu.sheet_confidence != "high" else None
    return _conclude(matrix, gpu.sms * clock * operations, "formula", gpu.sheet_confidence, rate, used)


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


HEADROOM = 1.03  # A value above this many times its ceiling is a measurement error: clocks are sampled, not recorded
WARN = 0.85  # Below the band it is a warning down to this share of the band's lower edge, and a failure below that

Judgement: TypeAlias = Literal["pass", "warn", "fail", "above-ceiling"]

_VECTOR_RATES = ("fp64", "fp32")  # Precisions whose rates in the matrix are the vector units' on every GPU


class Expectation(msgspec.Struct, frozen=True, kw_only=True):
    """What was to be expected of one measurement, and how it stands to that."""

    ceiling: float  # In the measurement's unit
    basis: str  # Where the ceiling comes from, in words: ``132 SMs at 1980 MHz``
    low: float
    high: float  # Shares of the ceiling between which healthy GPUs lie
    wide: bool
    share: float  # Share of the ceiling that was reached
    clock_share: float | None = None  # Median SM clock of the run over the data sheet's
    at_clock: float | None = None  # Share of what the median clock allowed: what is left when the clock is not to blame
    rows: tuple[str, ...] = ()
    sources: tuple[Source, ...] = ()

    @property
    def of_sheet(self) -> float | None:
        """Share of what the data sheet's clock would have allowed."""
        if self.at_clock is None or self.clock_share is None:
            return None
        return self.at_clock * self.clock_share

    @property
    def judgement(self) -> Judgement:
        if self.share > HEADROOM:
            return "above-ceiling"
        if self.share >= self.low:
            return "pass"
        return "warn" if self.share >= WARN * self.low else "fail"


def expectation(
    matrix: Matrix, gpu: Gpu, measured: Measurement, gpus: Sequence[Gpu] = (), fabric: Fabric | None = None
) -> Expectation | str:
    """What was to be expected, or why it is not known. ``gpus`` are the machine's, which ``fabric`` joins."""
    capability = ComputeCapability.parse(gpu.compute_capability)
    if capability is None:
        return "the compute capability of the GPU is not known"
    if measured.value is None:
        return measured.missing or "it has no value"
    model = matrix.model_of(gpu)
    band = band_of(matrix, gpu, measured)
    if band is None:
        return "no band is known for it: compare it with a baseline"
    if len(set(measured.shape)) > 1 and not band.variant:
        return "bands are known for square products only: compare it with a baseline"
    quantity = quantity_of(measured.name)
    kind = quantity.ceiling if quantity else ""
    computes = kind in ("multiprocessors", "sparse")
    if computes:
        found, used = _of_multiprocessors(matrix, gpu, model, capability, measured, band, 2 if kind == "sparse" else 1)
    else:
        found, used = _of_transfers(matrix, kind, gpu, model, measured, gpus, fabric), None
    if isinstance(found, str):
        return found
    ceiling, basis, cited = found
    share = measured.value / ceiling
    clocks = measured.conditions.sm_clock if measured.conditions else None
    sheet_clock = model.clock if model else None
    if computes and measured.conditions is None and share < band.low:
        return f"{share:.0%} of the ceiling at the data sheet's clock; the clock during the run is not known"
    return Expectation(
        ceiling=ceiling,
        basis=basis,
        low=band.low,
        high=band.high,
        wide=band.wide,
        share=share,
        clock_share=clocks.median / sheet_clock if clocks and sheet_clock else None,
        at_clock=share * used / clocks.median if clocks and clocks.median and used else None,
        rows=tuple(row.id for row in (band, *cited)),
        sources=matrix.cite(band, *cited),
    )


_PRECISIONS: tuple[Precision, ...] = get_args(Precision)
_ROUNDED = 0.05  # Share by which a sheet's rounded figure may differ from the operations per clock of its tables


def _of_multiprocessors(
    matrix: Matrix,
    gpu: Gpu,
    model: GpuRow | None,
    capability: ComputeCapability,
    measured: Measurement,
    band: EfficiencyRow,
    times: int,
) -> tuple[Ceiling | str, float | None]:
    """What the multiprocessors can do by the model's own sheet, ``times`` as much where tensor cores skip what is zero,
    and the clock of the run that it is for. Others of its compute capability tell nothing: models for export or for
    little power do a fraction of what those do.
    """
    if measured.name == "fma" and measured.precision not in _VECTOR_RATES:
        return "the matrix has no rate of the vector units for it: compare it with a baseline", None
    rates = [row for row in matrix.rates if row.compute_capability == str(capability)]
    precision: Precision | None = next((each for each in _PRECISIONS if each == measured.precision), None)
    if precision == "fp64" and measured.name != "fma" and any(row.operations.fp64_tensor for row in rates):
        precision = "fp64_tensor"  # cuBLAS multiplies FP64 on tensor cores where there are such
    stated = model.peaks.of(precision) if model and model.peaks and precision else None
    if model is None or not stated or not precision:
        return f"no published peak of {gpu.name or 'this GPU'} in {(measured.precision or '').upper()} is known", None
    of_sheet = (None if precision in _FULL_CLOCK else model.tensor_clock) or model.clock
    sms = gpu.sm_count or model.sms
    if not (model.sms and sms and of_sheet):  # the sheet does not say at which clock: the figure holds at any
        whole = times * (stated * (sms / model.sms if sms and model.sms else 1))
        return (whole, f"{whole / 1e12:.4g} TOP/s by the data sheet", (model,)), None
    used = _clock(measured, floor=band.wide)
    # Without conditions the data sheet's clock gives the highest ceiling there can be: enough to pass a figure.
    clock = used or (model.clock if measured.conditions is None else None)
    if not clock:
        return "the multiprocessors' clock is not known", None
    each = stated / model.sms / of_sheet
    known = ((row.operations.of(precision), row) for row in rates)  # the exact count, where the sheet rounds it
    exact = next(((count, row) for count, row in known if count and abs(each / count - 1) <= _ROUNDED), None)
    each, rows = (exact[0], (model, exact[1])) if exact else (each, (model,))
    basis = f"{sms} SMs at {clock / 1e6:.0f} MHz, {times * each:.0f} operations per clock"
    return (sms * clock * (times * each), basis, rows), used


def _of_transfers(
    matrix: Matrix,
    kind: str,
    gpu: Gpu,
    model: GpuRow | None,
    measured: Measurement,
    gpus: Sequence[Gpu],
    fabric: Fabric | None,
) -> Ceiling | str:
    """What memory or a link carries."""
    if kind == "memory":
        if model is None or model.bandwidth is None:
            return f"no published memory bandwidth of {gpu.name or 'this GPU'} is known"
        return model.bandwidth, f"{model.bandwidth / 1e9:.0f} GB/s by the data sheet", (model,)
    if kind == "pcie":
        if model is not None and model.superchip:
            return "NVLink-C2C joins this GPU to its processor, not PCI Express: compare it with a baseline"
        return pcie_ceiling(matrix, measured)
    if kind == "nvlink":
        return peer_ceiling(model, gpu, gpus, fabric, measured)
    return "it has no ceiling: compare it with a baseline"


def _clock(measured: Measurement, *, floor: bool) -> float | None:
    """The clock that a figure is held to. Where only a floor is known and the power cap was at work, as it is all the
    time on boards of 60 to 75 W, the highest clock of the run says nothing about it.
    """
    conditions = measured.conditions
    clock = conditions.sm_clock if conditions else None
    if conditions is None or clock is None:
        return None
    capped = floor and conditions.throttle.get("sw_power_cap", 0.0) >= _CAPPED
    return clock.median if measured.burst is False or capped else clock.high


_CAPPED = 0.1  # Share of the samples from which the power cap counts


def band_of(matrix: Matrix, gpu: Gpu, measured: Measurement) -> EfficiencyRow | None:
    """The row of this model, architecture, precision, variant and kind of run, else the one for any.

    The bands of an architecture hold for the models that they were measured on; others have the floors.
    """
    model = matrix.model_of(gpu)
    name = model.name if model else ""
    architecture = architecture_name(matrix, gpu.compute_capability)
    known = {row.architecture for row in matrix.measured_models if name in row.gpus}
    run = "sustained" if measured.burst is False else "burst"
    rows = [
        row
        for row in matrix.efficiencies
        if (row.quantity, row.method) == (measured.name, measured.method)
        and (not row.architecture or row.architecture == architecture in known)
        and row.gpu in ("", name)
        and row.precision in ("", measured.precision)
        and row.variant in ("", measured.variant)
        and row.run in ("", run)
    ]
    return max(
        rows,
        key=lambda row: (bool(row.architecture), bool(row.precision), bool(row.variant), bool(row.run), bool(row.gpu)),
        default=None,
    )


BUSY = 0.2  # Share of the time in which a kernel ran, above which a GPU counts as busy; a desktop's stays below
IDLE_BYTES = 1 << 30
IDLE_SHARE = 0.02
"""Device memory that drivers, a desktop and waiting daemons hold, in bytes and as a share of all; above their sum
somebody else is at work."""


def at_work(utilisation: float | None, used: int | None, total: int | None) -> str:
    """In words, empty where the GPU is idle or it was not checked; ``utilisation`` is a share, memory is in bytes."""
    if utilisation is not None and utilisation > BUSY:
        return f"a kernel ran {utilisation:.0%} of the time"
    if used is not None and total is not None and used > IDLE_BYTES + IDLE_SHARE * total:
        return f"{used / 2**30:.1f} of {total / 2**30:.0f} GiB of its memory are in use"
    return ""


def in_use(gpu: Gpu) -> str:
    """How others use the GPU, by what the driver sampled, in words; empty if it is idle.

    The memory of a GPU in MIG mode tells nothing: its instances are used by themselves.
    """
    memory = None if gpu.mig and gpu.mig.enabled else gpu.memory
    return at_work(gpu.utilisation, memory.used if memory else None, memory.total if memory else None)


Ceiling: TypeAlias = tuple[float, str, tuple[Row, ...]]  # Per second, its origin in words, and its rows


def pcie_ceiling(matrix: Matrix, measured: Measurement) -> Ceiling | str:
    """What the PCI Express link of the run carries in one direction, or why that is unknown."""
    conditions = measured.conditions
    generation, width = (conditions.pcie_generation, conditions.pcie_width) if conditions else (None, None)
    row: LinkRow | None = next((link for link in matrix.links if link.generation == generation), None)
    if row is None or not width:
        return "the generation or width of the PCI Express link is not known"
    return row.lane * width, f"PCI Express {generation} x{width}", (row,)


def on_switch(part: Sequence[Gpu]) -> bool:
    """Whether NVLinks join each of these GPUs to a switch."""
    return all(any(link.active and link.remote_kind == "switch" for link in gpu.nvlinks or ()) for gpu in part)


def needs_switch(model: GpuRow | None, part: Sequence[Gpu], gpus: int) -> bool:
    """Whether nothing tells the links of ``part``, and only a board with a switch joins so many GPUs of this model."""
    sheet = model.nvlink if model and not any(gpu.nvlinks for gpu in part) else None
    return bool(sheet and sheet.pair and gpus > 1 + sheet.links / sheet.pair)


def nvlinks_between(part: Sequence[Gpu], fabric: Fabric | None) -> list[int] | None:
    """How many NVLinks join each pair of these GPUs; None where that is not known of every pair."""
    ids = {gpu.pci_bus_id for gpu in part}
    links = [link for link in (fabric.links if fabric else None) or () if {link.first, link.second} <= ids]
    counts = [link.nvlinks for link in links if link.nvlinks is not None]
    pairs = len(part) * (len(part) - 1) // 2
    return counts if len(counts) == pairs else None


def peer_ceiling(
    model: GpuRow | None, gpu: Gpu, gpus: Sequence[Gpu], fabric: Fabric | None, measured: Measurement
) -> Ceiling | str:
    """What NVLink carries from a GPU to another one: by the links of this pair, not by all that the model has."""
    sheet, way = model.nvlink if model else None, measured.variant or ""
    always = sheet.pair if sheet and not gpu.nvlinks and not ("NVLink" in way or "PCIe" in way) else 0
    if "NVLink" not in way and not always:
        return "copies between GPUs over PCI Express have no listed ceiling: compare them with a baseline"
    ways = 2 if "both" in way else 1
    pair = [gpu, *(other for other in gpus if other.uuid == measured.peer and other.uuid != gpu.uuid)]
    if on_switch(pair):
        count = min(sum(bool(link.active) for link in each.nvlinks or ()) for each in pair)
    elif known := nvlinks_between(pair, fabric):
        (count,) = known
    else:
        ends = {other.pci_bus_id for other in pair[1:]} - {None}
        count = sum(bool(link.active) and link.remote_pci_bus_id in ends for link in gpu.nvlinks or ())
    if not count and always and sheet:
        count = sheet.links if needs_switch(model, [gpu], len(gpus)) else always
    if not count:
        return "the number of NVLinks between the GPUs is not known: compare it with a baseline"
    named = f"{count} link{'s' if count > 1 else ''}"
    if model is not None and sheet is not None:
        return ways * count * sheet.bandwidth / sheet.links, f"NVLink {sheet.version}, {named}", (model,)
    rates = [link.bandwidth for link in gpu.nvlinks or () if link.active and link.bandwidth]
    if not rates:
        return "the NVLink bandwidth of this GPU is not listed"
    return ways * count * min(rates), f"NVLink, {named}, by NVML", ()
