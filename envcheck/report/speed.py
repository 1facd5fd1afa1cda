"""The page of ``envcheck bench``: each measured figure with the expected value, by GPU."""

from __future__ import annotations

from collections.abc import Iterator

from envcheck.model.checks import Report
from envcheck.report import Format, Options
from envcheck.report.page.figures import APART, CEILING, FASTER, NOT_JUDGED, FigureRow, figure_parts
from envcheck.report.page.findings import Outline
from envcheck.report.page.frame import count_text, head_lines, other_lines
from envcheck.report.page.pen import ROOMS, Line, Pen, StyledSpan, columns
from envcheck.rules.facts.measurements import coverage, not_run, numbers

FORMAT = Format(
    shows="the measured figures, each with the expected value", suffix="speed.txt", syntax="text", targets=False
)

_NAME, _STATUS, _VALUE, _SHARE = 39, 5, 12, 4  # Columns
_LEAST_NAME, _LEAST_BAR, _REMARK, _BARRED = 24, 8, 14, 72
"""Columns beside bars: the remark has its room first, then the name; and of a page with bars at least."""


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
    """The measured figures as lines, and what was not measured. With ``bars`` each share is drawn as well."""

    def __init__(self, report: Report, pen: Pen, *, bars: bool = False) -> None:
        self._report, self._pen = report, pen
        fixed = 2 + 1 + _STATUS + 1 + _VALUE + 2
        self._bar = max(_LEAST_BAR, (pen.width - 60) // 2) if bars and pen.width >= _BARRED else 0
        room = pen.width - fixed - self._bar - 1 - _SHARE - _REMARK
        self._name = max(_LEAST_NAME, min(_NAME, room)) if bars else _NAME
        self._share = fixed + self._name  # Column of the share where no bar is before it
        after_bar = self._share + (self._bar + 1 if self._bar else 0) + _SHARE
        self._places = {CEILING: after_bar - len(CEILING), APART: 2 + self._name + 1, FASTER: self._share}

    def lines(self) -> Iterator[Line]:
        """All of it, with a blank line above each part and below the last."""
        report = self._report
        for part in figure_parts(report):
            yield ()
            place = self._places[part.shares]
            title = self._pen.clip("  ".join((part.title, *part.conditions)), place - 1)
            yield (StyledSpan(title, "title"), StyledSpan(" " * (place - len(title)) + part.shares, "dim"))
            for row in part.rows:
                if row.heading:
                    yield (StyledSpan(self._pen.clip(row.heading, self._pen.width), "dim"),)
                yield self._row(row)
            if part.note:
                yield (StyledSpan(f"  {part.note}", "dim"),)
        covered = coverage(report.gpus, report.measurements, report.probes)
        left = ((covered.hidden, "hidden from CUDA"), (covered.not_asked, "not asked for"))
        notices = [f"Not measured: {numbers(gpus)}, {why}" for gpus, why in left if gpus and report.measurements]
        notices += not_run(report.probes)
        if notices:
            yield ()
        for text in notices:
            yield (StyledSpan(self._pen.clip(text, self._pen.width), "dim"),)
        yield ()

    def _row(self, row: FigureRow) -> Line:
        start: Line = (StyledSpan(f"  {self._pen.clip(row.name, self._name):<{self._name}} "),)
        if row.word:
            start = (*start, StyledSpan(f"{row.word:<{_STATUS}} ", row.status))
        if not row.value:
            remark = self._pen.clip(row.remark, self._pen.width - columns(start))
            return (*start, StyledSpan(remark, "dim" if row.word else row.status))
        start = (*start, StyledSpan(f"{row.value:>{_VALUE}}"))
        share, remark = f"  {row.share:>{_SHARE}}  ", row.remark
        if self._bar and row.figure:  # the share as a bar, with a mark where the range of healthy GPUs begins
            full, empty, mark = ("=", "-", "|") if self._pen.ascii else ("━", "─", "┃")
            reached = round(min(row.figure.share or 0.0, 1.0) * self._bar)
            edge = min(round((row.figure.expected_low or 0.0) * self._bar), self._bar - 1)
            below = StyledSpan(full * min(reached, edge), row.status), StyledSpan(empty * (edge - reached), "dim")
            rest = empty * (self._bar - max(reached, edge + 1))
            above = StyledSpan(full * (reached - edge - 1), row.status), StyledSpan(rest, "dim")
            start, share = (*start, StyledSpan("  "), *below, StyledSpan(mark, "title"), *above), share[1:]
        elif self._bar and not row.share:
            share, remark = "  ", remark.removeprefix(f"{NOT_JUDGED}: ")  # there is room for the reason
        elif remark.startswith(NOT_JUDGED):
            remark = NOT_JUDGED
        if row.figure is None and (self._bar or row.share):
            remark = self._pen.clip(remark, self._pen.width - columns(start) - len(share))
        return (*start, StyledSpan(f"{share}{remark}".rstrip(), "dim"))
