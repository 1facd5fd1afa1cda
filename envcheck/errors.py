"""The errors that envcheck raises on purpose.

    EnvcheckError
    ├── RequirementNotMet ``envcheck.require``: this program lacks what was required, or it is not known
    ├── NoVerdictError    nothing could be judged, for a reason that is not in the request; the exit status is UNKNOWN
    ├── UsageError        the request is wrong: an option, an expression, a file that cannot be read or written
    └── MatrixError       the data in ``matrix/`` (or an overlay of it) is wrong

Each message is one sentence that says what, where and what to do; the command line prints it and exits with
``ExitCode.USAGE``, except where this tree says otherwise.
"""

from __future__ import annotations

from enum import IntEnum


class EnvcheckError(Exception):
    """Base of the errors that are shown to the user as one sentence."""


class UsageError(EnvcheckError):
    """The request cannot be carried out as it was put."""


class NoVerdictError(EnvcheckError):
    """Nothing could be judged, though the request is right."""


class RequirementNotMet(EnvcheckError):  # noqa: N818  it reads as what happened, at the top of a user's traceback
    """What was required is not here, or cannot be told from files; the text says what was found."""


class MatrixError(EnvcheckError):
    """A row of the compatibility matrix is malformed or contradicts another."""


class ExitCode(IntEnum):
    """What the exit status of ``envcheck`` says."""

    OK = 0  # Nothing at or above ``--fail-on``
    FOUND = 1  # Something at or above ``--fail-on``
    USAGE = 2  # Wrong usage or configuration; nothing was checked
    UNKNOWN = 3  # No verdict: a required check is unknown, or no check ran
    BROKEN = 4  # envcheck itself broke
    INTERRUPTED = 130  # Interrupted by the user
