"""Compare the measured figures of a report with those of one or several earlier ones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from envcheck.checks import Report
from envcheck.compat.performance.spread import Base, base_of, speed_ratio
from envcheck.diff.facts import called
from envcheck.diff.match import Match
from envcheck.diff.record import Change, ComparedFigure, Note
from envcheck.rules.facts.measurements import measurement_key, measurement_name, quantity
from envcheck.rules.facts.run_conditions import differences
from envcheck.rules.speed.baseline import base_text
from envcheck.rules.speed.trust import why_not_judged
from envcheck.snapshot import Conditions, Gpu, Measurement

_Key = tuple[str | None, str, str]


class _Pair(msgspec.Struct, frozen=True):
    """A figure with the same figure of the earlier reports."""

    subject: str
    before: tuple[Measurement, ...]
    base: Base
    after: Measurement

    @property
    def value(self) -> float:
        return self.after.value or 0.0

    @property
    def tolerated(self) -> float:
        return self.base.tolerated_for(self.after.samples)

    @property
    def changed(self) -> bool:
        """Whether it moved by more than chance does; the threshold is the same both ways."""
        ratio = speed_ratio(self.value, self.base.value, self.after.unit)
        return max(ratio, 1 / ratio) > 1 / (1 - self.tolerated)


class Figures(msgspec.Struct, frozen=True):
    """What the comparison of the measured figures gave."""

    compared: tuple[ComparedFigure, ...]
    changes: tuple[Change, ...]
    notes: tuple[Note, ...]


def compare_figures(base: Sequence[tuple[Report, Match]], second: Report) -> Figures:
    """Compare each figure of ``second`` with the runs of ``base``; the last of these names the GPUs.

    A figure has changed if it moved by more than 5 % and the noise of the samples. Three or more runs tell how far runs
    lie apart, and the noise between them counts instead. Figures of a GPU that others used are not compared.
    """
    runs = [(dict(_usable(report, None)), matched) for report, matched in base]
    after = [found for _, found in _usable(second, None)]
    names = {gpu.uuid: called(gpu) for gpu, _ in base[-1][1].gpus} if base else {}
    pairs: list[_Pair] = []
    new = 0
    for found in after:
        before = tuple(earlier for figures, matched in runs if (earlier := figures.get(_key(found, matched))))
        known = base_of([(each.value, each.samples) for each in before if each.value])
        if known is None:
            new += 1
            continue
        gpu = _key(found, base[-1][1])[0]
        pairs.append(_Pair(names.get(gpu, gpu or ""), before, known, found))
    last, matched = runs[-1]
    gone = last.keys() - {_key(found, matched) for found in after}
    return Figures(
        compared=tuple(map(_compared, pairs)),
        changes=tuple(_change(pair) for pair in pairs if pair.changed),
        notes=(*_only_in("first", len(gone)), *_only_in("second", new), *_disturbed((*base, (second, None)))),
    )


def _usable(report: Report, matched: Match | None) -> Iterator[tuple[_Key, Measurement]]:
    """Figures that can be compared, by their key."""
    gpus = _gpus_by_uuid(report)
    for found in report.measurements:
        gpu = gpus.get(found.gpu)
        if found.value and found.value > 0 and not (gpu and why_not_judged(gpu, found)):
            yield _key(found, matched), found


def _gpus_by_uuid(report: Report) -> dict[str | None, Gpu]:
    return {gpu.uuid: gpu for gpu in report.gpus}


def _key(measured: Measurement, matched: Match | None = None) -> _Key:
    name = measurement_key(measured)
    if matched is None:
        return measured.gpu, measured.unit, name
    return matched.as_first(measured.gpu) if measured.gpu else None, measured.unit, matched.as_first(name)


def _only_in(place: str, count: int) -> Iterator[Note]:
    if count:
        yield Note(section="measurements", why=f"{_figures_are(count)} only in the {place} report")


def _disturbed(reports: Iterable[tuple[Report, Match | None]]) -> Iterator[Note]:
    """Notes on the figures that are left out, for each reason."""
    reasons: dict[str, int] = {}
    for report, _ in reports:
        gpus = _gpus_by_uuid(report)
        for found in report.measurements:
            gpu = gpus.get(found.gpu)
            why = why_not_judged(gpu, found) if gpu and found.value else ""
            if why:
                reasons[why] = reasons.get(why, 0) + 1
    for why, count in reasons.items():
        yield Note(section="measurements", why=f"{_figures_are(count)} left out: {why}")


def _figures_are(count: int) -> str:
    return "1 figure is" if count == 1 else f"{count} figures are"


def _compared(pair: _Pair) -> ComparedFigure:
    return ComparedFigure(
        subject=pair.subject,
        what=measurement_name(pair.after),
        name=measurement_key(pair.before[-1]),
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
