"""The second screen: what to measure, how far it is, the GPUs at the moment, and what was measured."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.geometry import Size
from textual.message import Message
from textual.widgets import Input, Label, Static

from envcheck.errors import UsageError
from envcheck.tui.widgets.base import Live
from envcheck.tui.widgets.paint import Paint
from envcheck.tui.widgets.telemetry import Telemetry

if TYPE_CHECKING:
    from envcheck.checks import Report
    from envcheck.collect.bench_plan import Bench
    from envcheck.tui.worker.sessions import Session

_EMPTY = """Nothing was measured yet.

  b  measures the main figures, in about ten seconds on each GPU
  B  measures everything: some minutes
  x  cancels; what was measured until then is shown

GPUs that others use are left alone. Nothing is changed: no clock, no limit, no mode."""


class Speed(Vertical):
    """The figures of a report, and the way to them."""

    class Wanted(Message):
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
            yield Input(placeholder="all, or gemm,device-memory-copy", id="speed-only", compact=True)
        for name in ("speed-state", "speed-now"):
            line = Live("", id=name, classes="framed")
            line.border_title = "under way" if name == "speed-state" else "now"
            line.display = False
            yield line
        with VerticalScroll(id="speed-page", classes="framed") as page:
            page.border_title = "measured"
            yield Static(_EMPTY, id="speed-text")

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.post_message(self.Wanted())

    def on_unmount(self) -> None:
        self._telemetry.stop()

    def wanted(self, *, full: bool) -> Bench:
        """What the fields ask for; raise UsageError for what is no GPU's number. Figures are not looked up."""
        from envcheck.collect.bench_plan import Bench

        gpus, only = (
            [part for part in self.query_one(name, Input).value.replace(",", " ").split() if part != "all"]
            for name in ("#speed-gpus", "#speed-only")
        )
        wrong = [part for part in gpus if not part.isdecimal()]
        if wrong:
            raise UsageError(f"{wrong[0]!r} is no number of a GPU")
        return Bench(full=full, gpus=tuple(map(int, gpus)), only=tuple(only))

    def say(self, session: Session, report: Report | None, paint: Paint) -> None:
        """How far a session is that measures: all of it, and a line for each GPU."""
        gpus = report.snapshot.gpus.items if report and report.snapshot and report.snapshot.gpus else ()
        numbers = {gpu.uuid: f"GPU {gpu.index}" for gpu in gpus}
        told = [f"{session.doing}: {session.work.counted()}   (x cancels)"]
        told += [
            f"  {numbers.get(probe.gpu or '', ''):<7} {probe.name:<18} {probe.seconds:5.1f} s  {probe.text}"
            for probe in session.work.running
        ]
        self.query_one("#speed-state").display = True
        self.query_one("#speed-state", Live).put(Text("\n").join([paint.text(line, "note") for line in told]))

    def quiet(self) -> None:
        """Nothing is measured."""
        self.query_one("#speed-state", Live).put(Text())
        self.query_one("#speed-state").display = False

    def watch_gpus(self, *, wanted: bool) -> None:
        """Read the GPUs' clocks and such from now on, or no longer."""
        if wanted:
            self._telemetry.start()
        else:
            self._telemetry.stop()

    def show_now(self, paint: Paint) -> None:
        """The GPUs at the moment."""
        from envcheck.tui.widgets.telemetry import trace_lines

        traces = [trace for trace in self._telemetry.traces if trace.clock]
        self.query_one("#speed-now").display = bool(traces)
        if traces:
            line = self.query_one("#speed-now", Live)
            line.put(trace_lines(traces, self.size.width - line.gutter.width, paint))

    def show(self, report: Report, paint: Paint) -> None:
        """The figures of ``report``, if it has any."""
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
        from envcheck.tui.widgets.figures import Figures

        columns = max(60, self.size.width - self.query_one("#speed-page").gutter.width - 1)
        self.query_one("#speed-text", Static).update(Figures(self._report, self._paint, columns).text())
