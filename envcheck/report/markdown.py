"""The report for an issue or a chat, in GitHub's Markdown: what matters on top, the rest folded away.

Every text from the machine is cleaned, cut and escaped: it can make no heading, link, image, table cell or mention.
"""

from __future__ import annotations

from collections.abc import Sequence

from envcheck.model.checks import STATUSES, Report, Status, ignored, ways_in_order
from envcheck.redact import HOME, is_redacted
from envcheck.report import Format, Options
from envcheck.report.markup import block, code, fence, is_page, prose
from envcheck.report.page.findings import Finding, Outline, dead_probes, probe_sentence
from envcheck.report.page.frame import count_text, evidence_text, untested
from envcheck.report.page.layout import ACTIONS, WHO, steps
from envcheck.report.page.pen import WORDS
from envcheck.report.page.plain import distributions, made_by, versions
from envcheck.report.page.stack import stack_rows
from envcheck.report.page.subject import judged_environment, subject_line

FORMAT = Format(
    shows="for an issue or a chat: verdict, cause, fix, stack, findings, versions",
    suffix="md",
    syntax="markdown",
    shared=True,
)

_GPUS, _FINDINGS, _FIXES, _EVIDENCE, _ROWS, _PROBES = 8, 12, 3, 5, 60, 6
"""Most of each that are shown."""
_TARGETS = 20
_LONGEST_COMMAND = 2000
_ICONS: dict[Status, str] = {
    "fail": "\N{CROSS MARK}",
    "warn": "\N{WARNING SIGN}\N{VARIATION SELECTOR-16}",
    "unknown": "\N{BLACK QUESTION MARK ORNAMENT}",
    "note": "\N{INFORMATION SOURCE}\N{VARIATION SELECTOR-16}",
    "pass": "\N{WHITE HEAVY CHECK MARK}",
    "skipped": "\N{EN DASH}",
}
_WORDS = WORDS | {"unknown": "not known", "skipped": ""}


def render(report: Report, options: Options) -> str:
    """``report`` as Markdown of less than 60,000 characters, which is what an issue takes."""
    outline = Outline(report)
    home = HOME if is_redacted(report) else options.home
    stack = [
        f"| {prose(row.label)} | {_ICONS[row.status]} {_WORDS[row.status]} | {prose(row.text)} |"
        for row in stack_rows(report, _GPUS)
    ]
    parts = [
        _verdict(outline),
        *_targets(report),
        *_cause(outline),
        "\n".join(["| | | |", "|---|---|---|", *stack]),
        *_findings(outline),
        *_folded("Versions", _versions(report)),
        *_folded(f"Checks: {count_text(report)}", _checks(report)),
        _footer(report),
    ]
    # ``~`` for the home folder, but in commands: a shell does not expand it within quotes.
    shown = (part.replace(f"{home}/", "~/") if home and not part.startswith("```") else part for part in parts)
    return "\n\n".join(filter(None, shown)) + "\n"


def _verdict(outline: Outline) -> str:
    report = outline.report
    told = outline.cause.title if outline.cause else report.headline
    aside = ignored(report.checks)
    title = f"{told} ({aside})" if aside and aside not in told else told
    return f"### {_ICONS[report.verdict]} {report.verdict.upper()}: {prose(title)}"


def _targets(report: Report) -> list[str]:
    """A row for each target, a table of findings by target, and which of them the rest is about."""
    if not report.targets:
        return []
    from envcheck.report.page.targets import finding_rows, stated

    shown = report.targets[:_TARGETS]
    left = len(report.targets) - len(shown)
    lines = ["| target | | result | assumed |", "|---|---|---|---|"]
    lines += [
        f"| {code(target.name, 80)} | {_ICONS[target.verdict]} {WORDS[target.verdict]} | {prose(target.headline)} "
        f"| {prose(stated(target))} |"
        for target in shown
    ]
    parts = ["\n".join(lines), *([f"{left} more targets"] if left else [])]
    rows = finding_rows(shown)
    if rows and len(shown) > 1:
        names = " | ".join(code(target.name, 80) for target in shown)
        told = []
        for row in rows[:_FINDINGS]:
            cells = (f"{_ICONS[each]} {WORDS[each]}" if each else _ICONS["skipped"] for each in row.statuses)
            told.append(f"| {code(row.rule, 80)} | {' | '.join(cells)} |")
        parts.append("\n".join([f"| finding | {names} |", "|---" * (len(shown) + 1) + "|", *told]))
    worst = report.worst
    return [*parts, *([f"The worst is {code(worst.name, 80)}:"] if worst and len(shown) > 1 else [])]


def _cause(outline: Outline) -> list[str]:
    """The first finding: what was seen, why it matters, how to fix it, where that is documented."""
    finding = outline.cause
    if finding is None:
        return []
    check = finding.lead
    lines = [f"Cause: {code(check.rule)}", ""]
    about = subject_line(finding.checks, outline.report)
    lines += [f"- about {code(about)}"] if about else []
    lines += [f"- seen: {code(evidence_text(found))}" for found in check.evidence[:_EVIDENCE]]
    lines += [f"- why: {prose(check.message)}"] if check.message.strip(" .") not in ("", check.title) else []
    parts = ["\n".join(lines)]
    ordered = ways_in_order(check.fixes)
    if not ordered and check.action in ACTIONS:
        parts.append(f"**Fix:** {ACTIONS[check.action]}")
    for way in ordered[:_FIXES]:
        for step, fix in steps(way):
            risk = f" (risk: {prose(fix.risk)})" if fix.risk else ""
            parts.append(f"**Fix:** {prose(f'{step}{WHO[fix.who]}{fix.text}')}{risk}")
            parts += [fence(fix.command, _LONGEST_COMMAND)] if fix.command else []
    pages = [source for source in check.sources if is_page(source.address)]
    # What looks like an entity in an address stays as it is.
    links = [f"[{prose(page.title)}](<{page.address.replace('&', '&amp;')}>)" for page in pages]
    parts += [f"Documented: {', '.join(links[:_FIXES])}"] if links else []
    follows = outline.consequences(finding)[:_FINDINGS]
    return [*parts, *(["Consequences:\n" + "\n".join(map(_item, follows))] if follows else [])]


def _item(finding: Finding) -> str:
    return f"- {_ICONS[finding.status]} {_WORDS[finding.status]}: {prose(finding.title)} {code(finding.rule)}"


def _findings(outline: Outline) -> list[str]:
    """What else was found, could not be judged, or is worth saying."""
    told = outline.others
    lines = [_item(finding) for finding in told[:_FINDINGS]]
    lines += [f"- {len(told) - _FINDINGS} more"] if len(told) > _FINDINGS else []
    dead = dead_probes(outline.report)
    lines += [f"- {_ICONS['unknown']} {prose(probe_sentence(run))}" for run in dead[:_PROBES]]
    lines += [f"- {len(dead) - _PROBES} more failed probes"] if len(dead) > _PROBES else []
    return ["**Also**\n\n" + "\n".join(lines)] if lines else []


def _folded(title: str, body: str) -> list[str]:
    if not body:
        return []
    return [f"<details><summary>{prose(title)}</summary>\n\n{body}\n\n</details>"]


def _versions(report: Report) -> str:
    told = versions(report)
    lines = [f"- {prose(label)}: {code(text)}" for label, text in told[:_ROWS]]
    installed = distributions(judged_environment(report))
    shown = [block(text) for text in installed[: 2 * _ROWS]]
    more = [f"{len(installed) - len(shown)} more"] if len(installed) > len(shown) else []
    return "\n".join(lines) + ("\n\n```text\n" + "\n".join([*shown, *more]) + "\n```" if shown else "")


def _checks(report: Report) -> str:
    """Every check, the most pressing first; those that passed or were skipped by their names alone."""
    pressing = [check for check in report.checks if check.status not in ("pass", "skipped")]
    pressing.sort(key=lambda check: STATUSES.index(check.status))
    rows = [f"| {_WORDS[check.status]} | {code(check.id)} | {prose(check.title)} |" for check in pressing[:_ROWS]]
    table = "\n".join(["| | | |", "|---|---|---|", *rows]) if rows else ""
    more = f"{len(pressing) - _ROWS} more" if len(pressing) > _ROWS else ""
    quiet = [_names(report, "pass", "Passed"), _names(report, "skipped", "Skipped")]
    return "\n\n".join(part for part in (table, more, *quiet) if part)


def _names(report: Report, status: Status, label: str) -> str:
    rules: Sequence[str] = list(dict.fromkeys(check.rule for check in report.checks if check.status == status))
    more = f" and {len(rules) - 2 * _ROWS} more" if len(rules) > 2 * _ROWS else ""
    return f"{label}: {', '.join(code(name, 80) for name in rules[: 2 * _ROWS])}{more}" if rules else ""


def _footer(report: Report) -> str:
    assumed = ", ".join(f"{name} {value}".rstrip() for name, value in list(report.assumed.items())[:_FINDINGS])
    parts = [
        prose(made_by(report)),
        prose(f"assumed: {assumed}") if assumed else "",
        prose(untested(report).rstrip(".")),
        "names and identifiers are replaced" if is_redacted(report) else "",
    ]
    return f"<sub>{'; '.join(part for part in parts if part)}</sub>"
