"""Sample a GPU's clocks, power, temperature and throttle reasons by NVML in a thread, while something runs on it."""

from __future__ import annotations

import importlib
import statistics
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from types import ModuleType
from typing import Any

from ..driver_apis.nvml_fields import reasons_in
from .runtime import Fields

INTERVAL = 0.02
"""Seconds between samples; NVML answers in about a millisecond and renews power readings every 20 to 100 ms."""


@dataclass
class _Samples:
    """What was read, in NVML's units."""

    values: dict[str, list[float]] = field(default_factory=dict)
    reasons: Counter[str] = field(default_factory=Counter)
    rounds: int = 0
    link: tuple[int, int] = (0, 0)


class Sampler:
    """NVML's view of one GPU. Without NVML, or on a GPU that refuses, it has nothing to say."""

    def __init__(self, uuid: str, before: Fields) -> None:
        """``before``: what was read of the GPU before envcheck put anything on it, as fields of ``Conditions``."""
        self._nvml = _started()
        self._before = before
        try:
            self._handle = None if self._nvml is None else self._nvml.nvmlDeviceGetHandleByUUID(uuid.encode())
        except Exception:
            self._handle = None

    @contextmanager
    def watch(self) -> Iterator[Fields]:
        """``with sampler.watch() as conditions:`` — filled as a ``Conditions`` when the block has ended."""
        conditions: Fields = {}
        samples, stop = _Samples(), threading.Event()
        thread = threading.Thread(target=self._sample, args=(samples, stop), daemon=True)
        if self._handle is not None:
            thread.start()
        try:
            yield conditions
        finally:
            stop.set()
            if self._handle is not None:
                thread.join(timeout=2)
                conditions.update(self._conditions(samples))

    def _sample(self, samples: _Samples, stop: threading.Event) -> None:
        nvml: Any = self._nvml
        while True:
            readings = {
                "sm_clock": _scaled(self._ask("nvmlDeviceGetClockInfo", nvml.NVML_CLOCK_SM), 1e6),
                "memory_clock": _scaled(self._ask("nvmlDeviceGetClockInfo", nvml.NVML_CLOCK_MEM), 1e6),
                "power": _scaled(self._power(), 1e-3),
                "temperature": _scaled(self._ask("nvmlDeviceGetTemperature", nvml.NVML_TEMPERATURE_GPU), 1),
                "utilisation": _scaled(getattr(self._ask("nvmlDeviceGetUtilizationRates"), "gpu", None), 1),
            }
            for name, value in readings.items():
                if value is not None:
                    samples.values.setdefault(name, []).append(value)
            reasons = self._ask(
                "nvmlDeviceGetCurrentClocksEventReasons", fallback="nvmlDeviceGetCurrentClocksThrottleReasons"
            )
            samples.reasons.update(reasons_in(reasons or 0))
            generation = self._ask("nvmlDeviceGetCurrPcieLinkGeneration")
            width = self._ask("nvmlDeviceGetCurrPcieLinkWidth")
            samples.link = max(samples.link, (generation or 0, width or 0))
            samples.rounds += 1
            if stop.wait(INTERVAL):
                return

    def _power(self) -> float | None:
        """Momentary power in milliwatts where the GPU reports it separately from the average over a second."""
        momentary = getattr(self._nvml, "NVML_FI_DEV_POWER_INSTANT", None)
        answer = self._ask("nvmlDeviceGetFieldValues", [momentary]) if momentary is not None else None
        if answer and answer[0].nvmlReturn == 0:
            return float(answer[0].value.uiVal)
        return _scaled(self._ask("nvmlDeviceGetPowerUsage"), 1)

    def _conditions(self, samples: _Samples) -> Fields:
        spans = {
            name: {"low": min(values), "median": statistics.median(values), "high": max(values), "source": "nvml"}
            for name, values in samples.values.items()
        }
        throttle = {reason: round(count / samples.rounds, 3) for reason, count in sorted(samples.reasons.items())}
        generation, width = samples.link
        after = self._ask("nvmlDeviceGetTemperature", getattr(self._nvml, "NVML_TEMPERATURE_GPU", 0))
        found = {
            "source": "nvml",
            "samples": samples.rounds,
            **spans,
            "throttle": throttle,
            "power_limit": _scaled(self._ask("nvmlDeviceGetEnforcedPowerLimit"), 1e-3),
            "power_limit_default": _scaled(self._ask("nvmlDeviceGetPowerManagementDefaultLimit"), 1e-3),
            "pcie_generation": generation or None,
            "pcie_width": width or None,
            "temperature_after": _scaled(after, 1),
            **self._before,
        }
        return {name: value for name, value in found.items() if value is not None}

    def _ask(self, name: str, *arguments: Any, fallback: str = "") -> Any:
        """The answer, or None where the GPU, the driver or the binding has none."""
        if self._handle is None:
            return None
        function = getattr(self._nvml, name, None) or getattr(self._nvml, fallback, None)
        try:
            return function(self._handle, *arguments) if function else None
        except Exception:  # what one reading costs must not cost the measurement
            return None


@cache
def _started() -> ModuleType | None:
    """NVML, started once for all GPUs of this process."""
    try:
        pynvml = importlib.import_module("pynvml")
        pynvml.nvmlInit()
    except Exception:
        return None
    return pynvml


def _scaled(value: Any, factor: float) -> float | None:
    return None if value is None else float(value) * factor
