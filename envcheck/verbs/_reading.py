"""What a verb is given to read: saved reports, pasted text, baselines."""

from __future__ import annotations

import sys
from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from envcheck.errors import UsageError

if TYPE_CHECKING:
    from envcheck.checks import Report
    from envcheck.snapshot import Measurement

_MOST = (64 << 20) + 1
"""Bytes that are read of a file: one more than a report may have, so that one that is longer shows."""


def read_input(name: str) -> bytes:
    """The first 64 MiB and a byte of the file ``name``, or of stdin where it is ``-``; raise UsageError."""
    try:
        if name == "-":
            return sys.stdin.buffer.read(_MOST)
        with Path(name).open("rb") as file:
            return file.read(_MOST)
    except OSError as error:
        raise UsageError(f"cannot read {name}: {error.strerror or error}") from None


def saved_report(name: str) -> Report:
    """The report that was saved as ``name``; raise UsageError, which names it, where it is none."""
    from envcheck.report.read import read_report

    try:
        return read_report(read_input(name))
    except UsageError as error:
        named = "stdin" if name == "-" else name
        raise UsageError(str(error) if named in str(error) else f"{named}: {error}") from None


def baseline(options: Namespace) -> tuple[Measurement, ...]:
    """The figures of ``--baseline``; none where it was not given."""
    name = getattr(options, "baseline", None)
    if not name:
        return ()
    from envcheck.baseline import read

    return read(read_input(name), name)
