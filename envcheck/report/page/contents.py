"""The parts of a report as a document, which HTML and Markdown write."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from envcheck.model.checks import STATUSES, Check, Report, Status, ignored, ways_in_order
from envcheck.model.names import fact_name
from envcheck.redact import is_redacted
from envcheck.report.document import Node, Tag, chip, cut, fact, headed, link, more, table, tag
from envcheck.report.page.findings import Finding, Outline, dead_probes, probe_name, probe_sentence
from envcheck.report.page.frame import count_text, evidence_text, untested
from envcheck.report.page.pen import ACTIONS, steps, words_of
from envcheck.report.page.plain import made_at, made_by, versions
from envcheck.report.page.stack import stack_rows
from envcheck.report.page.subject import check_name, subject_line
from envcheck.report.page.targets import finding_rows, stated

_NAME = 80  # Characters of a name that are shown
_DECIDED_BY = {
    "declared": "what is declared", "inferred": "inference from facts", "driver-answered": "the driver's answer",
    "framework-ran": "what a program did", "measured": "measurement",
}  # fmt: skip


class Extent(NamedTuple):
    """Most of each part: ``findings`` of those after the first, of failed probes and of consequences; ``ways`` to fix
    one. In a ``whole`` document each finding says all, each check has its row, and variables and probes are there.
    """

    targets: int
    gpus: int
    findings: int
    evidence: int
    ways: int
    rows: int
    whole: bool


class Contents:
    """The parts, as much of each as an extent admits."""

    def __init__(self, report: Report, extent: Extent) -> None:
        self._report, self._extent, self._outline = report, extent, Outline(report)

    def targets(self) -> list[Tag]:
        """The result for each target, and what was found for which; the rest is about the worst."""
        report, shown = self._report, self._report.targets[: self._extent.targets]
        names = [fact(cut(target.name, _NAME)) for target in shown]
        results: list[Sequence[Node]] = [
            (name, chip(target.verdict), target.headline, stated(target))
            for name, target in zip(names, shown, strict=True)
        ]
        parts = table(results, ("target", "result", "headline", "assumed"))
        rows = finding_rows(shown)[: self._extent.findings] if len(shown) > 1 else []
        found = [(fact(cut(row.rule, _NAME)), *(chip(each or "skipped") for each in row.statuses)) for row in rows]
        parts += [*more(len(report.targets) - len(shown), "more targets"), *table(found, ("finding", *names))]
        if report.worst is not None and len(shown) > 1:
            parts.append(tag("p", "What follows is about the worst: ", fact(cut(report.worst.name, _NAME))))
        return parts

    def verdict(self) -> list[Tag]:
        """What the report is about in a line."""
        report, cause = self._report, self._outline.cause
        title, aside = cause.title if cause else report.headline, ignored(report.checks)
        title = f"{title} ({aside})" if aside and aside not in title else title
        about = ", ".join(filter(None, (report.host, made_at(report), count_text(report))))
        return headed(report.verdict, title, about)

    def cause(self) -> list[Tag]:
        """All that is known of the first finding; without one, what to find out next."""
        if self._outline.cause:
            return self._body(self._outline.cause)
        asked = ", ".join(dict.fromkeys(map(fact_name, self._report.ask[:8])))
        return [tag("p", f"Find out next: {asked}")] if asked else []

    def stack(self) -> list[Tag]:
        """The rows in the order of every page; one without a label continues the row above, and here needs its own."""
        floors, label = [], ""
        for row in stack_rows(self._report, self._extent.gpus):
            label = row.label or ("GPU" if label == "GPU" else "Elsewhere")
            cells = tag("b", label), chip(row.status), tag("span", row.text)
            floors.append(tag("div", *cells, class_=f"floor {row.status}"))
        ground = tag("p", "each layer depends on those above it", class_="ground")
        return [tag("div", *floors, class_="tower"), ground]

    def findings(self) -> list[Tag]:
        """What else was found, could not be judged, or is worth saying."""
        most, others, dead = self._extent.findings, self._outline.others, dead_probes(self._report)
        cards = []
        for finding in others[:most]:
            rule = tag("span", finding.rule, class_="rule")
            head = tag("header", chip(finding.status), tag("h3", finding.title), rule)
            body = self._body(finding) if self._extent.whole else ()
            cards.append(tag("article", head, *body, class_=f"card finding {finding.status}"))
        for run in dead[:most]:
            head = tag("header", chip("unknown"), tag("span", probe_sentence(run)))
            cards.append(tag("article", head, class_="card finding unknown"))
        return [*cards, *more(len(others[most:]) + len(dead[most:]))]

    def _body(self, finding: Finding) -> list[Tag]:
        """All that is known of a finding, and its consequences."""
        rows_of_facts = facts(finding.checks, self._report, self._extent.evidence, self._extent.ways)
        rule = ("rule", tag("p", tag("code", f"envcheck rule {finding.rule}")))
        parts = []
        for label, same in groupby((*rows_of_facts, rule), lambda each: each[0]):
            parts += [tag("dt", label), tag("dd", *(fact for _, fact in same))]
        follows = [
            tag("li", chip(found.status), " ", found.title, " ", tag("span", found.rule, class_="rule"))
            for found in self._outline.consequences(finding)
        ]
        most = self._extent.findings
        listed = [tag("p", "Consequences:", class_="meta"), tag("ul", *follows[:most])] if follows else []
        return [tag("dl", *parts), *listed, *more(len(follows[most:]))]

    def details(self) -> list[Tag]:
        """What is here, each check, and in a whole document the variables and probes."""
        report, whole = self._report, self._extent.whole
        checks, named = list[Sequence[Node]](), dict[Status, dict[str, None]]()
        for check in sorted(report.checks, key=lambda check: STATUSES.index(check.status)):
            if whole or check.status not in ("pass", "skipped"):
                aside = f" (ignored: {check.ignored.reason})" if check.ignored else ""
                checks.append((chip(check.status), tag("code", check_name(check)), check.title + aside))
            else:  # the names of the rules alone, in one row
                named.setdefault(check.status, {})[cut(check.rule, _NAME)] = None
        rows: list[Sequence[Node]] = []
        for status, names in named.items():
            names_shown = [part for name in [*names][: 2 * self._extent.rows] for part in (" ", tag("code", name))]
            rows.append((chip(status), tag("span", *names_shown[1:]), ""))
        variables = report.snapshot.variables if whole and report.snapshot else None
        probes = [(probe_name(run), run.status, f"{run.seconds:.2f} s {run.detail}") for run in report.probes if whole]
        return [
            *self._fold("Versions", [(name, fact(text)) for name, text in versions(report)]),
            *self._fold(f"All checks: {count_text(report)}", checks, rows),
            *self._fold("Environment variables", [*variables.values.items()] if variables else []),
            *self._fold("Probes", probes),
        ]

    def _fold(self, title: str, rows: Sequence[Sequence[Node]], last: Sequence[Sequence[Node]] = ()) -> list[Tag]:
        """A table that is shown on request; nothing without rows."""
        most = self._extent.rows
        inside = [*table([*rows[:most], *last]), *more(len(rows[most:]))]
        return [tag("details", tag("summary", title), tag("div", *inside, class_="inside"))] if inside else []

    def footer(self) -> Tag:
        """Who made it of what, and what it leaves out."""
        report = self._report
        remarks = (
            made_by(report),
            f"assumed: {stated(report)}" if report.assumed else "",
            f"matrix overlays: {', '.join(report.overlays)}" if report.overlays else "",
            untested(report).rstrip("."),
            "names of users and machines, and identifiers, are replaced" if is_redacted(report) else "",
        )
        first, *rest = filter(None, remarks)
        return tag("footer", first, *(f"; {part}" for part in rest))


def facts(
    checks: Sequence[Check], report: Report, evidence: int | None = None, most: int | None = None
) -> Iterator[tuple[str, Tag]]:
    """All that is known of checks that say the same, each with its label: with so much of the ``evidence``, and at
    ``most`` so many ways to fix each of them.
    """
    check = checks[0]
    if about := subject_line(checks, report):
        yield "about", tag("p", fact(about))
    for found in check.evidence[:evidence]:
        source = [tag("span", f" ({found.source})", class_="meta")] if found.source else []
        yield "seen", tag("div", fact(evidence_text(found)), *source)
    if check.message.strip(" .") not in ("", check.title.strip(" .")):
        yield "why", tag("p", check.message)
    for lack in check.missing:
        yield (
            "lacks",
            tag("p", fact_name(lack.fact), f" ({f'from probe {lack.probe}' if lack.probe else 'not checked'})"),
        )
    if check.explained_by:
        yield "cause", tag("p", fact(check.explained_by))
    for each in {each.fixes: each for each in checks}.values():
        for step, fix in (one for way in ways_in_order(each.fixes)[:most] for one in steps(way)):
            risk = [tag("span", f" (risk: {fix.risk})", class_="risk")] if fix.risk else []
            yield "fix", tag("p", words_of(step, fix), *risk)
            if fix.command:
                yield "fix", tag("pre", *fix.command)
    if check.action in ACTIONS:
        yield "act", tag("p", ACTIONS[check.action])
    if check.ignored:
        until = f" until {check.ignored.until}" if check.ignored.until else ""
        yield "aside", tag("p", f"ignored by policy{until}: {check.ignored.reason}")
    if check.judged:
        words = f"{check.status} by the configuration, or because the rule is new; the rule says {check.judged}"
        yield "set", tag("p", words)
    if check.status not in ("unknown", "skipped"):
        unsure = "" if check.confidence == "high" else f", {check.confidence} confidence"
        yield "by", tag("p", _DECIDED_BY[check.decided_by], unsure)
    for page in check.sources:
        yield "docs", tag("p", link(page.title, page.address), f" (read {page.read})" if page.read else "")
