"""The GPUs of a machine side by side: which were not measured, how far their figures lie apart, which is slower."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

import msgspec

from envcheck.knowledge.performance.expected import in_use
from envcheck.knowledge.performance.quantities import place_of, quantity_of
from envcheck.knowledge.performance.spread import median, noise, speed_ratio, tolerated_among
from envcheck.model.checks import AcrossGpus, Evidence, Figure, Fix, OfGpu
from envcheck.model.snapshot import Gpu, Measurement, Snapshot, items_in
from envcheck.rules.api import Facts, Outcome, note, passed, rule, warning
from envcheck.rules.facts.measurements import (
    coverage,
    differences,
    kept_by_identity,
    measurement_key,
    measurement_name,
    nothing_measured,
    numbers,
    quantity,
)
from envcheck.rules.speed.figures import figure_of, measure_again
from envcheck.rules.speed.trust import causes, condition_evidence, unfinished, why_not_judged

USUAL = 0.10
"""Share by which GPUs of one model may differ where they compute: chips reach different clocks at the same power. Two
H200 differed by up to 4.4 % (tests/rules/recorded), the GPUs of five clusters by 8 % on average and 22 % at most
(https://arxiv.org/abs/2208.11035, read 2026-11-23), which includes slow ones."""
USUAL_TRANSFER = 0.05  # The same for device memory and links, whose clocks are fixed: two H200 differed by up to 2.6 %


class GroupMember(msgspec.Struct, frozen=True):
    """A GPU with its measurement of the group's quantity."""

    gpu: Gpu
    measured: Measurement
    why_not: str  # Why it is not compared; empty if it is


class GpuGroup(msgspec.Struct, frozen=True):
    """The measurements of one quantity by GPUs of one model."""

    name: str
    model: str
    members: tuple[GroupMember, ...]

    @property
    def compared(self) -> tuple[GroupMember, ...]:
        """The members that count."""
        return tuple(member for member in self.members if not member.why_not)

    def others(self, member: GroupMember) -> list[Measurement]:
        """What the other GPUs gave that are compared."""
        return [other.measured for other in self.compared if other.gpu.uuid != member.gpu.uuid]

    def alike(self, member: GroupMember) -> list[Measurement]:
        """The others for which the library chose the same algorithm; all others where there is none."""
        others = self.others(member)
        return [other for other in others if other.algorithm == member.measured.algorithm] or others

    def comparisons(self) -> tuple[OfGpu, ...]:
        """How each member stands to the median of the others, in the order of the members."""
        if len(self.compared) <= _MANY:
            return tuple(self._comparison(member, _reference(self.alike(member))) for member in self.members)
        # One more or less moves their median little, and leaving each out takes long.
        found: dict[str | None, list[Measurement]] = defaultdict(list)
        for member in self.compared:
            found[member.measured.algorithm].append(member.measured)
        whole = _reference([member.measured for member in self.compared])
        by_algorithm = {name: _reference(alike) if len(alike) > 1 else whole for name, alike in found.items()}
        return tuple(self._comparison(each, by_algorithm.get(each.measured.algorithm, whole)) for each in self.members)

    def _comparison(self, member: GroupMember, reference: tuple[float, float] | None) -> OfGpu:
        measured = member.measured
        own = OfGpu(gpu=member.gpu.index, uuid=member.gpu.uuid, value=_value(measured))
        if member.why_not or reference is None:
            return msgspec.structs.replace(own, why_not=member.why_not or "no other GPU was measured undisturbed")
        usual, allowed = reference
        slower = 1 - speed_ratio(own.value, usual, measured.unit)
        tolerated = min(allowed + noise(measured.samples) / 2, 0.9)
        if tolerated < slower < _BY_CHOICE and all(
            other.measured.algorithm != measured.algorithm for other in self.compared if other is not member
        ):
            return msgspec.structs.replace(own, why_not="the library chose another algorithm on it")
        return msgspec.structs.replace(own, slower=slower, tolerated=tolerated, straggles=slower > tolerated)


def _reference(others: Sequence[Measurement]) -> tuple[float, float] | None:
    """What a GPU is held against: the median, and the share that it may be slower, without its own samples' noise."""
    if not others:
        return None
    values = [_value(other) for other in others]
    apart = median([noise(other.samples) for other in others]) / 2
    known = quantity_of(others[0].name)
    transfers = known is not None and not known.needs and known.ceiling in ("memory", "pcie", "nvlink")
    return median(values), tolerated_among(values, USUAL_TRANSFER if transfers else USUAL) + apart


_BY_CHOICE = 0.25
"""Share by which an algorithm that another GPU did not choose may be slower: each GPU times several and takes the
fastest, and 11 % were seen. Beyond that it is the GPU."""
_MANY = 16  # GPUs of a group from which on they are compared with the median of all


def groups(gpus: Iterable[Gpu], measurements: Iterable[Measurement]) -> list[GpuGroup]:
    """The quantities that two or more GPUs of a model have a figure of, in reading order.

    Left out is what the processor decides, and what a library chooses anew in each run. Of copies between GPUs, each
    GPU has the figure of its fastest pair: a pair is as slow as the slower of its links, and a healthy GPU has a
    healthy partner if there are three.
    """
    by_uuid = {gpu.uuid: gpu for gpu in gpus if gpu.uuid}
    found: dict[tuple[str, str], dict[str, Measurement]] = defaultdict(dict)
    for measured in measurements:
        known_quantity = quantity_of(measured.name)
        if known_quantity is not None and (known_quantity.of_host or known_quantity.autotuned):
            continue
        if not measured.value or measured.value < 0 or "pageable" in (measured.variant or ""):
            continue
        name = measurement_key(msgspec.structs.replace(measured, peer=None))
        for uuid in (measured.gpu, measured.peer):
            gpu = by_uuid.get(uuid) if uuid else None
            if gpu is None or gpu.uuid is None:
                continue
            known = found[gpu.name or "", name].get(gpu.uuid)
            if known is None or speed_ratio(measured.value, _value(known), measured.unit) > 1:
                found[gpu.name or "", name][gpu.uuid] = measured
    made = []
    for (model, name), of_gpu in found.items():
        if len({id(measured) for measured in of_gpu.values()}) > 1:
            members = ((gpu, of_gpu[uuid]) for uuid, gpu in by_uuid.items() if uuid in of_gpu)
            every = by_uuid.values()
            compared = (GroupMember(gpu, measured, why_not_judged(every, measured)) for gpu, measured in members)
            made.append(GpuGroup(name, model, tuple(compared)))
    return sorted(made, key=lambda group: place_of(group.members[0].measured.name))


def across_gpus(gpus: Sequence[Gpu], measurements: Iterable[Measurement]) -> tuple[AcrossGpus, ...]:
    """How far GPUs of one model lie apart in each quantity that two or more were measured by, undisturbed."""
    found = []
    for group in groups(gpus, measurements) if len(gpus) > 1 else ():
        values, first = [_value(member.measured) for member in group.compared], group.members[0].measured
        if len(values) > 1:
            found.append(
                AcrossGpus(
                    name=group.name,
                    title=measurement_name(first),
                    unit=first.unit,
                    model=group.model,
                    low=min(values),
                    median=median(values),
                    high=max(values),
                    difference=1 - min(values) / max(values),
                    gpus=group.comparisons(),
                )
            )
    return tuple(found)


def _value(measured: Measurement) -> float:
    return measured.value or 0.0


@rule(layer="gpu", ground="figures")
def gpu_not_measured(snapshot: Snapshot, _facts: Facts) -> Outcome | None:
    """A requested GPU was not measured."""
    covered = coverage(items_in(snapshot.gpus), snapshot.measurements, snapshot.runs)
    broken = {run.gpu for run in unfinished(snapshot)}  # which another rule reports
    refused = tuple(gpu for gpu in covered.refused if gpu.uuid not in broken)
    if not refused:
        return None
    why = {}
    for gpu in refused:  # as the probes or its measurements say it
        runs = (run.detail for run in snapshot.runs if run.gpu == gpu.uuid and run.name.startswith("bench."))
        missing = (each.missing or "" for each in snapshot.measurements if each.gpu == gpu.uuid)
        why[gpu.uuid] = next(filter(None, (*runs, *missing)), "no figure")
    return Outcome(
        status="unknown",
        title=f"{numbers(refused)} not measured",
        message=covered.in_words() if covered.measured else nothing_measured(snapshot.runs) or why[refused[0].uuid],
        evidence=tuple(Evidence(gpu.title, why[gpu.uuid], "bench") for gpu in refused),
        decided_by="measured",
    )


_MOST_SHOWN = 8
_MANY_FIGURES = 10
"""Figures from which on a single slow one of a library is no finding on the GPU: it would show in more than one."""


class _Standing(msgspec.Struct, frozen=True):
    """A GPU's place in a group."""

    group: GpuGroup
    member: GroupMember
    standing: OfGpu

    @property
    def slower(self) -> float:
        """Share by which it is slower than the others."""
        return self.standing.slower or 0.0

    @property
    def other_values(self) -> list[float]:
        """What the GPUs gave that it is compared with."""
        return [measured.value or 0.0 for measured in self.group.alike(self.member)]


@kept_by_identity
def _all_places(gpus: tuple[Gpu, ...], measurements: tuple[Measurement, ...]) -> dict[str | None, list[_Standing]]:
    found: dict[str | None, list[_Standing]] = {}
    for group in groups(gpus, measurements):
        for member, standing in zip(group.members, group.comparisons(), strict=True):
            found.setdefault(member.gpu.uuid, []).append(_Standing(group, member, standing))
    return found


@rule(layer="gpu", decided_by="measured")
def gpu_straggler(gpu: Gpu, facts: Facts) -> Outcome | None:
    """A GPU is slower than the others of its machine."""
    places = _all_places(facts.gpus, facts.snapshot.measurements).get(gpu.uuid, [])
    if not places:
        return None
    compared = [place for place in places if place.standing.slower is not None]
    title = gpu.title
    if not compared and (held_up := _held_up(gpu, places)):
        return held_up
    if not compared:
        reason = places[0].standing.why_not or "nothing to compare with"
        return Outcome(
            status="skipped",
            title=f"{title}: not compared with the other GPUs",
            message=f"Measured, not compared: {reason}.",
        )
    slow = sorted((place for place in compared if place.standing.straggles), key=lambda place: -place.slower)
    if not slow:
        furthest = max(compared, key=lambda place: place.slower)
        figures = f"{len(compared)} figures" if len(compared) > 1 else "1 figure"
        text = f"{title}: as fast as the other GPUs of its model ({figures})"
        return passed(text, _shown(furthest), figure=_figure(gpu, furthest))
    worst = slow[0]
    name = measurement_name(worst.member.measured)
    others = "other GPU" if len(worst.other_values) == 1 else f"{len(worst.other_values)} others"
    known = quantity_of(worst.member.measured.name)
    if len(slow) == 1 and len(compared) >= _MANY_FIGURES and known is not None and known.needs:
        return note(
            title=f"{title}: as fast as the {others} in {len(compared) - 1} of {len(compared)} figures",
            message=f"One is {worst.slower:.0%} slower ({name}). A library that chose another algorithm looks like "
            "that; a slow GPU is slow in more than one.",
            evidence=(_shown(worst), *condition_evidence(worst.member.measured.conditions)),
            figure=_figure(gpu, worst),
        )
    count = f"{len(slow)} of {len(compared)} figures are slower than tolerated." if len(compared) > 1 else ""
    why = dict.fromkeys(text for place in slow for text in _why(gpu, place))
    cause = f"Likely cause: {'; '.join(why)}." if why else "NVML reports nothing in which it differs from the others."
    doubt = "" if len(worst.other_values) > 1 else " With two GPUs only, the faster one counts as healthy."
    return warning(
        title=f"{title}: {worst.slower:.0%} slower than the {others} ({name})",
        message=f"{count} {cause}{doubt}".strip(),
        evidence=(*map(_shown, slow[:_MOST_SHOWN]), *condition_evidence(worst.member.measured.conditions)),
        figure=_figure(gpu, worst),
        fixes=() if why else measure_again(gpu),
    )


def _held_up(gpu: Gpu, places: Sequence[_Standing]) -> Outcome | None:
    """The finding on a GPU that was in use, and slower than the idle ones: no judgement on its hardware."""
    busy, found = in_use(gpu), []
    for place in places if busy else ():
        reference = _reference(place.group.others(place.member))
        if reference and place.member.measured.gpu == gpu.uuid:
            slower = 1 - speed_ratio(_value(place.member.measured), reference[0], place.member.measured.unit)
            found.append((slower, slower > reference[1], place))
    if not any(straggles for _, straggles, _ in found):
        return None
    slower, _, worst = max(found, key=lambda each: each[0])
    measured = worst.member.measured
    pids = [str(process.pid) for process in gpu.processes or ()]
    held_by = f"process {', '.join(pids)}" if pids else "the other program"
    count = sum(straggles for _, straggles, _ in found)
    idle = median([_value(other) for other in worst.group.others(worst.member)])
    text = f"{quantity(_value(measured), measured.unit)}; the idle ones: {quantity(idle, measured.unit)}"
    return warning(
        title=f"{gpu.title}: {slower:.0%} slower while another program used it",
        message=f"{busy.capitalize()}. {count} of {len(found)} figures are lower than those of the idle GPUs; "
        "what it reaches by itself is not known.",
        evidence=(Evidence(measurement_name(measured), text, measured.detail or "bench"),),
        fixes=(Fix(f"Let {held_by} end, and measure again"),),
    )


def _why(gpu: Gpu, place: _Standing) -> tuple[str, ...]:
    """How its run differed from those of the others; else what it alone shows."""
    measured = place.member.measured
    others = [member for member in place.group.compared if member.gpu.uuid != gpu.uuid]
    runs = [other.measured.conditions for other in others if other.measured.conditions]
    found = differences(measured.conditions, runs, "the others" if len(runs) > 1 else "the other GPU")
    shared = {text for other in others for text in causes(other.gpu, other.measured)}
    return found or tuple(text for text in causes(gpu, measured) if text not in shared)


def _shown(place: _Standing) -> Evidence:
    measured: Measurement = place.member.measured
    values = place.other_values
    middle = quantity(median(values), measured.unit)
    usual = f"the median of the {len(values)} others is {middle}" if len(values) > 1 else f"the other GPU has {middle}"
    allowed = f"{place.standing.tolerated:.1%} tolerated"
    way = f"{place.slower:.1%} slower" if place.slower >= 0 else f"{-place.slower:.1%} faster"
    text = f"{quantity(measured.value or 0.0, measured.unit)}; {usual}: {way}, {allowed}"
    return Evidence(measurement_name(measured), text, measured.detail or "bench")


def _figure(gpu: Gpu, place: _Standing) -> Figure:
    return msgspec.structs.replace(
        figure_of(gpu, place.member.measured),
        name=place.group.name,
        siblings=median(place.other_values),
        tolerated=place.standing.tolerated,
    )
