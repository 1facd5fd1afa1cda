"""The parts of the overview, as lines: the pages of the CLI with keys in place of options."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from envcheck.checks import STATUSES, Check, Report
from envcheck.report.findings import Finding, Outline
from envcheck.report.head import head_lines
from envcheck.report.pen import Line, Pen, Span, screen_rows
from envcheck.report.room import ROOMS
from envcheck.report.stack import stack_lines
from envcheck.report.subject import gpu_numbers
from envcheck.report.tail import not_tried

_KEYS = {"(--deep)": "(d)", "(--bench)": "(b)", "(-v)": "(enter)"}
_OPEN = "looking"


def head(outline: Outline, pen: Pen, most: int) -> list[Line]:
    """The verdict in the roomiest way that takes at most ``most`` rows, or in the tightest."""
    untried = _with_keys(not_tried(outline.report))
    tail: list[Line] = [(Span(untried, "dim"),)] if untried else []
    laid_out = ([*head_lines(outline, pen, room), *tail] for room in ROOMS)
    tightest = head_lines(outline, pen, ROOMS[-1])
    lines = next((lines for lines in laid_out if screen_rows(lines, pen.width) <= most), tightest)
    return [tuple(Span(_with_keys(span.text), span.style) for span in line) for line in lines]


def _with_keys(text: str) -> str:
    """``text`` with the keys that do what the options of the CLI do."""
    for option, key in _KEYS.items():
        text = text.replace(option, key)
    return text


def stack(report: Report, pen: Pen, *, final: bool) -> list[Line]:
    """The stack; until all is known, rows that nobody told of yet are still looked at, and none is an open question."""
    lines = stack_lines(report, pen, ROOMS[2])
    if final:
        return [tuple(Span(_with_keys(span.text), span.style) for span in line) for line in lines]
    return [tuple(map(_still_open, line)) for line in lines]


def _still_open(span: Span) -> Span:
    if span.style == "unknown":
        return Span("-".ljust(len(span.text)), "skipped")
    return Span(_OPEN, "dim") if span.text == "not looked at" else span


def in_order(outline: Outline, *, final: bool) -> list[Finding]:
    """Findings, consequences, open questions, notes, then what passed; what was not looked at is left to the facts."""
    report = outline.report
    shown = [check for check in report.checks if check.status != "skipped" and (final or check.status != "unknown")]
    roots = [check.id for finding in outline.findings for check in finding.checks]
    place = {identity: number for number, identity in enumerate(roots)}
    shown.sort(key=lambda check: (STATUSES.index(_weight(check)), place.get(check.id, len(place))))
    return _alike(shown)


def _weight(check: Check) -> str:
    return "note" if check.ignored else check.status


def _alike(checks: Iterable[Check]) -> list[Finding]:
    """What one rule says in the same words of several subjects is one row."""
    groups: dict[tuple[str, str, str], list[Check]] = {}
    for check in checks:
        groups.setdefault((check.rule, check.status, check.title), []).append(check)
    return [Finding(tuple(group)) for group in groups.values()]


def title_of(finding: Finding) -> str:
    """What stands in its row."""
    title = finding.lead.title
    told = f"not judged: {title}" if finding.status == "unknown" else title
    numbers = gpu_numbers(finding.checks) if len(finding.checks) > 1 else ""
    return f"{told} ({numbers})" if numbers else told


def finding_lines(finding: Finding, report: Report, pen: Pen) -> list[Line]:
    """All that is known of a finding, subjects that say the same together, and what its rule says."""
    from envcheck.report.verbose import check_lines
    from envcheck.rules.catalog import find_rule

    lines: list[Line] = []
    for check in _different(finding.checks):
        lines += [*check_lines(check, report, pen), ()]
    rule = find_rule(finding.rule)
    if rule is None:
        return lines
    told: list[Line] = [
        (Span(line, "dim"),)
        for text in rule.documentation.splitlines()
        for line in (_indented(text, pen) if text.strip() else [""])
    ]
    return [*lines, (Span(f"envcheck rule {rule.name}", "title"),), *told]


def _indented(text: str, pen: Pen) -> list[str]:
    margin = text[: len(text) - len(text.lstrip())]
    return [f"{margin}{line}" for line in pen.fill(text.strip(), pen.width - len(margin))]


def _different(checks: Sequence[Check]) -> list[Check]:
    """One for each thing that is said; who else it is said of is in the row."""
    seen: dict[Check, Check] = {}
    for check in checks:
        seen.setdefault(msgspec.structs.replace(check, id="", subject=checks[0].subject), check)
    return list(seen.values())
