"""The performance screen: what to measure, progress, and the measured figures."""

from __future__ import annotations

from itertools import zip_longest
from typing import TYPE_CHECKING, ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.geometry import Size
from textual.widgets import Input, Label, Static

from envcheck.errors import UsageError
from envcheck.report import Options
from envcheck.report.page.pen import Pen, StyledSpan
from envcheck.report.speed import FigureTable
from envcheck.rules.facts.measurements import not_run
from envcheck.text.wrap import width
from envcheck.tui.widgets.base import StatusText
from envcheck.tui.widgets.paint import Paint
from envcheck.tui.widgets.plot import collective_lines, heat_lines, past_lines, roofline_lines

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
_LEAST_PLOT, _APART = 60, 2  # Minimum width for curves beside the figures, and the columns between both


class Speed(Vertical):
    """Starts measurements and shows the figures of a report."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("B", "app.bench(True)", "bench all"),
        Binding("e", "app.export", "export"),
    ]

    def __init__(self, paint: Paint) -> None:
        super().__init__(id="speed-body")
        self._paint = paint
        self._report: Report | None = None
        self._laid_out_for: Size | None = None

    def compose(self) -> ComposeResult:
        with Horizontal(id="speed-form"):
            yield Label("GPUs ")
            yield Input(placeholder="all, or 0,2", id="speed-gpus", compact=True)
            yield Label("  figures ")
            yield Input(placeholder="all, frameworks, or gemm,device-memory-copy", id="speed-only", compact=True)
        line = StatusText("", id="speed-state", classes="framed")
        line.border_title = "running"
        line.display = False
        yield line
        with VerticalScroll(id="speed-page", classes="framed") as page:
            page.border_title = "measured"
            yield Static(_EMPTY, id="speed-text")

    async def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        await self.run_action("app.bench(False)")

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
        figures = selected([part for part in only if part != _FRAMEWORKS])
        return BenchRequest(full=full, gpus=tuple(map(int, gpus)), only=figures, frameworks=_FRAMEWORKS in only)

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
        self.query_one("#speed-state", StatusText).show(Text())
        self.query_one("#speed-state").display = False

    def show(self, report: Report, paint: Paint) -> None:
        self._report, self._paint = report, paint
        if self.size.width:
            self._lay_out()

    def on_resize(self) -> None:
        if self._laid_out_for != self.size:
            self._lay_out()

    def _lay_out(self) -> None:
        report = self._report
        if report is None:
            return
        self._laid_out_for = self.size
        columns = self.size.width - self.query_one("#speed-page").gutter.width - 1
        pen = Pen(Options(width=columns, ascii=self._paint.ascii))
        if not report.measurements:
            why = nothing_to_measure(report)
            notices = [(StyledSpan(text, "warn"),) for text in (why, *not_run(report.probes)) if text]
            text = self._paint.lines([*notices, *([()] if notices else [])])
            self.query_one("#speed-text", Static).update(text.append(_EMPTY) if not why else text)
            return
        _above, *lines = FigureTable(report, pen, bars=True).lines()
        lines = [*heat_lines(report, pen), *lines]
        beside = columns - pen.width - _APART
        right = Pen(Options(width=beside, ascii=self._paint.ascii)) if beside >= _LEAST_PLOT else pen
        plots = [line for drawn in (past_lines, collective_lines, roofline_lines) for line in drawn(report, right)]
        if right is pen:
            lines += plots
        else:
            gap = " " * (columns - beside)
            lines = [
                (*line, StyledSpan(gap[sum(width(span.text) for span in line) :]), *drawn)
                for line, drawn in zip_longest(lines, plots, fillvalue=())
            ]
        self.query_one("#speed-text", Static).update(self._paint.lines(lines))


def nothing_to_measure(report: Report) -> str:
    """Why no GPU can be measured; empty where one may."""
    from envcheck.report.page.stack import stack_rows

    text = stack_rows(report, 1)[0].text
    none = "There is no NVIDIA GPU to measure." if text == "none" else f"There is no GPU to measure: {text}."
    return "" if report.gpus else none
