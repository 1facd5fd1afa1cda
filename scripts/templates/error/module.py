"""A problem that error lines alone reveal, in one sentence."""

from __future__ import annotations

from envcheck.checks import Fix
from envcheck.rules.api import never, rule

_WAY_OUT = (Fix(text="What to do, in one sentence"),)


@rule(
    layer="driver",
    scope="node",
    since="0.0",
    arises=never,
    remedy=_WAY_OUT,
)
def example_thing() -> None:
    """The problem in a short sentence."""
