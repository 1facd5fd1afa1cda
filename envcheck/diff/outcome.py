"""Compare the checks of two reports."""

from __future__ import annotations

from collections.abc import Iterator

from envcheck.checks import Check, Report
from envcheck.diff.match import Match
from envcheck.diff.record import Change


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
