"""What ``--require`` and a configuration demand; ``envcheck/pipeline`` holds the facts and findings against it."""

from __future__ import annotations

from envcheck.rules.api import Facts, Outcome, elsewhere, rule
from envcheck.snapshot import Snapshot


@rule(layer="request", scope="node", arises=elsewhere)
def requirement_not_met(_snapshot: Snapshot, _facts: Facts) -> Outcome | None:
    """Something that was required is not there, or not in the required version."""


@rule(layer="request", scope="node", arises=elsewhere)
def forbidden_problem(_snapshot: Snapshot, _facts: Facts) -> Outcome | None:
    """A problem that the configuration forbids was found, or was not looked for."""


@rule(layer="request", scope="node", arises=elsewhere)
def ignore_expired(_snapshot: Snapshot, _facts: Facts) -> Outcome | None:
    """The day until which the configuration ignores a finding has passed."""


@rule(layer="request", scope="node", arises=elsewhere)
def below_minimum_share(_snapshot: Snapshot, _facts: Facts) -> Outcome | None:
    """A measured figure is below the share of its ceiling that is required."""
