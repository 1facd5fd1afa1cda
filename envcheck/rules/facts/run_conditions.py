"""What held a run back, and how its conditions differ from those of other runs, in words."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from envcheck.knowledge.performance.spread import median
from envcheck.model.snapshot import Conditions

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


_COMPARED: tuple[tuple[Callable[[Conditions], float | None], Callable[[float, float], bool], str], ...] = (
    (
        lambda run: run.power_limit,
        lambda own, usual: own < usual - _WATTS,
        "power limit {own:.0f} W, {than} {usual:.0f} W",
    ),
    (
        lambda run: run.sm_clock.median / 1e6 if run.sm_clock else None,
        lambda own, usual: own < (1 - _CLOCK) * usual,
        "SM clock {own:.0f} MHz, {than} {usual:.0f} MHz",
    ),
    (
        lambda run: run.memory_clock.high / 1e6 if run.memory_clock else None,
        lambda own, usual: own < (1 - _CLOCK) * usual,
        "memory clock {own:.0f} MHz, {than} {usual:.0f} MHz",
    ),
    (
        lambda run: run.pcie_generation,
        lambda own, usual: own < usual,
        "PCI Express generation {own:.0f}, {than} {usual:.0f}",
    ),
    (
        lambda run: run.pcie_width,
        lambda own, usual: own < usual,
        "{own:.0f} PCI Express lanes, {than} {usual:.0f}",
    ),
    (
        lambda run: run.temperature.high if run.temperature else None,
        lambda own, usual: own >= usual + _HOTTER,
        "{own:.0f} C, {than} {usual:.0f} C",
    ),
)
"""A reading of a run, when it is worse than the median of the others, and how to say that."""
