"""Live values of the GPUs: a thread asks NVML once a second, and keeps a minute of them."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from typing import Any, NamedTuple

_BETWEEN_SAMPLES = 1.0
KEPT = 60  # Samples of a GPU that are kept: those of a minute

_THROTTLE_REASONS = {
    "nvmlClocksThrottleReasonSwPowerCap": "power cap",
    "nvmlClocksThrottleReasonHwSlowdown": "hardware slowdown",
    "nvmlClocksThrottleReasonSwThermalSlowdown": "temperature",
    "nvmlClocksThrottleReasonHwThermalSlowdown": "temperature (hardware)",
    "nvmlClocksThrottleReasonHwPowerBrakeSlowdown": "power brake",
    "nvmlClocksThrottleReasonSyncBoost": "sync boost",
    "nvmlClocksThrottleReasonApplicationsClocksSetting": "application clocks",
}
"""Why clocks are reduced, by NVML's names. That a GPU is idle is no reason to show."""
_COUNTERS = {
    "NVML_FI_DEV_PCIE_COUNT_TX_BYTES": ("pcie", 1),
    "NVML_FI_DEV_PCIE_COUNT_RX_BYTES": ("pcie", 1),
    "NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX": ("nvlink", 1024),
    "NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX": ("nvlink", 1024),
}
"""NVML's counters of both directions: what they count, and the bytes of their unit."""
_ALL_LINKS = 0xFFFFFFFF


class Sample(NamedTuple):
    """What NVML says of a GPU at one time; None where it does not answer."""

    temperature: float | None = None  # Degrees Celsius
    power: float | None = None  # W
    memory: float | None = None  # Bytes in use
    utilisation: float | None = None  # 0 to 1
    clock: float | None = None  # Of the multiprocessors, in Hz
    pcie: float | None = None  # Bytes per second, both directions; so below
    nvlink: float | None = None
    errors: float | None = None  # Uncorrected memory errors since the driver was loaded
    throttled_by: tuple[str, ...] = ()


@dataclass
class Trace:
    """The samples of one GPU, by NVML's index and by UUID."""

    index: int
    uuid: str
    samples: deque[Sample] = field(default_factory=lambda: deque(maxlen=KEPT))
    counted: tuple[float, dict[str, float]] = (0.0, {})  # When the counters were read last, and what they said


class Telemetry:
    """Samples in a thread from ``start`` to ``stop``."""

    def __init__(self, load: Callable[[], Any] | None = None) -> None:
        self._load = load or partial(import_module, "pynvml")
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self.traces: Sequence[Trace] = ()
        self.taken = 0  # Number of times that all GPUs were asked
        self.problem = ""

    def start(self) -> None:
        if self._thread is None or not self._thread.is_alive():
            self._stop = threading.Event()
            self._thread = threading.Thread(target=self._run, args=(self._stop,), name="envcheck nvml", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """Stop before the next sample, and forget the earlier ones: another report may come."""
        self._stop.set()
        self._thread, self.traces = None, ()

    def _run(self, stop: threading.Event) -> None:
        try:
            nvml = self._load()
            nvml.nvmlInit()
            try:
                handles = [nvml.nvmlDeviceGetHandleByIndex(number) for number in range(nvml.nvmlDeviceGetCount())]
                traces = [Trace(number, str(nvml.nvmlDeviceGetUUID(handle))) for number, handle in enumerate(handles)]
                self.traces = () if stop.is_set() else traces
                while not stop.is_set():
                    for trace, handle in zip(traces, handles, strict=True):
                        trace.samples.append(_sample(nvml, trace, handle))
                    self.taken += 1
                    stop.wait(_BETWEEN_SAMPLES)
            finally:
                nvml.nvmlShutdown()
        except Exception as error:  # noqa: BLE001 - no library or no driver: nothing to show
            self.problem = f"NVML does not answer: {error}"


def _sample(nvml: Any, trace: Trace, handle: Any) -> Sample:
    bits = int(_number(lambda: nvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle)) or 0)
    rates = _rates(nvml, trace, handle)
    uncorrected = (nvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, nvml.NVML_VOLATILE_ECC)
    return Sample(
        temperature=_number(lambda: nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU)),
        power=_number(lambda: nvml.nvmlDeviceGetPowerUsage(handle) / 1e3),
        memory=_number(lambda: nvml.nvmlDeviceGetMemoryInfo(handle, version=nvml.nvmlMemory_v2).used),
        utilisation=_number(lambda: nvml.nvmlDeviceGetUtilizationRates(handle).gpu / 100),
        clock=_number(lambda: nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM) * 1e6),
        pcie=rates.get("pcie"),
        nvlink=rates.get("nvlink"),
        errors=_number(lambda: nvml.nvmlDeviceGetTotalEccErrors(handle, *uncorrected)),
        throttled_by=tuple(words for name, words in _THROTTLE_REASONS.items() if bits & getattr(nvml, name, 0)),
    )


def _rates(nvml: Any, trace: Trace, handle: Any) -> dict[str, float]:
    """What went over the links since the last call; a counter that NVML does not have, or that began again, is out."""
    try:
        named = [(getattr(nvml, name), *counts) for name, counts in _COUNTERS.items()]
        values = nvml.nvmlDeviceGetFieldValues(handle, [(number, _ALL_LINKS) for number, _, _ in named])
    except Exception:  # noqa: BLE001 - one GPU may not answer what others do
        return {}
    now, counted = time.monotonic(), dict[str, float]()
    for (_, what, unit), value in zip(named, values, strict=True):
        if value.nvmlReturn == 0:
            counted[what] = counted.get(what, 0.0) + value.value.ullVal * unit
    (before, earlier), trace.counted = trace.counted, (now, counted)
    rising = ((what, count) for what, count in counted.items() if what in earlier and count >= earlier[what])
    return {what: (count - earlier[what]) / (now - before) for what, count in rising if now > before}


def _number(query: Callable[[], Any]) -> float | None:
    try:
        return float(query())
    except Exception:  # noqa: BLE001 - as above
        return None
