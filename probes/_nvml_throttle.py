"""Why the clocks of a GPU are held down, and for how long that was so."""

from __future__ import annotations

from typing import Any

from ._nvml_ask import UNSIGNED_LONG_LONG, Device
from ._nvml_fields import place

REASONS = {
    0x1: "gpu_idle",
    0x2: "applications_clocks_setting",
    0x4: "sw_power_cap",
    0x8: "hw_slowdown",
    0x10: "sync_boost",
    0x20: "sw_thermal_slowdown",
    0x40: "hw_thermal_slowdown",
    0x80: "hw_power_brake_slowdown",
    0x100: "display_clock_setting",
}

STEADY_COUNTERS = {"sw_power_cap": 74, "sw_thermal_slowdown": 75, "sync_boost": 76}
"""NVML's performance policy counters, the only ones of the throttle counters whose numbers never changed."""
MOVED_COUNTERS = ("sw_thermal_slowdown", "hw_thermal_slowdown", "hw_power_brake_slowdown")
COUNTER_PLACES = ((269, 270, 271), (251, 252, 253))
"""Numbers of ``MOVED_COUNTERS``: those of most drivers, then those that some releases gave them."""


def throttle(device: Device, record: dict[str, Any]) -> None:
    mask = device.ask(
        "throttle.reasons", ("nvmlDeviceGetCurrentClocksEventReasons",), ("nvmlDeviceGetCurrentClocksThrottleReasons",)
    )
    if mask is not None:
        place(record, "throttle.reasons", reasons_in(mask))
    seconds = {**_steady_counters(device), **_moved_counters(device)}
    if seconds:
        place(record, "throttle.seconds", seconds)


def reasons_in(mask: int) -> list[str]:
    """The names of the bits of NVML's clocks event reasons."""
    bits = [1 << place for place in range(64) if mask >> place & 1]
    return [REASONS.get(bit, hex(bit)) for bit in bits]


def _steady_counters(device: Device) -> dict[str, float]:
    answers = {name: device.ask_field("throttle.seconds", number) for name, number in STEADY_COUNTERS.items()}
    return {name: value / 1e9 for name, value in answers.items() if value is not None}


def _moved_counters(device: Device) -> dict[str, float]:
    """The counters whose numbers differ between driver releases, in seconds; none where it is not clear which hold.

    The numbers that are not the counters' belong to power smoothing settings, which are no 64-bit counters.
    """
    for numbers in COUNTER_PLACES:
        answers = [device.ask_typed_field("", number) for number in numbers]
        if all(answer and answer[0] == UNSIGNED_LONG_LONG for answer in answers):
            return {name: answer[1] / 1e9 for name, answer in zip(MOVED_COUNTERS, answers, strict=True) if answer}
    return {}
