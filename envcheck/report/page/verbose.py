"""Everything that a report says, for people: every check, every probe, every disagreement. No limit of length."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from envcheck.model.checks import STATUSES, Check, Report
from envcheck.report.document import tag
from envcheck.report.page.contents import facts
from envcheck.report.page.findings import DIED, Outline, folded, probe_name, probe_sentence
from envcheck.report.page.frame import head_lines, tail_lines
from envcheck.report.page.pen import EVERYTHING, LABEL, UNLIMITED, WORDS, Line, Pen, StyledSpan, labelled, title_lines
from envcheck.report.page.plain import made_at
from envcheck.report.page.stack import stack_lines
from envcheck.text.wrap import width

_BLANK: Line = (StyledSpan(""),)


def verbose_lines(outline: Outline, pen: Pen) -> list[Line]:
    report = outline.report
    measured = []
    for each in report.measurements:
        value = "not measured" if each.value is None else f"{each.value:g} {each.unit}".rstrip()
        where = f" on {each.gpu}" if each.gpu else ""
        measured.append(_with_source(f"{each.name}{where}: {value}", each.method))
    checks: list[list[Line]] = []  # the most pressing first, a blank line around each of these
    apart = False
    for finding in folded(sorted(report.checks, key=lambda check: STATUSES.index(check.status))):
        for alike in finding.variants:
            checks.append([*([_BLANK] if apart else []), *check_lines(alike, report, pen)])
            apart = finding.status in ("fail", "warn", "unknown")
    disagreements = []
    for found in report.snapshot.disagreements if report.snapshot else ():
        readings = ", ".join(_with_source(reading.value, reading.source) for reading in found.readings)
        disagreements.append(f"{found.path}: {readings}; the first was used")
    probes = []
    for run in report.probes:
        seconds = f" in {run.seconds:.2f} s" if run.status != "skipped" else ""
        ended = f"{probe_name(run)}: {run.status}{seconds}" + (f": {run.detail}" if run.detail else "")
        text = probe_sentence(run) if run.status in DIED else ended
        noise = (line for text in run.noise.splitlines() for line in labelled("|", text, pen))
        probes.append([*_indented(text, pen), *noise])
    host = f" on {report.host}" if report.host else ""
    # What took longest of the stages and probes of a run, and the processor time of each.
    stages = ((stage.name, stage.seconds, stage.processor) for stage in report.timing if stage.name != "gather")
    taken = [*stages, *((probe_name(run), run.seconds, run.processor) for run in report.probes)]
    words = [
        f"{name} {seconds:.2f} s" + (f" (processor {processor:.2f} s)" if processor is not None else "")
        for name, seconds, processor in sorted(taken, key=lambda each: -each[1])[:5]
    ]
    longest = f"; longest: {', '.join(words)}" if report.timing else ""
    about = [
        f"made {made_at(report)}{host} ({report.duration_s:.1f} s{longest})",
        f"{report.tool.name} {report.tool.version}, matrix of {report.tool.matrix}",
        *(f"overlay of the matrix: {overlay}" for overlay in report.overlays),
    ]
    return [
        *head_lines(outline, pen, EVERYTHING, details=False),
        *stack_lines(report, pen, EVERYTHING),
        *_section("Checks", checks),
        *_section("Measurements", [_indented(text, pen) for text in measured]),
        *_section("Probes", probes),
        *_section("Disagreements", [_indented(text, pen) for text in disagreements]),
        *_section("Report", [_indented(text, pen) for text in about]),
        _BLANK,
        *tail_lines(report, pen, EVERYTHING),
    ]


def _section(title: str, entries: Sequence[list[Line]]) -> list[Line]:
    """A heading and its entries; nothing without entries."""
    if not entries:
        return []
    return [_BLANK, (StyledSpan(title, "title"),), *(line for entry in entries for line in entry)]


def check_lines(checks: Sequence[Check], report: Report, pen: Pen) -> list[Line]:
    """All that is known of checks that differ in their subjects alone."""
    check = checks[0]
    # The title of a check that was not judged names the problem, and would read as a finding.
    title = f"not judged: {check.title}" if check.status in ("unknown", "skipped") else check.title
    word = "skipped" if check.status == "skipped" else WORDS[check.status]
    lines = title_lines(word, check.status, title, check.rule, pen, UNLIMITED)
    for (label, fact), (_, below) in pairwise((*facts(checks, report), ("", tag("p")))):
        if fact.name == "pre":  # a long one on a line of its own, and whole
            command = pen.command(tuple(map(str, fact.children)))
            indent = LABEL if width(command) <= pen.width - LABEL else 2
            lines.append((StyledSpan(" " * indent), StyledSpan(command, "command")))
            continue
        lines += labelled(label, f"{fact.text.rstrip(' .:')}:" if below.name == "pre" else fact.text, pen)
        addresses = (pen.text(page.attributes["href"]) for page in fact.all("a"))
        lines += [(StyledSpan(" " * LABEL), StyledSpan(address)) for address in addresses]  # never cut
    return lines


def _with_source(text: str, source: str) -> str:
    return f"{text} ({source})" if source else text


def _indented(text: str, pen: Pen) -> list[Line]:
    texts = pen.fill(text, pen.width - 4)
    return [(StyledSpan("  " if number == 0 else "    "), StyledSpan(line)) for number, line in enumerate(texts)]
