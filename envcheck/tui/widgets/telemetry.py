"""Live clock, power, temperature and utilisation of GPUs, read from NVML twice a second while they are shown."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from rich.text import Text

from envcheck.tui.widgets.paint import Paint

_BETWEEN_SAMPLES = 0.5
_KEPT = 120

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


@dataclass
class Trace:
    """Samples of one GPU; None where NVML did not answer."""

    index: int
    clock: deque[float | None] = field(default_factory=lambda: deque(maxlen=_KEPT))
    """MHz."""
    power: deque[float | None] = field(default_factory=lambda: deque(maxlen=_KEPT))
    """W."""
    temperature: deque[float | None] = field(default_factory=lambda: deque(maxlen=_KEPT))
    """Degrees Celsius."""
    utilisation: deque[float | None] = field(default_factory=lambda: deque(maxlen=_KEPT))
    """Percent."""
    throttled_by: tuple[str, ...] = ()
    top_clock: float | None = None
    top_power: float | None = None


def load_pynvml() -> Any:
    """The NVML binding; raise ImportError where it is missing."""
    import pynvml

    return pynvml


class Telemetry:
    """Samples in a thread from ``start`` to ``stop``."""

    def __init__(self, load: Callable[[], Any] = load_pynvml) -> None:
        self._load = load
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self.traces: Sequence[Trace] = ()
        self.problem = ""

    def start(self) -> None:
        """Start sampling unless it runs."""
        if self._thread is None or not self._thread.is_alive():
            self._stop = threading.Event()
            self._thread = threading.Thread(target=self._run, args=(self._stop,), name="envcheck nvml", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """Stop before the next sample."""
        self._stop.set()
        self._thread = None

    def _run(self, stop: threading.Event) -> None:
        try:
            nvml = self._load()
            nvml.nvmlInit()
        except Exception as error:  # noqa: BLE001 - no library or no driver: nothing to show
            self.problem = f"NVML does not answer: {error}"
            return
        try:
            handles = [nvml.nvmlDeviceGetHandleByIndex(number) for number in range(nvml.nvmlDeviceGetCount())]
            traces = []
            for number, handle in enumerate(handles):
                top = _number(partial(nvml.nvmlDeviceGetMaxClockInfo, handle, nvml.NVML_CLOCK_SM))
                limit = _number(partial(nvml.nvmlDeviceGetEnforcedPowerLimit, handle))
                traces.append(Trace(number, top_clock=top, top_power=None if limit is None else limit / 1000))
            self.traces = tuple(traces)
            while not stop.wait(_BETWEEN_SAMPLES):
                for trace, handle in zip(self.traces, handles, strict=True):
                    _sample(nvml, trace, handle)
        except Exception as error:  # noqa: BLE001 - as above
            self.problem = f"NVML does not answer: {error}"
        finally:
            nvml.nvmlShutdown()


def _sample(nvml: Any, trace: Trace, handle: Any) -> None:
    power = _number(lambda: nvml.nvmlDeviceGetPowerUsage(handle))
    trace.clock.append(_number(lambda: nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM)))
    trace.power.append(None if power is None else power / 1000)
    trace.temperature.append(_number(lambda: nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU)))
    trace.utilisation.append(_number(lambda: nvml.nvmlDeviceGetUtilizationRates(handle).gpu))
    bits = int(_number(lambda: nvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle)) or 0)
    trace.throttled_by = tuple(words for name, words in _THROTTLE_REASONS.items() if bits & getattr(nvml, name, 0))


def _number(query: Callable[[], Any]) -> float | None:
    try:
        return float(query())
    except Exception:  # noqa: BLE001 - one GPU may not answer what others do
        return None


_BARS, _ASCII_BARS = "▁▂▃▄▅▆▇█", "_.-:=+*#"
_HOTTEST = 100.0
"""Degrees Celsius at the top of the scale."""


def spark(values: Iterable[float | None], columns: int, top: float | None, *, ascii_only: bool) -> str:
    """The newest ``columns`` values as bars from 0 to ``top`` (the greatest of them when None)."""
    shown = list(values)[-columns:]
    known = [value for value in shown if value is not None]
    scale = top or max(known, default=0.0) or 1.0
    bars = _ASCII_BARS if ascii_only else _BARS
    marks = (
        " " if value is None else bars[min(len(bars) - 1, int(max(value, 0.0) / scale * len(bars)))] for value in shown
    )
    return "".join(marks).rjust(columns)


def trace_lines(traces: Sequence[Trace], columns: int, paint: Paint) -> Text:
    """A line for each GPU: SM clock, power, temperature, utilisation, and why its clocks are reduced."""
    wide = max(4, min(24, (columns - 70) // 4))
    return Text("\n").join([_line(trace, wide, paint) for trace in traces])


def _line(trace: Trace, wide: int, paint: Paint) -> Text:
    text = Text(f"GPU {trace.index:<2}", paint.colour("title"))
    parts = (
        (trace.clock, "MHz", trace.top_clock),
        (trace.power, "W", trace.top_power),
        (trace.temperature, "C", _HOTTEST),
        (trace.utilisation, "%", _HOTTEST),
    )
    for values, unit, top in parts:
        now = values[-1] if values else None
        text.append(f" {'-' if now is None else f'{now:.0f}':>5} {unit} ")
        text.append(spark(values, wide, top, ascii_only=paint.ascii), paint.colour("note"))
    if trace.throttled_by:
        text.append(f"  throttled: {', '.join(trace.throttled_by)}", paint.colour("warn"))
    return text
