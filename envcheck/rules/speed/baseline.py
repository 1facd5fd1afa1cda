"""Whether a measurement is slower than earlier runs of the same GPU."""

from __future__ import annotations

import msgspec

from envcheck.knowledge.performance.quantities import quantity_of
from envcheck.knowledge.performance.spread import Base, base_of, noise, speed_ratio
from envcheck.model.checks import Evidence
from envcheck.model.snapshot import Gpu, Measurement, Snapshot
from envcheck.rules.api import Facts, MeasurementSubject, Outcome, passed, rule
from envcheck.rules.facts.machine import gpu_title
from envcheck.rules.facts.measurements import measurement_key, measurement_name, numbers, once, quantity
from envcheck.rules.speed.ceilings import condition_evidence, figure_of
from envcheck.rules.speed.trust import why_not_judged

_Key = tuple[str | None, str, str]


def _earlier(subject: MeasurementSubject, facts: Facts) -> Base | None:
    """The same quantity of the same GPU in the earlier runs."""
    return bases(facts.snapshot.baseline).get(key_of(subject.measurement))


@once
def bases(baseline: tuple[Measurement, ...]) -> dict[_Key, Base]:
    """What earlier runs are as a base, by ``key_of`` their figures."""
    runs: dict[_Key, list[tuple[float, tuple[float, ...]]]] = {}
    for earlier in baseline:
        if earlier.value:
            runs.setdefault(key_of(earlier), []).append((earlier.value, earlier.samples))
    return {key: base for key, found in runs.items() if (base := base_of(found))}


def key_of(measured: Measurement) -> _Key:
    """What figures of one quantity of one GPU have in common."""
    return measured.gpu, measured.unit, measurement_key(measured)


def speed_against(measured: Measurement, baseline: tuple[Measurement, ...]) -> tuple[float, int] | None:
    """How many times as fast it is as in the earlier runs, and their number; None where they lack it."""
    base = bases(baseline).get(key_of(measured)) if baseline else None
    if base is None or not measured.value or measured.value < 0:
        return None
    return speed_ratio(measured.value, base.value, measured.unit), base.runs


@rule(
    layer="gpu",
    per="measurement",
    arises=lambda subject, facts: (
        not why_not_judged(subject.gpu, subject.measurement) and _earlier(subject, facts) is not None
    ),
)
def slower_than_baseline(subject: MeasurementSubject, facts: Facts) -> Outcome | None:
    """A measurement is slower than the baseline."""
    measured, earlier, known = subject.measurement, _earlier(subject, facts), quantity_of(subject.measurement.name)
    if earlier is None or not measured.value or measured.value < 0 or (known is not None and known.autotuned):
        return None
    ratio = speed_ratio(measured.value, earlier.value, measured.unit)
    tolerated = earlier.tolerated_for(measured.samples)
    name = f"{gpu_title(subject.gpu)}: {measurement_name(measured)}"
    value, was = quantity(measured.value, measured.unit), base_text(earlier, measured.unit)
    apart = f" (quartiles {noise(measured.samples):.1%} apart)" if len(measured.samples) > 1 else ""
    evidence = (
        Evidence(what="measured", value=f"{value}{apart}", source=measured.detail or "bench"),
        Evidence(what="baseline", value=was, source="baseline"),
        Evidence(what="tolerated", value=f"{tolerated:.1%} slower", source="noise of both"),
    )
    figure = msgspec.structs.replace(figure_of(subject.gpu, measured), baseline=earlier.value, tolerated=tolerated)
    if ratio >= 1 - tolerated:
        return passed(f"{name}: {ratio:.0%} of the baseline", *evidence, decided_by="measured", figure=figure)
    return Outcome(
        status="warn",
        title=f"{name}: {1 - ratio:.0%} slower than the baseline",
        message=f"It was {was}, now {value}; {tolerated:.1%} is tolerated.",
        evidence=(*evidence, *condition_evidence(measured.conditions)),
        figure=figure,
        decided_by="measured",
    )


def base_text(base: Base, unit: str) -> str:
    """``4.29 TB/s``, with the range of several runs."""
    value = quantity(base.value, unit)
    if base.runs == 1:
        return value
    return f"{value} (median of {base.runs} runs, {quantity(base.low, unit)} to {quantity(base.high, unit)})"


def _to_compare(snapshot: Snapshot, facts: Facts) -> dict[str, list[Measurement]]:
    """The figures that a baseline could be held against, by GPU."""
    by_uuid = {gpu.uuid: gpu for gpu in facts.gpus if gpu.uuid}
    found: dict[str, list[Measurement]] = {}
    for measured in snapshot.measurements:
        gpu = by_uuid.get(measured.gpu or "")
        if gpu is not None and not why_not_judged(gpu, measured):
            found.setdefault(measured.gpu or "", []).append(measured)
    return found


@rule(
    layer="gpu",
    arises=lambda snapshot, facts: bool(snapshot.baseline) and bool(_to_compare(snapshot, facts)),
    ground="figures",
)
def baseline_of_other_gpus(snapshot: Snapshot, facts: Facts) -> Outcome | None:
    """The baseline has no figure of these GPUs."""
    earlier = bases(snapshot.baseline)
    compared = {
        uuid: sum(key_of(each) in earlier for each in found) for uuid, found in _to_compare(snapshot, facts).items()
    }
    gpus: list[Gpu] = [gpu for gpu in facts.gpus if gpu.uuid in compared]
    without = [gpu for gpu in gpus if not compared[gpu.uuid or ""]]
    count = sum(compared.values())
    evidence = Evidence(what="figures compared", value=f"{count}", source="baseline")
    if not without:
        return passed(f"The baseline has figures of {numbers(gpus)}", evidence, decided_by="measured")
    return Outcome(
        status="note" if count else "unknown",
        title=f"The baseline has no figure of {numbers(without)}",
        message=f"No figure of {numbers(without)} was compared: the baseline is of other GPUs or quantities.",
        evidence=(evidence,),
        decided_by="measured",
    )
