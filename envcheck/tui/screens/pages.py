"""The parts of the overview as lines: the pages of the command line, with keys in place of options."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from envcheck.model.checks import STATUSES, Check, Report, Status
from envcheck.report.page.findings import Finding, Outline, folded
from envcheck.report.page.head import head_lines
from envcheck.report.page.layout import ROOMS
from envcheck.report.page.pen import WORDS, Line, Pen, StyledSpan, screen_rows
from envcheck.report.page.tail import untested

_COUNTED = {"?": "open"}
_EXAMPLE = 8
"""Columns by which the page of a rule indents an example."""
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


def finding_lines(finding: Finding, report: Report, pen: Pen, documentation: str) -> list[Line]:
    """A finding, its subjects with the same text only once, and the documentation of its rule."""
    from envcheck.report.page.verbose import check_lines

    lines = [line for checks in finding.variants for line in (*check_lines(checks[0], report, pen), ())]
    return [*lines, *_rule_lines(finding.rule, documentation, pen)]


def first_lines(finding: Finding, report: Report, pen: Pen, documentation: str) -> list[Line]:
    """The same for its first subject alone, cut to a few screens: it is laid out at every move of the cursor."""
    from envcheck.report.page.verbose import check_lines

    lines = check_lines(finding.lead, report, pen)[:_MOST_SHOWN]
    others = len(finding.checks) - 1
    more: list[Line] = [(StyledSpan(f"and {others} more: enter shows all", "dim"),)] if others else []
    return [*lines, *more, (), *_rule_lines(finding.rule, documentation, pen)]


def _rule_lines(name: str, documentation: str, pen: Pen) -> list[Line]:
    if not documentation:
        return []
    lines: list[Line] = [(StyledSpan(f"envcheck rule {pen.text(name)}", "title"),)]
    for margin, paragraph in _paragraphs(documentation):
        if not margin and len(lines) > 1 and not paragraph.endswith("."):
            lines.append((StyledSpan(pen.text(paragraph), "title"),))
        else:
            columns = pen.width - len(margin)
            lines += [(StyledSpan(f"{margin}{line}", "dim"),) for line in pen.fill(paragraph, columns)] or [()]
    return lines


def _paragraphs(text: str) -> Iterator[tuple[str, str]]:
    """Indentation and text of each paragraph. A change of indentation ends one, and so does a URL. Lines of an example
    stay as they are.
    """
    margin, joined = "", ""
    for line in text.splitlines():
        words = line.strip()
        indented = line[: len(line) - len(line.lstrip())]
        if len(indented) >= _EXAMPLE:
            if joined:
                yield margin, joined
            yield indented, words
            joined = ""
            continue
        if joined and (indented != margin or not words or joined.rpartition(" ")[2].startswith("https://")):
            yield margin, joined
            joined = ""
        margin, joined = indented, f"{joined} {words}".strip()
        if not words:
            yield "", ""
    if joined:
        yield margin, joined
