"""The exit codes of every ``envcheck`` command."""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """What the exit status of ``envcheck`` says."""

    OK = 0
    """Nothing at or above ``--fail-on``."""
    FOUND = 1
    """Something at or above ``--fail-on``."""
    USAGE = 2
    """Wrong usage or configuration; nothing was checked."""
    UNKNOWN = 3
    """No verdict: a required check is unknown, or no check ran."""
    BROKEN = 4
    """envcheck itself broke."""
    INTERRUPTED = 130
    """Interrupted by the user."""
