"""Compare saved reports: important facts, checks and measured figures. Pure functions.

Things are matched by stable keys: GPUs by UUID, else by bus id; environments by folder, and the judged one always with
the judged one; figures by GPU and quantity. A fact that only one report has is "not compared", never a difference.
Something is gone only if the other list is complete.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

import msgspec

from envcheck.checks import SCHEMA_VERSION, Report, Tool, Verdict
from envcheck.diff.facts import compare_facts
from envcheck.diff.match import Match, match
from envcheck.diff.outcome import compare_checks, compare_figures
from envcheck.diff.record import Change, Note
from envcheck.errors import UsageError
from envcheck.redact import is_redacted, redact


class Compared(msgspec.Struct, frozen=True, kw_only=True):
    """A compared report."""

    name: str
    """The file, or ``-``."""
    created: str
    """When its facts were gathered: UTC, RFC 3339."""
    host: str | None
    """Name of the machine; null where it is not known."""
    verdict: Verdict
    """Its verdict."""
    headline: str
    """Its verdict in a line."""
    tool: Tool
    """The program that made it."""


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """The differences of two reports, given by their positions in ``Diff.reports``."""

    first: int
    """Position of the report that the other is compared with."""
    second: int
    """Position of the other report."""
    changes: tuple[Change, ...]
    """What differs."""
    not_compared: tuple[Note, ...] = ()
    """What only one of them knows."""


class Diff(msgspec.Struct, frozen=True, kw_only=True):
    """Several reports, each compared with the first."""

    schema_version: str = SCHEMA_VERSION
    """Version of this contract."""
    result: Literal["same", "different"]
    """Whether anything that both reports know differs."""
    reports: tuple[Compared, ...]
    """The compared reports, in the order in which they were named."""
    comparisons: tuple[Comparison, ...]
    """Each further report with the first."""


def diff(reports: Sequence[tuple[str, Report]]) -> Diff:
    """Compare each further report with the first; raise UsageError for fewer than two, or where nothing is comparable.

    If one is redacted, all are redacted, so that their names match.
    """
    if len(reports) < 2:
        raise UsageError("diff compares reports: name two or more")
    if any(is_redacted(report) for _, report in reports):
        reports = [(name, redact(report)) for name, report in reports]
    for name, report in reports:
        if report.snapshot is None and not report.checks:
            raise UsageError(f"{name} holds neither facts nor checks: there is nothing to compare")
    (_, first), *others = reports
    comparisons = tuple(_comparison(first, other, place) for place, (_, other) in enumerate(others, 1))
    changed = any(comparison.changes for comparison in comparisons)
    return Diff(
        result="different" if changed else "same",
        reports=tuple(_compared(name, report) for name, report in reports),
        comparisons=comparisons,
    )


def _compared(name: str, report: Report) -> Compared:
    return Compared(
        name=name,
        created=report.created,
        host=report.host,
        verdict=report.verdict,
        headline=report.headline,
        tool=report.tool,
    )


def _comparison(first: Report, second: Report, place: int) -> Comparison:
    found = [*_differences(first, second, match(first, second))]
    return Comparison(
        first=0,
        second=place,
        changes=tuple(entry for entry in found if isinstance(entry, Change)),
        not_compared=tuple(entry for entry in found if isinstance(entry, Note)),
    )


def _differences(first: Report, second: Report, matched: Match) -> Iterator[Change | Note]:
    if first.verdict != second.verdict:
        yield Change(section="verdict", what="verdict", kind="changed", before=first.verdict, after=second.verdict)
    yield from compare_facts(first, second, matched)
    yield from compare_checks(first, second, matched)
    yield from compare_figures(first, second, matched)
    ours, theirs = ((report.tool.version, report.tool.matrix) for report in (first, second))
    if ours != theirs:
        told = " and ".join(f"envcheck {version} with the matrix of {matrix}" for version, matrix in (ours, theirs))
        yield Note(section="checks", why=f"made by {told}: checks may differ for that reason alone")
