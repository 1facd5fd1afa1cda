"""The report for an issue or a chat, in GitHub's Markdown: what matters on top, the rest folded away.

Every text from the machine is cleaned, cut and escaped: it can make no heading, link, image, table cell or mention.
"""

from __future__ import annotations

import re

from envcheck.model.checks import STATUSES, Check, Report, Status, ignored, ways_in_order
from envcheck.redact import HOME, is_redacted
from envcheck.report import Format, Options
from envcheck.report.document import is_page
from envcheck.report.markup import block, code, fence, prose
from envcheck.report.page.findings import Finding, Outline, dead_probes, probe_sentence
from envcheck.report.page.frame import count_text, evidence_text, untested
from envcheck.report.page.layout import ACTIONS, WHO, steps
from envcheck.report.page.pen import WORDS
from envcheck.report.page.plain import distributions, made_by, versions
from envcheck.report.page.stack import stack_rows
from envcheck.report.page.subject import check_name, judged_environment, subject_line

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
    title = outline.cause.title if outline.cause else report.headline
    if (aside := ignored(report.checks)) and aside not in title:
        title = f"{title} ({aside})"
    stack = [
        f"| {prose(row.label)} | {_ICONS[row.status]} {_WORDS[row.status]} | {prose(row.text)} |"
        for row in stack_rows(report, _GPUS)
    ]
    # What else was found, could not be judged, or is worth saying.
    others, dead = outline.others, dead_probes(report)
    also = [_item(finding) for finding in others[:_FINDINGS]]
    also += [f"- {len(others) - _FINDINGS} more"] if len(others) > _FINDINGS else []
    also += [f"- {_ICONS['unknown']} {prose(probe_sentence(run))}" for run in dead[:_PROBES]]
    also += [f"- {len(dead) - _PROBES} more failed probes"] if len(dead) > _PROBES else []
    listed = "\n".join(f"- {prose(label)}: {code(text)}" for label, text in versions(report)[:_ROWS])
    installed = distributions(judged_environment(report))
    packages = [block(text) for text in installed[: 2 * _ROWS]]
    packages += [f"{len(installed) - 2 * _ROWS} more"] if len(installed) > 2 * _ROWS else []
    listed += "\n\n```text\n" + "\n".join(packages) + "\n```" if packages else ""
    # Every check, the most pressing first; those that passed or were skipped by their names alone.
    pressing = [check for check in report.checks if check.status not in ("pass", "skipped")]
    pressing.sort(key=lambda check: STATUSES.index(check.status))
    told = [(_WORDS[check.status], code(check_name(check)), prose(check.title)) for check in pressing[:_ROWS]]
    rows = [f"| {' | '.join(row)} |" for row in told]
    checks = ["\n".join(["| | | |", "|---|---|---|", *rows])] if rows else []
    checks += [f"{len(pressing) - _ROWS} more"] if len(pressing) > _ROWS else []
    for status, label in (("pass", "Passed"), ("skipped", "Skipped")):
        rules = list(dict.fromkeys(check.rule for check in report.checks if check.status == status))
        more = f" and {len(rules) - 2 * _ROWS} more" if len(rules) > 2 * _ROWS else ""
        checks += [f"{label}: {', '.join(code(name, 80) for name in rules[: 2 * _ROWS])}{more}"] if rules else []
    assumed = ", ".join(f"{name} {value}".rstrip() for name, value in list(report.assumed.items())[:_FINDINGS])
    footer = [
        prose(made_by(report)),
        prose(f"assumed: {assumed}") if assumed else "",
        prose(untested(report).rstrip(".")),
        "names and identifiers are replaced" if is_redacted(report) else "",
    ]
    parts = [
        f"### {_ICONS[report.verdict]} {report.verdict.upper()}: {prose(title)}",
        *_targets(report),
        *_cause(outline),
        "\n".join(["| | | |", "|---|---|---|", *stack]),
        *(["**Also**\n\n" + "\n".join(also)] if also else []),
        *_folded("Versions", listed),
        *_folded(f"Checks: {count_text(report)}", "\n\n".join(checks)),
        f"<sub>{'; '.join(filter(None, footer))}</sub>",
    ]
    # ``~`` for the home folder, but in commands: a shell does not expand it within quotes.
    home = HOME if is_redacted(report) else options.home
    shown = (part.replace(f"{home}/", "~/") if home and not part.startswith("```") else part for part in parts)
    return "\n\n".join(filter(None, shown)) + "\n"


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
            parts.append(f"**Fix:** {_with_addresses(f'{step}{WHO[fix.who]}{fix.text}', check)}{risk}")
            parts += [fence(fix.command, _LONGEST_COMMAND)] if fix.command else []
    pages = [source for source in check.sources if is_page(source.address)]
    # What looks like an entity in an address stays as it is.
    links = [
        f"[{prose(page.title)}]"
        + (f"({page.address})" if _PLAIN.fullmatch(page.address) else f"(<{page.address.replace('&', '&amp;')}>)")
        for page in pages
    ]
    parts += [f"Documented: {', '.join(links[:_FIXES])}"] if links else []
    follows = outline.consequences(finding)[:_FINDINGS]
    return [*parts, *(["Consequences:\n" + "\n".join(map(_item, follows))] if follows else [])]


_PLAIN = re.compile(r"[\w:/.#?=%~+,@-]+", re.ASCII)
"""An address that Markdown takes as it is."""


def _with_addresses(text: str, check: Check) -> str:
    """``text`` as prose, in which addresses on the hosts of the check's pages stay as they are."""
    hosts = {source.address.split("/")[2] for source in check.sources if is_page(source.address)}
    told = []
    for part in re.split(r"(https://[^\s<>\"')]*[\w/])", text):
        own = _PLAIN.fullmatch(part) and is_page(part) and part.split("/")[2] in hosts
        before, after = (" " if part[:1] == " " else "", " " if part[-1:] == " " else "")
        told.append(part if own else f"{before}{prose(part)}{after}" if part.strip() else part)
    return "".join(told)


def _item(finding: Finding) -> str:
    return f"- {_ICONS[finding.status]} {_WORDS[finding.status]}: {prose(finding.title)} {code(finding.rule)}"


def _folded(title: str, body: str) -> list[str]:
    if not body:
        return []
    return [f"<details><summary>{prose(title)}</summary>\n\n{body}\n\n</details>"]
