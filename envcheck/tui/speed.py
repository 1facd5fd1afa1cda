"""What was measured: for each GPU the figures as bars, against the ceiling and the band of sound GPUs."""

from __future__ import annotations

from collections.abc import Iterator

from rich.text import Text
from textual.app import ComposeResult
from textual.containers import Vertical, VerticalScroll
from textual.widgets import Static

from envcheck.checks import Report
from envcheck.compat.expected import Expectation, expectation
from envcheck.compat.load import tables
from envcheck.report.clean import clean
from envcheck.rules.measured import called_measurement, quantity, spread
from envcheck.snapshot import Gpu, Measurement
from envcheck.tui.paint import Paint

_NAME, _VALUE, _BAR = 38, 14, 24
_EMPTY = """Nothing was measured yet.

  b  measures the main figures, in about ten seconds on each GPU
  B  measures everything: some minutes

GPUs that others use are left alone. Nothing is changed: no clock, no limit, no mode."""


class Speed(Vertical):
    """The figures of a report."""

    def __init__(self, *, ascii_only: bool) -> None:
        super().__init__(id="speed-body")
        self._ascii = ascii_only

    def compose(self) -> ComposeResult:
        yield Static("", id="speed-state")
        with VerticalScroll(id="speed-page"):
            yield Static(_EMPTY, id="speed-text")

    def say(self, words: str) -> None:
        """What is under way."""
        self.query_one("#speed-state", Static).update(Text(clean(words, ascii_only=self._ascii)))

    def show(self, report: Report, paint: Paint) -> None:
        """The figures of ``report``, if it has any."""
        if not report.measurements:
            return
        self.query_one("#speed-text", Static).update(Text("\n", no_wrap=True).join(list(self._lines(report, paint))))

    def _lines(self, report: Report, paint: Paint) -> Iterator[Text]:
        gpus = report.snapshot.gpus.items if report.snapshot and report.snapshot.gpus else ()
        for gpu in gpus:
            figures = [measured for measured in report.measurements if measured.gpu == gpu.uuid]
            if figures:
                yield Text(clean(f"GPU {gpu.index}  {gpu.name or ''}", ascii_only=self._ascii), "bold")
                yield from (self._line(gpu, measured, report, paint) for measured in figures)
                yield Text("")

    def _line(self, gpu: Gpu, measured: Measurement, report: Report, paint: Paint) -> Text:
        text = Text(f"  {clean(called_measurement(measured), ascii_only=self._ascii)[:_NAME]:<{_NAME}} ")
        if measured.value is None:
            return text.append(clean(measured.missing or "not measured", ascii_only=self._ascii), "dim")
        text.append(f"{quantity(measured.value, measured.unit):>{_VALUE}}  ", "bold")
        found = expectation(tables(report.overlays), gpu, measured)
        if isinstance(found, str):
            return text.append(f"not judged: {clean(found, ascii_only=self._ascii)}", "dim")
        self._bar(text, found, paint)
        text.append(f" {found.share:4.0%}")
        if measured.verification is not None and not measured.verification.right:
            text.append("  WRONG RESULT", paint.colour("fail"))
        loose = spread(measured.samples)
        return text.append(f"  spread {loose:.0%}", "dim") if loose > 0.02 else text

    def _bar(self, text: Text, found: Expectation, paint: Paint) -> None:
        """The share as a bar; a mark stands where the band of sound GPUs begins."""
        full, empty, mark = ("#", ".", "|") if self._ascii else ("█", "░", "┃")
        colour = paint.colour({"pass": "pass", "warn": "warn", "fail": "fail"}.get(found.judgement, "unknown"))  # type: ignore[arg-type]
        reached = round(min(found.share, 1.0) * _BAR)
        edge = min(round(found.low * _BAR), _BAR - 1)
        for place in range(_BAR):
            if place == edge:
                text.append(mark, "bold")
            else:
                text.append(full if place < reached else empty, colour if place < reached else "dim")
