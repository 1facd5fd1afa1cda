"""What ``--plan`` and ``--assume`` have the matrix answer; ``envcheck/pipeline`` asks it."""

from __future__ import annotations

from envcheck.rules.api import Facts, Outcome, elsewhere, rule
from envcheck.snapshot import Snapshot


@rule(layer="framework", arises=elsewhere)
def plan_does_not_fit(_snapshot: Snapshot, _facts: Facts) -> Outcome | None:
    """What a plan would install does not fit the machine, or that is open."""


@rule(layer="driver", scope="node", arises=elsewhere)
def assumption_not_known(_snapshot: Snapshot, _facts: Facts) -> Outcome | None:
    """It is not known whether the assumed driver supports the assumed GPU."""
