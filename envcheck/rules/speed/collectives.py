"""Whether GPUs work together through NCCL, and how fast."""

from __future__ import annotations

import msgspec

from envcheck.knowledge.performance.collectives import latency_limit
from envcheck.model.checks import Evidence, Fix
from envcheck.model.snapshot import ObservedError, ProbeRun, Snapshot
from envcheck.rules.api import Facts, MeasurementSubject, Outcome, passed, rule
from envcheck.rules.facts.machine import gpu_title, plural
from envcheck.rules.facts.measurements import measurement_name, quantity
from envcheck.rules.facts.variables import BY_VARIABLE
from envcheck.rules.messages.observed import line_evidence
from envcheck.rules.speed.ceilings import figure_of, judge_figure
from envcheck.rules.speed.trust import failed_beside_others, why_not_judged

_PROBE = "bench.nccl"
_SHOWN = 6
_LOG = Fix(text="To keep NCCL's whole log, set NCCL_DEBUG=INFO and NCCL_DEBUG_FILE (a path), and measure again")
_LOG_OF_PROGRAM = Fix(
    text="Start the program with NCCL_DEBUG=INFO: NCCL's first line with WARN names the call that failed"
)


def _is_bandwidth(subject: MeasurementSubject, _facts: Facts) -> bool:
    measured = subject.measurement
    return measured.collective is not None and bool(measured.value or measured.missing) and not measured.collective.log


@rule(layer="fabric", per="measurement", arises=_is_bandwidth, ground="figures", told_by=BY_VARIABLE)
def slow_collective(subject: MeasurementSubject, facts: Facts) -> Outcome | None:
    """A collective operation of several GPUs is slower than expected."""
    if subject.measurement.unit == "s" and not why_not_judged(subject.gpu, subject.measurement):
        return _of_latency(subject, facts)
    found = judge_figure(subject, facts)
    collective = subject.measurement.collective
    ways = collective.transports if collective and found.status in ("warn", "fail") else ()
    indirect = [way for way in ways if way.startswith(("SHM", "NET"))]
    remark = f" NCCL's log says that it connected GPUs over {', '.join(indirect)}, not by direct access."
    return msgspec.structs.replace(found, message=f"{found.message}{remark if indirect else ''}".strip())


def _of_latency(subject: MeasurementSubject, facts: Facts) -> Outcome:
    """The smallest message. A slow one warns only: the host's processor counts too."""
    gpu, measured = subject.gpu, subject.measurement
    value = quantity(measured.value or 0.0, "s")
    name = f"{gpu_title(gpu)}: {measurement_name(measured)}"
    limit = latency_limit(facts.matrix, facts.gpus, facts.snapshot.fabric, measured)
    figure, shown = figure_of(gpu, measured), Evidence(what="measured", value=value, source=measured.detail or "bench")
    if isinstance(limit, str):
        return Outcome(
            status="skipped",
            title=f"{name}: {value}, not judged",
            message=f"Measured, not judged: {limit}.",
            evidence=(shown,),
            figure=figure,
            decided_by="measured",
        )
    most = quantity(limit.seconds, "s")
    slow = (measured.value or 0.0) > limit.seconds
    return Outcome(
        status="warn" if slow else "pass",
        title=f"{name}: {value}, {'more than' if slow else 'within'} {most}",
        message="The host's processor may be slow or busy, or the GPUs' clocks low." if slow else "",
        evidence=(shown, Evidence(what="expected", value=f"at most {most}", source="matrix")),
        figure=figure,
        sources=limit.sources,
        decided_by="measured",
    )


def _died(snapshot: Snapshot) -> list[ProbeRun]:
    return [run for run in snapshot.runs if run.name == _PROBE and run.status in ("crashed", "timed-out")]


@rule(
    layer="fabric",
    symptom=True,
    arises=lambda snapshot, _facts: any(found.collective for found in snapshot.measurements) or bool(_died(snapshot)),
    remedy=(_LOG_OF_PROGRAM,),
    explains=("measurement-unfinished",),
    told_by=(
        "damaged-distribution",
        "nvidia-wheel-conflict",
        "shared-memory-too-small",
        "peer-access-blocked",
        "nvlink-down",
        "fabric-manager-not-running",
        "nccl-version-mismatch",
        "nccl-no-interface",
    ),
)
def collective_fails(snapshot: Snapshot, facts: Facts) -> Outcome | None:
    """GPUs do not work together through NCCL."""
    # Jobs that ended early: their measurements have NCCL's log, or say that NCCL failed.
    failed = [found for found in snapshot.measurements if found.collective and (found.failed or found.collective.log)]
    died = _died(snapshot)
    if not failed and not died:
        done = next(found.collective for found in snapshot.measurements if found.collective)
        return passed(f"NCCL connects {plural(done.ranks, 'GPU')}", decided_by="measured")
    if not failed:
        return Outcome(
            status="unknown" if died[0].status == "timed-out" else "fail",
            title=f"NCCL: {died[0].detail}",
            message="The process that watches the ranks did not end by itself.",
            fixes=(_LOG,),
            decided_by="measured",
        )
    first = failed[0]
    log = [line for line in (first.collective.log if first.collective else ()) if " NCCL WARN " in line]
    text = (first.missing or "").rstrip(".")
    ranks = first.collective.gpus if first.collective else ()
    beside = failed_beside_others((gpu for gpu in facts.gpus if gpu.uuid in ranks), "NCCL", text)
    if beside:
        return beside
    return Outcome(
        status="fail" if first.failed else "warn",
        title=f"NCCL fails: {text}" if first.failed else f"NCCL did not end: {text}",
        message=f"{text}. All other ranks waited for it, and were ended.",
        evidence=(
            Evidence(what=measurement_name(first), value=text, source=first.library or "bench"),
            *(line_evidence(ObservedError(source="NCCL's log", text=line)) for line in log[-_SHOWN:]),
        ),
        fixes=(_LOG,),
        decided_by="measured",
    )
