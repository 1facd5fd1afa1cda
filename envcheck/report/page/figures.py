"""The measured figures of a report in parts and rows, which the page of ``envcheck bench``, HTML and the application
draw.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from envcheck.model.checks import Check, Figure, Report
from envcheck.model.snapshot import Measurement
from envcheck.report.page.pen import WORDS, Style
from envcheck.rules.facts import measurements
from envcheck.rules.facts.machine import plural
from envcheck.rules.speed.figures import speed_against

NOT_JUDGED = "not judged"
CEILING, APART, FASTER = "of ceiling", "difference, slowest and fastest", "the GPU: times as fast"
"""What stands above the shares of a GPU, of GPUs beside each other, and of the processor."""
_APART = 0.02  # Share by which the slowest may be behind the fastest without a row of its own


class FigureRow(NamedTuple):
    """A figure, and how it stands to what was expected."""

    name: str  # Without the library, which the heading names
    remark: str  # What is remarkable, or why there is no value; what begins with ``NOT_JUDGED`` goes on to say why
    status: Style
    word: str = ""  # The word for the status
    value: str = ""  # With its unit; empty where there is none
    share: str = ""  # Of the ceiling; for the processor, how many times as fast a GPU did the same
    figure: Figure | None = None  # What it was held against, where there is a ceiling
    heading: str = ""  # What begins above the row: a library and its version
    whole_name: str = ""  # The name where no heading stands above it


class FigurePart(NamedTuple):
    """The figures of a GPU, of the processor, or of the GPUs of a model beside each other."""

    title: str
    shares: str  # What stands above them
    rows: Sequence[FigureRow]
    conditions: tuple[str, ...] = ()  # Power limit and ECC
    hottest: float | None = None  # Degrees Celsius
    note: str = ""  # What the rows leave out


def figure_parts(report: Report) -> Iterator[FigurePart]:
    """Each GPU with figures, the GPUs of a model beside each other, then the processor."""
    checks = measurements.checks_of_figures(report.checks)
    for gpu in report.gpus:
        if figures := measurements.figures_of(gpu, report.measurements):
            runs = [figure.conditions for figure in figures if figure.conditions]
            limit, ecc = (runs[0].power_limit, runs[0].ecc) if runs else (None, None)
            yield FigurePart(
                f"{measurements.numbers([gpu])}  {gpu.name or ''}".rstrip(),
                CEILING,
                [
                    _row(measured, checks.get((gpu.key, measurements.measurement_key(measured))), report, heading)
                    for heading, measured in measurements.with_headings(figures)
                ],
                conditions=(
                    *([f"limit {limit:.0f} W"] if limit else []),
                    *([] if ecc is None else ["ECC on" if ecc else "ECC off"]),
                ),
                hottest=max((run.temperature.high for run in runs if run.temperature), default=None),
            )
    known = {gpu.uuid for gpu in report.gpus}
    strays = [_row(measured, None, report) for measured in report.measurements if measured.gpu not in (None, *known)]
    if strays:
        yield FigurePart("Not on a listed GPU", CEILING, strays)
    if report.across_gpus:
        yield _across_gpus(report)
    if figures := measurements.processor_figures(report.measurements):
        platform = report.snapshot.platform if report.snapshot else None
        rows = []
        for measured in figures:
            faster = measurements.speedup(measured, report.measurements)
            row = _row(measured, None, report)
            share = f"{f'{faster:.3g} x' if faster else '-':>6}"
            rows.append(row._replace(share=share, remark=measured.detail) if measured.value else row)
        title = f"CPU  {(platform.cpu_model if platform else None) or ''}".rstrip()
        yield FigurePart(title, FASTER, rows)


def _across_gpus(report: Report) -> FigurePart:
    """How far GPUs of a model lie apart: the figures that do, and the GPU that is slower than the others."""
    every = report.across_gpus
    apart = [found for found in every if found.difference > _APART or any(gpu.straggles for gpu in found.gpus)]
    rows = []
    for found in sorted(apart, key=lambda found: -found.difference):
        # ``30%  GPU 1: 576 of 823 TFLOP/s``
        compared = [gpu for gpu in found.gpus if gpu.why_not is None]
        slowest = max(compared, key=lambda gpu: gpu.slower or 0.0, default=None)
        low, high = measurements.quantity(found.low, found.unit), measurements.quantity(found.high, found.unit)
        own, best = (high, low) if found.unit == "s" else (low, high)
        value, _, unit = own.partition(" ")
        shown = value if best.endswith(f" {unit}") else own
        remark = f"{found.difference:.0%}  GPU {slowest.gpu if slowest else '?'}: {shown} of {best}"
        rows.append(FigureRow(found.title, remark, "warn" if any(gpu.straggles for gpu in compared) else ""))
    same = len(every) - len(apart)
    note = f"{plural(same, 'figure')}{' more' if apart else ''} within {_APART:.0%}" if same else ""
    return FigurePart("Across GPUs", APART, rows, note=note)


def _row(measured: Measurement, check: Check | None, report: Report, heading: str = "") -> FigureRow:
    name = measurements.measurement_name_among(measured, report.gpus)
    whole_name = measurements.measurement_name(measured)
    status: Style
    if measured.value is None:
        status, word = ("fail", "FAIL") if measured.failed else ("", "-")
        why = measurements.reason_without_value(measured)
        return FigureRow(name, why, status, word, heading=heading, whole_name=whole_name)
    figure = check.figure if check and check.figure and check.figure.share is not None else None
    wrong = measured.verification is not None and not measured.verification.right
    status = "fail" if wrong else check.status if check else "skipped"
    return FigureRow(
        name,
        _remark(measured, check, report),
        status,
        "WRONG" if wrong else WORDS[status],
        value=measurements.quantity(measured.value, measured.unit),
        share=measurements.percent(figure.share) if figure and figure.share is not None else "",
        figure=figure,
        heading=heading,
        whole_name=name if measured.peer else whole_name,
    )


def _remark(measured: Measurement, check: Check | None, report: Report) -> str:
    """What was expected, the speed as a share of that in earlier runs, or how far the samples lie apart."""
    status, figure = (check.status, check.figure) if check else ("", None)
    share, least = (figure.share, figure.expected_low) if figure else (None, None)
    if share is not None and least is not None and status != "pass" and (share < least or status == "unknown"):
        return f"expected {measurements.percent(least)}"
    before = speed_against(measured, report.snapshot.baseline if report.snapshot else ())
    if before is not None:
        return f"{min(before[0], 9.99):.0%} of base"
    if check and status == "skipped":
        return f"{NOT_JUDGED}: {check.message.removeprefix('Measured, not judged: ')}"
    loose = measurements.spread(measured.samples)
    return f"spread {loose:.0%}" if loose > measurements.LOOSE else ""
