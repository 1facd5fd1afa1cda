"""The parts of the overview, as lines: the pages of the CLI with keys in place of options."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from envcheck.checks import STATUSES, Check, Report, Status
from envcheck.report.page.findings import Finding, Outline
from envcheck.report.page.head import head_lines
from envcheck.report.page.layout import ROOMS
from envcheck.report.page.pen import WORDS, Line, Pen, Span, screen_rows
from envcheck.report.page.subject import gpu_numbers
from envcheck.report.page.tail import not_tried

_COUNTED = {"?": "open"}
_MOST_SHOWN = 200
"""Lines about a finding that stand beside the list."""
_KEYS = {"(--deep)": "(d)", "(--bench)": "(b)", "(-v)": "(enter)"}


def head(outline: Outline, pen: Pen, most: int) -> list[Line]:
    """The verdict in the roomiest way that takes at most ``most`` rows, or in the tightest."""
    untried = _with_keys(not_tried(outline.report))
    tail: list[Line] = [(Span(untried, "dim"),)] if untried else []
    laid_out = ([*head_lines(outline, pen, room), *tail] for room in ROOMS)
    tightest = head_lines(outline, pen, ROOMS[-1])
    lines = next((lines for lines in laid_out if screen_rows(lines, pen.width) <= most), tightest)
    return [tuple(Span(_with_keys(span.text), span.style) for span in line) for line in lines]


def counted(checks: Iterable[Check]) -> str:
    """``1 FAIL, 2 WARN, 30 ok``: how many findings of each kind there are."""
    statuses = [_weight(check) for check in checks]
    told = [(statuses.count(status), WORDS[status]) for status in STATUSES if status != "skipped"]
    return ", ".join(f"{number} {_COUNTED.get(word, word)}" for number, word in told if number)


def _with_keys(text: str) -> str:
    """``text`` with the keys that do what the options of the CLI do."""
    for option, key in _KEYS.items():
        text = text.replace(option, key)
    return text


def in_order(outline: Outline, *, final: bool) -> list[Finding]:
    """Findings, consequences, open questions, notes, then what passed; what was not looked at is left to the facts."""
    report = outline.report
    shown = [check for check in report.checks if check.status != "skipped" and (final or check.status != "unknown")]
    roots = [check.id for finding in outline.findings for check in finding.checks]
    place = {identity: number for number, identity in enumerate(roots)}
    shown.sort(key=lambda check: (STATUSES.index(_weight(check)), place.get(check.id, len(place))))
    return _alike(shown)


def _weight(check: Check) -> Status:
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


def finding_lines(finding: Finding, report: Report, pen: Pen, documentation: str) -> list[Line]:
    """All that is known of a finding, subjects that say the same together, and what its rule says, if that is known."""
    from envcheck.report.page.verbose import check_lines

    lines: list[Line] = []
    for check in _different(finding.checks):
        lines += [*check_lines(check, report, pen), ()]
    return [*lines, *_said_by_rule(finding.rule, documentation, pen)]


def first_lines(finding: Finding, report: Report, pen: Pen, documentation: str) -> list[Line]:
    """The same about its first subject alone, and no longer than a few screens: it is laid out at every step."""
    from envcheck.report.page.verbose import check_lines

    lines = check_lines(finding.lead, report, pen)[:_MOST_SHOWN]
    others = len(finding.checks) - 1
    more: list[Line] = [(Span(f"and of {others} more: enter shows all", "dim"),)] if others else []
    return [*lines, *more, (), *_said_by_rule(finding.rule, documentation, pen)]


def _said_by_rule(name: str, documentation: str, pen: Pen) -> list[Line]:
    if not documentation:
        return []
    return [(Span(f"envcheck rule {pen.text(name)}", "title"),), *_documentation(documentation, pen)]


def _documentation(text: str, pen: Pen) -> list[Line]:
    """What a rule says of itself: its headings, and its paragraphs filled anew for these columns."""
    lines: list[Line] = []
    for margin, paragraph in _paragraphs(text):
        if not margin and lines and not paragraph.endswith("."):
            lines.append((Span(pen.text(paragraph), "title"),))
        else:
            columns = pen.width - len(margin)
            lines += [(Span(f"{margin}{line}", "dim"),) for line in pen.fill(paragraph, columns)] or [()]
    return lines


def _paragraphs(text: str) -> Iterator[tuple[str, str]]:
    """Lines of one indentation that follow each other, joined, with what they are indented by; addresses end one."""
    margin, joined = "", ""
    for line in text.splitlines():
        words = line.strip()
        indented = line[: len(line) - len(line.lstrip())]
        if joined and (indented != margin or not words or _ends(joined)):
            yield margin, joined
            joined = ""
        margin, joined = indented, f"{joined} {words}".strip()
        if not words:
            yield "", ""
    if joined:
        yield margin, joined


def _ends(paragraph: str) -> bool:
    """Whether the next line is another paragraph: behind an address."""
    return paragraph.rpartition(" ")[2].startswith("https://")


def _different(checks: Sequence[Check]) -> list[Check]:
    """One for each thing that is said; who else it is said of is in the row."""
    seen: dict[Check, Check] = {}
    for check in checks:
        seen.setdefault(msgspec.structs.replace(check, id="", subject=checks[0].subject), check)
    return list(seen.values())
