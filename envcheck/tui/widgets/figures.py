"""Measured figures as rows: for each GPU bars against the theoretical maximum and the range of healthy GPUs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rich.text import Text

from envcheck.knowledge.load import load_matrix
from envcheck.knowledge.performance.expected import Expectation, expectation
from envcheck.rules.facts.measurements import (
    LOOSE,
    checks_of_figures,
    figures_of,
    measurement_key,
    measurement_name,
    measurement_name_among,
    not_run,
    percent,
    processor_figures,
    quantity,
    reason_without_value,
    speedup,
    spread,
    with_headings,
)
from envcheck.rules.speed.baseline import speed_against
from envcheck.text.clean import clean
from envcheck.text.wrap import clip
from envcheck.tui.widgets.paint import Paint

if TYPE_CHECKING:
    from envcheck.model.checks import Check, Report
    from envcheck.model.snapshot import Gpu, Measurement
    from envcheck.report.page.pen import Style

_VALUE, _SHARE = 13, 5


class FigureRows:
    """Lays out the figures of a report within a number of columns."""

    def __init__(self, report: Report, paint: Paint, columns: int) -> None:
        self._report, self._paint, self._columns = report, paint, columns
        self._name = max(24, min(40, columns - 50))
        self._bar = max(12, min(40, columns - self._name - _VALUE - 30))
        self._gpus = report.gpus
        self._checks = checks_of_figures(report.checks)
        self._earlier = report.snapshot.baseline if report.snapshot else ()

    def text(self) -> Text:
        """All rows."""
        without = (self._plain(text, "dim") for text in not_run(self._report.probes))
        return Text("\n").join([*self._of_gpus(), *self._of_processor(), *self._among_gpus(), *without])

    def _of_gpus(self) -> Iterator[Text]:
        for gpu in self._gpus:
            figures = figures_of(gpu, self._report.measurements)
            if figures:
                number = gpu.index if gpu.index is not None else gpu.key
                yield self._plain(f"GPU {number}  {gpu.name or ''}".rstrip(), "title")
                for heading, measured in with_headings(figures):
                    if heading:
                        yield self._plain(f"  {heading}", "dim")
                    yield self._row(gpu, measured)
                yield Text("")

    def _of_processor(self) -> Iterator[Text]:
        figures = processor_figures(self._report.measurements)
        if not figures:
            return
        platform = self._report.snapshot.platform if self._report.snapshot else None
        yield self._plain(f"CPU  {platform.cpu_model if platform and platform.cpu_model else ''}".rstrip(), "title")
        for measured in figures:
            text = Text(f"  {self._clip(measurement_name(measured, below_heading=True), self._name):<{self._name}} ")
            faster = speedup(measured, self._report.measurements)
            value = quantity(measured.value, measured.unit) if measured.value else "-"
            text.append(f"{value:>{_VALUE}}  ", "bold")
            told = f"the GPU: {faster:.3g} times as fast  " if faster else ""
            yield self._rest(
                text, told + (measured.detail if measured.value else reason_without_value(measured)), "dim"
            )
        yield Text("")

    def _row(self, gpu: Gpu, measured: Measurement) -> Text:
        text = Text(f"  {self._clip(measurement_name_among(measured, self._gpus), self._name):<{self._name}} ")
        if measured.value is None:
            return self._rest(text, f"{'-':>{_VALUE}}  {reason_without_value(measured)}", "dim")
        text.append(f"{quantity(measured.value, measured.unit):>{_VALUE}}  ", "bold")
        check = self._checks.get((gpu.key, measurement_key(measured)))
        found = expectation(load_matrix(self._report.overlays), gpu, measured)
        if isinstance(found, str):
            self._rest(text, _against(measured, self._earlier) or f"not judged: {found.partition(':')[0]}", "dim")
        else:
            self._draw(text, found, check)
            loose = spread(measured.samples)
            remarks = (
                "not judged" if check is None or check.status in ("unknown", "skipped") else "",
                _against(measured, self._earlier),
                f"spread {loose:.0%}" if loose > LOOSE else "",
            )
            self._rest(text, "".join(f"  {part}" for part in remarks if part), "dim")
        if measured.verification is not None and not measured.verification.right:
            text.append(" WRONG RESULT", self._paint.colour("fail"))
        return text

    def _draw(self, text: Text, found: Expectation, check: Check | None) -> None:
        """The share as a bar, with a mark where the range of healthy GPUs begins."""
        full, empty, mark = ("=", "-", "|") if self._paint.ascii else ("━", "─", "┃")
        status: Style = check.status if check else "skipped"
        reached = round(min(found.share, 1.0) * self._bar)
        edge = min(round(found.low * self._bar), self._bar - 1)
        for column in range(self._bar):
            if column == edge:
                text.append(mark, "bold")
            elif column < reached:
                text.append(full, self._paint.colour(status))
            else:
                text.append(empty, self._paint.colour("dim"))
        text.append(f"{percent(found.share):>{_SHARE}}")
        if check is not None and check.status in ("warn", "fail"):
            text.append(f" {check.status.upper()}", self._paint.colour(check.status))

    def _among_gpus(self) -> Iterator[Text]:
        """FigureRows of several GPUs: how far they are apart."""
        rows = self._report.across_gpus
        if rows:
            yield self._plain("Across GPUs: lowest, highest, difference", "title")
        for found in rows:
            compared = [gpu for gpu in found.gpus if gpu.why_not is None]
            ends = [next((gpu for gpu in compared if gpu.value == value), None) for value in (found.low, found.high)]
            told = "  ".join(f"{quantity(end.value, found.unit)} (GPU {end.gpu})" for end in ends if end)
            slow = [gpu for gpu in compared if gpu.straggles and gpu.slower is not None]
            told += f"  {found.difference:.1%}"
            told += "".join(f"  GPU {gpu.gpu} {gpu.slower:.0%} slower than the others" for gpu in slow)
            text = Text(f"  {self._clip(found.title, self._name):<{self._name}} ")
            yield self._rest(text, told, "warn" if slow else "")
        if rows:
            yield Text("")

    def _plain(self, words: str, style: Style) -> Text:
        return Text(self._clip(words, self._columns), self._paint.colour(style))

    def _rest(self, text: Text, words: str, style: Style) -> Text:
        """Append ``words`` as far as there is room."""
        return text.append(self._clip(words, max(0, self._columns - text.cell_len)), self._paint.colour(style))

    def _clip(self, words: str, columns: int) -> str:
        return clip(clean(words, ascii_only=self._paint.ascii), columns, "..." if self._paint.ascii else "…")


def _against(measured: Measurement, baseline: tuple[Measurement, ...]) -> str:
    """``98% of baseline``: of its speed, also where a duration was measured; ``98% of 5 runs``."""
    found = speed_against(measured, baseline)
    if found is None:
        return ""
    ratio, runs = found
    return f"{ratio:.0%} of {'baseline' if runs == 1 else f'{runs} runs'}"
