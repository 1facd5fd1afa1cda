"""The GPUs screen: a row for each with live bars, a minute of history of one, and how they are joined."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import ClassVar, NamedTuple

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.geometry import Size
from textual.widgets import DataTable

from envcheck.model.checks import STATUSES, Check, Report
from envcheck.model.gpus import Clocks, Ecc, Memory, Pcie, Power, Temperature
from envcheck.model.snapshot import Gpu
from envcheck.report import Options
from envcheck.report.charts import paths, rates
from envcheck.report.page.findings import Finding, folded
from envcheck.report.page.pen import WORDS, Line, Pen, Style, StyledSpan
from envcheck.report.page.subject import gpu_name, listed, worse, worst
from envcheck.tui.screens.overview import finding_row
from envcheck.tui.screens.pages import count_text, status_mark
from envcheck.tui.widgets.base import StatusText
from envcheck.tui.widgets.choices import checks_of_gpu
from envcheck.tui.widgets.paint import Paint
from envcheck.tui.worker.telemetry import KEPT, Sample, Telemetry, Trace

_GIB = 1 << 30
_HOTTEST = 100.0  # Degrees Celsius at the top of the scale where the GPU tells no limit
_ALL, _NAMED, _TOLD = 66, 104, 150
"""Minimum width for NVLink (whose failure the health tells), for the model, and for what is wrong in words."""
_GAUGES = ("temp", "power", "memory", "util", "SM MHz", "PCIe", "NVLink")
_LEAST = {"temp": 4, "power": 5, "memory": 8, "util": 4}  # Columns of values that grow under load
_MOST_ROWS = 4  # Rows of a curve and below it, of one GPU; with several there is one less, for how they are joined
_WRONG, _ALWAYS = "what is wrong", 5  # A column of words; how many values have bars on a narrow terminal


class Gauge(NamedTuple):
    """A value as text and as a bar."""

    text: str
    share: float | None = None  # How full the bar is
    mark: float | None = None  # Where the threshold is
    style: Style = "note"


def gauges(gpu: Gpu, now: Sample) -> dict[str, Gauge]:
    """What is shown of a GPU: live values, in the colour of a warning beyond their thresholds."""
    limits, heat, width = gpu.temperature or Temperature(), now.temperature, "-"
    limit, total = (gpu.power or Power()).limit, (gpu.memory or Memory()).total
    hot: Style = "note"
    if heat and limits.slowdown and heat >= limits.slowdown:
        hot = "fail"
    elif heat and limits.gpu_max and heat >= limits.gpu_max:
        hot = "warn"
    pcie, links = gpu.pcie or Pcie(), gpu.nvlinks or ()
    if pcie.width:
        width = f"{pcie.generation_max or '?'}x{pcie.width}"
    lanes = _share(pcie.width or None, pcie.width_max)
    active = sum(bool(link.active) for link in links)
    used = f"{_text(now.memory and now.memory / _GIB, '{:.0f}', 0)}/{_text(total and total / _GIB, '{:.0f}')}G"
    clock, top = now.clock, (gpu.clocks or Clocks()).sm_max
    shutdown = limits.shutdown or _HOTTEST
    return {
        "temp": Gauge(_text(heat, "{:.0f}C"), _share(heat, shutdown), _share(limits.slowdown, shutdown), hot),
        "power": Gauge(_text(now.power, "{:.0f}W"), _share(now.power, limit), style=_slowed(now, "power")),
        "memory": Gauge(used, _share(now.memory, total)),
        "util": Gauge(_text(now.utilisation, "{:.0%}"), now.utilisation),
        "SM MHz": Gauge(_text(clock and clock / 1e6, "{:.0f}"), _share(clock, top), style=_slowed(now, "")),
        "PCIe": Gauge(width, lanes, style="warn" if lanes and lanes < 1 else "note"),
        "NVLink": Gauge(
            f"{active}/{len(links)}" if links else "-",
            _share(active, len(links)),
            style="fail" if active < len(links) else "note",
        ),
        "ECC": Gauge(_text(now.errors, "{:.0f}"), style="fail" if now.errors else "note"),
    }


def number_of(gpu: Gpu, place: int) -> int:
    """nvidia-smi's index, else the place in the report."""
    return place if gpu.index is None else gpu.index


def _text(value: float | None, form: str, none: object = "-") -> str:
    return str(none) if value is None else form.format(value)


def _share(value: float | None, top: float | None) -> float | None:
    return value / top if value is not None and top else None


_USUAL = ("power cap", "application clocks")  # Why the clocks of healthy GPUs are reduced under load


def _slowed(now: Sample, why: str) -> Style:
    return "warn" if any(why in reason and reason not in _USUAL for reason in now.throttled_by) else "note"


def bar(gauge: Gauge, columns: int, paint: Paint) -> Text:
    """``━━━━╸─│──``: a value in halves of a column, with a mark at the threshold above it."""
    if gauge.share is None or columns <= 0:
        return Text(" " * max(0, columns))
    line, half, track, mark = "=-.|" if paint.ascii else "━╸─┃"
    halves = max(1 if gauge.share > 0 else 0, round(min(gauge.share, 1.0) * columns * 2))
    drawn = line * (halves // 2) + half * (halves % 2)
    text = Text(drawn, paint.colour(gauge.style)).append(track * (columns - len(drawn)), paint.colour("dim"))
    place = min(columns - 1, int((gauge.mark or 0) * columns))
    if gauge.mark and columns > _ALWAYS and place >= len(drawn):
        text = Text.assemble(text[:place], (mark, paint.colour("fail")), text[place + 1 :])
    return text


class GpusTab(Vertical):
    """The table, and below it the history of the GPU under the cursor."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("l", "app.links", "links"), Binding("e", "app.export", "export")]

    def __init__(self, telemetry: Telemetry, paint: Paint) -> None:
        super().__init__(id="gpus-body")
        self.telemetry, self._paint = telemetry, paint
        self._report: Report | None = None
        self._health: list[Sequence[Check]] = []
        self._found: list[Sequence[Finding]] = []
        self._laid_out_for: Size | None = None
        self._links = Text()
        self._drawn: object = None  # the samples and the cursor that are on the screen
        self._columns: dict[str, tuple[int, int]] = {}  # of the values, and of their bars

    def compose(self) -> ComposeResult:
        table: DataTable[Text] = DataTable(id="gpus-table", cursor_type="row", cell_padding=0, classes="framed")
        table.cursor_foreground_priority = "renderable"
        table.border_title = "GPUs"
        yield table
        history = StatusText("", id="gpus-history", classes="framed")
        history.border_title = "last minute"
        yield history
        links = StatusText("", id="gpus-links", classes="framed")
        links.border_title = "links"
        yield links

    def on_unmount(self) -> None:
        self.telemetry.stop()

    def follow(self, *, wanted: bool) -> None:
        (self.telemetry.start if wanted else self.telemetry.stop)()

    def trace(self, gpu: Gpu) -> Trace | None:
        """The live samples of a GPU, if there are any."""
        return next((each for each in self.telemetry.traces if each.uuid == gpu.uuid and each.samples), None)

    def show(self, report: Report, paint: Paint) -> None:
        self._report, self._paint = report, paint
        self._health = [checks_of_gpu(gpu, report) for gpu in report.gpus]
        self._found = [[*folded(one for one in checks if one.status in ("fail", "warn"))] for checks in self._health]
        self._lay_out()

    def on_resize(self) -> None:
        if self._laid_out_for != self.size:
            self._lay_out()

    def _lay_out(self) -> None:
        """The columns: on a narrow terminal fewer bars, and neither the model nor words."""
        if self._report is None or not self.size.width:
            return
        self._laid_out_for, self._drawn = self.size, None
        table = self.query_one("#gpus-table", DataTable)
        states = [STATUSES.index(worst(checks)) for checks in self._health]
        counts = ((states.count(state), WORDS[STATUSES[state]]) for state in sorted({*states}))
        table.border_subtitle = ", ".join(f"{count} {word}" for count, word in counts)
        at = table.cursor_row if table.row_count else states.index(min(states)) if states else 0
        table.clear(columns=True)
        table.display = bool(self._report.gpus)
        if not table.display:
            self.query_one("#gpus-history", StatusText).show(Text("No NVIDIA GPU is known on this machine."))
            return
        cells = [self._cells(number) for number in range(len(self._report.gpus))]
        widths = {
            name: max([len(name), _LEAST.get(name, 0), *(len(row[name].text) for row in cells)]) for name in cells[0]
        }
        room = self.size.width - table.gutter.width - 1 - sum(width + 1 for width in widths.values())
        barred = _GAUGES if self.size.width >= _NAMED else _GAUGES[:_ALWAYS]
        words = room // 3 if self.size.width >= _TOLD else 0
        bars = max(0, min(16, (room - words) // len(barred) - 1))
        self._columns = {name: (width, bars if name in barred else 0) for name, width in widths.items()}
        if words:
            self._columns[_WRONG] = max(12, words - 1), 0
        # One column holds them all: Textual draws every cell by itself, which takes most of the time.
        head = "".join(name.ljust(_whole_width(*columns)) for name, columns in self._columns.items())
        table.add_column(Text(head), key="gpu", width=len(head))
        for number, row in enumerate(cells):
            table.add_row(self._drawn_row(row, number), key=str(number))
        table.move_cursor(row=at)
        self._links = self._paint.lines(link_lines(self._report) if len(cells) > 1 else ())
        self.query_one("#gpus-links", StatusText).show(self._links)
        self.show_now()

    def show_now(self) -> None:
        """Draw the latest samples, if they are new."""
        table = self.query_one("#gpus-table", DataTable)
        state = (self.telemetry.taken, table.cursor_row)
        if self._report is None or not table.row_count or state == self._drawn:
            return
        is_new, self._drawn = self._drawn is None or self._drawn[0] != state[0], state  # type: ignore[index]
        for number in range(len(self._report.gpus)) if is_new and state[0] else ():
            drawn = self._drawn_row(self._cells(number), number)
            if table.get_cell(str(number), "gpu") != drawn:
                table.update_cell(str(number), "gpu", drawn)
        number = min(table.cursor_row, len(self._report.gpus) - 1)
        gpu = self._report.gpus[number]
        history, links = (self.query_one(name, StatusText) for name in ("#gpus-history", "#gpus-links"))
        columns, taken = self.size.width - history.gutter.width, table.row_count + 1 + table.gutter.height
        pen = Pen(Options(width=columns, ascii=self._paint.ascii))
        found = [finding_row(finding, columns, pen, self._paint) for finding in self._found[number]]
        left = self.size.height - taken - history.gutter.height - len(found)
        rows = max(1, min(_MOST_ROWS - (table.row_count > 1), (left - 1) // len(_HISTORY)))
        lines = [*found, history_lines(gpu, self.trace(gpu), columns, rows, self._paint)]
        history.border_title = f"GPU {number_of(gpu, number)}{': last minute' if self.trace(gpu) else ''}"
        history.border_subtitle = count_text(self._health[number])
        history.show(text := Text("\n").join(lines))
        needed = text.plain.count("\n") + self._links.plain.count("\n") + 2 + links.gutter.height
        links.display = bool(self._links) and needed <= left + len(found)

    def _last_sample(self, number: int) -> Sample:
        gpu = self._report.gpus[number]  # type: ignore[union-attr]
        if trace := self.trace(gpu):
            return trace.samples[-1]
        return Sample(  # what the report says
            (gpu.temperature or Temperature()).gpu,
            (gpu.power or Power()).draw,
            (gpu.memory or Memory()).used,
            gpu.utilisation,
            (gpu.clocks or Clocks()).sm,
            errors=(gpu.ecc or Ecc()).volatile_uncorrected,
        )

    def _cells(self, number: int) -> dict[str, Gauge]:
        gpu = self._report.gpus[number]  # type: ignore[union-attr]
        now = gauges(gpu, self._last_sample(number))
        # What NVML says now may be worse than what the report found.
        status = worse(worst(self._health[number]), "fail" if "fail" in {one.style for one in now.values()} else "pass")
        style: Style = status if status in ("fail", "warn") else "title"
        if self.size.width < _ALL:
            del now["NVLink"]
        name = {"model": Gauge(gpu_name(gpu)[:24], style=style)} if self.size.width >= _NAMED else {}
        return {
            "GPU": Gauge(str(number_of(gpu, number)), style=style),
            **name,
            "health": Gauge(status_mark(status, ascii_only=self._paint.ascii), style=status),
            **now,
        }

    def _drawn_row(self, cells: dict[str, Gauge], number: int) -> Text:
        drawn = Text()
        for name, (width, bars) in self._columns.items():
            gauge = cells[name] if name != _WRONG else Gauge(self._wrong(number), style=cells["GPU"].style)
            text = self._paint.text(gauge.text, "" if gauge.style == "note" else gauge.style)
            if name in _GAUGES or name == "ECC":
                text.pad_left(max(0, width - text.cell_len))
            if bars:
                text.append(" ").append_text(bar(gauge, bars, self._paint))
            text.truncate(_whole_width(width, bars), overflow="crop", pad=True)
            drawn.append_text(text)
        return drawn

    def _wrong(self, number: int) -> str:
        found = dict.fromkeys(finding.rule for finding in self._found[number])
        why = ", ".join(self._last_sample(number).throttled_by)
        return listed([f"throttled: {why}", *found] if why else [*found], 2)


def _whole_width(width: int, bars: int) -> int:
    return width + 1 + (bars + 1 if bars else 0)


_HISTORY = ("util", "power", "temp", "memory", "SM MHz")
_BARS, _ASCII_BARS = " ▁▂▃▄▅▆▇█", " _.-:=+*#"


def graph(values: Iterable[float | None], columns: int, rows: int, *, ascii_only: bool) -> list[str]:
    """The newest shares (0 to 1) as columns of ``rows`` rows; a known value has at least the lowest mark."""
    marks = _ASCII_BARS if ascii_only else _BARS
    wide = max(1, columns // KEPT)
    drawn = []
    newest = list(values)[-(columns // wide) :]
    full = [None if value is None else round(max(value, 0.0) * rows * 8) for value in newest]
    for row in reversed(range(rows)):
        eighths = (0 if each is None else max(not row, min(8, each - row * 8), 0) for each in full)
        drawn.append("".join(marks[each] * wide for each in eighths).rjust(columns))
    return drawn


def history_lines(gpu: Gpu, trace: Trace | None, columns: int, rows: int, paint: Paint) -> Text:
    """A minute of each quantity, the newest value at the right, in ``rows`` rows each."""
    if trace is None:
        return paint.text("From the report: live values need its machine.", "dim")
    over_time = [gauges(gpu, sample) for sample in trace.samples]
    wide, apart = max(10, columns - 17), rows > 1
    wide = wide // KEPT * KEPT or wide
    lines = []
    for name in _HISTORY:
        now = over_time[-1][name]
        drawn = graph((each[name].share for each in over_time), wide, rows - apart, ascii_only=paint.ascii)
        heads = [" " * 17] * (len(drawn) - 1) + [f"{name:<7}{now.text:>9} "]
        for head, row in zip(heads, drawn, strict=True):
            lines.append(Text.assemble((head, paint.colour("title")), (row, paint.colour(now.style))))
        lines += [Text()] if apart else []
    rates = {"PCIe": trace.samples[-1].pcie, "NVLink": trace.samples[-1].nvlink}
    if known := [f"{name} {rate / 1e9:.1f} GB/s" for name, rate in rates.items() if rate is not None]:
        lines.append(paint.text(f"{'links':<7}  {', '.join(known)}", "dim"))
    return Text("\n").join(lines)


_STYLES: dict[str, Style] = {"X": "dim", "?": "unknown"}
LINK_LEGEND = (
    "NV18: 18 NVLinks. PIX, PXB: one PCIe switch, several. PHB: through the host bridge. NODE: within a NUMA node. "
    "SYS: between NUMA nodes. ?: not known. b measures rates; one below 80% of the fastest is marked."
)
_FAR = 0.8  # Share of the fastest pair's rate below which a pair stands out, as the legend says


def link_lines(report: Report) -> list[Line]:
    """How each pair of GPUs is joined, and once there are any, the measured rates, as grids."""
    gpus = report.gpus
    joined, known = paths(report), rates(report)
    best = max(known.values(), default=0.0)

    def path(gpu: Gpu, other: Gpu) -> StyledSpan:
        kind = "X" if other is gpu else joined.get(frozenset((gpu.pci_bus_id, other.pci_bus_id)), "?")
        style: Style = "pass" if kind.startswith("NV") else _STYLES.get(kind, "")
        return StyledSpan(f"{kind:>6}", style)

    def measured(gpu: Gpu, other: Gpu) -> StyledSpan:
        rate = known.get((gpu.uuid, other.uuid))
        low = rate is not None and rate < _FAR * best
        return StyledSpan(f"{_text(rate and rate / 1e9, '{:.0f}', '·'):>6}", "warn" if low else "")

    def grid(cell: Callable[[Gpu, Gpu], StyledSpan]) -> list[Line]:
        names = [StyledSpan(f"GPU {number_of(gpu, place):<3}", "title") for place, gpu in enumerate(gpus)]
        return [(name, *(cell(gpu, other) for other in gpus)) for name, gpu in zip(names, gpus, strict=True)]

    head = "".join(f"{number_of(gpu, place):>6}" for place, gpu in enumerate(gpus))
    nodes = ["-" if gpu.numa_node is None else gpu.numa_node for gpu in gpus]
    lines: list[Line] = [(StyledSpan(f"{'':<7}{head}  NUMA node", "dim"),)]
    lines += [(*row, StyledSpan(f"  {node}", "dim")) for row, node in zip(grid(path), nodes, strict=True)]
    if known:
        lines += [(), (StyledSpan("measured, GB/s", "title"),), *grid(measured)]
    return lines
