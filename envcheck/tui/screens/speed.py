"""The performance screen: what to measure, progress, the measured figures, and live GPUs: clock, power, temperature
and utilisation, read from NVML twice a second while they are shown.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

from rich.text import Text
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.geometry import Size
from textual.message import Message
from textual.widgets import Input, Label, Static

from envcheck.errors import UsageError
from envcheck.report import Options
from envcheck.report.page.pen import Pen
from envcheck.tui.widgets.base import StatusText
from envcheck.tui.widgets.paint import Paint

if TYPE_CHECKING:
    from envcheck.collect.plan import BenchRequest
    from envcheck.model.checks import Report
    from envcheck.tui.worker.sessions import Session

_EMPTY = """No measurements yet.

  b  measure the main figures: about ten seconds for each GPU
  B  measure everything: some minutes
  x  cancel; figures measured by then are kept

Write frameworks into the field "figures" to import the frameworks of the
environment and to measure them beside the libraries that they use.

envcheck skips GPUs that are in use. It changes no clocks, limits or modes."""

_FRAMEWORKS = "frameworks"


class Speed(Vertical):
    """Starts measurements and shows the figures of a report."""

    class Requested(Message):
        """Enter in a field: measure."""

    def __init__(self, telemetry: Telemetry, paint: Paint) -> None:
        super().__init__(id="speed-body")
        self._telemetry, self._paint = telemetry, paint
        self._report: Report | None = None
        self._laid_out_for: Size | None = None

    def compose(self) -> ComposeResult:
        with Horizontal(id="speed-form"):
            yield Label("GPUs ")
            yield Input(placeholder="all, or 0,2", id="speed-gpus", compact=True)
            yield Label("  figures ")
            yield Input(placeholder="all, frameworks, or gemm,device-memory-copy", id="speed-only", compact=True)
        for name in ("speed-state", "speed-now"):
            line = StatusText("", id=name, classes="framed")
            line.border_title = "running" if name == "speed-state" else "live"
            line.display = False
            yield line
        with VerticalScroll(id="speed-page", classes="framed") as page:
            page.border_title = "measured"
            yield Static(_EMPTY, id="speed-text")

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.post_message(self.Requested())

    def on_unmount(self) -> None:
        self._telemetry.stop()

    def requested(self, *, full: bool) -> BenchRequest:
        """What the fields ask for; raise UsageError for what is not a number of a GPU or no quantity."""
        from envcheck.collect.plan import BenchRequest
        from envcheck.knowledge.performance.quantities import selected

        gpus, only = (
            [part for part in self.query_one(name, Input).value.replace(",", " ").split() if part != "all"]
            for name in ("#speed-gpus", "#speed-only")
        )
        wrong = [part for part in gpus if not part.isdecimal()]
        if wrong:
            raise UsageError(f"{wrong[0]!r} is not a GPU number")
        figures = [part for part in only if part != _FRAMEWORKS]
        return BenchRequest(
            full=full, gpus=tuple(map(int, gpus)), only=selected(figures), frameworks=_FRAMEWORKS in only
        )

    def show_progress(self, session: Session, report: Report | None, paint: Paint) -> None:
        """Progress of a session that measures: the whole, and a line for each GPU."""
        gpus = report.gpus if report else ()
        numbers = {gpu.uuid: f"GPU {gpu.index}" for gpu in gpus}
        lines = [f"{session.activity}: {session.progress.counted()}   (x cancels)"]
        lines += [
            f"  {numbers.get(probe.gpu or '', ''):<7} {probe.name:<18} {probe.seconds:5.1f} s  {probe.text}"
            for probe in session.progress.running
        ]
        self.query_one("#speed-state").display = True
        self.query_one("#speed-state", StatusText).show(Text("\n").join([paint.text(line, "note") for line in lines]))

    def hide_progress(self) -> None:
        """The measurement has ended."""
        self.query_one("#speed-state", StatusText).show(Text())
        self.query_one("#speed-state").display = False

    def watch_gpus(self, *, wanted: bool) -> None:
        """Start or stop reading the GPUs' clocks, power and temperatures."""
        if wanted:
            self._telemetry.start()
        else:
            self._telemetry.stop()

    def show_now(self, paint: Paint) -> None:
        """Show the latest samples of the GPUs."""
        traces = [trace for trace in self._telemetry.traces if trace.clock]
        self.query_one("#speed-now").display = bool(traces)
        if traces:
            line = self.query_one("#speed-now", StatusText)
            line.show(trace_lines(traces, self.size.width - line.gutter.width, paint))

    def show(self, report: Report, paint: Paint) -> None:
        """Show the figures of ``report``, if it has any."""
        self._report, self._paint = report, paint
        if self.size.width:
            self._lay_out()

    def on_resize(self) -> None:
        if self._laid_out_for != self.size:
            self._lay_out()

    def _lay_out(self) -> None:
        if self._report is None or not self._report.measurements:
            return
        self._laid_out_for = self.size
        from envcheck.report.speed import FigureTable

        columns = max(60, self.size.width - self.query_one("#speed-page").gutter.width - 1)
        pen = Pen(Options(width=columns, ascii=self._paint.ascii))
        _above, *lines = FigureTable(self._report, pen, bars=True).lines()
        self.query_one("#speed-text", Static).update(self._paint.lines(lines))


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


class Telemetry:
    """Samples in a thread from ``start`` to ``stop``."""

    def __init__(self, load: Callable[[], Any] | None = None) -> None:
        self._load = load or partial(import_module, "pynvml")
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
    lines = []
    for trace in traces:
        line = Text(f"GPU {trace.index:<2}", paint.colour("title"))
        parts = (
            (trace.clock, "MHz", trace.top_clock),
            (trace.power, "W", trace.top_power),
            (trace.temperature, "C", _HOTTEST),
            (trace.utilisation, "%", _HOTTEST),
        )
        for values, unit, top in parts:
            now = values[-1] if values else None
            line.append(f" {'-' if now is None else f'{now:.0f}':>5} {unit} ")
            line.append(spark(values, wide, top, ascii_only=paint.ascii), paint.colour("note"))
        if trace.throttled_by:
            line.append(f"  throttled: {', '.join(trace.throttled_by)}", paint.colour("warn"))
        lines.append(line)
    return Text("\n").join(lines)
