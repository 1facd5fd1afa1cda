"""Compare saved reports: important facts, checks and measured figures. Pure functions.

Things are matched by stable keys: GPUs by UUID, else by bus id; environments by folder, and the judged one always with
the judged one; figures by GPU and quantity. A fact that only one report has is "not compared", never a difference.
Something is gone only if the other list is complete, and a figure has changed only beyond the noise of both sides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import Literal, TypeAlias

import msgspec

from envcheck.diff.facts import compare_facts
from envcheck.diff.figures import Measured, compare_figures, measured_in
from envcheck.diff.record import Change, ComparedFigure, Match, Note, match
from envcheck.errors import UsageError
from envcheck.model.checks import SCHEMA_VERSION, Check, Report, Tool, Verdict
from envcheck.redact import is_redacted, redact

Named: TypeAlias = tuple[str, Report]  # A report and the name of its file


class Compared(msgspec.Struct, frozen=True, kw_only=True):
    """A compared report."""

    name: str  # The file, or ``-``
    created: str  # When its facts were gathered: UTC, RFC 3339
    host: str | None  # Name of the machine; null where it is not known
    verdict: Verdict  # Its verdict
    headline: str  # Its verdict in a line
    tool: Tool  # The program that made it


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """The differences of two reports, given by their positions in ``Diff.reports``."""

    first: int  # Position of the report that the other is compared with
    second: int  # Position of the other report
    base: tuple[int, ...]
    """Positions of the reports whose measured figures the other's are compared with: one, or several runs."""
    changes: tuple[Change, ...]  # What differs
    figures: tuple[ComparedFigure, ...] = ()  # Every measured figure that both sides have, changed or not
    not_compared: tuple[Note, ...] = ()  # What only one of them knows


class Diff(msgspec.Struct, frozen=True, kw_only=True):
    """Several reports, each compared with the first, or with the newest of several earlier runs."""

    schema_version: str = SCHEMA_VERSION  # Version of this contract
    result: Literal["same", "different"]  # Whether anything that both reports know differs
    reports: tuple[Compared, ...]  # The compared reports, in the order in which they were named; earlier runs first
    comparisons: tuple[Comparison, ...]  # Each further report with the first, or with the earlier runs


def diff(reports: Iterable[Named], base: Sequence[Named] = ()) -> Diff:
    """Compare each further report with the first, or all of them with ``base``, earlier runs of one machine.

    Of several earlier runs the newest gives the facts and checks to compare with, and all give the measured figures. If
    one report is redacted, all are redacted, so that their names match; ``reports`` is then gone through again. Only
    one of them is kept at a time besides those that others are compared with: a thousand take gigabytes. Raises
    UsageError where there are too few, or nothing is comparable.
    """

    def refuse_redacted(report: Report) -> Report:
        if is_redacted(report):
            raise _RedactedError
        return report

    try:
        return _diff(reports, base, refuse_redacted)
    except _RedactedError:
        return _diff(reports, base, redact)


class _RedactedError(Exception):
    """A report is redacted, and others may not be."""


def _diff(reports: Iterable[Named], base: Sequence[Named], prepare: Callable[[Report], Report]) -> Diff:
    def comparable() -> Iterator[Named]:
        for name, report in chain(base, reports):
            if report.snapshot is None and not report.checks:
                raise UsageError(f"{name} has neither facts nor checks: there is nothing to compare")
            yield name, prepare(report)

    coming = comparable()
    earlier = sorted(islice(coming, max(len(base), 1)), key=lambda named: named[1].created)
    runs = [(report, measured_in(report)) for _, report in earlier]
    compared = [_compared(name, report) for name, report in earlier]
    comparisons = []
    for name, report in coming:
        comparisons.append(_comparison(runs, report, len(compared)))
        compared.append(_compared(name, report))
    if not comparisons:
        raise UsageError("diff compares reports: name two or more")
    differs = any(comparison.changes for comparison in comparisons)
    return Diff(result="different" if differs else "same", reports=tuple(compared), comparisons=tuple(comparisons))


def _compared(name: str, report: Report) -> Compared:
    fields = ("created", "host", "verdict", "headline", "tool")
    return Compared(name=name, **{field: getattr(report, field) for field in fields})


def _comparison(runs: Sequence[tuple[Report, Measured]], second: Report, place: int) -> Comparison:
    """Compare with ``runs``, the oldest first."""
    matches = [match(run, second) for run, _ in runs]
    newest, matched = runs[-1][0], matches[-1]
    base = [(measured, each) for (_, measured), each in zip(runs, matches, strict=True)]
    figures, moved = compare_figures(base, measured_in(second))
    found = [*compare_facts(newest, second, matched), *compare_checks(newest, second, matched), *moved]
    before, after = newest.verdict, second.verdict
    verdict = Change(section="verdict", what="verdict", kind="changed", before=before, after=after)
    changes = [*([verdict] if before != after else ()), *(entry for entry in found if isinstance(entry, Change))]
    notes = [entry for entry in found if isinstance(entry, Note)]
    tools = [f"envcheck {each.tool.version} with the matrix of {each.tool.matrix}" for each in (newest, second)]
    by_tool = Note(section="checks", why=f"made by {' and '.join(tools)}: checks may differ for that reason alone")
    return Comparison(
        first=len(runs) - 1,
        second=place,
        base=tuple(range(len(runs))),
        changes=tuple(changes),
        figures=tuple(figures),
        not_compared=(*notes, *([by_tool] if tools[0] != tools[1] else [])),
    )


def compare_checks(first: Report, second: Report, matched: Match) -> Iterator[Change]:
    """Checks that appeared, disappeared or changed status."""
    before = {check.id: check for check in first.checks}
    after = {matched.as_first(check.id): check for check in second.checks}
    for identity, check in before.items():
        other = after.get(identity)
        if other is None:
            yield Change(section="checks", what=identity, kind="vanished", before=_status(check))
        elif _status(check) != _status(other):
            yield Change(section="checks", what=identity, kind="changed", before=_status(check), after=_status(other))
    for identity, check in after.items():
        if identity not in before:
            yield Change(section="checks", what=identity, kind="appeared", after=_status(check))


def _status(check: Check) -> str:
    return f"{check.status}, ignored" if check.ignored else check.status
