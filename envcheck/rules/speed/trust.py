"""Whether measurements are valid: finished, correct and undisturbed; and what was true of a GPU meanwhile."""

from __future__ import annotations

from collections.abc import Iterable

from envcheck.knowledge.performance.expected import at_work, in_use
from envcheck.knowledge.performance.quantities import library_tested, quantity_of
from envcheck.model.checks import Evidence, Fix
from envcheck.model.snapshot import Conditions, Gpu, Measurement, Pcie, ProbeRun, RowRemap, Snapshot
from envcheck.rules.api import Facts, MeasurementSubject, Outcome, failure, passed, rule
from envcheck.rules.facts.measurements import (
    NEAR_IDLE,
    OFTEN,
    POWER_CAP,
    THROTTLES,
    coverage,
    lowered_limit,
    measurement_name,
    processor_figures,
    reason_without_value,
)
from envcheck.rules.gpu.links import TRANSLATED, on_switch

MEMORY = ("device-memory-read", "device-memory-write", "device-memory-copy", "device-memory-triad")
_LINKS = ("host-to-device", "device-to-host", "peer-to-peer")
_FULL = 0.9  # Share of the highest memory clock from which it counts as full
_COUNTED = (
    ("pcie-replays", "pcie", "the PCI Express link sent {} packets again (replays)"),
    ("pcie-errors", "pcie", "the PCI Express link reported {} errors (AER)"),
    ("ecc-uncorrected", "chip", "{} memory errors could not be corrected (ECC)"),
    ("ecc-corrected", "chip", "ECC corrected {} memory errors"),
    ("rows-remapped", "chip", "{} rows of its memory were replaced by spare ones"),
    ("nvlink-errors", "nvlink", "NVLinks reported {} errors"),
)
"""The counters of ``Conditions.rose``, what depends on them, and what it means that they rose."""


def causes(gpu: Gpu, measured: Measurement) -> tuple[str, ...]:
    """What was true during a slow run, as text, in the order in which it is to be looked at."""
    run, pcie, known = measured.conditions or Conditions(), gpu.pcie or Pcie(), quantity_of(measured.name)
    kind: str = "nvlink" if measured.collective else known.ceiling if known else ""
    if kind == "nvlink" and ("PCIe" in (measured.variant or "") or not any(each.active for each in gpu.nvlinks or ())):
        kind = "peers"
    ways = {"pcie": ("pcie",), "nvlink": ("nvlink",), "peers": ("pcie", "peers")}.get(kind, ("chip",))
    down = sum(link.active is False for link in gpu.nvlinks or ()) if on_switch(gpu) else 0
    remap, others = gpu.row_remap or RowRemap(), run.used_by_others or 0.0
    redirected, translated = bool(pcie.redirecting), pcie.iommu in TRANSLATED
    conditions = (
        *((way, name in run.rose, words.format(run.rose.get(name))) for name, way, words in _COUNTED),
        ("nvlink", down, f"{down} of {len(gpu.nvlinks or ())} NVLinks are down"),
        ("peers", redirected, "ACS sends what goes from GPU to GPU up to the root"),
        ("peers", translated and not redirected, "the IOMMU translates the addresses of what goes from GPU to GPU"),
        ("chip", remap.pending, "a row of its memory waits for a reset to be replaced"),
        (ways[0], run.xids, f"the driver reported Xid {', '.join(map(str, run.xids))}"),
        (ways[0], others / 100 >= OFTEN, f"another program used the GPU in {others:.0f}% of the time"),
    )
    return (*held_back(gpu, measured), *(words for way, true, words in conditions if true and way in ways))


def held_back(gpu: Gpu, measured: Measurement) -> tuple[str, ...]:
    """What held clocks and link down during a run, the most certain first."""
    conditions = measured.conditions
    if conditions is None:
        return ()
    found = [words for reason, words in THROTTLES.items() if conditions.throttle.get(reason, 0) >= OFTEN]
    if lowered := lowered_limit(conditions):
        found.append(f"its power limit is {lowered[0]:.0f} W, below the default of {lowered[1]:.0f} W")
    on_link = measured.name in _LINKS  # which copy engines serve, at any clock
    if not on_link and (stuck := near_idle(gpu, conditions)):
        found.append(stuck)
    memory, fastest = conditions.memory_clock, gpu.clocks.memory_max if gpu.clocks else None
    if measured.name in MEMORY and memory and fastest and memory.high < _FULL * fastest:
        found.append(f"the memory clock stayed at {memory.high / 1e6:.0f} of {fastest / 1e6:.0f} MHz")
    if measured.name not in ("host-to-device", "device-to-host") or gpu.pcie is None:
        return tuple(found)
    width, most = conditions.pcie_width, gpu.pcie.width_max
    if width and most and width < most:
        found.append(f"the PCI Express link has {width} of {most} lanes")
    generation, highest = conditions.pcie_generation, gpu.pcie.generation_max
    if generation and highest and generation < highest:
        found.append(f"the PCI Express link stayed at generation {generation} of {highest} under load")
    return tuple(found)


def near_idle(gpu: Gpu, conditions: Conditions) -> str:
    """In words that the clock never left the neighbourhood of idle; empty where it did."""
    clock, highest = conditions.sm_clock, gpu.clocks.sm_max if gpu.clocks else None
    if not clock or not highest or clock.high >= NEAR_IDLE * highest:
        return ""
    capped = " at the power cap" if conditions.throttle.get(POWER_CAP, 0) >= OFTEN else ""
    return f"the SM clock stayed at {clock.high / 1e6:.0f} of {highest / 1e6:.0f} MHz under load{capped}"


def condition_evidence(conditions: Conditions | None) -> tuple[Evidence, ...]:
    if conditions is None:
        return ()
    parts = []
    if conditions.sm_clock:
        parts.append(f"SM clock {conditions.sm_clock.median / 1e6:.0f} MHz")
    if conditions.power:
        parts.append(f"power {conditions.power.high:.0f} W")
    if conditions.power_limit:
        parts.append(f"limit {conditions.power_limit:.0f} W")
    if conditions.temperature:
        parts.append(f"{conditions.temperature.high:.0f} C")
    throttled = [f"{why} in {share:.0%} of samples" for why, share in conditions.throttle.items() if share >= OFTEN]
    rose = [f"{name} +{count}" for name, count in conditions.rose.items()]
    text = ", ".join([*parts, *throttled, *rose])
    return (Evidence("during the run", text, conditions.source or "nvml"),) if text else ()


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
    figures = processor_figures(snapshot.measurements)
    checked = [(found, found.verification) for found in figures if found.verification]
    wrong = [(found, seen) for found, seen in checked if not seen.right]
    evidence = [
        Evidence(measurement_name(found), seen.how, found.detail or "bench") for found, seen in wrong or checked
    ]
    if not checked:
        return None
    if not wrong:
        return passed("NumPy and SciPy compute correctly on the CPU", *evidence)
    return failure(
        title=f"{measurement_name(wrong[0][0])}: wrong result",
        message=f"{len(wrong)} of {len(checked)} kinds of results are wrong.",
        evidence=tuple(evidence),
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
