"""Whether a measurement reaches what the chip should do and did earlier, and what held a GPU back in all of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import msgspec

from envcheck.knowledge.performance.collectives import collective_expectation
from envcheck.knowledge.performance.expected import WARN, Expectation, expectation
from envcheck.knowledge.performance.quantities import library_tested, quantity_of
from envcheck.knowledge.performance.spread import Base, base_of, noise, speed_ratio
from envcheck.knowledge.relations.variables import shown
from envcheck.knowledge.tables.environment import VariableEffect
from envcheck.model.checks import Confidence, Evidence, Figure, Fix, Layer, Status
from envcheck.model.snapshot import PASTED, Conditions, Gpu, Measurement, Snapshot
from envcheck.rules.api import Facts, MeasurementSubject, Outcome, Rule, passed, rule, warning
from envcheck.rules.facts.machine import plural
from envcheck.rules.facts.measurements import (
    BRAKE,
    HEAT,
    OFTEN,
    POWER_CAP,
    figures_of,
    kept_by_identity,
    lowered_limit,
    measurement_key,
    measurement_name,
    numbers,
    percent,
    quantity,
    spread,
)
from envcheck.rules.facts.variables import SetVariable, slowing_variables
from envcheck.rules.fixes.driver import COOLING, SUPPLY, restore_power_limit
from envcheck.rules.speed.trust import MEMORY, causes, condition_evidence, held_back, near_idle, why_not_judged

_Key = tuple[str | None, str, str]
_Slowing = tuple[tuple[SetVariable, VariableEffect], ...]


@kept_by_identity
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


@rule(layer="gpu", decided_by="measured")
def slower_than_baseline(subject: MeasurementSubject, facts: Facts) -> Outcome | None:
    """A measurement is slower than the baseline."""
    measured, known = subject.measurement, quantity_of(subject.measurement.name)
    earlier = bases(facts.snapshot.baseline).get(key_of(measured))
    if earlier is None or not measured.value or measured.value < 0 or (known is not None and known.autotuned):
        return None
    if why_not_judged(facts.gpus, measured):
        return None
    ratio = speed_ratio(measured.value, earlier.value, measured.unit)
    tolerated = earlier.tolerated_for(measured.samples)
    name = f"{subject.gpu.title}: {measurement_name(measured)}"
    value, was = quantity(measured.value, measured.unit), base_text(earlier, measured.unit)
    apart = f" (quartiles {noise(measured.samples):.1%} apart)" if len(measured.samples) > 1 else ""
    evidence = (
        Evidence("measured", f"{value}{apart}", measured.detail or "bench"),
        Evidence("baseline", was, "baseline"),
        Evidence("tolerated", f"{tolerated:.1%} slower", "noise of both"),
    )
    figure = msgspec.structs.replace(figure_of(subject.gpu, measured), baseline=earlier.value, tolerated=tolerated)
    if ratio >= 1 - tolerated:
        return passed(f"{name}: {ratio:.0%} of the baseline", *evidence, figure=figure)
    return warning(
        title=f"{name}: {1 - ratio:.0%} slower than the baseline",
        message=f"It was {was}, now {value}; {tolerated:.1%} is tolerated."
        + (f" Likely cause: {'; '.join(why)}." if (why := causes(subject.gpu, measured)) else ""),
        evidence=(*evidence, *condition_evidence(measured.conditions)),
        figure=figure,
    )


def base_text(base: Base, unit: str) -> str:
    """``4.29 TB/s``, with the range of several runs."""
    value = quantity(base.value, unit)
    if base.runs == 1:
        return value
    return f"{value} (median of {base.runs} runs, {quantity(base.low, unit)} to {quantity(base.high, unit)})"


@rule(layer="gpu", decided_by="measured", ground="figures")
def baseline_of_other_gpus(snapshot: Snapshot, facts: Facts) -> Outcome | None:
    """The baseline has no figure of these GPUs."""
    earlier, by_uuid = bases(snapshot.baseline), {gpu.uuid: gpu for gpu in facts.gpus if gpu.uuid}
    compared: Counter[str | None] = Counter()
    for measured in snapshot.measurements if snapshot.baseline else ():
        gpu = by_uuid.get(measured.gpu or "")
        if gpu is not None and not why_not_judged(facts.gpus, measured):
            compared[gpu.uuid] += key_of(measured) in earlier
    if not compared:
        return None
    gpus = [gpu for gpu in facts.gpus if gpu.uuid in compared]
    without = [gpu for gpu in gpus if not compared[gpu.uuid]]
    count = compared.total()
    evidence = Evidence("figures compared", f"{count}", "baseline")
    if not without:
        return passed(f"The baseline has figures of {numbers(gpus)}", evidence)
    return Outcome(
        status="note" if count else "unknown",
        title=f"The baseline has no figure of {numbers(without)}",
        message=f"No figure of {numbers(without)} was compared: the baseline is of other GPUs or quantities.",
        evidence=(evidence,),
    )


def judge_figure(subject: MeasurementSubject, facts: Facts) -> Outcome:
    gpu, measured = subject.gpu, subject.measurement
    name = f"{gpu.title}: {measurement_name(measured)}"
    found: Expectation | str = why_not_judged(facts.gpus, measured)
    if not found and measured.collective is None:
        found = expectation(facts.matrix, gpu, measured, facts.gpus, facts.snapshot.fabric)
    elif not found:
        found = collective_expectation(facts.matrix, facts.gpus, facts.snapshot.fabric, measured)
    if not isinstance(found, str):
        return _with_verdict(name, gpu, measured, found, facts)
    if measured.value is None:
        return Outcome(status="skipped", title=f"{name}: not measured", message=found)
    return Outcome(
        status="skipped",
        title=f"{name}: {quantity(measured.value, measured.unit)}, not judged",
        message=f"Measured, not judged: {found}.",
        evidence=_evidence(measured),
        figure=figure_of(gpu, measured),
        decided_by="measured",
    )


def figure_of(gpu: Gpu, measured: Measurement, found: Expectation | None = None) -> Figure:
    """A measured figure with what it was held against."""
    figure = Figure(
        name=measurement_key(measured),
        value=measured.value or 0.0,
        unit=measured.unit,
        gpu=gpu.index,
        spread=spread(measured.samples) if len(measured.samples) > 1 else None,
    )
    if found is None:
        return figure
    return msgspec.structs.replace(
        figure, ceiling=found.ceiling, share=found.share, expected_low=found.low, expected_high=found.high
    )


def _with_verdict(name: str, gpu: Gpu, measured: Measurement, found: Expectation, facts: Facts) -> Outcome:
    value, ceiling = quantity(measured.value or 0, measured.unit), quantity(found.ceiling, measured.unit)
    remark = " (a floor: never measured here)" if found.wide else ""
    expected = f"{percent(found.low)} to {percent(found.high)} of {ceiling}{remark}"
    what, message = "expected", ""
    confidence: Confidence = "high"
    status: Status
    slowed_by = held_back(gpu, measured) if found.at_clock is not None else ()
    variables: _Slowing = ()
    if found.judgement == "above-ceiling" and measured.source == PASTED:
        status, title = "pass", value  # another tool may count otherwise, and sums inside a switch send less
    elif found.judgement == "above-ceiling":
        status, title = "unknown", f"{value} is higher than possible"
        message = f"It is {percent(found.share)} of the ceiling of {ceiling}: a measurement error."
    elif found.judgement == "pass" and slowed_by:
        # It used its clock well, and that was lower than the GPU's own limits make it. A sustained run is at the power
        # limit, and far below the sheet's clock anyway.
        of_sheet = found.of_sheet if measured.burst is not False else None
        far = of_sheet is not None and of_sheet < WARN * found.low and not found.wide
        far = far or bool(measured.conditions and near_idle(gpu, measured.conditions))
        clock = f", at {found.clock_share:.0%} of the data sheet's clock" if found.clock_share is not None else ""
        status, title = "fail" if far else "warn", f"{value}, limited"
        message = f"{percent(found.share)} of the ceiling{clock}: {'; '.join(slowed_by)}."
        what, expected = "expected at that clock", f"{percent(found.low)} or more"
    elif found.judgement == "pass":
        status, title = "pass", f"{value}, {percent(found.share)} of the ceiling"
    else:
        variables = slowing_variables(measured, facts)
        # A floor of the chip's own quantities stands on its data sheet; of libraries nobody knows so much.
        unsure = found.wide and library_tested(measured.name) is not None
        status, title = "fail" if found.judgement == "fail" and not unsure else "warn", f"only {value}"
        message = _explained(gpu, measured, found, ceiling, variables)
        confidence = "weak" if found.wide else "high"
    slow = status in ("fail", "warn") and measured.name in MEMORY
    unexplained = slow and not (variables or slowed_by or causes(gpu, measured))
    return Outcome(
        status=status,
        title=f"{name}: {title}",
        message=message,
        evidence=(
            *_evidence(measured),
            Evidence(what, expected, found.basis),
            *condition_evidence(measured.conditions),
            *(variable.evidence for variable, _ in variables),
        ),
        figure=figure_of(gpu, measured, found),
        fixes=measure_again(gpu) if unexplained else (),
        sources=found.sources,
        decided_by="measured",
        confidence=confidence,
    )


def measure_again(gpu: Gpu) -> tuple[Fix, ...]:
    """What tells a slow GPU from a run that was disturbed."""
    which = () if gpu.index is None else ("--gpu", str(gpu.index))
    again = Fix("Measure again while nothing else runs on the machine", command=("envcheck", "bench", *which))
    return again, Fix("If it stays slow when idle and cool, have its vendor check it", continues=True)


def _explained(gpu: Gpu, measured: Measurement, found: Expectation, ceiling: str, slowing: _Slowing) -> str:
    reached, least = percent(found.share), percent(found.low)
    text = f"{reached} of the ceiling of {ceiling} ({found.basis}); healthy GPUs reach {least} or more."
    if found.at_clock is not None and found.clock_share is not None:
        text += (
            f" It reached {percent(found.at_clock)} of what its clock allows, at {found.clock_share:.0%} of the"
            " data sheet's clock."
        )
    why = (*(f"{each.name}={shown(each.value)}: {effect.text}" for each, effect in slowing), *causes(gpu, measured))
    unknown = "" if measured.source == PASTED else " NVML reports no cause."
    return f"{text} Likely cause: {'; '.join(why)}." if why else f"{text}{unknown}"


def value_evidence(what: str, measured: Measurement) -> Evidence:
    return Evidence(what, quantity(measured.value or 0.0, measured.unit), measured.detail or "bench")


def _evidence(measured: Measurement) -> tuple[Evidence, ...]:
    value = quantity(measured.value or 0, measured.unit)
    samples = measured.samples
    text = f"{value} (median of {len(samples)}, spread {spread(samples):.1%})" if samples else value
    method = ", ".join(part for part in (measured.method, measured.detail) if part)
    return (Evidence("measured", text, method or "bench"),)


def _slow(name: str, title: str, *quantities: str, layer: Layer = "gpu", without: frozenset[str] = frozenset()) -> Rule:
    """The rule that judges these quantities, but for some variants of them."""
    return Rule(
        name=name,
        title=title,
        layer=layer,
        per="measurement",
        arises=lambda subject, _facts: (
            subject.measurement.name in quantities
            and without.isdisjoint((subject.measurement.variant or "").split(", "))
        ),
        ground="figures",
        function=judge_figure,
    )


_COPIES, _FAR = ("host-to-device", "device-to-host"), frozenset({"pageable", "far"})
slow_gpu_memory = _slow("slow-gpu-memory", "A GPU's memory is slower than expected", *MEMORY)
slow_gemm = _slow("slow-gemm", "A GPU computes more slowly than expected", "gemm", "fma", "mma")
slow_host_link = _slow(
    "slow-host-link", "The link between host and GPU is slower than expected", *_COPIES, without=_FAR
)
slow_peer_link = _slow(
    "slow-peer-link", "The link between two GPUs is slower than expected", "peer-to-peer", layer="fabric"
)


@rule(layer="gpu", decided_by="measured")
def gpu_held_back(gpu: Gpu, facts: Facts) -> Outcome | None:
    """Heat or power held a GPU back while it was measured."""
    runs = [each.conditions for each in figures_of(gpu, facts.snapshot.measurements) if each.conditions]
    if not runs:
        return None
    found: list[tuple[str, str, Fix]] = []
    if often := _often(runs, *HEAT):
        hottest = max((run.temperature.high for run in runs if run.temperature), default=None)
        heat = f", at up to {hottest:.0f} °C" if hottest is not None else ""
        found.append(("thermal throttling", f"{often}{heat}", COOLING))
    if often := _often(runs, BRAKE):
        found.append(("power brake", often, SUPPLY))
    lowered = lowered_limit(runs[0])
    if lowered and (often := _often(runs, POWER_CAP)):
        limit, default = lowered
        words = f"power limit of {limit:.0f} W (default {default:.0f} W)"
        found.append((words, often, restore_power_limit(gpu, default)))
    if not found:
        return passed("Neither heat nor power held a run back")
    first = found[0][0]
    return warning(
        title=f"{gpu.title}: {first} while it was measured",
        message="Its clocks were lowered under load, and its figures with them.",
        evidence=tuple(Evidence(what, value, "nvml") for what, value, _ in found),
        fixes=tuple(fix for _, _, fix in found),
    )


def _often(runs: Sequence[Conditions], *reasons: str) -> str:
    """How much the reasons held runs back, in words; empty where they did not."""
    shares = [share for run in runs if (share := max(run.throttle.get(name, 0.0) for name in reasons)) >= OFTEN]
    return f"in up to {max(shares):.0%} of the samples of {plural(len(shares), 'figure')}" if shares else ""
