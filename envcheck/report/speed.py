"""The page of ``envcheck bench``: each measured figure with the expected value, by GPU."""

from __future__ import annotations

from collections.abc import Iterator

from envcheck.model.checks import Check, Report, Status
from envcheck.model.snapshot import Gpu, Measurement
from envcheck.report import Format, Options
from envcheck.report.page.findings import Outline
from envcheck.report.page.head import head_lines, other_lines
from envcheck.report.page.layout import ROOMS
from envcheck.report.page.pen import WORDS, Line, Pen, Style, StyledSpan, columns
from envcheck.report.page.tail import count_text
from envcheck.rules.facts.machine import plural
from envcheck.rules.facts.measurements import (
    LOOSE,
    checks_of_figures,
    coverage,
    figures_of,
    measurement_key,
    measurement_name_among,
    not_run,
    numbers,
    percent,
    processor_figures,
    quantity,
    reason_without_value,
    speedup,
    spread,
    with_headings,
)
from envcheck.rules.speed.baseline import speed_against

FORMAT = Format(
    shows="the measured figures, each with the expected value", suffix="speed.txt", syntax="text", targets=False
)

_NAME, _STATUS, _VALUE, _SHARE = 39, 5, 12, 4
"""Columns."""
_LEAST_NAME, _LEAST_BAR, _REMARK = 24, 8, 14
"""Columns beside bars: the remark has its room first, then the name."""
_HEADING = "of ceiling"
_APART = 0.02
"""Share by which the slowest may be behind the fastest without a line of its own."""


def render(report: Report, options: Options) -> str:
    """``report`` as a table of figures, with the cause of a low one at the top."""
    pen = Pen(options)
    outline = Outline(report)
    room = ROOMS[0 if report.verdict in ("fail", "warn") else -1]
    lines = head_lines(outline, pen, room)
    if report.verdict == "unknown" and outline.findings:
        lines += other_lines(outline, pen, room)
    if not options.quiet:
        lines += [*FigureTable(report, pen).lines(), (StyledSpan(count_text(report), "dim"),)]
    return pen.show(lines)


class FigureTable:
    """The measured figures as lines: by GPU, between GPUs, of the processor; and what was not measured.

    With ``bars`` each share is drawn as well.
    """

    def __init__(self, report: Report, pen: Pen, *, bars: bool = False) -> None:
        self._report, self._pen = report, pen
        self._checks = checks_of_figures(report.checks)
        self._earlier = report.snapshot.baseline if report.snapshot else ()
        fixed = 2 + 1 + _STATUS + 1 + _VALUE + 2
        self._bar = max(_LEAST_BAR, (pen.width - 60) // 2) if bars else 0
        room = pen.width - fixed - self._bar - 1 - _SHARE - _REMARK
        self._name = max(_LEAST_NAME, min(_NAME, room)) if bars else _NAME
        self._share = fixed + self._name + (self._bar + 1 if bars else 0)
        """Column of the share."""

    def lines(self) -> Iterator[Line]:
        """All of it, with a blank line above each part and below the last."""
        for gpu in self._report.gpus:
            figures = figures_of(gpu, self._report.measurements)
            if figures:
                yield ()
                yield self._head(_title(gpu, figures), self._share + _SHARE - len(_HEADING), _HEADING)
            for heading, measured in with_headings(figures):
                if heading:
                    yield (StyledSpan(self._pen.clip(heading, self._pen.width), "dim"),)
                yield self._row(measured, self._checks.get((gpu.key, measurement_key(measured))))
        yield from self._across_gpus()
        yield from self._processor()
        yield from self._not_measured()

    def _head(self, title: str, place: int, heading: str) -> Line:
        """A title, and from the column ``place`` what stands above the figures."""
        shown = self._pen.clip(title, place - 1)
        return (StyledSpan(shown, "title"), StyledSpan(" " * (place - len(shown)) + heading, "dim"))

    def _across_gpus(self) -> Iterator[Line]:
        """How far GPUs of a model lie apart: the figures that do, and the GPU that is slower than the others."""
        every = self._report.across_gpus
        if not every:
            return
        apart = [found for found in every if found.difference > _APART or any(gpu.straggles for gpu in found.gpus)]
        yield ()
        yield self._head("Across GPUs", 2 + self._name + 1, "difference, slowest and fastest")
        for found in sorted(apart, key=lambda found: -found.difference):
            # `` 30%  GPU 1: 576 of 823 TFLOP/s``
            compared = [gpu for gpu in found.gpus if gpu.why_not is None]
            slowest = max(compared, key=lambda gpu: gpu.slower or 0.0, default=None)
            low, high = quantity(found.low, found.unit), quantity(found.high, found.unit)
            own, best = (high, low) if found.unit == "s" else (low, high)
            value, _, unit = own.partition(" ")
            shown = value if best.endswith(f" {unit}") else own
            name = self._named(found.title)
            told = f"{found.difference:>4.0%}  GPU {slowest.gpu if slowest else '?'}: {shown} of {best}"
            style: Style = "warn" if any(gpu.straggles for gpu in compared) else ""
            yield (name, StyledSpan(self._pen.clip(told, self._pen.width - len(name.text)), style))
        same = len(every) - len(apart)
        if same:
            more = " more" if apart else ""
            yield (StyledSpan(f"  {plural(same, 'figure')}{more} within {_APART:.0%}", "dim"),)

    def _processor(self) -> Iterator[Line]:
        """The same work on the processor, and how many times as fast a GPU did it."""
        figures = processor_figures(self._report.measurements)
        if not figures:
            return
        platform = self._report.snapshot.platform if self._report.snapshot else None
        model = (platform.cpu_model if platform else None) or ""
        yield ()
        yield self._head(f"CPU  {model}".rstrip(), self._share, "the GPU: times as fast")
        for measured in figures:
            row = self._row(measured, None)
            faster = speedup(measured, self._report.measurements)
            told = f"{faster:.3g} x" if faster else "-"
            detail = self._pen.clip(measured.detail, self._pen.width - self._share - _SHARE - 4)
            yield (*row[:3], StyledSpan(f"  {told:>{_SHARE + 2}}  {detail}", "dim")) if measured.value else row

    def _not_measured(self) -> Iterator[Line]:
        """GPUs without a figure, and probes that did not run or failed, and why."""
        report = self._report
        covered = coverage(report.gpus, report.measurements, report.probes)
        left = ((covered.hidden, "hidden from CUDA"), (covered.not_asked, "not asked for"))
        told = [f"Not measured: {numbers(gpus)}, {why}" for gpus, why in left if gpus and report.measurements]
        told += not_run(report.probes)
        if told:
            yield ()
        for text in told:
            yield (StyledSpan(self._pen.clip(text, self._pen.width), "dim"),)
        yield ()

    def _named(self, name: str) -> StyledSpan:
        return StyledSpan(f"  {self._pen.clip(name, self._name):<{self._name}} ")

    def _row(self, measured: Measurement, check: Check | None) -> Line:
        """Name, status, value, the share of the ceiling, and what is remarkable."""
        name = self._named(measurement_name_among(measured, self._report.gpus))
        if measured.value is None:
            mark = StyledSpan(f"{'FAIL':<{_STATUS}} ", "fail") if measured.failed else StyledSpan(f"{'-':<{_STATUS}} ")
            reason = self._pen.clip(reason_without_value(measured), self._pen.width - len(name.text) - _STATUS - 1)
            return (name, mark, StyledSpan(reason, "dim"))
        wrong = measured.verification is not None and not measured.verification.right
        status = "fail" if wrong else check.status if check else "skipped"
        figure = check.figure if check else None
        share = percent(figure.share) if figure and figure.share is not None else ""
        remark = self._remark(measured, check)
        start: Line = (
            name,
            StyledSpan(f"{'WRONG' if wrong else WORDS[status]:<{_STATUS}} ", status),
            StyledSpan(f"{quantity(measured.value, measured.unit):>{_VALUE}}"),
        )
        if not self._bar:
            return (*start, StyledSpan(f"  {share:>{_SHARE}}  {remark}".rstrip(), "dim"))
        if figure and figure.share is not None:
            bar = self._drawn(figure.share, figure.expected_low or 0.0, status)
            start = (*start, StyledSpan("  "), *bar, StyledSpan(f" {share:>{_SHARE}}"))
        room = self._pen.width - columns(start) - 2
        return (*start, StyledSpan(f"  {self._pen.clip(remark, room)}", "dim"))

    def _drawn(self, share: float, low: float, status: Status) -> Line:
        """The share as a bar, with a mark where the range of healthy GPUs begins."""
        full, empty, mark = ("=", "-", "|") if self._pen.ascii else ("━", "─", "┃")
        reached, edge = round(min(share, 1.0) * self._bar), min(round(low * self._bar), self._bar - 1)
        below = StyledSpan(full * min(reached, edge), status), StyledSpan(empty * (edge - reached), "dim")
        above = (
            StyledSpan(full * (reached - edge - 1), status),
            StyledSpan(empty * (self._bar - max(reached, edge + 1)), "dim"),
        )
        return (*below, StyledSpan(mark, "title"), *above)

    def _remark(self, measured: Measurement, check: Check | None) -> str:
        """What was expected, the speed as a share of that in earlier runs, or how far the samples lie apart."""
        before, loose = speed_against(measured, self._earlier), spread(measured.samples)
        status, figure = (check.status, check.figure) if check else ("", None)
        share, least = (figure.share, figure.expected_low) if figure else (None, None)
        if share is not None and least is not None and status != "pass" and (share < least or status == "unknown"):
            return f"expected {percent(least)}"
        if before is not None:
            return f"{min(before[0], 9.99):.0%} of base"
        if check is None and self._bar:
            return "not judged"
        if check and status == "skipped":
            return check.message.removeprefix("Measured, not judged: ") if self._bar else "not judged"
        return f"spread {loose:.0%}" if loose > LOOSE else ""


def _title(gpu: Gpu, figures: list[Measurement]) -> str:
    parts = [f"GPU {gpu.index if gpu.index is not None else gpu.key}", gpu.name or ""]
    before = next((measured.conditions for measured in figures if measured.conditions), None)
    if before and before.power_limit:
        parts.append(f"limit {before.power_limit:.0f} W")
    if before and before.ecc is not None:
        parts.append("ECC on" if before.ecc else "ECC off")
    return "  ".join(part for part in parts if part)
