"""What a page shows of several GPUs: how they are joined, their figures side by side; and a roofline, drawn as SVG that
also says its content in words.
"""

from __future__ import annotations

import math
import re
from itertools import combinations

from envcheck.knowledge.performance.expected import on_switch
from envcheck.model.checks import Figure, Report
from envcheck.model.snapshot import Gpu, Measurement
from envcheck.report.document import Node, Tag, chip, table, tag
from envcheck.rules.facts.measurements import checks_of_figures, figures_of, measurement_key, percent, quantity

PATHS = {"internal": "PIX", "single": "PIX", "multiple": "PXB", "hostbridge": "PHB", "node": "NODE", "system": "SYS"}
"""The paths through PCIe as nvidia-smi topo abbreviates them."""
_GEMM, _MEMORY = "gemm", "device-memory-"
_MOST_GPUS, _MOST_ROWS = 16, 40
_BEHIND = 0.02  # Share behind the others from which a cell is marked, in red where it is more than chance allows


def _text(x: float, y: float, shown: str, anchor: str = "start", kind: str = "") -> Tag:
    return tag("text", shown, x=f"{x:g}", y=f"{y:g}", text_anchor=anchor, class_=kind)


def _card(title: str, *parts: Tag, note: str) -> Tag:
    return tag("div", tag("h3", title), *parts, tag("p", note, class_="legend"), class_="card")


def _label(gpu: Gpu) -> str:
    return f"GPU {gpu.index}" if gpu.index is not None else gpu.key


def paths(report: Report) -> dict[frozenset[str | None], str]:
    """``NV18``, ``PIX``, ``?``: how two GPUs are joined, by their bus ids."""
    fabric = report.snapshot.fabric if report.snapshot else None
    active = {gpu.pci_bus_id: len([link for link in gpu.nvlinks or () if link.active]) for gpu in report.gpus}
    switched = [gpu.pci_bus_id for gpu in report.gpus if on_switch([gpu])]
    found = {frozenset(pair): f"NV{min(active[each] for each in pair)}" for pair in combinations(switched, 2)}
    for link in (fabric.links if fabric else None) or ():
        path = f"NV{link.nvlinks}" if link.nvlinks else PATHS.get(link.path or "", "?")
        found[frozenset((link.first, link.second))] = path
    return found


def rates(report: Report) -> dict[tuple[str | None, str | None], float]:
    """Bytes per second from one GPU to another, in that direction alone, by their UUIDs."""
    found = [each for each in report.measurements if each.name == "peer-to-peer" and "both" not in (each.variant or "")]
    return {(each.gpu, each.peer): each.value for each in found if each.value}


def link_matrix(report: Report) -> list[Tag]:
    """NVLinks or the PCIe path between each two GPUs, with the rate that was measured; nothing for a single GPU."""
    gpus = [gpu for gpu in report.gpus if gpu.pci_bus_id][:_MOST_GPUS]
    joined, measured = paths(report), rates(report)
    if not joined or len(gpus) < 2:
        return []
    rows = []
    for first in gpus:
        cells: list[Node] = [_label(first)]
        for second in gpus:
            path = joined.get(frozenset((first.pci_bus_id, second.pci_bus_id)), "?")
            rate = measured.get((first.uuid, second.uuid))
            status = "pass" if path.startswith("NV") else "skipped" if path == "?" else "note"
            shown = " ".join((path, *([quantity(rate, "B/s")] if rate else [])))
            cells.append("·" if first is second else chip(status, shown))
        rows.append(cells)
    note = "NV: active NVLinks. PIX, PXB, PHB, NODE, SYS: the path through PCIe, closest first."
    return [_card("Links between GPUs", *table(rows, ("from", *map(_label, gpus))), note=note)]


def heat_table(report: Report) -> list[Tag]:
    """Each figure that several GPUs of a model have, a column for each GPU; those behind are marked."""
    columns = sorted({gpu.gpu for row in report.across_gpus for gpu in row.gpus if gpu.gpu is not None})[:_MOST_GPUS]
    if len(columns) < 2:
        return []
    rows = []
    for row in report.across_gpus[:_MOST_ROWS]:
        cells: dict[int | None, Node] = dict.fromkeys(columns, "")
        for each in row.gpus:
            behind = each.slower if each.why_not is None and each.slower is not None else 0.0
            beyond = each.straggles or (each.tolerated is not None and behind > each.tolerated)
            status = "fail" if beyond else "warn" if behind > _BEHIND else "pass"
            shown = quantity(each.value, row.unit) + ("" if status == "pass" else f" -{behind:.0%}")
            cells |= {each.gpu: chip(status, shown)} if each.gpu in cells else {}
        rows.append([row.title, *cells.values()])
    left_out = len(report.across_gpus) - len(rows)
    note = f"Red: more behind the others than chance allows. {f'{left_out} more figures.' if left_out else ''}".strip()
    return [_card("GPUs side by side", *table(rows, ("figure", *(f"GPU {gpu}" for gpu in columns))), note=note)]


def roofline(report: Report) -> list[Tag]:
    """The roofs of the first GPU with measured products, and how near each came; nothing without both kinds of roof."""
    checks = checks_of_figures(report.checks)
    for gpu in report.gpus:
        slope, points = 0.0, dict[str, tuple[float, Figure]]()
        for measured in figures_of(gpu, report.measurements):
            check = checks.get((gpu.key, measurement_key(measured)))
            figure = check.figure if check else None
            if figure is None or not figure.ceiling or not figure.share:
                continue
            if measured.name.startswith(_MEMORY) and figure.unit == "B/s":
                slope = max(slope, figure.ceiling)
            if measured.name == _GEMM and (intensity := arithmetic_intensity(measured)):
                known = points.get(measured.precision or "")
                if known is None or figure.value > known[1].value:
                    points[measured.precision or ""] = intensity, figure
        if slope and points:
            return [_roofs(_label(gpu), slope, points)]
    return []


def arithmetic_intensity(product: Measurement) -> float:
    """Operations for each byte that must be read or written once; 0 where the precision names no bits of a value."""
    bits = re.search(r"[1-9]\d{0,2}", product.precision or "")
    if not bits or len(product.shape) != 3 or math.prod(product.shape) <= 0:
        return 0.0
    m, n, k = product.shape
    return 2 * m * n * k / ((m * n + n * k + m * k) * int(bits[0]) / 8)


def _roofs(label: str, slope: float, points: dict[str, tuple[float, Figure]]) -> Tag:
    wide, high, left, bottom = 660, 320, 96, 36
    highest = max(figure.ceiling or 0 for _, figure in points.values())
    most_x = max(intensity for intensity, _ in points.values()) * 4
    x_range = 0.0, math.log10(most_x)
    y_range = math.log10(slope), math.log10(highest * 1.6)

    def x_of(intensity: float) -> float:
        return left + (wide - left - 90) * (math.log10(intensity) - x_range[0]) / (x_range[1] - x_range[0])

    def y_of(rate: float) -> float:
        return (high - bottom) * (1 - (math.log10(rate) - y_range[0]) / (y_range[1] - y_range[0]))

    def line(kind: str, *ends: tuple[float, float]) -> Tag:
        path = " L ".join(f"{x_of(x):.1f} {y_of(y):.1f}" for x, y in ends)
        return tag("path", class_=kind, d=f"M {path}")

    drawn = [line("roof", (1.0, slope), (highest / slope, highest))]
    drawn.append(_text(x_of(2) + 14, y_of(slope * 2) + 8, f"memory {quantity(slope, 'B/s')}"))
    taken: list[float] = []
    words = []
    for precision, (intensity, figure) in sorted(points.items(), key=lambda each: -(each[1][1].ceiling or 0)):
        ceiling = figure.ceiling or 0.0
        reached = f"{percent(figure.share or 0.0)} of {quantity(ceiling, figure.unit)}"
        y = y_of(ceiling)
        while any(abs(y - other) < 15 for other in taken):
            y += 4
        taken.append(y)
        drawn.append(line("roof", (ceiling / slope, ceiling), (most_x, ceiling)))
        drawn.append(_text(wide - 86, y + 4, precision.upper()))
        place = {"cx": f"{x_of(intensity):.1f}", "cy": f"{y_of(figure.value):.1f}"}
        drawn.append(tag("circle", tag("title", f"{precision}: {reached}"), class_="dot", r="5", **place))
        words.append(f"{precision} matrix product {reached}")
    along, up = range(math.floor(x_range[1]) + 1), range(math.ceil(y_range[0]), math.floor(y_range[1]) + 1)
    drawn += [_text(x_of(10**decade), high - bottom + 18, f"{10**decade:,}", "middle", "axis") for decade in along]
    drawn.append(_text((wide - 90 + left) / 2, high - 2, "operations for each byte of memory", "middle", "axis"))
    drawn += [_text(left - 8, y_of(10**decade) + 4, quantity(10.0**decade, "FLOP/s"), "end", "axis") for decade in up]
    note = "Lines: the most that the chip can do. Dots: the fastest matrix product of each precision."
    title, size = f"Roofline of {label}", {"viewBox": f"0 0 {wide} {high}", "width": f"{wide}", "height": f"{high}"}
    picture = tag("svg", tag("title", "; ".join(words)), *drawn, class_="chart", role="img", **size)
    # It scrolls where it is wider than the page.
    return _card(title, tag("div", picture, class_="wide", tabindex="0", role="group", aria_label=title), note=note)
