"""Which problem a line names that a program, the kernel or a container runtime printed: the rows of ``errors.toml``.

They are those that came with envcheck: a pattern of somebody else's could take as long as it likes on a hostile line.
"""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

from envcheck.checks import DecidedBy, Status
from envcheck.compat.families import SPOKEN_OF, files_of
from envcheck.compat.load import load_matrix

LONGEST = 2000
"""Characters of a line that are looked at: what is pasted is not to be trusted."""
_ENDED = (
    r"(?:cu(?:da|init).*\b(?:error|failure|fails with|code)\D{{0,3}}"
    r"|\bcu(?:da|init|device)\w*(?:\([^)\s]*\))? returned ){code}\b"
)
"""A line in which a call of CUDA's driver or runtime ends with a code."""
_FRAGMENT = re.compile(r"\{\{([a-z-]+)\}\}")
_REMARK = re.compile(r"\s*\[\[")
"""How NVIDIA's images begin the line that says why they run without forward compatibility, which they can."""


class ErrorLine(NamedTuple):
    """A line that names a problem."""

    problem: str
    """Name of the rule."""
    pattern: str
    """A regular expression; case does not count."""
    said_by: DecidedBy
    status: Status = "fail"

    def is_in(self, text: str) -> bool:
        """Whether the text says it."""
        return _compiled(self.pattern).search(text) is not None


def named_by(text: str) -> ErrorLine | None:
    """The problem that a line names."""
    shown = text[:LONGEST]
    if _REMARK.match(shown):
        return None
    return next((line for line in error_lines() if line.is_in(shown)), None)


def named_by_event(number: int) -> str | None:
    """The problem that an event in the kernel log (an Xid) names."""
    return next((row.problem for row in load_matrix().errors if number in row.xids), None)


def says(fragment: str, text: str) -> bool:
    """Whether a text contains what the fragment of this name matches."""
    return _compiled(_fragments()[fragment]).search(text) is not None


@cache
def error_lines() -> tuple[ErrorLine, ...]:
    """What error lines are known by, those first that outrank others."""

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
    # Not with the rows: most checks meet no error line, and some three hundred patterns cost them 50 ms.
    return re.compile(pattern, re.IGNORECASE)
