"""The report as a page in one file: no script, nothing loaded from anywhere, light and dark.

The stack is drawn as layers below the GPU; every status has a sign and a word beside its colour.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

from envcheck.model.checks import STATUSES, Figure, Report, Status, ignored, ways_in_order
from envcheck.model.names import fact_name
from envcheck.redact import is_redacted
from envcheck.report import Format, Options
from envcheck.report.charts import heat_table, link_matrix, roofline
from envcheck.report.document import LONGEST, Element, Node, chip, cut, link, tag
from envcheck.report.markup import whole_page
from envcheck.report.page.figures import FigureRow, figure_parts
from envcheck.report.page.findings import Finding, Outline, dead_probes, probe_name, probe_sentence
from envcheck.report.page.frame import count_text, evidence_text, untested
from envcheck.report.page.layout import ACTIONS, WHO, steps
from envcheck.report.page.pen import Style
from envcheck.report.page.plain import distributions, made_at, made_by, versions
from envcheck.report.page.stack import StackRow, stack_rows
from envcheck.report.page.subject import check_name, judged_environment, subject_line
from envcheck.report.page.targets import finding_rows, stated
from envcheck.rules.facts.measurements import percent
from envcheck.text.clean import shell_line

FORMAT = Format(
    shows="a page in one file that loads nothing: the stack, findings, figures as bars",
    suffix="html",
    syntax="markup",
    shared=True,
)

SIGNS: dict[Status, tuple[str, str]] = {
    "fail": ("✕", "FAIL"), "warn": ("!", "WARN"), "unknown": ("?", "not known"), "note": ("i", "note"),
    "pass": ("✓", "ok"), "skipped": ("\N{EN DASH}", "not judged"),
}  # fmt: skip
"""The sign and the word of each status."""

_GPUS, _CHECKS, _ROWS = 64, 1000, 300
"""Most of each that are shown."""
_COMMAND = 4000
"""Characters of the longest command that is shown."""


def render(report: Report, _options: Options) -> str:
    """``report`` as an HTML document."""
    outline = Outline(report)
    cause = outline.cause
    about = ", ".join(filter(None, (report.host, made_at(report), count_text(report), ignored(report.checks))))
    verdict = [
        chip(report.verdict, SIGNS[report.verdict][0], report.verdict.upper()),
        tag("h1", cause.title if cause else report.headline),
        tag("p", about, class_="meta"),
    ]
    if cause:
        verdict += _body(cause, outline)
    elif report.ask:
        verdict.append(tag("p", f"Find out next: {', '.join(dict.fromkeys(map(fact_name, report.ask[:8])))}"))
    cards = []
    for finding in outline.others[:_ROWS]:
        rule = tag("span", finding.rule, class_="rule")
        head = tag("header", status_chip(finding.status), tag("h3", finding.title), rule)
        cards.append(tag("article", head, *_body(finding, outline), class_=f"card finding {finding.status}"))
    cards += [
        tag("article", status_chip("unknown"), " ", probe_sentence(run), class_="card finding unknown")
        for run in dead_probes(report)[:_ROWS]
    ]
    footer = [
        made_by(report),
        f"assumed: {stated(report)}" if report.assumed else "",
        f"matrix overlays: {', '.join(report.overlays)}" if report.overlays else "",
        untested(report).rstrip("."),
        "names of users and machines, and identifiers, are replaced" if is_redacted(report) else "",
    ]
    body = [
        *_section("Targets", *_targets(report)),
        tag("div", *verdict, class_=f"card hero {report.verdict}"),
        *_section("The stack", tag("div", *_floors(report), class_="tower")),
        *_section("Findings", *cards),
        *_section("Links", *link_matrix(report)),
        *_section("Performance", *heat_table(report), *roofline(report), *figures(report)),
        *_section("Details", *_details(report)),
        tag("footer", "; ".join(filter(None, footer))),
    ]
    return whole_page(f"envcheck: {report.headline}", body)


def _targets(report: Report) -> list[Element]:
    """The result for each target, and what was found for which; the rest of the page is about the worst."""
    if not report.targets:
        return []
    names = [cut(target.name, 80) for target in report.targets]
    results: list[list[Node]] = [
        [name, status_chip(target.verdict), target.headline, stated(target)]
        for name, target in zip(names, report.targets, strict=True)
    ]
    parts = _table(results, "", heads=("target", "result", "headline", "assumed"))
    rows = finding_rows(report.targets)[:_CHECKS]
    if rows and len(names) > 1:
        found: list[list[Node]] = [
            [cut(row.rule, 200), *(status_chip(status or "skipped") for status in row.statuses)] for row in rows
        ]
        parts += _table(found, "", heads=("finding", *names))
    if report.worst is not None and len(names) > 1:
        parts.append(tag("p", "What follows is about the worst: ", cut(report.worst.name, 80)))
    return parts


def _section(title: str, *parts: Element) -> list[Element]:
    return [tag("section", tag("h2", title), *parts)] if any(parts) else []


def status_chip(status: Status) -> Element:
    """``✓ ok``."""
    return chip(status, *SIGNS[status])


def _floors(report: Report) -> list[Element]:
    """The rows in the order of every page; one without a label continues the row above, and here needs its own."""
    named: list[StackRow] = []
    for row in stack_rows(report, _GPUS):
        above = named[-1].label if named else ""
        label = row.label or ("GPU" if above == "GPU" else "Elsewhere")
        named.append(StackRow(label, row.status, row.text))
    floors = [
        tag("div", tag("b", row.label), status_chip(row.status), tag("span", row.text), class_=f"floor {row.status}")
        for row in named
    ]
    return [*floors, tag("div", "each layer depends on those above it", class_="ground")]


def _body(finding: Finding, outline: Outline) -> list[Element]:
    """All that is known of a finding, and its consequences."""
    check = finding.lead
    about = subject_line(finding.checks, outline.report)
    fixes: list[Element] = []
    for each in {each.fixes: each for each in finding.checks}.values():
        ordered = ways_in_order(each.fixes)
        if not ordered and each.action in ACTIONS:
            fixes.append(tag("p", ACTIONS[each.action].capitalize()))
        for step, fix in (one for way in ordered for one in steps(way)):
            fixes.append(tag("p", f"{step}{WHO[fix.who].capitalize()}{fix.text}"))
            line = shell_line(fix.command)
            if fix.command and len(line) <= _COMMAND:
                fixes.append(tag("pre", tag("code", line)))
            elif fix.command:  # Half a command can do harm: it is shown whole or not at all.
                fixes.append(tag("p", f"(a command of {len(line):,} characters)"))
            if fix.risk:
                fixes.append(tag("p", f"Risk: {fix.risk}", class_="risk"))
    seen = []
    for found in check.evidence[:_ROWS]:
        source = [tag("span", f" ({found.source})", class_="meta")] if found.source else []
        seen.append(tag("div", tag("span", evidence_text(found)), *source))
    sources = [
        tag("p", link(source.title, source.address), tag("span", f" (read {source.read})" if source.read else ""))
        for source in check.sources
    ]
    told: list[tuple[str, list[Element]]] = [
        ("about", [tag("p", about)] if about else []),
        ("seen", seen),
        ("why", [tag("p", check.message)] if check.message.strip(" .") not in ("", check.title.strip(" .")) else []),
        ("lacks", [tag("p", ", ".join(fact_name(missing.fact) for missing in check.missing))] if check.missing else []),
        ("fix", fixes),
        ("docs", sources),
        ("rule", [tag("p", tag("code", f"envcheck rule {check.rule}"))]),
    ]
    parts = (part for label, inside in told if inside for part in (tag("dt", label), tag("dd", *inside)))
    follows = [
        tag("li", status_chip(found.status), " ", found.title, " ", tag("span", found.rule, class_="rule"))
        for found in outline.consequences(finding)[:_ROWS]
    ]
    more = [tag("p", "Consequences:", class_="meta"), tag("ul", *follows)] if follows else []
    return [tag("dl", *parts), *more]


def _details(report: Report) -> list[Element]:
    installed = distributions(judged_environment(report))[:_ROWS]
    variables = report.snapshot.variables.values if report.snapshot and report.snapshot.variables else {}
    probes = [(probe_name(run), run.status, f"{run.seconds:.2f} s {run.detail}") for run in report.probes[:_ROWS]]
    checks: list[Sequence[Node]] = []
    for check in sorted(report.checks, key=lambda check: STATUSES.index(check.status))[:_CHECKS]:
        aside = f" (ignored: {check.ignored.reason})" if check.ignored else ""
        checks.append((status_chip(check.status), tag("code", check_name(check)), check.title + aside))
    parts = {
        "Versions": _table(versions(report)[:_ROWS]),
        "Relevant Python packages": [tag("pre", cut("  ".join(installed), LONGEST))] if installed else [],
        f"All checks: {count_text(report)}": _table(checks, "word", "name"),
        "Environment variables": _table([*variables.items()][:_ROWS]),
        "Probes": _table(probes),
    }
    return [
        tag("details", tag("summary", title), tag("div", *inside, class_="inside"))
        for title, inside in parts.items()
        if inside
    ]


def _table(rows: Sequence[Sequence[Node]], *kinds: str, heads: Sequence[str] = ()) -> list[Element]:
    """A table whose columns are of these kinds, which have widths; with ``heads`` it scrolls where it is wider than the
    page. Nothing without rows.
    """
    cells = [zip_longest(row, kinds or ("name",), fillvalue="") for row in rows]
    lines = [tag("tr", *(tag("td", cell, class_=kind) for cell, kind in row)) for row in cells]
    if not heads:
        return [tag("table", *lines)] if lines else []
    head = tag("tr", *(tag("th", cell, scope="col") for cell in heads))
    return [tag("div", tag("table", tag("thead", head), tag("tbody", *lines)), class_="wide", tabindex="0")]


_FULL = 105.0
"""Percent of the ceiling at the right end of a bar: a little more than what can be."""
_LEGEND = (
    "A bar is the share of the ceiling that was reached; the lighter part is the range of healthy GPUs of the same "
    "model; the mark is the ceiling. Figures without a bar have no known ceiling or range: use a baseline for them."
)
_WORDS = {"WARN": ("!", "LOW"), "FAIL": ("✕", "TOO LOW"), "WRONG": ("✕", "WRONG RESULT")}


def figures(report: Report) -> list[Element]:
    """A card for each GPU that was measured, for the processor, and for GPUs beside each other; empty for none."""
    cards = []
    for part in figure_parts(report):
        hottest = f"at most {part.hottest:.0f} °C" if part.hottest is not None else ""
        about = ", ".join(filter(None, (*part.conditions, hottest))) or part.shares
        bars, plain = [], []
        for row in part.rows:
            name, value = tag("span", row.whole_name or row.name), tag("span", row.value, class_="value")
            if row.figure:
                bars.append(tag("div", name, value, _bar(row.figure, row.status), _beside(row), class_="figure"))
            else:
                plain.append(tag("div", name, tag("span", value, _beside(row))))
        content = [tag("h3", part.title), tag("p", about, class_="meta")]
        content += [tag("div", *bars, class_="figures")] if bars else []
        content += [tag("div", *plain, class_="plain")] if plain else []
        content += [tag("p", part.note, class_="meta")] if part.note else []
        cards.append(tag("div", *content, class_="card"))
    return [*cards, tag("p", _LEGEND, class_="legend")] if cards else []


def _beside(row: FigureRow) -> Element:
    """The share, a word for a low one, and the remark."""
    words = _WORDS.get(row.word) if row.value else ("!", "SLOWER") if row.status == "warn" else None
    mark: list[Node] = [chip(row.status, *words), " "] if words else []
    return tag("span", f" {row.share}{' ✓' if row.status == 'pass' else ''} ", *mark, row.remark, class_="share")


def _bar(figure: Figure, status: Style) -> Element:
    """Drawn 105 units wide: one for each percent of the ceiling."""
    shares = figure.share or 0.0, figure.expected_low or 0.0, figure.expected_high or 0.0
    reached, low, high = (min(max(share * 100, 0.0), _FULL) for share in shares)
    words = "{} of the ceiling; healthy GPUs reach {} to {}".format(*map(percent, shares))
    boxes = (
        ("all", 0, _FULL, 3, 9), ("band", low, high, 0, 15), ("got", 0, reached, 3, 9), ("edge", 99.6, 100.4, 0, 15),
    )  # fmt: skip
    drawn = []
    for kind, left, right, top, height in boxes:
        place = {"x": f"{left:.2f}", "y": f"{top:g}", "width": f"{max(right - left, 0):.2f}", "height": f"{height:g}"}
        drawn.append(tag("rect", class_=kind, **place))
    return tag(
        "svg",
        tag("title", words),
        *drawn,
        class_=f"bar {status}",
        viewBox=f"0 0 {_FULL:g} 15",
        preserveAspectRatio="none",
        role="img",
    )
