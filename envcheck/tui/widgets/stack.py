"""The stack: a line for each layer with its status and what it is."""

from __future__ import annotations

from envcheck.model.checks import STATUSES, Report, Status
from envcheck.model.snapshot import frameworks_in
from envcheck.report.page.pen import Line, Pen, StyledSpan
from envcheck.report.page.stack import StackRow, checks_in, stack_rows
from envcheck.report.page.subject import judged_environment, listed, worst

_MARKS = dict(zip(STATUSES, ("✗ FAIL", "! WARN", "? open", "i note", "✓ ok", "-"), strict=True))
"""A mark and a word, so that no status is shown by colour alone."""
_ASCII = {"✗": "x", "✓": "+"}


def status_mark(status: Status, *, ascii_only: bool) -> str:
    """Mark and word of a status, at most six columns."""
    text = _MARKS[status]
    return _ASCII.get(text[0], text[0]) + text[1:] if ascii_only else text


_LABEL, _MARK = 12, 8
_FAMILIES = {"cudnn": "cuDNN", "nccl": "NCCL", "cublas": "cuBLAS", "nvrtc": "NVRTC"}
"""The libraries that people ask about first, with their titles."""


def stack_lines(report: Report, pen: Pen, *, final: bool) -> list[Line]:
    """A line for each layer; unless ``final``, none is unknown: it is still being checked."""
    lines: list[Line] = []
    columns = pen.width - 2 - _LABEL - _MARK
    for row in _rows(report):
        status, text = row.status, row.text
        if not final:
            status = "skipped" if status == "unknown" else status
            text = "checking" if text == "not checked" else text
        edge = StyledSpan("|" if pen.ascii else "▌", status), StyledSpan(" ")
        mark = status_mark(status, ascii_only=pen.ascii) if row.label or status != "skipped" else ""
        shown = StyledSpan(pen.clip(text.replace("(-v)", "(2)"), columns))
        lines.append(
            (*edge, StyledSpan(row.label.ljust(_LABEL), "title"), StyledSpan(mark.ljust(_MARK), status), shown)
        )
    return lines


def _rows(report: Report) -> list[StackRow]:
    """The rows of the page, with a row for the libraries between CUDA and the frameworks."""
    rows = stack_rows(report, gpus=3)
    # The libraries that the frameworks of the judged environment would load: ``cuDNN 9.19.0``.
    found: dict[str, dict[str, None]] = {}
    for framework in frameworks_in(judged_environment(report)):
        for load in framework.loads or ():
            family = _FAMILIES.get(load.name.removeprefix("lib").partition(".so")[0])
            if family and load.version:
                found.setdefault(family, {})[load.version] = None
    versions = [f"{family} {' and '.join(found[family])}" for family in _FAMILIES.values() if family in found]
    checks = checks_in(report, "library")
    if not versions and worst(checks) in ("skipped", "pass"):
        return rows  # the libraries were not checked
    broken = min(checks, key=lambda check: STATUSES.index(check.status), default=None)
    text = listed(versions, 4) if versions else broken.title if broken else ""
    libraries = StackRow("Libraries", worst(checks), text)
    at = next((number for number, row in enumerate(rows) if row.label == "Frameworks"), len(rows))
    # The row of the libraries shows their status, so the one of the frameworks does not repeat it.
    if at < len(rows) and rows[at].status in {check.status for check in checks}:
        rows[at] = StackRow(rows[at].label, worst(checks_in(report, "framework")), rows[at].text)
    return [*rows[:at], libraries, *rows[at:]]
