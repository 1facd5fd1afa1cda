"""What the rules of this file are about, in one sentence."""

from __future__ import annotations

from envcheck.model.checks import Fix
from envcheck.model.snapshot import Gpu
from envcheck.rules.api import Facts, Outcome, evidence_of, note, passed, rule

_FULL = 1.0


# The function's name is the problem. ``Rule`` in envcheck/rules/api.py has all options; the most used besides these:
# ``arises`` (whether the question exists at all), ``ground`` (what the verdict stands on that this rule judges),
# ``remedy`` (fixes where the outcome has none). The type of the first argument is what it judges: each Gpu, or the
# Snapshot of the machine. Rules whose findings follow from this one's go into a row of matrix/rules.toml.
@rule(
    layer="gpu",
    since="0.0",  # the release that brings it: its failures warn until the next. From 0.2 on name it in CHANGELOG.md
    needs=("gpu.fan",),  # without them the evaluator answers "unknown" or "skipped"
)
def example_thing(gpu: Gpu, _facts: Facts) -> Outcome | None:
    """The problem in a short sentence."""
    # Compare no versions here: call a relation of envcheck/knowledge/relations/. Return a passing title that states the
    # fact that holds, a ``failure``, ``warning`` or ``note`` with evidence and fixes, or None where the question does
    # not arise after all.
    evidence = evidence_of("fan", gpu, "fan")
    if (gpu.fan or 0.0) < _FULL:
        return passed(f"{gpu.title}: the fan has reserve", evidence)
    return note(
        title=f"{gpu.title}: the problem",
        message="One sentence that names the consequence.",
        evidence=(evidence,),
        fixes=(Fix("What to do, in one sentence"),),
    )
