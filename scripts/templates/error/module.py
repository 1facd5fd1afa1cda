"""A problem that error lines alone reveal, in one sentence."""

from __future__ import annotations

from envcheck.checks import Fix
from envcheck.rules.api import never, rule

# Its line is a row in matrix/errors.toml, which the scaffold added behind all others. ``doubt`` gives another outcome
# where other causes print the line too. Rule options: ``Rule`` in envcheck/rules/api.py.
_WAY_OUT = (Fix(text="What to do, in one sentence"),)


@rule(
    layer="driver",
    scope="node",
    since="0.0",
    arises=never,  # no facts reveal it
    remedy=_WAY_OUT,
)
def example_thing() -> None:
    """The problem in a short sentence.

    What it checks
        Reads error lines of the program that prints them.

    Why it matters
        What fails when the problem is there, and how a user notices it.

    How to fix
        The steps, with the commands.

    Sources
        The title of the page that says so: https://docs.nvidia.com/cuda/cuda-installation-guide-linux/
    """
