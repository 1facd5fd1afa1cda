"""The page of ``envcheck bench``: each measured figure with the expected value, by GPU."""

from __future__ import annotations

from collections.abc import Iterable

from envcheck.model.checks import Check, Report
from envcheck.model.snapshot import Gpu, Measurement
from envcheck.report import Format, Options
from envcheck.report.page.findings import Outline
from envcheck.report.page.head import head_lines, other_lines
from envcheck.report.page.layout import ROOMS
from envcheck.report.page.pen import WORDS, Line, Pen, StyledSpan
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
    if options.quiet:
        return pen.show(lines)
    lines = [
        *lines,
        *_gpus(report, pen),
        *_across_gpus(report, pen),
        *_processor(report, pen),
        *_not_measured(report, pen),
        (StyledSpan(count_text(report), "dim"),),
    ]
    return pen.show(lines)


def _gpus(report: Report, pen: Pen) -> Iterable[Line]:
    known = report.gpus
    checks = checks_of_figures(report.checks)
    earlier = report.snapshot.baseline if report.snapshot else ()
    for gpu in known:
        figures = figures_of(gpu, report.measurements)
        if not figures:
            continue
        yield ()
        place = 2 + _NAME + 1 + _STATUS + 1 + _VALUE + 2 + _SHARE - 1
        title = pen.clip(_title(gpu, figures), place - 1)
        yield (StyledSpan(title, "title"), StyledSpan(" " * (place - len(title) - len(_HEADING) + 1) + _HEADING, "dim"))
        for heading, measured in with_headings(figures):
            if heading:
                yield (StyledSpan(pen.clip(heading, pen.width), "dim"),)
            check = checks.get((gpu.key, measurement_key(measured)))
            yield _row(measured, check, known, pen, speed_against(measured, earlier))


def _across_gpus(report: Report, pen: Pen) -> Iterable[Line]:
    """How far GPUs of a model lie apart: the figures that do, and the GPU that is slower than the others."""
    if not report.across_gpus:
        return
    apart = [
        found for found in report.across_gpus if found.difference > _APART or any(gpu.straggles for gpu in found.gpus)
    ]
    yield ()
    title = "Across GPUs"
    place = 2 + _NAME + 1
    yield (
        StyledSpan(title, "title"),
        StyledSpan(" " * (place - len(title)) + "difference, slowest and fastest", "dim"),
    )
    for found in sorted(apart, key=lambda found: -found.difference):
        # `` 30%  GPU 1: 576 of 823 TFLOP/s``
        compared = [gpu for gpu in found.gpus if gpu.why_not is None]
        slowest = max(compared, key=lambda gpu: gpu.slower or 0.0, default=None)
        low, high = quantity(found.low, found.unit), quantity(found.high, found.unit)
        own, best = (high, low) if found.unit == "s" else (low, high)
        value, _, unit = own.partition(" ")
        shown = value if best.endswith(f" {unit}") else own
        name = f"  {pen.clip(found.title, _NAME):<{_NAME}} "
        told = f"{found.difference:>4.0%}  GPU {slowest.gpu if slowest else '?'}: {shown} of {best}"
        straggles = any(gpu.straggles for gpu in compared)
        yield (StyledSpan(name), StyledSpan(pen.clip(told, pen.width - len(name)), "warn" if straggles else ""))
    same = len(report.across_gpus) - len(apart)
    if same:
        more = " more" if apart else ""
        yield (StyledSpan(f"  {plural(same, 'figure')}{more} within {_APART:.0%}", "dim"),)


def _processor(report: Report, pen: Pen) -> Iterable[Line]:
    """The same work on the processor, and how many times as fast a GPU did it."""
    figures = processor_figures(report.measurements)
    if not figures:
        return
    platform = report.snapshot.platform if report.snapshot else None
    name = (platform.cpu_model if platform else None) or ""
    place = 2 + _NAME + 1 + _STATUS + 1 + _VALUE + 2
    yield ()
    title = pen.clip(f"CPU  {name}".rstrip(), place - 1)
    yield (StyledSpan(title, "title"), StyledSpan(" " * (place - len(title)) + "the GPU: times as fast", "dim"))
    for measured in figures:
        row = _row(measured, None, (), pen)
        faster = speedup(measured, report.measurements)
        told = f"{faster:.3g} x" if faster else "-"
        room = pen.width - place - _SHARE - 4
        yield (
            (*row[:-1], StyledSpan(f"  {told:>{_SHARE + 2}}  {pen.clip(measured.detail, room)}", "dim"))
            if measured.value
            else row
        )


def _title(gpu: Gpu, figures: list[Measurement]) -> str:
    parts = [f"GPU {gpu.index if gpu.index is not None else gpu.key}", gpu.name or ""]
    before = next((measured.conditions for measured in figures if measured.conditions), None)
    if before and before.power_limit:
        parts.append(f"limit {before.power_limit:.0f} W")
    if before and before.ecc is not None:
        parts.append("ECC on" if before.ecc else "ECC off")
    return "  ".join(part for part in parts if part)


def _row(
    measured: Measurement,
    check: Check | None,
    gpus: Iterable[Gpu],
    pen: Pen,
    before: tuple[float, int] | None = None,
) -> Line:
    status = check.status if check else "skipped"
    name = f"  {pen.clip(measurement_name_among(measured, gpus), _NAME):<{_NAME}} "
    if measured.value is None:
        room = pen.width - len(name) - _STATUS - 1
        mark = StyledSpan(f"{'FAIL':<{_STATUS}} ", "fail") if measured.failed else StyledSpan(f"{'-':<{_STATUS}} ")
        return (StyledSpan(name), mark, StyledSpan(pen.clip(reason_without_value(measured), room), "dim"))
    value = f"{quantity(measured.value, measured.unit):>{_VALUE}}"
    wrong = measured.verification is not None and not measured.verification.right
    return (
        StyledSpan(name),
        StyledSpan(f"{'WRONG' if wrong else WORDS[status]:<{_STATUS}} ", "fail" if wrong else status),
        StyledSpan(value),
        StyledSpan(_remarks(measured, check, before), "dim"),
    )


def _remarks(measured: Measurement, check: Check | None, before: tuple[float, int] | None) -> str:
    """The share of the ceiling, and what is remarkable: what was expected, the speed as a share of that in earlier
    runs, or how far the samples lie apart.
    """
    loose, low = spread(measured.samples), ""
    figure = check.figure if check else None
    share = percent(figure.share) if figure and figure.share is not None else ""
    if check and figure and figure.share is not None and figure.expected_low is not None:
        # The least share that was expected, of a figure below it or above the ceiling.
        odd = figure.share < figure.expected_low or check.status == "unknown"
        low = percent(figure.expected_low) if odd else ""
    parts = [f"  {share:>{_SHARE}}"]
    if low and check is not None and check.status != "pass":
        parts.append(f"  expected {low}")
    elif before is not None:
        parts.append(f"  {min(before[0], 9.99):.0%} of base")
    elif check is not None and check.status == "skipped":
        parts.append("  not judged")
    elif loose > LOOSE:
        parts.append(f"  spread {loose:.0%}")
    return "".join(parts).rstrip()


def _not_measured(report: Report, pen: Pen) -> Iterable[Line]:
    """GPUs without a figure, and probes that did not run or failed, and why."""
    known = report.gpus
    covered = coverage(known, report.measurements, report.probes)
    left = ((covered.hidden, "hidden from CUDA"), (covered.not_asked, "not asked for"))
    told = [f"Not measured: {numbers(gpus)}, {why}" for gpus, why in left if gpus and report.measurements]
    told += not_run(report.probes)
    if told:
        yield ()
    for text in told:
        yield (StyledSpan(pen.clip(text, pen.width), "dim"),)
    yield ()
