"""Words for the ways in which a child can end before it said that it was done."""

from __future__ import annotations

import signal
from typing import Literal

DeathStatus = Literal["failed", "crashed"]
Death = Literal["own", "outside"]

_FAULTS = frozenset({"SIGSEGV", "SIGABRT", "SIGBUS", "SIGFPE", "SIGILL", "SIGSYS", "SIGTRAP"})
"""Signals that a process brings upon itself; any other comes from outside (SIGKILL also when memory runs out)."""


def describe(returncode: int) -> tuple[DeathStatus, str]:
    """Status and words for ``subprocess``'s return code: the exit status, or minus the number of the signal."""
    if returncode >= 0:
        return "failed", f"exited with status {returncode}"
    name = signal_name(-returncode)
    return "crashed", f"crashed: {name}" if name in _FAULTS else f"killed by {name}"


def whose(returncode: int) -> Death:
    """Whether the process brought its end upon itself: it exited, or did what the kernel ends a process for."""
    return "own" if returncode >= 0 or signal_name(-returncode) in _FAULTS else "outside"


def signal_name(number: int) -> str:
    """``SIGSEGV`` for 11; a number without a name of its own is shown as it is."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def doing(words: str, progress: str) -> str:
    """``words`` with the last that the probe said it was doing."""
    return f"{words} while {progress}" if progress else words
