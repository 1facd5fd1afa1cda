"""What the rules of this file are about, in one sentence."""

from __future__ import annotations

from envcheck.checks import Fix
from envcheck.rules.api import Facts, Outcome, evidence_of, passed, rule
from envcheck.rules.facts.machine import may_have_gpus
from envcheck.snapshot import Platform, Snapshot

_BROKEN = "-example"


def _is_gpu_machine(_snapshot: Snapshot, facts: Facts) -> bool:
    return may_have_gpus(facts)


@rule(
    layer="kernel",
    scope="node",
    since="0.0",
    needs=("platform.kernel_release",),
    arises=_is_gpu_machine,
)
def example_thing(snapshot: Snapshot, _facts: Facts) -> Outcome | None:
    """The problem in a short sentence."""
    platform = snapshot.platform or Platform()
    release = platform.kernel_release or ""
    evidence = evidence_of("running kernel", platform, "kernel_release")
    if not release.endswith(_BROKEN):
        return passed(f"Kernel {release} has no known problem", evidence)
    return Outcome(
        status="warn",
        title=f"Kernel {release} has the problem",
        message="One sentence that names the consequence.",
        evidence=(evidence,),
        fixes=(Fix(text="What to do, in one sentence"),),
    )
