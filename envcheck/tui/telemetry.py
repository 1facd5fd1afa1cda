"""GPUs as they are at the moment, read from NVML twice a second while somebody looks: clock, power, heat, use."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

_BETWEEN_SAMPLES = 0.5
_KEPT = 120

_HOLDING = {
    "nvmlClocksThrottleReasonSwPowerCap": "power cap",
    "nvmlClocksThrottleReasonHwSlowdown": "hardware slowdown",
    "nvmlClocksThrottleReasonSwThermalSlowdown": "heat",
    "nvmlClocksThrottleReasonHwThermalSlowdown": "heat (hardware)",
    "nvmlClocksThrottleReasonHwPowerBrakeSlowdown": "power brake",
    "nvmlClocksThrottleReasonSyncBoost": "sync boost",
    "nvmlClocksThrottleReasonApplicationsClocksSetting": "set clocks",
}
"""What holds the clocks down, by NVML's names; an idle GPU is held down by nothing."""


@dataclass
class Trace:
    """One GPU; None stands where NVML did not answer."""

    index: int
    clock: deque[float | None] = field(default_factory=lambda: deque(maxlen=_KEPT))
    """MHz."""
    power: deque[float | None] = field(default_factory=lambda: deque(maxlen=_KEPT))
    """W."""
    heat: deque[float | None] = field(default_factory=lambda: deque(maxlen=_KEPT))
    """Degrees Celsius."""
    use: deque[float | None] = field(default_factory=lambda: deque(maxlen=_KEPT))
    """Percent."""
    held: tuple[str, ...] = ()
    top_clock: float | None = None
    top_power: float | None = None


def load_pynvml() -> Any:
    """NVML's binding; raise ImportError where there is none."""
    import pynvml

    return pynvml


class Telemetry:
    """Samples in a thread of its own from ``start`` to ``stop``."""

    def __init__(self, load: Callable[[], Any] = load_pynvml) -> None:
        self._load = load
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self.traces: Sequence[Trace] = ()
        self.problem = ""

    def start(self) -> None:
        """Begin, if it is not under way."""
        if self._thread is None or not self._thread.is_alive():
            self._stop = threading.Event()
            self._thread = threading.Thread(target=self._run, args=(self._stop,), name="envcheck nvml", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """End within a sample."""
        self._stop.set()
        self._thread = None

    def _run(self, stop: threading.Event) -> None:
        try:
            nvml = self._load()
            nvml.nvmlInit()
        except Exception as error:  # noqa: BLE001 - no library, no driver: then there is nothing to show
            self.problem = f"NVML does not answer: {error}"
            return
        try:
            handles = [nvml.nvmlDeviceGetHandleByIndex(number) for number in range(nvml.nvmlDeviceGetCount())]
            self.traces = tuple(_trace(nvml, number, handle) for number, handle in enumerate(handles))
            while not stop.wait(_BETWEEN_SAMPLES):
                for trace, handle in zip(self.traces, handles, strict=True):
                    _sample(nvml, trace, handle)
        except Exception as error:  # noqa: BLE001 - as above
            self.problem = f"NVML does not answer: {error}"
        finally:
            nvml.nvmlShutdown()


def _trace(nvml: Any, number: int, handle: Any) -> Trace:
    top = _asked(lambda: nvml.nvmlDeviceGetMaxClockInfo(handle, nvml.NVML_CLOCK_SM))
    limit = _asked(lambda: nvml.nvmlDeviceGetEnforcedPowerLimit(handle))
    return Trace(number, top_clock=top, top_power=None if limit is None else limit / 1000)


def _sample(nvml: Any, trace: Trace, handle: Any) -> None:
    power = _asked(lambda: nvml.nvmlDeviceGetPowerUsage(handle))
    trace.clock.append(_asked(lambda: nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM)))
    trace.power.append(None if power is None else power / 1000)
    trace.heat.append(_asked(lambda: nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU)))
    trace.use.append(_asked(lambda: nvml.nvmlDeviceGetUtilizationRates(handle).gpu))
    bits = int(_asked(lambda: nvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle)) or 0)
    trace.held = tuple(words for name, words in _HOLDING.items() if bits & getattr(nvml, name, 0))


def _asked(question: Callable[[], Any]) -> float | None:
    try:
        return float(question())
    except Exception:  # noqa: BLE001 - what one GPU does not tell is not known
        return None
