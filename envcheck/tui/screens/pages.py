"""The parts of the overview as lines: the pages of the command line, with keys in place of options."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from envcheck.model.checks import STATUSES, Check, Report, Status
from envcheck.report.page.findings import Finding, Outline, folded
from envcheck.report.page.frame import head_lines, untested
from envcheck.report.page.layout import ROOMS
from envcheck.report.page.pen import WORDS, Line, Pen, StyledSpan, screen_rows

RulePage: TypeAlias = Mapping[str, str]
"""The text below each heading of a rule's page; empty until it is loaded."""
_COUNTED = {"?": "open"}
_MARGIN = 4
"""Columns before the text below a heading of a rule's page."""
_MOST_SHOWN = 200
"""Lines about a finding that are shown beside the list."""
_KEYS = {"(--deep)": "(d)", "(--bench)": "(b)", "(-v)": "(enter)"}


def head(outline: Outline, pen: Pen, most: int) -> list[Line]:
    """The verdict in the most detailed layout of at most ``most`` rows, else in the shortest."""
    untried = _with_keys(untested(outline.report))
    tail: list[Line] = [(StyledSpan(untried, "dim"),)] if untried else []
    laid_out = ([*head_lines(outline, pen, room), *tail] for room in ROOMS)
    tightest = head_lines(outline, pen, ROOMS[-1])
    lines = next((lines for lines in laid_out if screen_rows(lines, pen.width) <= most), tightest)
    return [tuple(StyledSpan(_with_keys(span.text), span.style) for span in line) for line in lines]


def count_text(checks: Iterable[Check]) -> str:
    """``1 FAIL, 2 WARN, 30 ok``."""
    statuses = [_displayed_status(check) for check in checks]
    counts = [(statuses.count(status), WORDS[status]) for status in STATUSES if status != "skipped"]
    return ", ".join(f"{number} {_COUNTED.get(word, word)}" for number, word in counts if number)


def _with_keys(text: str) -> str:
    """``text`` with keys in place of the options that do the same."""
    for option, key in _KEYS.items():
        text = text.replace(option, key)
    return text


def in_order(outline: Outline, *, final: bool) -> list[Finding]:
    """Findings, consequences, open questions, notes, then passed checks; without skipped ones."""
    report = outline.report
    shown = [check for check in report.checks if check.status != "skipped" and (final or check.status != "unknown")]
    roots = [check.id for finding in outline.findings for check in finding.checks]
    place = {identity: number for number, identity in enumerate(roots)}
    shown.sort(key=lambda check: (STATUSES.index(_displayed_status(check)), place.get(check.id, len(place))))
    return list(folded(shown))


def _displayed_status(check: Check) -> Status:
    return "note" if check.ignored else check.status


def title_of(finding: Finding) -> str:
    """The title in its row."""
    title = finding.lead.title if finding.status == "pass" and len(finding.checks) == 1 else finding.title
    return f"not judged: {title}" if finding.status == "unknown" else title


def finding_lines(finding: Finding, report: Report, pen: Pen, documentation: RulePage) -> list[Line]:
    """A finding, its subjects with the same text only once, and the documentation of its rule."""
    from envcheck.report.page.verbose import check_lines

    lines = [line for checks in finding.variants for line in (*check_lines(checks[:1], report, pen), ())]
    return [*lines, *_rule_lines(finding.rule, documentation, pen)]


def first_lines(finding: Finding, report: Report, pen: Pen, documentation: RulePage) -> list[Line]:
    """The same for its first subject alone, cut to a few screens: it is laid out at every move of the cursor."""
    from envcheck.report.page.verbose import check_lines

    lines = check_lines((finding.lead,), report, pen)[:_MOST_SHOWN]
    others = len(finding.checks) - 1
    more: list[Line] = [(StyledSpan(f"and {others} more: enter shows all", "dim"),)] if others else []
    return [*lines, *more, (), *_rule_lines(finding.rule, documentation, pen)]


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
                columns = pen.width - len(indent)
                lines += [(StyledSpan(f"{indent}{line}", "dim"),) for line in pen.fill(text, columns)]
    return lines
