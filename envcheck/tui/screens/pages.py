"""The parts of the overview as lines: the pages of the command line, with keys in place of options, and the stack."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from envcheck.model.checks import LAYERS, STATUSES, Check, Layer, Report, Status, ignored
from envcheck.model.snapshot import frameworks_in
from envcheck.report.page.findings import Finding, Outline, folded
from envcheck.report.page.frame import finding_details, head_lines, untested
from envcheck.report.page.pen import ROOMS, WORDS, Line, Pen, Room, StyledSpan, labelled, screen_rows, title_lines
from envcheck.report.page.stack import StackRow, checks_in, stack_rows
from envcheck.report.page.subject import gpu_numbers, judged_environment, listed, worst
from envcheck.rules.facts.machine import plural

RulePage: TypeAlias = Mapping[str, str]  # The text below each heading of a rule's page; empty until it is loaded
_COUNTED = {"?": "open"}
_MARGIN = 4  # Columns before the text below a heading of a rule's page
_MOST_SHOWN = 200  # Lines about a finding that are shown beside the list
_COPY = 1  # Rows for the key that copies, where it does not fit behind the command
_LEAST_PAGE = 6  # Rows that must be left for a rule's page to begin
_BESIDE_LIST = Room(seen=8, why=12, fixes=4, fix=6, also=12)
_WORD = 8  # Columns of the verdict's word
_COUNTED_AS = {"fail": "failure", "warn": "warning"}
_NEXT = {"(--deep)": "d test frameworks (10 to 30 s)", "(--bench)": "b benchmark (about 10 s a GPU)"}
"""What confirms a verdict of static checks, and what that takes (benchmarks/results: check-time, nccl-h200)."""
_KEYS = {"(--deep)": "(d)", "(--bench)": "(b)", "(-v)": "(enter)"}


def head(outline: Outline, pen: Pen, most: int) -> list[Line]:
    """The verdict: how many findings there are, or why there is none; below it what can be tested next."""
    report = outline.report
    if outline.cause is not None:
        counts = [(sum(one.status == status for one in outline.findings), word) for status, word in _COUNTED_AS.items()]
        title = ", ".join(plural(count, word) for count, word in counts if count)
        follow = sum(len(outline.consequences(finding)) for finding in outline.findings)
        title += f"; {plural(follow, 'consequence')}" if follow else ""
        lines = [*title_lines(WORDS[report.verdict], report.verdict, title, "", pen, 1)]
        lines += labelled("aside", ignored(report.checks), pen, 1)
    else:
        laid_out = [head_lines(outline, pen, room) for room in ROOMS]
        lines = next((lines for lines in laid_out if screen_rows(lines, pen.width) < most), laid_out[-1])
    untried = untested(report)
    following = [advice for option, advice in _NEXT.items() if option in untried]
    if report.verdict == "pass" and following:
        lines += pen.hang(" " * _WORD, f"Next: {', '.join(following)}", "note", 2)
    elif untried:
        lines += pen.hang(" " * _WORD, untried, "dim", 2)
    return _with_keys(lines)


def count_text(checks: Iterable[Check]) -> str:
    """``1 FAIL, 2 WARN, 30 ok``."""
    statuses = [_displayed_status(check) for check in checks]
    counts = [(statuses.count(status), WORDS[status]) for status in STATUSES if status != "skipped"]
    return ", ".join(f"{number} {_COUNTED.get(word, word)}" for number, word in counts if number)


def _with_keys(lines: Iterable[Line]) -> list[Line]:
    """``lines`` with keys in place of the options that do the same."""
    for option, key in _KEYS.items():
        lines = [tuple(StyledSpan(span.text.replace(option, key), span.style) for span in line) for line in lines]
    return [*lines]


def in_order(outline: Outline, *, final: bool, layer: Layer | None = None) -> list[Finding]:
    """Findings, consequences, open questions, notes, then passed checks, each layer by layer; without skipped ones."""
    asked = (check for check in outline.report.checks if check.status != "skipped" and layer in (None, check.layer))
    shown = [check for check in asked if final or check.status != "unknown"]
    roots = [check.id for finding in outline.findings for check in finding.checks]
    place = {identity: number for number, identity in enumerate(roots)}

    def urgency(check: Check) -> tuple[int, int, int]:
        return STATUSES.index(_displayed_status(check)), place.get(check.id, len(place)), LAYERS.index(check.layer)

    return list(folded(sorted(shown, key=urgency)))


def _displayed_status(check: Check) -> Status:
    return "note" if check.ignored else check.status


def title_of(finding: Finding) -> str:
    title = finding.lead.title if finding.status == "pass" and len(finding.checks) == 1 else finding.title
    gpu, colon, news = finding.lead.title.partition(": ")
    if colon and finding.lead.subject.kind == "gpu" and gpu.startswith("GPU "):  # a narrow list cuts the end
        title = f"{news}, {gpu if len(finding.checks) == 1 else gpu_numbers(finding.checks)}"
    return f"not judged: {title}" if finding.status == "unknown" else title


def finding_lines(finding: Finding, report: Report, pen: Pen, documentation: RulePage) -> list[Line]:
    """A finding, its subjects with the same text only once, and the documentation of its rule."""
    from envcheck.report.page.verbose import check_lines

    lines = [line for checks in finding.variants for line in (*check_lines(checks[:1], report, pen), ())]
    return [*lines, *_rule_lines(finding.rule, documentation, pen)]


def first_lines(
    finding: Finding, outline: Outline, pen: Pen, documentation: RulePage, rows: int, *, title: bool, rule: bool
) -> list[Line]:
    """What was seen, why, the fix, as detailed as ``rows`` allow; ``title``, ``rule``: those that the list cuts."""
    from envcheck.report.page.verbose import check_lines

    above: list[Line] = [(StyledSpan(line, "title"),) for line in pen.fill(title_of(finding), pen.width, 2) if title]
    others = len(finding.variants) - 1
    below: list[Line] = [(StyledSpan(f"and {others} more: enter shows all", "dim"),)] if others else []
    below += labelled("rule", finding.rule, pen, 1) if rule else []
    if finding.status in ("fail", "warn"):
        rooms = (_BESIDE_LIST, *ROOMS)
        laid_out = ([*above, *finding_details(finding, outline, pen, room), *below] for room in rooms)
        fits = (lines for lines in laid_out if screen_rows(lines, pen.width) + _COPY <= rows)
        lines = next(fits, None) or [*above, *finding_details(finding, outline, pen, ROOMS[-1]), *below]
    else:
        lines_of_check = check_lines((finding.lead,), outline.report, pen)[:_MOST_SHOWN]
        lines = [*above, *(line for line in lines_of_check if all(span.style != "title" for span in line)), *below]
    lines = _with_keys(lines)
    rest = _rule_lines(finding.rule, documentation, pen)
    return [*lines, (), *rest] if rows - screen_rows(lines, pen.width) > _LEAST_PAGE else lines


def passed_lines(findings: Iterable[Finding], pen: Pen, rows: int) -> list[Line]:
    """What holds, layer by layer: a line each where ``rows`` allow it."""
    lines: list[Line] = []
    passed = [finding for finding in findings if finding.status == "pass"]
    for layer in LAYERS:
        titles = [title_of(finding) for finding in passed if finding.lead.layer == layer]
        each = titles if len(passed) <= rows else ["; ".join(titles)] * bool(titles)
        for number, title in enumerate(each):
            lines += pen.hang((StyledSpan(f"{'' if number else layer:<11}", "dim"),), title)
    return lines


def _rule_lines(name: str, page: RulePage, pen: Pen) -> list[Line]:
    """The page of a rule; its paragraphs are filled again, lines of examples and lists and sources stay as they are."""
    if not page:
        return []
    lines: list[Line] = [(StyledSpan(f"envcheck rule {pen.text(name)}", "title"),)]
    for heading, body in page.items():
        lines += [(), (StyledSpan(pen.text(heading), "title"),)] if heading else []
        for number, block in enumerate(body.split("\n\n")):
            lines += [()] if number else []
            stays = heading == "Sources" or block.startswith((" ", "- "))
            for text in block.splitlines() if stays else [" ".join(block.split())]:
                indent = " " * (len(text) - len(text.lstrip()) + (_MARGIN if heading else 0))
                lines += [(StyledSpan(f"{indent}{line}", "dim"),) for line in pen.fill(text, pen.width - len(indent))]
    return lines


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
