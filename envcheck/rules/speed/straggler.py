"""Whether a GPU is slower than the others of its model in this machine."""

from __future__ import annotations

import msgspec

from envcheck.checks import Evidence, Figure, OfGpu
from envcheck.compat.performance.spread import median
from envcheck.rules.api import Facts, Outcome, passed, rule
from envcheck.rules.facts.machine import gpu_title
from envcheck.rules.facts.measurements import measurement_name, quantity, spread
from envcheck.rules.facts.once import once
from envcheck.rules.facts.run_conditions import differences
from envcheck.rules.speed.ceilings import causes, condition_evidence
from envcheck.rules.speed.siblings import Group, Member, groups
from envcheck.snapshot import Gpu, Measurement

_MOST_SHOWN = 8


class _Place(msgspec.Struct, frozen=True):
    """A GPU's place in a group."""

    group: Group
    member: Member
    standing: OfGpu

    @property
    def slower(self) -> float:
        """Share by which it is slower than the others."""
        return self.standing.slower or 0.0

    @property
    def other_values(self) -> list[float]:
        """What the other GPUs gave."""
        return [measured.value or 0.0 for measured in self.group.others(self.member)]


def _places(gpu: Gpu, facts: Facts) -> list[_Place]:
    if len(facts.gpus) < 2 or not facts.snapshot.measurements:
        return []
    return _all_places(facts.gpus, facts.snapshot.measurements).get(gpu.uuid, [])


@once
def _all_places(gpus: tuple[Gpu, ...], measurements: tuple[Measurement, ...]) -> dict[str | None, list[_Place]]:
    found: dict[str | None, list[_Place]] = {}
    for group in groups(gpus, measurements):
        for member, standing in zip(group.members, group.comparisons(), strict=True):
            found.setdefault(member.gpu.uuid, []).append(_Place(group, member, standing))
    return found


@rule(layer="gpu", scope="node", per="gpu", arises=lambda gpu, facts: bool(_places(gpu, facts)))
def gpu_straggler(gpu: Gpu, facts: Facts) -> Outcome | None:
    """A GPU is slower than the others of its machine."""
    places = _places(gpu, facts)
    compared = [place for place in places if place.standing.slower is not None]
    if not compared:
        return _not_compared(gpu, places)
    slow = sorted((place for place in compared if place.standing.straggles), key=lambda place: -place.slower)
    if not slow:
        return _keeps_up(gpu, compared)
    worst = slow[0]
    name = measurement_name(worst.member.measured)
    others = "other GPU" if len(worst.other_values) == 1 else f"{len(worst.other_values)} others"
    return Outcome(
        status="warn",
        title=f"{gpu_title(gpu)}: {worst.slower:.0%} slower than the {others} ({name})",
        message=_explained(gpu, slow, len(compared)),
        evidence=(*map(_shown, slow[:_MOST_SHOWN]), *condition_evidence(worst.member.measured.conditions)),
        figure=_figure(gpu, worst),
        decided_by="measured",
    )


def _not_compared(gpu: Gpu, places: list[_Place]) -> Outcome:
    why = places[0].standing.why_not or "nothing to compare with"
    return Outcome(
        status="skipped",
        title=f"{gpu_title(gpu)}: not compared with the other GPUs",
        message=f"Measured, not compared: {why}.",
        decided_by="measured",
    )


def _keeps_up(gpu: Gpu, compared: list[_Place]) -> Outcome:
    furthest = max(compared, key=lambda place: place.slower)
    count = f"{len(compared)} figures" if len(compared) > 1 else "1 figure"
    found = passed(
        f"{gpu_title(gpu)}: as fast as the other GPUs of its model ({count})", _shown(furthest), decided_by="measured"
    )
    return msgspec.structs.replace(found, figure=_figure(gpu, furthest))


def _explained(gpu: Gpu, slow: list[_Place], compared: int) -> str:
    told = f"{len(slow)} of {compared} figures are slower than tolerated." if compared > 1 else ""
    why = dict.fromkeys(text for place in slow for text in _why(gpu, place))
    cause = f"Likely cause: {'; '.join(why)}." if why else "NVML reports nothing in which it differs from the others."
    doubt = "" if len(slow[0].other_values) > 1 else " With two GPUs only, the faster one counts as healthy."
    return f"{told} {cause}{doubt}".strip()


def _why(gpu: Gpu, place: _Place) -> tuple[str, ...]:
    """How its run differed from those of the others; else what it alone shows."""
    measured = place.member.measured
    others = [member for member in place.group.compared if member.gpu.uuid != gpu.uuid]
    runs = [other.measured.conditions for other in others if other.measured.conditions]
    found = differences(measured.conditions, runs, "the others" if len(runs) > 1 else "the other GPU")
    shared = {text for other in others for text in causes(other.gpu, other.measured)}
    return found or tuple(text for text in causes(gpu, measured) if text not in shared)


def _shown(place: _Place) -> Evidence:
    measured: Measurement = place.member.measured
    values = place.other_values
    middle = quantity(median(values), measured.unit)
    usual = f"the median of the {len(values)} others is {middle}" if len(values) > 1 else f"the other GPU has {middle}"
    allowed = f"{place.standing.tolerated:.1%} tolerated"
    way = f"{place.slower:.1%} slower" if place.slower >= 0 else f"{-place.slower:.1%} faster"
    return Evidence(
        what=measurement_name(measured),
        value=f"{quantity(measured.value or 0.0, measured.unit)}; {usual}: {way}, {allowed}",
        source=measured.detail or "bench",
    )


def _figure(gpu: Gpu, place: _Place) -> Figure:
    measured = place.member.measured
    return Figure(
        name=place.group.name,
        value=measured.value or 0.0,
        unit=measured.unit,
        gpu=gpu.index,
        siblings=median(place.other_values),
        tolerated=place.standing.tolerated,
        spread=spread(measured.samples) if len(measured.samples) > 1 else None,
    )
