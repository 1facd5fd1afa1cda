"""Whether the measurements came to their end."""

from __future__ import annotations

from envcheck.checks import Evidence
from envcheck.rules.api import Facts, Outcome, rule
from envcheck.rules.machine import called
from envcheck.rules.speed_unjudged import why_not_judged
from envcheck.snapshot import ProbeRun, Snapshot

_ON_REQUEST = ("--timeout", "not started:", "interrupted")
"""How the detail of a run begins that was cut short because the user wished it."""


def _unfinished(snapshot: Snapshot) -> list[ProbeRun]:
    """The runs of bench probes that were to measure something and did not end well."""
    ends = ("ok", "skipped", "absent")
    return [run for run in snapshot.runs if run.name.startswith("bench_") and run.status not in ends]


def _is_unfinished(snapshot: Snapshot, _facts: Facts) -> bool:
    return bool(_unfinished(snapshot))


@rule(layer="gpu", scope="node", arises=_is_unfinished, required=True)
def measurement_unfinished(snapshot: Snapshot, facts: Facts) -> Outcome | None:
    """A measurement did not come to its end.

    What it checks
        Whether the programs that measure ended by themselves. One that hangs is ended at its
        deadline, and costs only its own figures.

    Why it matters
        A kernel that never ends or a call that fails can be the GPU's fault, and what was not
        measured was not found to be in order.

    How to fix
        Look at the kernel log for Xid errors of that GPU, and run again with nothing else on the
        machine. If it happens on one GPU only, take it out of use.

    Sources
        Xid errors: https://docs.nvidia.com/deploy/xid-errors/index.html
    """
    bad = _unfinished(snapshot)
    names = {gpu.uuid: called(gpu) for gpu in facts.gpus if gpu.uuid}
    evidence = tuple(
        Evidence(what=_place(run, names) + run.title, value=run.detail or run.status, source=run.name) for run in bad
    )
    died = [run for run in bad if not run.detail.startswith(_ON_REQUEST)]
    first = (died or bad)[0]
    told = f"{_place(first, names)}{first.title}: {first.detail or first.status}"
    by_uuid = {gpu.uuid: gpu for gpu in facts.gpus}
    figures = [(by_uuid[each.gpu], each) for each in snapshot.measurements if each.gpu in by_uuid]
    judged = any(not why_not_judged(gpu, each) for gpu, each in figures)
    return Outcome(
        status="warn" if died and judged else "unknown",
        title=told,
        message=f"{told}. Other figures are not affected." if judged else f"{told}.",
        evidence=evidence,
        decided_by="measured",
    )


def _place(run: ProbeRun, names: dict[str, str]) -> str:
    name = names.get(run.gpu or "")
    return f"{name}: " if name else ""
