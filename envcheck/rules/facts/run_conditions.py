"""What held a run back, and how its conditions differ from those of other runs, in words."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from envcheck.compat.performance.spread import median
from envcheck.snapshot import Conditions

THROTTLES = {
    "hw_thermal_slowdown": "thermal throttling by the hardware",
    "sw_thermal_slowdown": "thermal throttling by the driver",
    "hw_power_brake_slowdown": "the power brake of the machine's power supply was active",
    "hw_slowdown": "the hardware lowered the clocks",
    "applications_clocks_setting": "lower application clocks are set",
    "sync_boost": "its clocks follow a slower GPU (sync boost)",
}
"""Reasons that a healthy GPU does not show; the software power cap at the default limit is normal."""
OFTEN = 0.1
"""Share of the samples from which a reason counts."""
HEAT = ("hw_thermal_slowdown", "sw_thermal_slowdown")
BRAKE = "hw_power_brake_slowdown"
POWER_CAP = "sw_power_cap"
_CAPPED = 0.25
"""Share of the samples by which the power cap must be more frequent to be named: two runs of one GPU vary."""
_CLOCK = 0.03
"""Share by which a clock must be lower; it is sampled, and rises in steps of 15 MHz."""
_HOTTER = 10.0
"""Degrees by which a GPU must be hotter."""
_WATTS = 1.0
"""Two runs under one power limit may read it so far apart."""
_LOWERED = 0.99
"""A limit below this share of the default was lowered on purpose; NVML rounds to milliwatts."""

_Read = Callable[[Conditions], "float | None"]


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
    return (
        *_throttled(conditions, others),
        *_limits(conditions, others, than),
        *_clocks(conditions, others, than),
        *_link(conditions, others, than),
        *_heat(conditions, others, than),
        *_memory_check(conditions, others, than),
    )


def _throttled(conditions: Conditions, others: Sequence[Conditions]) -> Iterator[str]:
    for reason, words in THROTTLES.items():
        share = conditions.throttle.get(reason, 0.0)
        if share >= OFTEN and median([other.throttle.get(reason, 0.0) for other in others]) < OFTEN:
            yield f"{words} in {share:.0%} of the samples"
    capped = conditions.throttle.get(POWER_CAP, 0.0)
    if capped >= _CAPPED + median([other.throttle.get(POWER_CAP, 0.0) for other in others]):
        yield f"it was at its power limit in {capped:.0%} of the samples"


def _limits(conditions: Conditions, others: Sequence[Conditions], than: str) -> Iterator[str]:
    own, usual = _pair(conditions, others, lambda run: run.power_limit)
    if own is not None and usual is not None and own < usual - _WATTS:
        yield f"power limit {own:.0f} W, {than} {usual:.0f} W"


def _clocks(conditions: Conditions, others: Sequence[Conditions], than: str) -> Iterator[str]:
    clocks: dict[str, _Read] = {
        "SM clock": lambda run: run.sm_clock.median if run.sm_clock else None,
        "memory clock": lambda run: run.memory_clock.high if run.memory_clock else None,
    }
    for name, read in clocks.items():
        own, usual = _pair(conditions, others, read)
        if own is not None and usual is not None and own < (1 - _CLOCK) * usual:
            yield f"{name} {own / 1e6:.0f} MHz, {than} {usual / 1e6:.0f} MHz"


def _link(conditions: Conditions, others: Sequence[Conditions], than: str) -> Iterator[str]:
    own, usual = _pair(conditions, others, lambda run: run.pcie_generation)
    if own is not None and usual is not None and own < usual:
        yield f"PCI Express generation {own:.0f}, {than} {usual:.0f}"
    own, usual = _pair(conditions, others, lambda run: run.pcie_width)
    if own is not None and usual is not None and own < usual:
        yield f"{own:.0f} PCI Express lanes, {than} {usual:.0f}"


def _heat(conditions: Conditions, others: Sequence[Conditions], than: str) -> Iterator[str]:
    own, usual = _pair(conditions, others, lambda run: run.temperature.high if run.temperature else None)
    if own is not None and usual is not None and own >= usual + _HOTTER:
        yield f"{own:.0f} C, {than} {usual:.0f} C"


def _memory_check(conditions: Conditions, others: Sequence[Conditions], than: str) -> Iterator[str]:
    if conditions.ecc and all(other.ecc is False for other in others):
        yield f"ECC is on, {than} off"


def _pair(conditions: Conditions, others: Sequence[Conditions], read: _Read) -> tuple[float | None, float | None]:
    known = [value for other in others if (value := read(other)) is not None]
    return read(conditions), median(known) if known else None
