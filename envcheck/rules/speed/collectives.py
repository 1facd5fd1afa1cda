"""Whether GPUs work together through NCCL, and how fast."""

from __future__ import annotations

from envcheck.checks import Evidence, Fix
from envcheck.rules.api import Facts, MeasurementSubject, Outcome, passed, rule
from envcheck.rules.facts.machine import plural
from envcheck.rules.facts.measurements import measurement_name
from envcheck.rules.messages.lines import named_by
from envcheck.rules.speed.ceilings import judge_figure
from envcheck.rules.speed.trust import failed_beside_others
from envcheck.snapshot import Measurement, ProbeRun, Snapshot

_PROBE = "bench.nccl"
_SHOWN = 6
_LOG = Fix(
    text="Read NCCL's whole log",
    command=("env", "NCCL_DEBUG=INFO", "envcheck", "bench", "--only", "nccl", "--full"),
)


def _is_bandwidth(subject: MeasurementSubject, _facts: Facts) -> bool:
    measured = subject.measurement
    return measured.collective is not None and bool(measured.value or measured.missing) and not measured.collective.log


@rule(layer="fabric", scope="node", per="measurement", arises=_is_bandwidth, required=True)
def slow_collective(subject: MeasurementSubject, facts: Facts) -> Outcome | None:
    """A collective operation of several GPUs is slower than expected.

    What it checks
        Checks the bus bandwidth (as nccl-tests defines it) of large collective operations through the
        environment's NCCL against what the links of one GPU carry in one direction, and the share of it
        that healthy machines reach with as many GPUs. What joins the GPUs is read from the driver and
        from NCCL's own log. Links and algorithms without known figures are not judged.

    Why it matters
        Training on several GPUs waits for the sum of the gradients in every step.

    How to fix
        Check for NVLinks that are down (nvidia-smi nvlink --status), for variables of NCCL that a job
        or an image sets, and for ACS or an IOMMU that routes traffic between GPUs through the root. If
        NCCL's log says SHM or NET although NVLink joins the GPUs, peer access is hindered.

    Sources
        nccl-tests, performance reported:
            https://github.com/NVIDIA/nccl-tests/blob/master/doc/PERFORMANCE.md
        NCCL user guide, troubleshooting:
            https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html
    """
    return judge_figure(subject, facts)


def _failures(snapshot: Snapshot) -> list[Measurement]:
    """Jobs that ended before their time: those have NCCL's log, or say that it failed."""
    return [found for found in snapshot.measurements if found.collective and (found.failed or found.collective.log)]


def _died(snapshot: Snapshot) -> list[ProbeRun]:
    return [run for run in snapshot.runs if run.name == _PROBE and run.status in ("crashed", "timed-out")]


def _was_tried(snapshot: Snapshot, _facts: Facts) -> bool:
    return any(found.collective for found in snapshot.measurements) or bool(_died(snapshot))


@rule(
    layer="fabric",
    scope="node",
    symptom=True,
    arises=_was_tried,
    explains=("measurement-unfinished",),
    told_by=("damaged-distribution", "nvidia-wheel-conflict"),
)
def collective_fails(snapshot: Snapshot, facts: Facts) -> Outcome | None:
    """GPUs do not work together through NCCL.

    What it checks
        With bench: that NCCL, loaded from the file that the environment would use, connects all visible
        GPUs, and that collective operations end. Each GPU has a process of its own, and with --full one
        process has all. A process that dies or stands still is named with its rank and its GPU.

    Why it matters
        A job on several GPUs then hangs or stops, often without saying which process was the first.

    How to fix
        Usually NCCL's log or another finding names the cause: too little shared memory (/dev/shm),
        hindered peer access (ACS, IOMMU), NVLinks that are down, two releases of NCCL in one job, a GPU
        that one process cannot see. A process that was killed from outside may have met a limit of
        memory (see the kernel's log). Beside another program on a GPU (--force) nothing is judged.

    Sources
        NCCL user guide, troubleshooting:
            https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html
    """
    failed, died = _failures(snapshot), _died(snapshot)
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
    log = first.collective.log if first.collective else ()
    problem = next((line.problem for line in map(named_by, log) if line), None)
    text = (first.missing or "").rstrip(".")
    ranks = first.collective.gpus if first.collective else ()
    beside = failed_beside_others((gpu for gpu in facts.gpus if gpu.uuid in ranks), "NCCL", text)
    if beside:
        return beside
    cause = f" NCCL's log names a problem: {problem}." if problem else ""
    return Outcome(
        status="fail" if first.failed else "warn",
        title=f"NCCL fails: {text}" if first.failed else f"NCCL did not end: {text}",
        message=f"{text}. All other ranks waited for it, and were ended.{cause}",
        evidence=(
            Evidence(what=measurement_name(first), value=text, source=first.library or "bench"),
            *(Evidence(what="NCCL's log", value=line, source=first.library or "bench") for line in log[-_SHOWN:]),
        ),
        fixes=(_LOG,),
        decided_by="measured",
    )
