"""Figures drawn with characters: a heat table of GPUs, a roofline, bandwidth by message size, earlier runs."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import NamedTuple

from envcheck.knowledge.performance.spread import speed_ratio
from envcheck.model.checks import Report
from envcheck.report.charts import arithmetic_intensity
from envcheck.report.page.figures import CEILING, FigureRow, figure_parts
from envcheck.report.page.pen import Line, Pen, Style, StyledSpan
from envcheck.rules.facts.machine import plural
from envcheck.rules.facts.measurements import measurement_name, quantity
from envcheck.rules.speed.figures import bases, key_of

_CELL, _LEAST_NAME = 7, 16
_HEAT, _ASCII_HEAT = " ▁▂▃▄▅▆▇█", " ..--==##"
_ROWS, _AXIS, _WARNINGS_SHOWN = 10, 12, 4
"""Rows of a plot; columns of what stands before it; most findings that are shown below it."""


class Curve(NamedTuple):
    """Points of a plot, joined or not."""

    points: Sequence[tuple[float, float]]
    style: Style
    joined: bool = True
    label: str = ""  # What stands behind its last point


def heat_lines(report: Report, pen: Pen) -> list[Line]:
    """The figures that several GPUs have, a column for each GPU: the share of the ceiling, else of the best GPU."""
    parts = [part for part in figure_parts(report) if part.shares == CEILING]
    rows: dict[str, dict[int, FigureRow]] = {}
    for place, part in enumerate(parts):
        for row in part.rows:
            if row.figure and row.figure.share is not None:
                rows.setdefault(row.whole_name, {})[place] = row
    rows = {name: cells for name, cells in rows.items() if len(cells) > 1}
    if not rows:
        return []
    has_marks = pen.width >= _LEAST_NAME + _CELL * len(parts)
    cell = _CELL if has_marks else _CELL - 2
    wide = max(_LEAST_NAME, pen.width - cell * len(parts))
    numbers = "".join(f"{part.title.split('  ')[0].removeprefix('GPU '):>{cell}}" for part in parts)
    lines: list[Line] = [
        (StyledSpan(f"{'of ceiling, by GPU' if has_marks else 'of ceiling':<{wide}}{numbers}", "title"),)
    ]
    marks = _ASCII_HEAT if pen.ascii else _HEAT
    for name, cells in rows.items():
        spans = [StyledSpan(f"{pen.clip(name, wide - 1):<{wide}}")]
        for place in range(len(parts)):
            share = cells[place].figure.share if place in cells else None  # type: ignore[union-attr]
            if share is None:
                spans.append(StyledSpan(f"{'.' if pen.ascii else '·':>{cell}}", "dim"))
                continue
            low = cells[place].status in ("fail", "warn")
            drawn = f"{share:.0%}{'!' if low else ' '}{marks[min(8, max(1, round(share * 8)))] if has_marks else ''}"
            spans.append(StyledSpan(f"{drawn:>{cell}}", cells[place].status))
        lines.append(tuple(spans))
    least = [row.figure.expected_low for cells in rows.values() for row in cells.values() if row.figure]
    floor = min(filter(None, least), default=None)
    band = f", which begins at {floor:.0%} or above" if floor else ""
    lines.append((StyledSpan(pen.clip(f"! below the band of healthy GPUs{band}", pen.width), "dim"),))
    return [*lines, ()]


def roofline_lines(report: Report, pen: Pen) -> list[Line]:
    """The roofs of the one GPU that was measured, and its matrix products below them."""
    figures = [check.figure for check in report.checks if check.figure and check.figure.ceiling]
    bandwidth = max((each.ceiling or 0 for each in figures if each.name.startswith("device-memory")), default=0.0)
    products = [
        each for each in report.measurements if each.name == "gemm" and each.value and arithmetic_intensity(each)
    ]
    roofs = {each.name.split("-")[1]: each.ceiling or 0 for each in figures if each.name.startswith("gemm-")}
    if len({each.gpu for each in products}) != 1 or not bandwidth or not roofs:
        return []
    left, right = 1.0, 4 * max(arithmetic_intensity(each) for each in products)
    curves = []
    for name, peak in sorted(roofs.items(), key=lambda roof: roof[1]):
        of_name = [each for each in products if each.precision == name]
        reached = max(of_name, key=lambda each: each.value or 0, default=None)
        label = f"{name.upper()} {(reached.value or 0) / peak:.0%} of {quantity(peak, reached.unit)}" if reached else ""
        curves.append(Curve([(left, bandwidth * left), (peak / bandwidth, peak), (right, peak)], "dim", label=label))
    curves.append(Curve([(arithmetic_intensity(each), each.value or 0) for each in products], "pass", joined=False))
    flops = plot(curves, pen, lambda y: quantity(y, "FLOP/s"), lambda x: f"{x:.0f} FLOP/B")
    return [(StyledSpan("roofline: memory and compute roofs, and the measured products", "title"),), *flops, ()]


def collective_lines(report: Report, pen: Pen) -> list[Line]:
    """Bus bandwidth by message size of each collective operation that was measured at several sizes."""
    lines: list[Line] = []
    for each in report.measurements:
        found = each.collective.points if each.collective else ()
        points = [(point.size, point.bandwidth) for point in found if point.bandwidth]
        if len(points) > 1:
            title = f"{measurement_name(each)}: bus bandwidth by message size"
            drawn = plot([Curve(points, "note")], pen, lambda y: quantity(y, "B/s"), lambda x: quantity(x, "B"))
            lines += [(StyledSpan(pen.clip(title, pen.width), "title"),), *drawn, ()]
    return lines


def past_lines(report: Report, pen: Pen) -> list[Line]:
    """The speed of each figure in the earlier runs and now, against their median; what became slower stands out."""
    earlier = report.snapshot.baseline if report.snapshot else ()
    base, speeds = bases(earlier), defaultdict[tuple[str | None, str, str], list[float]](list)
    known = {key_of(each) for each in report.measurements if each.value} & base.keys()
    for each in (*earlier, *report.measurements):
        if (key := key_of(each)) in known and each.value and each.value > 0:
            speeds[key].append(speed_ratio(each.value, base[key].value, each.unit))
    if not speeds:
        return []
    found = [check for check in report.checks if check.rule == "slower-than-baseline" and check.status == "warn"]
    slower = {(check.subject.uuid, check.figure.unit, check.figure.name) for check in found if check.figure}
    now = max(map(len, speeds.values()))
    curves = [Curve([(1, 1.0), (now, 1.0)], "dim"), Curve([(now, 0.9), (now, 1.1)], "dim")]
    for key in sorted(speeds, key=slower.__contains__):
        style: Style = "warn" if key in slower else "note"
        points = [(now - ago, speed) for ago, speed in enumerate(reversed(speeds[key]))]
        curves += [Curve(points, style), Curve(points[:1], style, joined=False)]
    title = f"speed in {plural(now - 1, 'earlier run')} and now, of their median (100%)"
    warnings = [(StyledSpan(pen.clip(check.title, pen.width), "warn"),) for check in found[:_WARNINGS_SHOWN]]
    drawn = plot(curves, pen, "{:.0%}".format, lambda run: f"{now - run:.0f} back" if run < now else "now", float)
    return [(StyledSpan(title, "title"),), *drawn, *warnings, ()]


def plot(
    curves: Sequence[Curve],
    pen: Pen,
    format_y: Callable[[float], str],
    format_x: Callable[[float], str],
    scale: Callable[[float], float] = math.log,
) -> list[Line]:
    """Curves in dots of a quarter of a row (in ASCII, of a row); upwards the scale is logarithmic."""
    columns = pen.width - _AXIS - max(len(curve.label) + bool(curve.label) for curve in curves)
    across, down = (1, 1) if pen.ascii else (2, 4)
    every = [(x, y) for curve in curves for x, y in curve.points if x > 0 and y > 0]
    (left, right), (bottom, top) = ((min(axis), max(axis)) for axis in zip(*every, strict=True))
    low_x, high_x, low_y, high_y = scale(left), scale(right), math.log(bottom), math.log(top)
    cells: dict[tuple[int, int], tuple[int, Style]] = {}
    labels = dict[int, str]()

    def dot(x: float, y: float, style: Style, *, is_point: bool) -> None:
        along = round((x - low_x) / ((high_x - low_x) or 1) * (columns * across - 1))
        under = round((high_y - y) / ((high_y - low_y) or 1) * (_ROWS * down - 1))
        column, inner_x, row, inner_y = along // across, along % across, under // down, under % down
        bit = (0x01, 0x02, 0x04, 0x40, 0x08, 0x10, 0x20, 0x80)[inner_x * 4 + inner_y]  # of Unicode's braille, by column
        before, _ = cells.get((row, column), (0, style))
        cells[row, column] = (-1 if is_point or before < 0 else before | bit, style)

    for curve in curves:
        points = [(scale(x), math.log(y)) for x, y in curve.points if x > 0 and y > 0]
        for (x, y), (to_x, to_y) in pairwise(points) if curve.joined else ():
            steps = columns * across
            for step in range(steps + 1):
                dot(x + (to_x - x) * step / steps, y + (to_y - y) * step / steps, curve.style, is_point=False)
        for x, y in () if curve.joined else points:
            dot(x, y, curve.style, is_point=True)
        if curve.label:
            at = round((high_y - points[-1][1]) / ((high_y - low_y) or 1) * (_ROWS * down - 1)) // down
            labels[next(each for each in range(at, _ROWS + len(curves)) if each not in labels)] = curve.label
    side, point = ("|", "o") if pen.ascii else ("│", "●")
    lines = []
    for row in range(_ROWS):
        edge = format_y(top) if row == 0 else format_y(bottom) if row == _ROWS - 1 else ""
        spans = [StyledSpan(f"{edge:>{_AXIS - 1}}{side}", "dim")]
        for column in range(columns):
            bits, style = cells.get((row, column), (0, ""))
            mark = point if bits < 0 else " " if not bits else "." if pen.ascii else chr(0x2800 + bits)
            spans.append(StyledSpan(mark, style))
        lines.append((*spans, *(StyledSpan(f" {label}") for label in (labels.get(row),) if label)))
    first, last = format_x(left), format_x(right)
    return [*lines, (StyledSpan(f"{'':<{_AXIS}}{first}{last:>{max(1, columns - len(first))}}", "dim"),)]
