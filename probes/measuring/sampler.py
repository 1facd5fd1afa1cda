"""What NVML says of a GPU while something runs on it: clocks and power, sampled in a thread, and errors counted."""

from __future__ import annotations

import importlib
import os
import re
import statistics
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from ..common.record import canonical_bus_id
from ..driver_apis.nvml_calls import field_value
from ..driver_apis.nvml_fields import reasons_in
from .runtime import Fields

INTERVAL = 0.02  # Seconds between samples; NVML answers in about 1 ms and renews power readings every 20 to 100 ms

_COUNTERS = {
    "PCIE_REPLAY_COUNTER": "pcie-replays", "ECC_SBE_VOL_TOTAL": "ecc-corrected", "ECC_DBE_VOL_TOTAL": "ecc-uncorrected",
    "REMAPPED_COR": "rows-remapped", "REMAPPED_UNC": "rows-remapped",
    "NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL": "nvlink-errors", "NVLINK_CRC_DATA_ERROR_COUNT_TOTAL": "nvlink-errors",
    "NVLINK_REPLAY_ERROR_COUNT_TOTAL": "nvlink-errors", "NVLINK_RECOVERY_ERROR_COUNT_TOTAL": "nvlink-errors",
}  # fmt: skip
"""NVML's fields (``NVML_FI_DEV_…``) that count errors, and what ``Conditions.rose`` calls them."""
_DEVICES, _MOST_XIDS = "/sys/bus/pci/devices", 20
_AER = ("correctable", "nonfatal", "fatal")
_AER_TOTAL = re.compile(r"^TOTAL_ERR_\w+ (\d{1,18})$", re.MULTILINE)
"""The kernel's own counters of a device's errors on PCI Express."""


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
        self._events: Any = None
        with suppress(Exception):  # where it cannot be had, no errors by number are told
            events = self._nvml.nvmlEventSetCreate()
            self._nvml.nvmlDeviceRegisterEvents(self._handle, self._nvml.nvmlEventTypeXidCriticalError, events)
            self._events = events
        bus = getattr(self._ask("nvmlDeviceGetPciInfo"), "busId", b"")
        self._device = f"{_DEVICES}/{canonical_bus_id(bus.decode() if isinstance(bus, bytes) else bus)}"

    @contextmanager
    def watch(self) -> Iterator[Fields]:
        """``with sampler.watch() as conditions:`` — filled as a ``Conditions`` when the block has ended."""
        conditions: Fields = {}
        samples, stop = _Samples(), threading.Event()
        thread = threading.Thread(target=self._sample, args=(samples, stop), daemon=True)
        if self._handle is not None:
            thread.start()
        self._xids()  # those of the time before
        before, began = self._counted(), time.time()
        try:
            yield conditions
        finally:
            stop.set()
            if self._handle is not None:
                thread.join(timeout=2)
                conditions.update(self._conditions(samples))
                rose = {name: count - before.get(name, count) for name, count in self._counted().items()}
                errors = {
                    "rose": {name: count for name, count in rose.items() if count > 0},
                    "xids": self._xids(),
                    "used_by_others": self._used_by_others(began),
                }
                conditions.update({name: value for name, value in errors.items() if value})

    def _counted(self) -> dict[str, int]:
        """What the counters of errors say now."""
        known = {getattr(self._nvml, f"NVML_FI_DEV_{name}", None): counted for name, counted in _COUNTERS.items()}
        known.pop(None, "")
        found: Counter[str] = Counter()
        for number, answer in zip(known, self._ask("nvmlDeviceGetFieldValues", [*known]) or (), strict=False):
            if (count := field_value(answer)) is not None:
                found[known[number]] += int(count)
        for kind in _AER if self._handle is not None else ():
            with suppress(OSError), open(f"{self._device}/aer_dev_{kind}") as file:
                found["pcie-errors"] += sum(map(int, _AER_TOTAL.findall(file.read(65536))))
        return found

    def _xids(self) -> list[int]:
        """The numbers of the errors that the driver told since the last call."""
        found: list[int] = []
        with suppress(Exception):  # one of them says that the time for more is over
            while self._events is not None and len(found) < _MOST_XIDS:
                found.append(int(self._nvml.nvmlEventSetWait_v2(self._events, 0).eventData))
        return found

    def _used_by_others(self, since: float) -> float | None:
        """Percent of the time in which the kernels of others ran; None where NVML numbers processes otherwise than this
        one sees them, as in a container.
        """
        shares: dict[int, int] = {}
        for each in self._ask("nvmlDeviceGetProcessUtilization", int(since * 1e6)) or ():
            shares[each.pid] = max(shares.get(each.pid, 0), each.smUtil)
        running = [each.pid for each in self._ask("nvmlDeviceGetComputeRunningProcesses") or ()]
        known = os.getpid() in (*shares, *running)
        return float(sum(share for pid, share in shares.items() if not _is_own(pid))) if known else None

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


def _is_own(pid: int) -> bool:
    """Whether a process is this one or belongs to it, or has ended."""
    try:
        return os.getsid(pid) == os.getsid(0)
    except OSError:
        return True


@cache
def _started() -> Any:
    """NVML, started once for all GPUs of this process."""
    try:
        pynvml = importlib.import_module("pynvml")
        pynvml.nvmlInit()
    except Exception:
        return None
    return pynvml


def _scaled(value: Any, factor: float) -> float | None:
    return None if value is None else float(value) * factor
