"""A line that names a problem: the pattern that knows it, and how such patterns are written."""

from __future__ import annotations

import re
from typing import NamedTuple

from envcheck.checks import DecidedBy, Status


class ErrorLine(NamedTuple):
    """A line that names a problem."""

    problem: str
    """Name of the rule."""
    pattern: re.Pattern[str]
    said_by: DecidedBy
    status: Status = "fail"


def status(code: int) -> str:
    """A line in which a call of CUDA's driver or runtime ends with ``code``."""
    called = r"cu(?:da|init).*\b(?:error|failure|fails with|code)\D{0,3}"
    returned = r"\bcu(?:da|init|device)\w*(?:\([^)\s]*\))? returned "
    return rf"(?:{called}|{returned}){code}\b"


def said(said_by: DecidedBy, problem: str, *patterns: str, status: Status = "fail") -> list[ErrorLine]:
    return [ErrorLine(problem, re.compile(pattern, re.IGNORECASE), said_by, status) for pattern in patterns]
