"""A comparison of reports for people: what changed, by section, the old value and the new."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

from envcheck.diff.record import Change, Section
from envcheck.diff.reports import Comparison, Diff
from envcheck.report import Options
from envcheck.report.page.pen import Line, Pen, Style, StyledSpan
from envcheck.rules.facts.measurements import quantity
from envcheck.text.wrap import width

_TITLES: dict[Section, str] = {
    "gpus": "GPUs",
    "environments": "Python",
    "variables": "Environment variables",
    "measurements": "Measurements beyond their noise",
}
_STYLES: dict[str, Style] = {"fail": "fail", "warn": "warn", "unknown": "unknown", "note": "note", "pass": "pass"}
_QUIET = ("pass", "skipped")
_MOST = 12  # Checks that came or went without a finding: only their number is shown beyond these, unless ``verbose``
_NAME = 34
_WRAPPED = 6  # Lines of one text


def render_diff(found: Diff, options: Options) -> str:
    pen = Pen(options)
    lines: list[Line] = []
    for comparison in found.comparisons:
        number = len(comparison.changes)
        style: Style = "warn" if number else "pass"
        summary = f"{number} difference{'s' if number != 1 else ''}" if number else "no difference in shared facts"
        lines += [(StyledSpan(""),)] if lines else []
        lines.append((StyledSpan("DIFFERENT  " if number else "SAME  ", style), StyledSpan(summary, "title")))
        for mark, place in (("-", comparison.first), ("+", comparison.second)):
            report = found.reports[place]
            about = ", ".join(filter(None, (report.host, report.created, f"{report.verdict}: {report.headline}")))
            lines += pen.hang(f"  {mark} ", f"{report.name} ({about})", "dim", _WRAPPED)
        if len(comparison.base) > 1:
            lines += pen.hang("    ", f"figures: compared with {len(comparison.base)} runs", "dim", _WRAPPED)
        for section, changes in groupby(comparison.changes, key=lambda change: change.section):
            lines += [(StyledSpan(""),), (StyledSpan(_TITLES.get(section, section.capitalize()), "title"),)]
            lines += _changes(list(changes), pen, options)
        lines += _figures(comparison, pen, options)
        if comparison.not_compared and not options.quiet:
            lines += [(StyledSpan(""),), (StyledSpan("Not compared", "title"),)]
            for note in comparison.not_compared:
                lines += pen.hang("  ", f"{note.section}: {note.why}", "dim", _WRAPPED)
    return pen.show(lines)


def _figures(comparison: Comparison, pen: Pen, options: Options) -> Iterable[Line]:
    """How many figures stayed within their noise; with ``verbose``, which."""
    same = [figure for figure in comparison.figures if not figure.changed]
    if not same or options.quiet:
        return
    count = len(comparison.figures)
    yield (StyledSpan(""),)
    if not options.verbose:
        counted = f"{len(same)} of {count} figures" if count > 1 else "1 figure"
        yield from pen.hang("", f"{counted} unchanged within the noise of the runs (-v lists them)", "dim", _WRAPPED)
        return
    yield (StyledSpan("Measurements within their noise (change, of what is tolerated)", "title"),)
    for subject, about in groupby(same, key=lambda figure: figure.subject):
        if subject:
            yield from pen.hang("  ", subject, "", _WRAPPED)
        for figure in about:
            values = [quantity(value, figure.unit) for value in (figure.before, figure.after)]
            arrow = " -> " if pen.ascii else " → "
            change = f"{arrow.join(values)}  ({figure.ratio - 1:+.1%} of {figure.tolerated:.0%})"
            name = pen.text(figure.what)
            yield from pen.hang("    ", f"{name}{' ' * max(2, _NAME - width(name))}{change}", "dim", _WRAPPED)


def _changes(changes: Sequence[Change], pen: Pen, options: Options) -> Iterable[Line]:
    if changes[0].section == "checks" and not options.verbose:
        quiet = [each for each in changes if each.kind != "changed" and (each.before or each.after) in _QUIET]
        hidden = quiet if len(quiet) > _MOST else []
        loud = [change for change in changes if change not in hidden]
    else:
        hidden, loud = [], list(changes)
    for subject, about in groupby(loud, key=lambda change: change.subject):
        if subject:
            yield from pen.hang("  ", subject, "", _WRAPPED)
        for change in about:
            yield from _change(change, pen, "    " if subject else "  ")
            tolerated = f"tolerated: {change.tolerated:.1%}" if change.tolerated is not None else ""
            if tolerated:
                yield from pen.hang("      ", "; ".join((tolerated, *change.why)), "dim", _WRAPPED)
    if hidden:
        came = sum(change.kind == "appeared" for change in hidden)
        text = f"{came} checks added and {len(hidden) - came} removed, all passed or skipped (-v lists them)"
        yield from pen.hang("  ", text, "dim", _WRAPPED)


def _change(change: Change, pen: Pen, indent: str) -> list[Line]:
    """``torch   2.5.1 -> 2.6.0`` on one line where it fits."""
    arrow = "->" if pen.ascii else "→"
    name = pen.text(change.what)
    before, after = (pen.text(value) if value is not None else None for value in (change.before, change.after))
    extent = ""
    if change.ratio is not None:
        # Of a time, less is better; either way the share is of the first report's figure.
        more, faster = "more" if change.ratio > 1 else "less", "faster" if change.faster else "slower"
        extent = f"  ({abs(change.ratio - 1):.0%} {more}, {faster})"
    if before is None:
        pieces = [StyledSpan("added: "), _value(after)]
    elif after is None:
        pieces = [StyledSpan("removed: "), _value(before)]
    else:
        pieces = [_value(before), StyledSpan(f" {arrow} "), _value(after), StyledSpan(extent, "dim")]
    gap = " " * max(2, _NAME - width(name))
    line: Line = (StyledSpan(f"{indent}{name}{gap}"), *pieces)
    if sum(width(span.text) for span in line) <= pen.width:
        return [line]
    text = "".join(span.text for span in pieces)
    return [*pen.hang(indent, name, "", _WRAPPED), *pen.hang(f"{indent}  ", text, "", _WRAPPED)]


def _value(text: str | None) -> StyledSpan:
    return StyledSpan(text or "", _STYLES.get(text or "", ""))
