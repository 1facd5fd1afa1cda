"""Whether GPUs were left out that were to be measured."""

from __future__ import annotations

from envcheck.checks import Evidence
from envcheck.rules.api import Facts, Outcome, rule
from envcheck.rules.facts.coverage import Coverage, coverage, numbers
from envcheck.rules.facts.machine import gpu_title
from envcheck.rules.facts.measurements import nothing_measured
from envcheck.rules.speed.trust import unfinished
from envcheck.snapshot import Gpu, Snapshot, items_in


def _covered(snapshot: Snapshot) -> Coverage:
    return coverage(items_in(snapshot.gpus), snapshot.measurements, snapshot.runs)


def _refused(snapshot: Snapshot) -> tuple[Gpu, ...]:
    """The GPUs without a figure; less those whose measurement failed, which another rule reports."""
    covered = _covered(snapshot)
    broken = {run.gpu for run in unfinished(snapshot)}
    return tuple(gpu for gpu in covered.refused if gpu.uuid not in broken)


@rule(layer="gpu", scope="node", arises=lambda snapshot, _facts: bool(_refused(snapshot)), ground="figures")
def gpu_not_measured(snapshot: Snapshot, _facts: Facts) -> Outcome | None:
    """A requested GPU was not measured."""
    covered, refused = _covered(snapshot), _refused(snapshot)
    if not refused:
        return None
    why = {gpu.uuid: _why(gpu, snapshot) for gpu in refused}
    return Outcome(
        status="unknown",
        title=f"{numbers(refused)} not measured",
        message=covered.told() if covered.measured else nothing_measured(snapshot.runs) or why[refused[0].uuid],
        evidence=tuple(Evidence(what=gpu_title(gpu), value=why[gpu.uuid], source="bench") for gpu in refused),
        decided_by="measured",
    )


def _why(gpu: Gpu, snapshot: Snapshot) -> str:
    """Why a GPU has no figure, as the probes or its measurements say it."""
    runs = (run.detail for run in snapshot.runs if run.gpu == gpu.uuid and run.name.startswith("bench."))
    missing = (each.missing or "" for each in snapshot.measurements if each.gpu == gpu.uuid)
    return next(filter(None, (*runs, *missing)), "no figure")
