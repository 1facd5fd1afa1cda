"""Compare the measured figures of a report with those of one or several earlier ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import msgspec

from envcheck.diff.facts import called
from envcheck.diff.record import Change, ComparedFigure, Match, Note
from envcheck.knowledge.performance.spread import Base, base_of, speed_ratio
from envcheck.model.checks import Report
from envcheck.model.snapshot import Conditions, Measurement
from envcheck.rules.facts.measurements import differences, measurement_key, measurement_name, quantity
from envcheck.rules.speed.baseline import base_text
from envcheck.rules.speed.trust import why_not_judged

_Key = tuple[str | None, str, str]


class _Pair(msgspec.Struct, frozen=True):
    """A figure with the same figure of the earlier reports."""

    subject: str
    name: str
    before: tuple[Measurement, ...]
    base: Base
    after: Measurement
    tolerated: float

    @property
    def value(self) -> float:
        return self.after.value or 0.0

    @property
    def changed(self) -> bool:
        """Whether it moved by more than chance does; the threshold is the same both ways."""
        ratio = speed_ratio(self.value, self.base.value, self.after.unit)
        return max(ratio, 1 / ratio) > 1 / (1 - self.tolerated)


class RunFigures(msgspec.Struct, frozen=True):
    """What the comparison of the measured figures gave."""

    compared: tuple[ComparedFigure, ...]
    changes: tuple[Change, ...]
    notes: tuple[Note, ...]


class Measured(msgspec.Struct, frozen=True):
    """What a report measured: the figures that can be compared, and how many cannot, for each reason."""

    usable: dict[_Key, Measurement]
    left_out: dict[str, int]


def measured_in(report: Report) -> Measured:
    """The figures of ``report``, read once for all that it is compared with."""
    listing = report.snapshot.gpus if report.snapshot else None
    gpus = {gpu.uuid: gpu for gpu in (listing.items if listing else ())}
    usable: dict[_Key, Measurement] = {}
    left_out: dict[str, int] = {}
    for found in report.measurements:
        gpu = gpus.get(found.gpu)
        why = why_not_judged(gpu, found) if gpu and found.value else ""
        if why:
            left_out[why] = left_out.get(why, 0) + 1
        elif found.value and found.value > 0:
            usable[found.gpu, found.unit, measurement_key(found)] = found
    return Measured(usable, left_out)


def compare_figures(base: Sequence[tuple[Measured, Match]], second: Measured) -> RunFigures:
    """Compare each figure of ``second`` with the runs of ``base``; the last of these names the GPUs.

    A figure has changed if it moved by more than 5 % and the noise of the samples. Three or more runs tell how far runs
    lie apart, and the noise between them counts instead. RunFigures of a GPU that others used are not compared.
    """
    last, matched = base[-1]
    names = {gpu.uuid: called(gpu) for gpu, _ in matched.gpus}
    pairs: list[_Pair] = []
    gone = set(last.usable)
    new = 0
    for key, found in second.usable.items():
        first = _as_first(key, matched)
        gone.discard(first)
        keys = (*(_as_first(key, of_run) for _, of_run in base[:-1]), first)
        before = tuple(
            earlier for (run, _), named in zip(base, keys, strict=True) if (earlier := run.usable.get(named))
        )
        known = base_of([(each.value, each.samples) for each in before if each.value])
        if known is None:
            new += 1
            continue
        gpu, _, name = first
        subject = names.get(gpu, gpu or "")
        pairs.append(_Pair(subject, name, before, known, found, known.tolerated_for(found.samples)))
    reasons = Counter[str]()
    for report in (*(run for run, _ in base), second):
        reasons.update(report.left_out)
    left_out = (
        Note(section="measurements", why=f"{_figures_are(count)} left out: {why}") for why, count in reasons.items()
    )
    return RunFigures(
        compared=tuple(map(_compared, pairs)),
        changes=tuple(_change(pair) for pair in pairs if pair.changed),
        notes=(
            *_only_in("first", len(gone)),
            *_only_in("second", new),
            *left_out,
        ),
    )


def _as_first(key: _Key, matched: Match) -> _Key:
    gpu, unit, name = key
    return matched.as_first(gpu) if gpu else None, unit, matched.as_first(name)


def _only_in(place: str, count: int) -> Iterator[Note]:
    if count:
        yield Note(section="measurements", why=f"{_figures_are(count)} only in the {place} report")


def _figures_are(count: int) -> str:
    return "1 figure is" if count == 1 else f"{count} figures are"


def _compared(pair: _Pair) -> ComparedFigure:
    return ComparedFigure(
        subject=pair.subject,
        what=measurement_name(pair.after),
        name=pair.name,
        unit=pair.after.unit,
        runs=pair.base.runs,
        before=pair.base.value,
        before_low=pair.base.low,
        before_high=pair.base.high,
        after=pair.value,
        ratio=pair.value / pair.base.value,
        tolerated=pair.tolerated,
        changed=pair.changed,
    )


def _change(pair: _Pair) -> Change:
    unit = pair.after.unit
    ratio = pair.value / pair.base.value
    faster = speed_ratio(pair.value, pair.base.value, unit) > 1
    return Change(
        section="measurements",
        subject=pair.subject,
        what=measurement_name(pair.after),
        kind="changed",
        before=base_text(pair.base, unit),
        after=quantity(pair.value, unit),
        ratio=ratio,
        faster=faster,
        tolerated=pair.tolerated,
        why=tuple(_why(pair, faster=faster)),
    )


def _why(pair: _Pair, *, faster: bool) -> Iterator[str]:
    """What differs in the conditions: told of the slower side, compared with the faster one."""
    earlier = [each.conditions for each in pair.before if each.conditions]
    now = pair.after.conditions
    if faster and now is not None and earlier:
        slow: Conditions | None = earlier[-1]
        yield from (f"before: {text}" for text in differences(slow, [now], "now"))
    elif not faster:
        yield from differences(now, earlier, "before")
    was = pair.before[-1].detail
    if was and pair.after.detail and was != pair.after.detail:
        yield f"{pair.after.detail}, before {was}"
