"""The page of ``envcheck bench``: each measured figure beside what was to be expected, by GPU."""

from __future__ import annotations

from collections.abc import Iterable

from envcheck.checks import Check, Report
from envcheck.report import Options
from envcheck.report.findings import Outline
from envcheck.report.head import head_lines
from envcheck.report.pen import WORDS, Line, Pen, Span
from envcheck.report.room import ROOMS
from envcheck.report.tail import count_text
from envcheck.rules.measured import called_measurement, measured_as, quantity, spread
from envcheck.snapshot import Gpu, Measurement

_NAME, _STATUS, _VALUE = 40, 5, 14


def render(report: Report, options: Options) -> str:
    """``report`` as a table of figures, with the cause of a low one at the top."""
    pen = Pen(options)
    outline = Outline(report)
    lines = head_lines(outline, pen, ROOMS[0 if report.verdict in ("fail", "warn") else -1])
    if options.quiet:
        return pen.show(lines)
    lines = [*lines, *_gpus(report, pen), *_not_measured(report, pen), (Span(count_text(report), "dim"),)]
    return pen.show(lines)


def _gpus(report: Report, pen: Pen) -> Iterable[Line]:
    known = report.snapshot.gpus.items if report.snapshot and report.snapshot.gpus else ()
    checks = _by_measurement(report)
    for gpu in known:
        figures = [measured for measured in report.measurements if measured.gpu == gpu.uuid]
        if not figures:
            continue
        yield ()
        yield (Span(pen.clip(_title(gpu, figures), pen.width), "title"),)
        for measured in figures:
            yield _row(measured, checks.get((gpu.key, measured_as(measured))), known, pen)


def _title(gpu: Gpu, figures: list[Measurement]) -> str:
    parts = [f"GPU {gpu.index if gpu.index is not None else gpu.key}", gpu.name or ""]
    before = next((measured.conditions for measured in figures if measured.conditions), None)
    if before and before.power_limit:
        parts.append(f"limit {before.power_limit:.0f} W")
    if before and before.ecc is not None:
        parts.append("ECC on" if before.ecc else "ECC off")
    return "  ".join(part for part in parts if part)


def _by_measurement(report: Report) -> dict[tuple[str, str], Check]:
    """The check that judged each figure's size."""
    found = {}
    for check in report.checks:
        if check.rule.startswith("slow-"):
            gpu = check.subject.pci_bus_id or check.subject.uuid or ""
            found[gpu, check.subject.key.removeprefix(f"{gpu}:")] = check
    return found


def _row(measured: Measurement, check: Check | None, gpus: Iterable[Gpu], pen: Pen) -> Line:
    status = check.status if check else "skipped"
    peer = next((f" to GPU {gpu.index}" for gpu in gpus if measured.peer and gpu.uuid == measured.peer), "")
    name = pen.clip(called_measurement(measured) + peer, _NAME)
    if measured.value is None:
        return (
            Span(f"  {name:<{_NAME}}"),
            Span(f"{'-':<{_STATUS}}"),
            Span(pen.clip(measured.missing or "", 60), "dim"),
        )
    value = f"{quantity(measured.value, measured.unit):>{_VALUE}}"
    share = _share(check)
    wrong = measured.verification is not None and not measured.verification.right
    told: Line = (
        Span(f"  {name:<{_NAME}}"),
        Span(f"{'WRONG' if wrong else WORDS[status]:<{_STATUS}} ", "fail" if wrong else status),
        Span(value),
        Span(f"  {share}" if share else "", "dim"),
    )
    loose = spread(measured.samples)
    return (*told, Span(f"  spread {loose:.0%}", "dim")) if loose > 0.02 else told


def _share(check: Check | None) -> str:
    """``77% of the ceiling``, from the title of the check that judged it."""
    if check is None:
        return ""
    expected = next((evidence.value for evidence in check.evidence if evidence.what == "expected"), "")
    _, _, share = check.title.rpartition(", ")
    if check.status == "pass":
        return share
    return f"expected {expected}" if expected else "not judged"


def _not_measured(report: Report, pen: Pen) -> Iterable[Line]:
    """Probes that were not run or that died, and why."""
    told = dict.fromkeys(
        f"{run.title}: {run.detail}"
        for run in report.probes
        if run.name.startswith("bench_") and run.status != "ok" and run.detail
    )
    if told:
        yield ()
    for text in told:
        yield (Span(pen.clip(text, pen.width), "dim"),)
    yield ()
