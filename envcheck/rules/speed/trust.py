"""Whether measurements are valid: finished, correct and undisturbed."""

from __future__ import annotations

from collections.abc import Iterable

from envcheck.knowledge.performance.expected import at_work, in_use
from envcheck.knowledge.performance.quantities import library_tested
from envcheck.model.checks import Evidence, Fix
from envcheck.model.snapshot import Conditions, Gpu, Measurement, ProbeRun, Snapshot
from envcheck.rules.api import Facts, MeasurementSubject, Outcome, failure, passed, rule
from envcheck.rules.facts.measurements import coverage, measurement_name, processor_figures, reason_without_value


def why_not_judged(gpus: Iterable[Gpu], measured: Measurement) -> str:
    """Why a measurement cannot be judged, empty if it can. Of ``gpus``, those count that took part in it."""
    if measured.value is None:
        return reason_without_value(measured)
    others = (measured.peer, *(measured.collective.gpus if measured.collective else ()))
    conditions = measured.conditions or Conditions()
    before = None if conditions.utilisation_before is None else conditions.utilisation_before / 100
    for gpu in gpus:
        own = gpu.uuid == measured.gpu
        if not own and gpu.uuid not in others:
            continue
        if gpu.mig is not None and gpu.mig.enabled:
            return "the GPU is in MIG mode: only a part of it was measured"
        total = gpu.memory.total if gpu.memory else None
        busy = at_work(before, conditions.memory_before, total) if own else in_use(gpu)
        if busy:
            return f"another program used {'the GPU' if own else gpu.title} ({busy})"
    return ""


def failed_beside_others(gpus: Iterable[Gpu], what: str, text: str) -> Outcome | None:
    """No verdict on what failed, where one of ``gpus`` was in use: it may have lacked memory. None where all were idle.

    Only ``--force`` measures such GPUs, and they are never judged.
    """
    gpu, busy = next(((gpu, busy) for gpu in gpus if (busy := in_use(gpu))), (None, ""))
    if gpu is None:
        return None
    return Outcome(
        status="unknown",
        title=f"{what} failed while another program used {gpu.title}",
        message=f"{text}. Another program used {gpu.title} ({busy}). Measure again when it is idle.",
        evidence=(Evidence(gpu.title, busy, "bench"),),
        decided_by="measured",
    )


@rule(layer="library", decided_by="measured")
def wrong_cpu_result(snapshot: Snapshot, _facts: Facts) -> Outcome | None:
    """NumPy or SciPy computed wrong results on the CPU."""
    checked = [found for found in processor_figures(snapshot.measurements) if found.verification]
    wrong = [found for found in checked if found.verification and not found.verification.right]
    evidence = tuple(
        Evidence(measurement_name(found), found.verification.how, found.detail or "bench")
        for found in (wrong or checked)
        if found.verification
    )
    if not checked:
        return None
    if not wrong:
        return passed("NumPy and SciPy compute correctly on the CPU", *evidence)
    return failure(
        title=f"{measurement_name(wrong[0])}: wrong result",
        message=f"{len(wrong)} of {len(checked)} kinds of results are wrong.",
        evidence=evidence,
    )


_REPEAT = Fix("Repeat the test with nothing else on the machine; if it fails again, have the GPU replaced")


@rule(layer="gpu", decided_by="measured", remedy=lambda facts: () if facts.snapshot.measurements else (_REPEAT,))
def wrong_result(subject: MeasurementSubject, _facts: Facts) -> Outcome | None:
    """A GPU computed or copied wrong data."""
    measured = subject.measurement
    verification = measured.verification
    if verification is None:
        return None
    name = f"{subject.gpu.title}: {measurement_name(measured)}"
    evidence = [Evidence("checked", f"{verification.checked:,} ({verification.how})", "bench")]
    if verification.right:
        return passed(f"{name}: correct result", *evidence)
    evidence.append(Evidence("wrong", f"{verification.wrong:,}", "bench"))
    if verification.worst is not None and verification.tolerance is not None:
        error = f"{verification.worst:.3g}, tolerated {verification.tolerance:.3g}"
        evidence.append(Evidence("largest error", error, "bench"))
    return failure(
        title=f"{name}: wrong result",
        message=f"{verification.wrong:,} of {verification.checked:,} checked elements are wrong ({measured.detail}).",
        evidence=tuple(evidence),
        action="none" if library_tested(measured.name) else "drain",
    )


def unfinished(snapshot: Snapshot) -> list[ProbeRun]:
    """The runs of bench probes that did not finish."""
    ends = ("ok", "skipped", "absent")
    return [run for run in snapshot.runs if run.name.startswith("bench.") and run.status not in ends]


@rule(layer="gpu", ground="figures")
def measurement_unfinished(snapshot: Snapshot, facts: Facts) -> Outcome | None:
    """A measurement did not finish."""
    bad = unfinished(snapshot)
    if not bad:
        return None
    names = {gpu.uuid: gpu.title for gpu in facts.gpus if gpu.uuid}
    evidence = tuple(Evidence(_place(run, names) + run.title, run.detail or run.status, run.name) for run in bad)
    died = [run for run in bad if not run.cut_short]
    first = (died or bad)[0]
    title = f"{_place(first, names)}{first.title}: {first.detail or first.status}"
    known = {gpu.uuid for gpu in facts.gpus}
    judged = any(each.gpu in known and not why_not_judged(facts.gpus, each) for each in snapshot.measurements)
    without = coverage(facts.gpus, snapshot.measurements, snapshot.runs).failed
    return Outcome(
        status="warn" if died and judged and not without else "unknown",
        title=title,
        message=f"{title}. Other figures are not affected." if judged else f"{title}.",
        evidence=evidence,
        decided_by="measured",
    )


def _place(run: ProbeRun, names: dict[str, str]) -> str:
    name = names.get(run.gpu or "")
    return f"{name}: " if name else ""
