"""A line that names a problem: the pattern that knows it, and how such patterns are written."""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

from envcheck.checks import DecidedBy, Status


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


def status(code: int) -> str:
    """A line in which a call of CUDA's driver or runtime ends with ``code``."""
    called = r"cu(?:da|init).*\b(?:error|failure|fails with|code)\D{0,3}"
    returned = r"\bcu(?:da|init|device)\w*(?:\([^)\s]*\))? returned "
    return rf"(?:{called}|{returned}){code}\b"


def said(said_by: DecidedBy, problem: str, *patterns: str, status: Status = "fail") -> list[ErrorLine]:
    return [ErrorLine(problem, pattern, said_by, status) for pattern in patterns]


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    # Not when the module is read: most checks meet no error line, and some three hundred patterns cost them 50 ms.
    return re.compile(pattern, re.IGNORECASE)
