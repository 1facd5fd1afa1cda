"""Match lines of programs, the kernel and container runtimes with the rows of ``errors.toml``.

Only the shipped rows are used: a user's pattern could take unlimited time on a hostile line.
"""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

from envcheck.checks import DecidedBy, Status
from envcheck.compat.families import SPOKEN_OF, files_of
from envcheck.compat.load import load_matrix

LONGEST = 2000
"""Characters of a line that are matched; pasted text is untrusted."""
_ENDED = (
    r"(?:cu(?:da|init).*\b(?:error|failure|fails with|code)\D{{0,3}}"
    r"|\bcu(?:da|init|device)\w*(?:\([^)\s]*\))? returned ){code}\b"
)
"""A line that reports the status code of a CUDA driver or runtime call."""
_FRAGMENT = re.compile(r"\{\{([a-z-]+)\}\}")
_REMARK = re.compile(r"\s*\[\[")
"""The beginning of the harmless line in which NVIDIA's images say that they run without forward compatibility."""


class ErrorLine(NamedTuple):
    """A line that names a problem."""

    problem: str
    """Name of the rule."""
    pattern: str
    """A regular expression; case does not count."""
    said_by: DecidedBy
    status: Status = "fail"

    def is_in(self, text: str) -> bool:
        """Whether the text matches."""
        return _compiled(self.pattern).search(text) is not None


def named_by(text: str) -> ErrorLine | None:
    """The problem that a line names; None for a line that names none."""
    shown = text[:LONGEST]
    if _REMARK.match(shown):
        return None
    return next((line for line in error_lines() if line.is_in(shown)), None)


def named_by_event(number: int) -> str | None:
    """The problem that an event in the kernel log (an Xid) names."""
    return next((row.problem for row in load_matrix().errors if number in row.xids), None)


def matches_fragment(fragment: str, text: str) -> bool:
    """Whether a text contains what the fragment of this name matches."""
    return _compiled(_fragments()[fragment]).search(text) is not None


@cache
def error_lines() -> tuple[ErrorLine, ...]:
    """All patterns of error lines, by priority."""

    def whole(pattern: str) -> str:
        return _FRAGMENT.sub(lambda match: whole(_fragments()[match[1]]), pattern)

    return tuple(
        ErrorLine(row.problem, pattern, row.said_by, row.status)
        for row in sorted(load_matrix().errors, key=lambda row: row.priority)
        for pattern in (*map(whole, row.lines), *(_ENDED.format(code=code) for code in row.codes))
    )


@cache
def _fragments() -> dict[str, str]:
    named = {row.name: row.pattern for row in load_matrix().fragments}
    return named | {f"{kind}-family": files_of(kind) for kind in SPOKEN_OF}


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    # Compiled on demand: most checks see no error line, and some three hundred patterns take 50 ms.
    return re.compile(pattern, re.IGNORECASE)
