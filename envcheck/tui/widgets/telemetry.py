"""GPUs as they are at the moment, read from NVML twice a second while somebody looks: clock, power, heat, use."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from rich.text import Text

from envcheck.tui.widgets.paint import Paint

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


# Traces of GPUs as lines of small bars.


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
    """A line for each GPU: SM clock, power, temperature and use, now and lately, and what holds its clocks down."""
    wide = max(4, min(24, (columns - 70) // 4))
    return Text("\n").join([_line(trace, wide, paint) for trace in traces])


def _line(trace: Trace, wide: int, paint: Paint) -> Text:
    text = Text(f"GPU {trace.index:<2}", paint.colour("title"))
    parts = (
        (trace.clock, "MHz", trace.top_clock),
        (trace.power, "W", trace.top_power),
        (trace.heat, "C", _HOTTEST),
        (trace.use, "%", _HOTTEST),
    )
    for values, unit, top in parts:
        now = values[-1] if values else None
        text.append(f" {'-' if now is None else f'{now:.0f}':>5} {unit} ")
        text.append(spark(values, wide, top, ascii_only=paint.ascii), paint.colour("note"))
    if trace.held:
        text.append(f"  held: {', '.join(trace.held)}", paint.colour("warn"))
    return text
