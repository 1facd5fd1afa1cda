"""Names of measurements, their quantities and conditions as text, and how much of a machine was measured."""

from __future__ import annotations

import operator
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import wraps
from typing import ParamSpec, TypeVar

import msgspec

from envcheck.knowledge.performance.quantities import PROCESSOR, framework_tested, library_tested, place_of, quantity_of
from envcheck.knowledge.performance.spread import median
from envcheck.model.checks import Check
from envcheck.model.runs import not_asked_for
from envcheck.model.snapshot import Conditions, Gpu, Measurement, ProbeRun
from envcheck.text.wrap import ranges

THROTTLES = {
    "hw_thermal_slowdown": "thermal throttling by the hardware",
    "sw_thermal_slowdown": "thermal throttling by the driver",
    "hw_power_brake_slowdown": "the power brake of the machine's power supply was active",
    "hw_slowdown": "the hardware lowered the clocks",
    "applications_clocks_setting": "lower application clocks are set",
    "sync_boost": "its clocks follow a slower GPU (sync boost)",
}
"""Reasons that a healthy GPU does not show; the software power cap at the default limit is normal."""
OFTEN = 0.1  # Share of the samples from which a reason counts
HEAT = ("hw_thermal_slowdown", "sw_thermal_slowdown")
BRAKE = "hw_power_brake_slowdown"
HARDWARE = "hw_slowdown"
NEAR_IDLE = 0.25  # Share of the highest clock that boards of 60 to 75 W exceed under full load
POWER_CAP = "sw_power_cap"
_CAPPED = 0.25  # Share of samples by which the power cap must be more frequent to be named: two runs of one GPU vary
_CLOCK = 0.03  # Share by which a clock must be lower; it is sampled, and rises in steps of 15 MHz
_HOTTER = 10.0  # Degrees by which a GPU must be hotter
_WATTS = 1.0  # Two runs under one power limit may read it so far apart
_LOWERED = 0.99  # A limit below this share of the default was lowered on purpose; NVML rounds to milliwatts


def lowered_limit(conditions: Conditions) -> tuple[float, float] | None:
    """The power limit of a run and the GPU's default, in W, where the limit was lowered."""
    limit, default = conditions.power_limit, conditions.power_limit_default
    return (limit, default) if limit is not None and default is not None and is_lowered(limit, default) else None


def is_lowered(limit: float, default: float) -> bool:
    """Whether a power limit is below the GPU's default by more than a reading of it may be."""
    return limit < _LOWERED * default


def differences(conditions: Conditions | None, others: Sequence[Conditions], than: str) -> tuple[str, ...]:
    """How the conditions of a slow run differ from those of the faster ``others``, the most telling first.

    ``than`` calls those: ``the others``, ``before``. What is not known of both sides is not compared.
    """
    if conditions is None or not others:
        return ()
    found = []
    for reason, words in THROTTLES.items():
        share = conditions.throttle.get(reason, 0.0)
        if share >= OFTEN and median([other.throttle.get(reason, 0.0) for other in others]) < OFTEN:
            found.append(f"{words} in {share:.0%} of the samples")
    capped = conditions.throttle.get(POWER_CAP, 0.0)
    if capped >= _CAPPED + median([other.throttle.get(POWER_CAP, 0.0) for other in others]):
        found.append(f"it was at its power limit in {capped:.0%} of the samples")
    for read, is_worse, text in _COMPARED:
        own, known = read(conditions), [value for other in others if (value := read(other)) is not None]
        if own is not None and known and is_worse(own, median(known)):
            found.append(text.format(own=own, than=than, usual=median(known)))
    if conditions.ecc and all(other.ecc is False for other in others):
        found.append(f"ECC is on, {than} off")
    return tuple(found)


def _is_slower(own: float, usual: float) -> bool:
    return own < (1 - _CLOCK) * usual


_COMPARED: tuple[tuple[Callable[[Conditions], float | None], Callable[[float, float], bool], str], ...] = (
    (
        lambda run: run.power_limit,
        lambda own, usual: own < usual - _WATTS,
        "power limit {own:.0f} W, {than} {usual:.0f} W",
    ),
    (
        lambda run: run.sm_clock.median / 1e6 if run.sm_clock else None,
        _is_slower,
        "SM clock {own:.0f} MHz, {than} {usual:.0f} MHz",
    ),
    (
        lambda run: run.memory_clock.high / 1e6 if run.memory_clock else None,
        _is_slower,
        "memory clock {own:.0f} MHz, {than} {usual:.0f} MHz",
    ),
    (lambda run: run.pcie_generation, operator.lt, "PCI Express generation {own:.0f}, {than} {usual:.0f}"),
    (lambda run: run.pcie_width, operator.lt, "{own:.0f} PCI Express lanes, {than} {usual:.0f}"),
    (
        lambda run: run.temperature.high if run.temperature else None,
        lambda own, usual: own >= usual + _HOTTER,
        "{own:.0f} C, {than} {usual:.0f} C",
    ),
)
"""A reading of a run, when it is worse than the median of the others, and how to say that."""

_TIMED = ("bench.gemm", "bench.memory", "bench.chip")
"""Probes of every measuring run; a deep check, which lets libraries work on one GPU, never starts them."""


class Coverage(msgspec.Struct, frozen=True):
    """The GPUs of a machine by what became of them, and the figures without a value."""

    measured: tuple[Gpu, ...]
    in_use: tuple[Gpu, ...]  # Asked for, and not measured since others use them
    failed: tuple[Gpu, ...]  # Asked for, and without any figure: every measurement failed, or could not be made
    hidden: tuple[Gpu, ...]  # Not shown by CUDA, though others are
    not_asked: tuple[Gpu, ...]
    missing: tuple[Measurement, ...]  # Figures of any GPU, or pair, or of the processor, that could not be taken

    @property
    def refused(self) -> tuple[Gpu, ...]:
        """Those that were asked for and have no figure."""
        return (*self.in_use, *self.failed)

    @property
    def gpus(self) -> int:
        """How many there are."""
        return len(self.measured) + len(self.refused) + len(self.hidden) + len(self.not_asked)

    @property
    def is_complete(self) -> bool:
        """Whether every GPU was measured."""
        return self.gpus == len(self.measured)

    def in_words(self) -> str:
        """``1 of 2 GPUs measured, GPU 0 in use``."""
        count = f"{len(self.measured)} of {self.gpus}" if not self.is_complete else f"{self.gpus}"
        total = f"{count} GPU{'s' if self.gpus != 1 else ''} measured"
        return ", ".join([total, *(f"{numbers(gpus)} {why}" for gpus, why in self.left_out if gpus)])

    @property
    def left_out(self) -> tuple[tuple[tuple[Gpu, ...], str], ...]:
        """The GPUs without a figure, by the reason in words."""
        return (
            (self.in_use, "in use"),
            (self.failed, "without a figure"),
            (self.hidden, "hidden from CUDA"),
            (self.not_asked, "not asked for"),
        )


def coverage(gpus: Iterable[Gpu], measurements: Sequence[Measurement], runs: Iterable[ProbeRun]) -> Coverage:
    """What was measured of ``gpus``, by the figures and by how the measuring probes ended."""
    known = [gpu for gpu in gpus if gpu.index is not None or gpu.cuda_ordinal is not None]
    have: set[str | None] = set()
    for each in measurements:
        if _was_done(each):
            have |= {each.gpu, each.peer, *(each.collective.gpus if each.collective else ())} - {None}
    tried = [run for run in runs if run.name in _TIMED and run.gpu]
    in_use = {run.gpu for run in tried if run.status == "skipped"}
    ran = {run.gpu for run in tried}
    shown = any(gpu.cuda_ordinal is not None for gpu in known)
    places: dict[str, tuple[Gpu, ...]] = dict.fromkeys(("measured", "in_use", "failed", "hidden", "not_asked"), ())
    for gpu in known:
        if gpu.uuid in have:
            place = "measured"
        elif gpu.uuid in in_use:
            place = "in_use"
        elif gpu.uuid in ran:
            place = "failed"
        else:
            place = "hidden" if shown and gpu.cuda_ordinal is None else "not_asked"
        places[place] += (gpu,)
    return Coverage(**places, missing=tuple(each for each in measurements if not _was_done(each)))


def numbers(gpus: Sequence[Gpu]) -> str:
    """``GPU 0``, ``GPUs 0-3, 5``; bus ids where no index is known."""
    indices = sorted(gpu.index for gpu in gpus if gpu.index is not None)
    names = [*ranges(indices), *(gpu.key for gpu in gpus if gpu.index is None)]
    return f"GPU{'s' if len(gpus) > 1 else ''} {', '.join(names)}"


def _was_done(measured: Measurement) -> bool:
    return measured.value is not None or measured.verification is not None


_SCALES = ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))

_MANY = 4  # Probes from which on a common reason is said once for all
LOOSE = 0.02  # Spread of samples up to which nothing is said about it


def measurement_key(measurement: Measurement) -> str:
    """The key of a measurement among those of its GPU: ``gemm-bf16-8192x8192x8192-sustained``."""
    words = [measurement.name, measurement.precision or "", "x".join(map(str, measurement.shape))]
    words += ["sustained" if measurement.burst is False else "", measurement.variant or "", measurement.peer or ""]
    return "-".join(word.replace(", ", "-").replace(" ", "-") for word in words if word)


def measurement_name(measurement: Measurement, *, below_heading: bool = False) -> str:
    """The display name of a measurement: ``BF16 matrix product, sustained``, ``FP16 cuDNN convolution, forward``.

    ``below_heading``: without the library or processor, which a heading names.
    """
    precision = f"{measurement.precision.upper()} " if measurement.precision else ""
    maker = _maker(measurement.name) or ("CPU" if measurement.name.startswith(PROCESSOR) else "")
    maker = f"{maker} " if maker and not below_heading else ""
    known = quantity_of(measurement.name)
    name = known.title if known else measurement.name.replace("-", " ")
    sustained = ", sustained" if measurement.burst is False else ""
    variant = f", {measurement.variant}" if measurement.variant else ""
    sides = measurement.shape
    shape = f" {sides[0]}^{len(sides)}" if len(set(sides)) == 1 else f" {'x'.join(map(str, sides))}" if sides else ""
    text = f"{precision}{maker}{name}{shape}{sustained}{variant}"
    return text[:1].upper() + text[1:] if text.partition(" ")[0].islower() else text  # cuDNN keeps its letters


def with_headings(figures: Iterable[Measurement]) -> Iterator[tuple[str, Measurement]]:
    """Figures in order, each with the heading that begins above it (``cuDNN 9.1``); empty for most."""
    above = ""
    for measured in figures:
        library, version = _maker(measured.name) or "", measured.detail.partition(",")[0]
        heading = version if library and version.startswith(library) else library
        begins = heading.partition(" ")[0] != above.partition(" ")[0]
        yield f"{heading}  {measured.library or ''}".rstrip() if begins else "", measured
        above = heading


def _maker(name: str) -> str | None:
    return library_tested(name) or framework_tested(name)


def measurement_name_among(measurement: Measurement, gpus: Iterable[Gpu]) -> str:
    """The display name, with the number of a peer among ``gpus``: ``Copy to GPU 1, NVLink``."""
    peer = next((gpu.index for gpu in gpus if measurement.peer and gpu.uuid == measurement.peer), None)
    if peer is None:
        return measurement_name(measurement, below_heading=True)
    if measurement.collective:
        alone = msgspec.structs.replace(measurement, variant=None)
        return f"{measurement_name(alone, below_heading=True)} with GPU {peer}"
    return f"Copy to GPU {peer}" + (f", {measurement.variant}" if measurement.variant else "")


def reason_without_value(measurement: Measurement) -> str:
    """Why a figure has no value, in words."""
    if measurement.missing:
        return measurement.missing
    return "done and verified, not timed" if measurement.verification else "not measured"


def figures_of(gpu: Gpu, measurements: Iterable[Measurement]) -> list[Measurement]:
    """The measurements of this GPU: memory, matrix products and copies first, then parts of the chip."""
    own = (found for found in measurements if found.gpu is not None and found.gpu == gpu.uuid)
    return sorted(own, key=lambda found: place_of(found.name))


def processor_figures(measurements: Iterable[Measurement]) -> list[Measurement]:
    """What was measured on no GPU, in reading order."""
    return sorted((each for each in measurements if each.gpu is None), key=lambda each: place_of(each.name))


def speedup(measured: Measurement, measurements: Iterable[Measurement]) -> float | None:
    """How many times as fast a GPU did the work that the processor was measured with; None where none did it.

    Figures of one precision and unit are compared: of the same variant if there is one, of the fastest GPU.
    """
    alike = [found for found in figures_beside(measured, measurements) if found.unit == measured.unit]
    same = [found for found in alike if found.variant == measured.variant]
    best = max((found.value or 0.0 for found in same or alike), default=None)
    return best / measured.value if best and measured.value else None


def figures_beside(measured: Measurement, measurements: Iterable[Measurement]) -> Iterator[Measurement]:
    """Figures in the same precision, and not sustained, of the quantity that this one is held against."""
    known = quantity_of(measured.name)
    figures = (found for found in measurements if known and found.name == known.beside and found.value)
    return (found for found in figures if found.precision == measured.precision and found.burst is not False)


def percent(share: float) -> str:
    """``77%``; with a decimal below ten, since many library figures are expected at few percent of a peak."""
    return f"{share:.1%}" if share < 0.1 else f"{share:.0%}"


def quantity(value: float, unit: str) -> str:
    """``4.28 TB/s``, ``823.8 TFLOP/s``, ``2.9 us``."""
    if unit == "s":
        return f"{value * 1e6:.3g} us" if value < 1e-3 else f"{value * 1e3:.3g} ms"
    scale, prefix = next(((scale, prefix) for scale, prefix in _SCALES if value >= scale), (1.0, ""))
    shown = min(value / scale, sys.float_info.max)
    places = 3 - min(3, len(str(int(float(f"{shown:.3g}")))))
    return f"{shown:.{places}f} {prefix}{unit}"


def spread(samples: Iterable[float]) -> float:
    """The range of the samples as a share of their median; 0 for fewer than two."""
    values = sorted(samples)
    return (values[-1] - values[0]) / values[len(values) // 2] if len(values) > 1 and values[len(values) // 2] else 0.0


def judges_figure(check: Check) -> bool:
    return check.rule.startswith("slow-") or check.rule == "framework-slower-than-library"


def checks_of_figures(checks: Iterable[Check]) -> dict[tuple[str, str], Check]:
    """The check that judged each figure, by the GPU's key and the figure's ``measurement_key``."""
    found = {}
    for check in filter(judges_figure, checks):
        gpu = check.subject.pci_bus_id or check.subject.uuid or ""
        found[gpu, check.subject.key.removeprefix(f"{gpu}:")] = check
    return found


def only_measured(checks: Sequence[Check]) -> bool:
    """Whether all checks are about measured figures, as after ``envcheck bench``."""
    ways = {check.decided_by for check in checks if check.status != "skipped"}
    return bool(checks) and ways <= {"measured", "framework-ran"} and (not ways or "measured" in ways)


def headline(checks: Sequence[Check], covered: Coverage) -> str:
    """``2 GPUs measured, all figures as expected``; or what was left out, and how many figures were as expected."""
    judged = sum(judges_figure(check) and check.status == "pass" for check in checks)
    not_judged = sum(judges_figure(check) and check.status != "pass" and check.figure is not None for check in checks)
    missing = len(covered.missing)
    if covered.is_complete and not not_judged and not missing:
        return f"{covered.in_words()}, all figures as expected"
    parts = [covered.in_words(), f"{judged} figure{'s' if judged != 1 else ''} as expected"]
    parts += [f"{not_judged} not judged"] if not_judged else []
    parts += [f"{missing} not measured"] if missing else []
    return ", ".join(parts)


def nothing_measured(runs: Iterable[ProbeRun]) -> str:
    """Why there are no figures: the most frequent reason, those for a GPU first; empty where nobody asked for any."""
    explained = [
        run for run in runs if run.name.startswith("bench.") and run.detail not in ("", not_asked_for("bench"))
    ]
    reasons = Counter(run.detail for run in explained if run.gpu) or Counter(run.detail for run in explained)
    return reasons.most_common(1)[0][0] if reasons else ""


def not_run(runs: Iterable[ProbeRun]) -> list[str]:
    """A line for each reason why bench probes did not run or ended early: ``cuDNN: timed out``."""
    titles: dict[str, dict[str, None]] = {}
    for run in runs:
        if run.name.startswith("bench.") and run.status != "ok" and run.detail:
            titles.setdefault(run.detail, {})[run.title] = None
    return [f"{', '.join(names) if len(names) < _MANY else 'Not measured'}: {why}" for why, names in titles.items()]


P = ParamSpec("P")
T = TypeVar("T")


def kept_by_identity(function: Callable[P, T]) -> Callable[P, T]:
    """Keep the result for the last arguments, which are compared by identity: hashing a Snapshot costs more."""
    kept: list[tuple[tuple[object, ...], T]] = []

    @wraps(function)
    def first(*arguments: P.args, **named: P.kwargs) -> T:
        known = kept[-1] if kept else None
        if known is not None and not named and [*map(id, known[0])] == [*map(id, arguments)]:
            return known[1]
        result = function(*arguments, **named)
        if not named:
            kept[:] = [(arguments, result)]
        return result

    return first
