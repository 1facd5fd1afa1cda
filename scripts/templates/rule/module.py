"""What the rules of this file are about, in one sentence."""

from __future__ import annotations

from envcheck.model.checks import Fix
from envcheck.model.snapshot import Platform, Snapshot
from envcheck.rules.api import Facts, Outcome, evidence_of, passed, rule, warning

_BROKEN = "-example"


def _is_gpu_machine(_snapshot: Snapshot, facts: Facts) -> bool:
    return facts.may_have_gpus


# The function's name is the problem. ``Rule`` in envcheck/rules/api.py has all options; the most used besides these:
# ``ground`` (what the verdict stands on that this rule judges), ``remedy`` (fixes where the outcome has none). The type
# of the first argument is what it judges: the Snapshot, or each Gpu, Environment, Framework or
# MeasurementSubject. Rules whose findings follow from this one's go into a row of matrix/rules.toml.
@rule(
    layer="kernel",
    since="0.0",  # the release that brings it: its failures warn until the next. From 0.2 on name it in CHANGELOG.md
    needs=("platform.kernel_release",),  # without them the evaluator answers "unknown" or "skipped"
    arises=_is_gpu_machine,  # whether the question exists at all; leave it out where it always does
)
def example_thing(snapshot: Snapshot, _facts: Facts) -> Outcome | None:
    """The problem in a short sentence."""
    # Compare no versions here: call a relation of envcheck/knowledge/relations/. Return a passing title that states the
    # fact that holds, a ``failure``, ``warning`` or ``note`` with evidence and fixes, or None where the question does
    # not arise after all.
    platform = snapshot.platform or Platform()
    release = platform.kernel_release or ""
    evidence = evidence_of("running kernel", platform, "kernel_release")
    if not release.endswith(_BROKEN):
        return passed(f"Kernel {release} has no known problem", evidence)
    return warning(
        title=f"Kernel {release} has the problem",
        message="One sentence that names the consequence.",
        evidence=(evidence,),
        fixes=(Fix("What to do, in one sentence"),),
    )
