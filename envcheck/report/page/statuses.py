"""The statuses of checks on a page: which is the worst."""

from __future__ import annotations

from collections.abc import Iterable

from envcheck.checks import Check, Status

_WORST_FIRST: tuple[Status, ...] = ("fail", "warn", "unknown", "note", "pass", "skipped")


def worst(checks: Iterable[Check]) -> Status:
    """The worst status among ``checks``; ``skipped`` when none was judged. An ignored finding is a remark, and what was
    assumed is not judged.
    """
    statuses = {"note" if check.ignored else _shown(check) for check in checks}
    return next((status for status in _WORST_FIRST if status in statuses), "skipped")


def _shown(check: Check) -> Status:
    return "skipped" if check.status == "pass" and check.only_assumed else check.status


def severity(status: Status) -> int:
    """Sorts the worst status first."""
    return _WORST_FIRST.index(status)


def worse(first: Status, second: Status) -> Status:
    """The worse of two."""
    return min(first, second, key=severity)
