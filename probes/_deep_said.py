"""The one line that says what was raised."""

from __future__ import annotations

import re
import sys
import traceback

LONGEST = 600

_RAISED = re.compile(r"^\s*(?:[\w.]*(?:Error|Exception|Warning|Interrupt|Exit))\s*:")
_CONTENT = re.compile(r"\w")
_CHAIN = 8


def said(error: BaseException) -> str:
    """``ImportError: libcudnn.so.9: cannot open shared object file``: the type and the line that tells the cause.

    Of an exception that was raised from another, the other's line; of a message that quotes a traceback, the line that
    the traceback ends with; else the first line, behind which frameworks put advice.
    """
    cause = _first_cause(error)
    lines = [line.strip() for line in _text(cause).splitlines() if _CONTENT.search(line)]
    quoted = [line for line in lines if _RAISED.match(line)] if any("Traceback (most" in line for line in lines) else []
    if quoted:
        return quoted[-1][:LONGEST]
    name = type(cause).__name__
    opened = lines[:1] and lines[0].endswith(":")  # as in "Error at driver init:", with the reason below
    return f"{name}: {' '.join(lines[: 2 if opened else 1])}"[:LONGEST] if lines else name


def tell(error: BaseException) -> None:
    """Print the whole traceback, for the lines that the one line leaves out."""
    try:
        text = "".join(traceback.format_exception(type(error), error, error.__traceback__))
        sys.stderr.write(text[-8000:])
        sys.stderr.flush()
    except Exception:
        pass


def _first_cause(error: BaseException) -> BaseException:
    for _ in range(_CHAIN):
        if error.__cause__ is None:
            break
        error = error.__cause__
    return error


def _text(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:
        return ""
