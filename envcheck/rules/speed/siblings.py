"""The figures of GPUs of one model side by side: how far they lie apart, and which GPU is slower than the others."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from envcheck.checks import AcrossGpus, OfGpu
from envcheck.compat.performance.quantities import place_of, quantity_of
from envcheck.compat.performance.spread import median, noise, speed_ratio, tolerated_among
from envcheck.rules.facts.measurements import measurement_key, measurement_name
from envcheck.rules.speed.trust import why_not_judged
from envcheck.snapshot import Gpu, Measurement

USUAL = 0.10
"""Share by which GPUs of one model may differ where they compute: chips reach different clocks at the same power. Two
H200 differed by up to 4.4 % (tests/rules/recorded), the GPUs of five clusters by 8 % on average and 22 % at most
(https://arxiv.org/abs/2208.11035, read 2026-11-23), which includes slow ones."""
USUAL_TRANSFER = 0.05
"""The same for device memory and links, whose clocks are fixed: two H200 differed by up to 2.6 %."""


class Member(msgspec.Struct, frozen=True):
    """A GPU with its measurement of the group's quantity."""

    gpu: Gpu
    measured: Measurement
    why_not: str
    """Why it is not compared; empty if it is."""


class Group(msgspec.Struct, frozen=True):
    """The measurements of one quantity by GPUs of one model."""

    name: str
    model: str
    members: tuple[Member, ...]

    @property
    def compared(self) -> tuple[Member, ...]:
        """The members that count."""
        return tuple(member for member in self.members if not member.why_not)

    def others(self, member: Member) -> list[Measurement]:
        """What the other GPUs gave that are compared."""
        return [other.measured for other in self.compared if other.gpu.uuid != member.gpu.uuid]

    def comparisons(self) -> tuple[OfGpu, ...]:
        """How each member stands to the median of the others, in the order of the members."""
        if len(self.compared) > _MANY:  # one more or less moves their median little, and leaving each out takes long
            whole = _reference([member.measured for member in self.compared])
            return tuple(self._comparison(member, whole) for member in self.members)
        return tuple(self._comparison(member, _reference(self.others(member))) for member in self.members)

    def _comparison(self, member: Member, reference: _Reference | None) -> OfGpu:
        measured = member.measured
        own = OfGpu(gpu=member.gpu.index, uuid=member.gpu.uuid, value=_value(measured))
        if member.why_not or reference is None:
            return msgspec.structs.replace(own, why_not=member.why_not or "no other GPU was measured undisturbed")
        slower = 1 - speed_ratio(own.value, reference.median, measured.unit)
        tolerated = min(reference.tolerated + noise(measured.samples) / 2, 0.9)
        return msgspec.structs.replace(own, slower=slower, tolerated=tolerated, straggles=slower > tolerated)


class _Reference(msgspec.Struct, frozen=True):
    """What a GPU is held against."""

    median: float
    tolerated: float
    """Share that a GPU may be slower, without the noise of its own samples."""


def _reference(others: Sequence[Measurement]) -> _Reference | None:
    if not others:
        return None
    values = [_value(other) for other in others]
    apart = median([noise(other.samples) for other in others]) / 2
    return _Reference(median(values), tolerated_among(values, _usual(others[0])) + apart)


_MANY = 16
"""GPUs of a group from which on they are compared with the median of all."""


def groups(gpus: Iterable[Gpu], measurements: Iterable[Measurement]) -> list[Group]:
    """The quantities that two or more GPUs of a model have a figure of, in reading order.

    Left out is what the processor decides, and what a library chooses anew in each run. Of copies between GPUs, each
    GPU has the figure of its fastest pair: a pair is as slow as the slower of its links, and a healthy GPU has a
    healthy partner if there are three.
    """
    by_uuid = {gpu.uuid: gpu for gpu in gpus if gpu.uuid}
    found: dict[tuple[str, str], dict[str, Measurement]] = defaultdict(dict)
    for measured in measurements:
        if not measured.value or measured.value < 0 or _tells_nothing(measured):
            continue
        name = measurement_key(msgspec.structs.replace(measured, peer=None))
        for uuid in (measured.gpu, measured.peer):
            gpu = by_uuid.get(uuid) if uuid else None
            if gpu is None or gpu.uuid is None:
                continue
            known = found[gpu.name or "", name].get(gpu.uuid)
            if known is None or speed_ratio(measured.value, _value(known), measured.unit) > 1:
                found[gpu.name or "", name][gpu.uuid] = measured
    made = [
        Group(name, model, tuple(_members(by_uuid, of_gpu)))
        for (model, name), of_gpu in found.items()
        if len({id(measured) for measured in of_gpu.values()}) > 1
    ]
    return sorted(made, key=lambda group: place_of(group.members[0].measured.name))


def across_gpus(gpus: Sequence[Gpu], measurements: Iterable[Measurement]) -> tuple[AcrossGpus, ...]:
    """How far GPUs of one model lie apart in each quantity that two or more were measured by, undisturbed."""
    if len(gpus) < 2:
        return ()
    return tuple(_described(group) for group in groups(gpus, measurements) if len(group.compared) > 1)


def _described(group: Group) -> AcrossGpus:
    values = [_value(member.measured) for member in group.compared]
    low, middle, high = min(values), median(values), max(values)
    first = group.members[0].measured
    return AcrossGpus(
        name=group.name,
        title=measurement_name(first),
        unit=first.unit,
        model=group.model,
        low=low,
        median=middle,
        high=high,
        difference=1 - low / high,
        gpus=group.comparisons(),
    )


def _members(by_uuid: dict[str, Gpu], of_gpu: dict[str, Measurement]) -> Iterator[Member]:
    for uuid, gpu in by_uuid.items():
        measured = of_gpu.get(uuid)
        if measured is not None:
            yield Member(gpu, measured, why_not_judged(gpu, measured))


def _usual(measured: Measurement) -> float:
    known = quantity_of(measured.name)
    transfers = known is not None and not known.needs and known.ceiling in ("memory", "pcie", "nvlink")
    return USUAL_TRANSFER if transfers else USUAL


def _tells_nothing(measured: Measurement) -> bool:
    """Whether its value says nothing about the GPU beside others."""
    known = quantity_of(measured.name)
    return (known is not None and (known.of_host or known.autotuned)) or "pageable" in (measured.variant or "")


def _value(measured: Measurement) -> float:
    return measured.value or 0.0
