"""Why a number is low, as far as the conditions of its run tell."""

from __future__ import annotations

from envcheck.checks import Evidence
from envcheck.compat.variables import shown
from envcheck.rules.api import Facts
from envcheck.rules.variables_facts import that_lower
from envcheck.snapshot import Conditions, Gpu, Measurement

_THROTTLES = {
    "hw_thermal_slowdown": "the GPU slowed down because it was too hot (hardware)",
    "sw_thermal_slowdown": "the GPU slowed down because it was hot",
    "hw_power_brake_slowdown": "the power supply of the machine braked the GPU",
    "hw_slowdown": "the hardware slowed the GPU down",
    "applications_clocks_setting": "somebody set lower application clocks",
    "sync_boost": "its clocks follow a slower GPU (sync boost)",
}
"""Reasons that are no part of a sound GPU's normal run; the software power cap at the default limit is."""
_OFTEN = 0.1
"""Share of the samples from which on a reason counts."""


def causes(gpu: Gpu, measured: Measurement) -> tuple[str, ...]:
    """Causes in words, the most certain first."""
    conditions = measured.conditions
    if conditions is None:
        return ()
    found = [words for reason, words in _THROTTLES.items() if conditions.throttle.get(reason, 0) >= _OFTEN]
    if _limited(conditions):
        found.append(
            f"its power limit is {conditions.power_limit:.0f} W, below the default of "
            f"{conditions.power_limit_default:.0f} W"
        )
    return (*found, *_link(gpu, measured, conditions))


def by_variables(measured: Measurement, facts: Facts) -> tuple[str, ...]:
    """Environment variables that can lower this figure, in words."""
    return tuple(f"{each.name}={shown(each.value)}: {effect.text}" for each, effect in that_lower(measured, facts))


def _limited(conditions: Conditions) -> bool:
    limit, default = conditions.power_limit, conditions.power_limit_default
    return limit is not None and default is not None and limit < default - 1


def _link(gpu: Gpu, measured: Measurement, conditions: Conditions) -> tuple[str, ...]:
    """A host link below what GPU and slot can do."""
    if measured.name not in ("host-to-device", "device-to-host") or gpu.pcie is None:
        return ()
    found = []
    width, most = conditions.pcie_width, gpu.pcie.width_max
    if width and most and width < most:
        found.append(f"the PCI Express link runs with {width} of {most} lanes")
    generation, highest = conditions.pcie_generation, gpu.pcie.generation_max
    if generation and highest and generation < highest:
        found.append(f"the PCI Express link stayed at generation {generation} of {highest} under load")
    return tuple(found)


def conditions_shown(conditions: Conditions | None) -> tuple[Evidence, ...]:
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
    held = [f"{reason} in {share:.0%} of samples" for reason, share in conditions.throttle.items() if share >= _OFTEN]
    text = ", ".join([*parts, *held])
    return (Evidence(what="during the run", value=text, source=conditions.source or "nvml"),) if text else ()
