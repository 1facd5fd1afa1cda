"""What was true of a GPU during a run: as a cause in words, and as evidence."""

from __future__ import annotations

from envcheck.model.checks import Evidence
from envcheck.model.snapshot import Conditions, Gpu, Measurement
from envcheck.rules.facts.measurements import NEAR_IDLE, OFTEN, POWER_CAP, THROTTLES, lowered_limit

MEMORY = ("device-memory-read", "device-memory-write", "device-memory-copy", "device-memory-triad")
_LINKS = ("host-to-device", "device-to-host", "peer-to-peer")
_FULL = 0.9
"""Share of the highest memory clock from which it counts as full."""


def causes(gpu: Gpu, measured: Measurement) -> tuple[str, ...]:
    """Causes as text, the most certain first."""
    conditions = measured.conditions
    if conditions is None:
        return ()
    found = [words for reason, words in THROTTLES.items() if conditions.throttle.get(reason, 0) >= OFTEN]
    if lowered := lowered_limit(conditions):
        found.append(f"its power limit is {lowered[0]:.0f} W, below the default of {lowered[1]:.0f} W")
    on_link = measured.name in _LINKS  # which copy engines serve, at any clock
    if not on_link and (stuck := near_idle(gpu, conditions)):
        found.append(stuck)
    memory, fastest = conditions.memory_clock, gpu.clocks.memory_max if gpu.clocks else None
    if measured.name in MEMORY and memory and fastest and memory.high < _FULL * fastest:
        found.append(f"the memory clock stayed at {memory.high / 1e6:.0f} of {fastest / 1e6:.0f} MHz")
    if measured.name not in ("host-to-device", "device-to-host") or gpu.pcie is None:
        return tuple(found)
    width, most = conditions.pcie_width, gpu.pcie.width_max
    if width and most and width < most:
        found.append(f"the PCI Express link has {width} of {most} lanes")
    generation, highest = conditions.pcie_generation, gpu.pcie.generation_max
    if generation and highest and generation < highest:
        found.append(f"the PCI Express link stayed at generation {generation} of {highest} under load")
    return tuple(found)


def near_idle(gpu: Gpu, conditions: Conditions) -> str:
    """In words that the clock never left the neighbourhood of idle; empty where it did."""
    clock, highest = conditions.sm_clock, gpu.clocks.sm_max if gpu.clocks else None
    if not clock or not highest or clock.high >= NEAR_IDLE * highest:
        return ""
    capped = " at the power cap" if conditions.throttle.get(POWER_CAP, 0) >= OFTEN else ""
    return f"the SM clock stayed at {clock.high / 1e6:.0f} of {highest / 1e6:.0f} MHz under load{capped}"


def condition_evidence(conditions: Conditions | None) -> tuple[Evidence, ...]:
    """The conditions of a run as evidence."""
    if conditions is None:
        return ()
    parts = []
    if conditions.sm_clock:
        parts.append(f"SM clock {conditions.sm_clock.median / 1e6:.0f} MHz")
    if conditions.power:
        parts.append(f"power {conditions.power.high:.0f} W")
    if conditions.power_limit:
        parts.append(f"limit {conditions.power_limit:.0f} W")
    if conditions.temperature:
        parts.append(f"{conditions.temperature.high:.0f} C")
    throttled = [f"{why} in {share:.0%} of samples" for why, share in conditions.throttle.items() if share >= OFTEN]
    text = ", ".join([*parts, *throttled])
    return (Evidence("during the run", text, conditions.source or "nvml"),) if text else ()
