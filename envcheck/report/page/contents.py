"""The parts of a report as a document, which HTML and Markdown write."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import NamedTuple

from envcheck.model.checks import STATUSES, Report, ignored, ways_in_order
from envcheck.model.names import fact_name
from envcheck.redact import is_redacted
from envcheck.report.document import LONGEST, Element, Node, chip, cut, link, tag
from envcheck.report.page.findings import Finding, Outline, dead_probes, probe_name, probe_sentence
from envcheck.report.page.frame import count_text, evidence_text, untested
from envcheck.report.page.layout import ACTIONS, WHO, steps
from envcheck.report.page.plain import distributions, made_at, made_by, versions
from envcheck.report.page.stack import stack_rows
from envcheck.report.page.subject import check_name, judged_environment, subject_line
from envcheck.report.page.targets import finding_rows, stated
from envcheck.text.clean import shell_line

_COMMAND = 4000
"""Characters of the longest command that is shown: half a command can do harm, so it is whole or not there."""


class Extent(NamedTuple):
    """Most of each part that a document holds."""

    targets: int
    gpus: int
    findings: int
    """Findings after the first, failed probes, and consequences."""
    evidence: int
    ways: int
    """Ways to fix one finding."""
    rows: int
    whole: bool
    """Whether each finding has all that is known of it, each check its row, and variables and probes are there."""


class Contents:
    """The parts, as much of each as an extent admits."""

    def __init__(self, report: Report, extent: Extent) -> None:
        self._report, self._extent, self._outline = report, extent, Outline(report)

    def targets(self) -> list[Element]:
        """The result for each target, and what was found for which; the rest is about the worst."""
        report, shown = self._report, self._report.targets[: self._extent.targets]
        names = [cut(target.name, 80) for target in shown]
        results: list[Sequence[Node]] = [
            (name, chip(target.verdict), target.headline, stated(target))
            for name, target in zip(names, shown, strict=True)
        ]
        parts = _table(results, ("target", "result", "headline", "assumed"))
        rows = finding_rows(shown)[: self._extent.findings] if len(shown) > 1 else []
        found: list[list[Node]] = [
            [cut(row.rule, 200), *(chip(status or "skipped") for status in row.statuses)] for row in rows
        ]
        parts += _table(found, ("finding", *names))
        if report.worst is not None and len(shown) > 1:
            parts.append(tag("p", "What follows is about the worst: ", cut(report.worst.name, 80)))
        return parts

    def verdict(self) -> list[Element]:
        """What the report is about in a line."""
        report, cause = self._report, self._outline.cause
        about = ", ".join(filter(None, (report.host, made_at(report), count_text(report), ignored(report.checks))))
        return [
            chip(report.verdict, report.verdict.upper()),
            tag("h1", cause.title if cause else report.headline),
            tag("p", about, class_="meta"),
        ]

    def cause(self) -> list[Element]:
        """All that is known of the first finding; without one, what to find out next."""
        if self._outline.cause:
            return self._body(self._outline.cause)
        asked = ", ".join(dict.fromkeys(map(fact_name, self._report.ask[:8])))
        return [tag("p", f"Find out next: {asked}")] if asked else []

    def stack(self) -> Element:
        """The rows in the order of every page; one without a label continues the row above, and here needs its own."""
        floors, label = [], ""
        for row in stack_rows(self._report, self._extent.gpus):
            label = row.label or ("GPU" if label == "GPU" else "Elsewhere")
            cells = tag("b", label), chip(row.status), tag("span", row.text)
            floors.append(tag("div", *cells, class_=f"floor {row.status}"))
        return tag("div", *floors, tag("div", "each layer depends on those above it", class_="ground"), class_="tower")

    def findings(self) -> list[Element]:
        """What else was found, could not be judged, or is worth saying."""
        most, cards = self._extent.findings, []
        for finding in self._outline.others[:most]:
            rule = tag("span", finding.rule, class_="rule")
            head = tag("header", chip(finding.status), tag("h3", finding.title), rule)
            body = self._body(finding) if self._extent.whole else ()
            cards.append(tag("article", head, *body, class_=f"card finding {finding.status}"))
        cards += [
            tag("article", chip("unknown"), " ", probe_sentence(run), class_="card finding unknown")
            for run in dead_probes(self._report)[:most]
        ]
        return cards

    def _body(self, finding: Finding) -> list[Element]:
        """All that is known of a finding, and its consequences."""
        check = finding.lead
        about = subject_line(finding.checks, self._report)
        fixes: list[Element] = []
        for each in {each.fixes: each for each in finding.checks}.values():
            ordered = ways_in_order(each.fixes)[: self._extent.ways]
            if not ordered and each.action in ACTIONS:
                fixes.append(tag("p", ACTIONS[each.action].capitalize()))
            for step, fix in (one for way in ordered for one in steps(way)):
                fixes.append(tag("p", f"{step}{WHO[fix.who].capitalize()}{fix.text}"))
                line = shell_line(fix.command)
                if fix.command and len(line) <= _COMMAND:
                    fixes.append(tag("pre", tag("code", line)))
                elif fix.command:
                    fixes.append(tag("p", f"(a command of {len(line):,} characters)"))
                if fix.risk:
                    fixes.append(tag("p", f"Risk: {fix.risk}", class_="risk"))
        seen = []
        for found in check.evidence[: self._extent.evidence]:
            source = [tag("span", f" ({found.source})", class_="meta")] if found.source else []
            seen.append(tag("div", tag("span", evidence_text(found)), *source))
        why = check.message if check.message.strip(" .") not in ("", check.title.strip(" .")) else ""
        lacks = ", ".join(fact_name(missing.fact) for missing in check.missing)
        sources = [
            tag("p", link(source.title, source.address), tag("span", f" (read {source.read})" if source.read else ""))
            for source in check.sources
        ]
        told = {
            "about": [tag("p", about)] if about else [],
            "seen": seen,
            "why": [tag("p", why)] if why else [],
            "lacks": [tag("p", lacks)] if lacks else [],
            "fix": fixes,
            "docs": sources,
            "rule": [tag("p", tag("code", f"envcheck rule {check.rule}"))],
        }
        parts = (part for label, inside in told.items() if inside for part in (tag("dt", label), tag("dd", *inside)))
        follows = [
            tag("li", chip(found.status), " ", found.title, " ", tag("span", found.rule, class_="rule"))
            for found in self._outline.consequences(finding)[: self._extent.findings]
        ]
        more = [tag("p", "Consequences:", class_="meta"), tag("ul", *follows)] if follows else []
        return [tag("dl", *parts), *more]

    def details(self) -> list[Element]:
        """What is here, each check, and in a whole document the variables and probes."""
        report, most = self._report, self._extent.rows
        installed = distributions(judged_environment(report))[:most]
        variables = report.snapshot.variables.values if report.snapshot and report.snapshot.variables else {}
        probes = [(probe_name(run), run.status, f"{run.seconds:.2f} s {run.detail}") for run in report.probes]
        checks = []
        for check in sorted(report.checks, key=lambda check: STATUSES.index(check.status)):
            aside = f" (ignored: {check.ignored.reason})" if check.ignored else ""
            checks.append((chip(check.status), tag("code", check_name(check)), check.title + aside))
        parts = {
            "Versions": _table(versions(report)[:most]),
            "Relevant Python packages": [tag("pre", cut("  ".join(installed), LONGEST))] if installed else [],
            f"All checks: {count_text(report)}": _table(checks[:most], kinds=("word", "name")),
            "Environment variables": _table([*variables.items()][:most]),
            "Probes": _table(probes[:most]),
        }
        return [
            tag("details", tag("summary", title), tag("div", *inside, class_="inside"))
            for title, inside in parts.items()
            if inside
        ]

    def footer(self) -> Element:
        """Who made it of what, and what it leaves out."""
        report = self._report
        told = (
            made_by(report),
            f"assumed: {stated(report)}" if report.assumed else "",
            f"matrix overlays: {', '.join(report.overlays)}" if report.overlays else "",
            untested(report).rstrip("."),
            "names of users and machines, and identifiers, are replaced" if is_redacted(report) else "",
        )
        return tag("footer", "; ".join(filter(None, told)))


def _table(
    rows: Sequence[Sequence[Node]], heads: Sequence[str] = (), kinds: Sequence[str] = ("name",)
) -> list[Element]:
    """A table whose first columns are of these kinds, which have widths; with ``heads`` it scrolls where it is wider
    than the page. Nothing without rows.
    """
    cells = [zip_longest(row, () if heads else kinds, fillvalue="") for row in rows]
    lines = [tag("tr", *(tag("td", cell, class_=kind) for cell, kind in row)) for row in cells]
    if not heads or not lines:
        return [tag("table", *lines)] if lines else []
    head = tag("tr", *(tag("th", cell, scope="col") for cell in heads))
    return [tag("div", tag("table", tag("thead", head), tag("tbody", *lines)), class_="wide", tabindex="0")]
