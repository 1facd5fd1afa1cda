"""Whether measured results are right, and whether the GPUs of a machine agree."""

from __future__ import annotations

from collections import defaultdict

from envcheck.checks import Evidence
from envcheck.rules.api import Facts, MeasurementSubject, Outcome, passed, rule
from envcheck.rules.machine import called
from envcheck.rules.measured import called_measurement, measured_as, quantity
from envcheck.rules.speed_unjudged import why_not_judged
from envcheck.snapshot import Gpu, Measurement, Snapshot

STRAGGLER = 0.10
"""Share by which a GPU may lie below the middle of its machine: GPUs of one model differ by 5 %."""
_LEAST_GPUS = 3


def _was_verified(subject: MeasurementSubject, _facts: Facts) -> bool:
    return subject.measurement.verification is not None


@rule(layer="gpu", scope="node", per="measurement", arises=_was_verified)
def wrong_result(subject: MeasurementSubject, _facts: Facts) -> Outcome | None:
    """A GPU computed or copied something wrong.

    What it checks
        The results of the measurements: copies word by word, reductions exactly, matrix products at
        random elements against FP64 on the CPU (with --full at every element on the GPU), within
        c * epsilon * sqrt(K). Outputs are overwritten before each run, so that an old right result
        cannot be taken for a new one.

    Why it matters
        A GPU that miscomputes spoils a training run without any message.

    How to fix
        Run again with nothing else on the machine. If it happens again, take the GPU out of use and
        have it replaced; if it happens in one library only, report it to the library's makers.

    Sources
        GPU debug guidelines: https://docs.nvidia.com/deploy/gpu-debug-guidelines/index.html
    """
    measured = subject.measurement
    verification = measured.verification
    if verification is None:
        return None
    name = f"{called(subject.gpu)}: {called_measurement(measured)}"
    evidence = [Evidence(what="checked", value=f"{verification.checked:,} ({verification.how})", source="bench")]
    if verification.right:
        return passed(f"{name}: result is right", *evidence, decided_by="measured")
    evidence.append(Evidence(what="wrong", value=f"{verification.wrong:,}", source="bench"))
    if verification.worst is not None and verification.tolerance is not None:
        error = f"{verification.worst:.3g}, tolerated {verification.tolerance:.3g}"
        evidence.append(Evidence(what="greatest error", value=error, source="bench"))
    return Outcome(
        status="fail",
        title=f"{name}: wrong result",
        message=f"{verification.wrong:,} of {verification.checked:,} checked elements are wrong ({measured.detail}).",
        evidence=tuple(evidence),
        decided_by="measured",
        action="drain",
    )


def _several_gpus(snapshot: Snapshot, _facts: Facts) -> bool:
    return len({measured.gpu for measured in snapshot.measurements if measured.value}) >= _LEAST_GPUS


@rule(layer="gpu", scope="node", arises=_several_gpus)
def gpu_straggler(snapshot: Snapshot, facts: Facts) -> Outcome | None:
    """One GPU is slower than the others of its machine.

    What it checks
        Each measured quantity of each GPU against the middle of all GPUs of the same model in the
        machine, where there are three or more.

    Why it matters
        A job over several GPUs goes at the pace of the slowest.

    How to fix
        Compare its clocks, temperature, power limit and PCI Express link with its neighbours'; its
        own findings name what was seen during the run.

    Sources
        NVIDIA DCGM diagnostics:
            https://docs.nvidia.com/datacenter/dcgm/latest/user-guide/dcgm-diagnostics.html
    """
    by_uuid = {gpu.uuid: gpu for gpu in facts.gpus if gpu.uuid}
    slow = [(gpu, measured, middle) for gpu, measured, middle in _behind(snapshot, by_uuid)]
    if not slow:
        return passed("No GPU lies behind the others", decided_by="measured")
    names = ", ".join(dict.fromkeys(called(gpu) for gpu, _, _ in slow))
    evidence = tuple(
        Evidence(
            what=f"{called(gpu)}: {called_measurement(measured)}",
            value=f"{quantity(measured.value or 0, measured.unit)}, the middle is {quantity(middle, measured.unit)}",
            source="bench",
        )
        for gpu, measured, middle in slow
    )
    return Outcome(
        status="warn",
        title=f"{names}: slower than the others of this machine",
        message=f"More than {STRAGGLER:.0%} below the middle of the machine's GPUs of that model.",
        evidence=evidence,
        decided_by="measured",
    )


def _behind(snapshot: Snapshot, by_uuid: dict[str, Gpu]) -> list[tuple[Gpu, Measurement, float]]:
    import statistics  # noqa: PLC0415  few checks have measurements, and it brings fractions and decimals along

    groups: dict[tuple[str, str], list[tuple[Gpu, Measurement]]] = defaultdict(list)
    for measured in snapshot.measurements:
        gpu = by_uuid.get(measured.gpu or "")
        comparable = measured.peer is None and measured.unit != "s"
        if gpu is not None and comparable and not why_not_judged(gpu, measured):
            groups[gpu.name or "", measured_as(measured)].append((gpu, measured))
    found = []
    for members in groups.values():
        if len(members) < _LEAST_GPUS:
            continue
        middle = statistics.median(measured.value or 0 for _, measured in members)
        found += [
            (gpu, measured, middle) for gpu, measured in members if (measured.value or 0) < (1 - STRAGGLER) * middle
        ]
    return found
