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

_MOST = 64 << 20
"""Bytes that are read of a file."""


def read_input(name: str) -> bytes:
    """The first 64 MiB of the file ``name``, or of stdin where it is ``-``; raise UsageError."""
    try:
        if name == "-":
            return sys.stdin.buffer.read(_MOST)
        with Path(name).open("rb") as file:
            return file.read(_MOST)
    except OSError as error:
        raise UsageError(f"cannot read {name}: {error.strerror or error}") from None


def saved_report(name: str) -> Report:
    """The report that was saved as ``name``."""
    from envcheck.report.read import read_report

    return read_report(read_input(name))


def baseline(options: Namespace) -> tuple[Measurement, ...]:
    """The figures of ``--baseline``; none where it was not given."""
    name = getattr(options, "baseline", None)
    if not name:
        return ()
    from envcheck.baseline import read

    return read(read_input(name), name)
