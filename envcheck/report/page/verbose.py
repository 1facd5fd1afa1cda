"""Everything that a report says, for people: every check, every probe, every disagreement. No limit of length."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from envcheck.checks import STATUSES, Check, Report, Source, ways
from envcheck.report.page.findings import DIED, Outline, folded, probe_name, probe_sentence
from envcheck.report.page.head import evidence_text, verdict_lines
from envcheck.report.page.layout import ACTIONS, EVERYTHING, LABEL, UNLIMITED, labelled, one_fix, steps, title_lines
from envcheck.report.page.pen import WORDS, Line, Pen, Span
from envcheck.report.page.stack import stack_lines
from envcheck.report.page.subject import subject_line
from envcheck.report.page.tail import tail_lines
from envcheck.snapshot import Disagreement, Measurement, ProbeRun
from envcheck.snapshot.names import fact_name

_BLANK: Line = (Span(""),)
_PRESSING = ("fail", "warn", "unknown")


def verbose_lines(outline: Outline, pen: Pen) -> list[Line]:
    """All of a report."""
    report = outline.report
    disagreements = report.snapshot.disagreements if report.snapshot else ()
    return [
        *verdict_lines(outline, pen, EVERYTHING),
        *stack_lines(report, pen, EVERYTHING),
        *_section("Checks", _checks(report, pen)),
        *_section("Measurements", [_measurement(found, pen) for found in report.measurements]),
        *_section("Probes", [_probe(run, pen) for run in report.probes]),
        *_section("Disagreements", [_disagreement(found, pen) for found in disagreements]),
        *_section("Report", [_about(report, pen)]),
        _BLANK,
        *tail_lines(report, pen, EVERYTHING),
    ]


def _section(title: str, entries: Sequence[list[Line]]) -> list[Line]:
    """A heading and its entries; nothing without entries."""
    if not entries:
        return []
    return [_BLANK, (Span(title, "title"),), *(line for entry in entries for line in entry)]


def _checks(report: Report, pen: Pen) -> list[list[Line]]:
    """Every check, the most pressing first, a blank line around each of these."""
    entries: list[list[Line]] = []
    apart = False
    for finding in folded(sorted(report.checks, key=lambda check: STATUSES.index(check.status))):
        for checks in finding.variants:
            entries.append([*([_BLANK] if apart else []), *_check(checks, report, pen)])
            apart = finding.status in _PRESSING
    return entries


def check_lines(check: Check, report: Report, pen: Pen) -> list[Line]:
    """All that is known of one check."""
    return _check((check,), report, pen)


def _check(checks: tuple[Check, ...], report: Report, pen: Pen) -> list[Line]:
    check = checks[0]
    unjudged = check.status in ("unknown", "skipped")
    # The title of a check that was not judged names the problem, and would read as a finding.
    title = f"not judged: {check.title}" if unjudged else check.title
    word = "skipped" if check.status == "skipped" else WORDS[check.status]
    lacking = [
        f"{fact_name(lack.fact)} ({f'from probe {lack.probe}' if lack.probe else 'not checked'})"
        for lack in check.missing
    ]
    aside = ""
    if check.ignored is not None:
        until = f" until {check.ignored.until}" if check.ignored.until else ""
        aside = f"ignored by policy{until}: {check.ignored.reason}"
    other_status = f"{check.status} by the configuration, or because the rule is new; the rule says {check.judged}"
    weak = "" if check.confidence == "high" else f", {check.confidence} confidence"
    return [
        *title_lines(word, check.status, title, check.rule, pen, UNLIMITED),
        *_labelled("about", subject_line(checks, report), pen),
        *_labelled("why", check.message, pen),
        *_each("seen", (_with_source(evidence_text(found), found.source) for found in check.evidence), pen),
        *_each("lacks", lacking, pen),
        *_labelled("cause", check.explained_by or "", pen),
        *(
            line
            for way in ways(check.fixes)
            for step, fix in steps(way)
            for line in one_fix(fix, pen, EVERYTHING, step=step)
        ),
        *_labelled("act", ACTIONS.get(check.action, ""), pen),
        *_labelled("aside", aside, pen),
        *_labelled("set", other_status if check.judged else "", pen),
        *_labelled("by", "" if unjudged else check.decided_by + weak, pen),
        *(line for source in check.sources for line in _cited(source, pen)),
    ]


def _labelled(label: str, text: str, pen: Pen) -> list[Line]:
    return labelled(label, text, pen, UNLIMITED) if text else []


def _each(label: str, texts: Iterable[str], pen: Pen) -> list[Line]:
    return [line for text in texts for line in _labelled(label, text, pen)]


def _with_source(text: str, source: str) -> str:
    return f"{text} ({source})" if source else text


def _cited(source: Source, pen: Pen) -> list[Line]:
    """Title and date, and the address whole on a line of its own."""
    lines = _labelled("docs", f"{source.title} (read {source.read})" if source.read else source.title, pen)
    return [*lines, (Span(" " * LABEL), Span(pen.text(source.address)))] if source.address else lines


def _measurement(found: Measurement, pen: Pen) -> list[Line]:
    value = "not measured" if found.value is None else f"{found.value:g} {found.unit}".rstrip()
    where = f" on {found.gpu}" if found.gpu else ""
    return _indented(_with_source(f"{found.name}{where}: {value}", found.method), pen)


def _probe(run: ProbeRun, pen: Pen) -> list[Line]:
    if run.status not in DIED:
        seconds = f" in {run.seconds:.2f} s" if run.status != "skipped" else ""
        text = f"{probe_name(run)}: {run.status}{seconds}" + (f": {run.detail}" if run.detail else "")
    else:
        text = probe_sentence(run)
    return [*_indented(text, pen), *_each("|", run.noise.splitlines(), pen)]


def _disagreement(found: Disagreement, pen: Pen) -> list[Line]:
    readings = [_with_source(reading.value, reading.source) for reading in found.readings]
    return _indented(f"{found.path}: {', '.join(readings)}; the first was used", pen)


def _about(report: Report, pen: Pen) -> list[Line]:
    host = f" on {report.host}" if report.host else ""
    lines = _indented(f"made {report.created}{host} in {report.duration_s:.1f} s", pen)
    lines += _indented(f"{report.tool.name} {report.tool.version}, matrix of {report.tool.matrix}", pen)
    for overlay in report.overlays:
        lines += _indented(f"overlay of the matrix: {overlay}", pen)
    return lines


def _indented(text: str, pen: Pen) -> list[Line]:
    texts = pen.fill(text, pen.width - 4)
    return [(Span("  " if number == 0 else "    "), Span(line)) for number, line in enumerate(texts)]
