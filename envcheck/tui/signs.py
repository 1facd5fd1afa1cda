"""Signs beside the words for a status, so that a screen is read at a glance and never by colour alone."""

from __future__ import annotations

from envcheck.checks import Status

_MARKS: dict[Status, str] = {
    "fail": "✗ FAIL",
    "warn": "! WARN",
    "unknown": "? open",
    "note": "i note",
    "pass": "✓ ok",
    "skipped": "-",
}
_ASCII = {"✗": "x", "✓": "+"}


def mark(status: Status, *, ascii_only: bool) -> str:
    """Sign and word of a status, at most six columns."""
    told = _MARKS[status]
    return _ASCII.get(told[0], told[0]) + told[1:] if ascii_only else told
