"""Compare the measured figures of a report with those of one or several earlier ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import msgspec

from envcheck.diff.facts import called
from envcheck.diff.record import Change, ComparedFigure, Match, Note
from envcheck.knowledge.performance.spread import Base, base_of, speed_ratio
from envcheck.model.checks import Report
from envcheck.model.snapshot import Measurement
from envcheck.rules.facts.measurements import differences, measurement_key, measurement_name, quantity
from envcheck.rules.speed.figures import base_text
from envcheck.rules.speed.trust import why_not_judged

_Key = tuple[str | None, str, str]


class Measured(msgspec.Struct, frozen=True):
    """What a report measured: the figures that can be compared, and how many cannot, for each reason."""

    usable: dict[_Key, Measurement]
    left_out: Counter[str]


def measured_in(report: Report) -> Measured:
    """The figures of ``report``, read once for all that it is compared with."""
    gpus = {gpu.uuid: gpu for gpu in report.gpus}
    usable: dict[_Key, Measurement] = {}
    left_out = Counter[str]()
    for found in report.measurements:
        gpu = gpus.get(found.gpu)
        why = why_not_judged(report.gpus, found) if gpu and found.value else ""
        if why:
            left_out[why] += 1
        elif found.value and found.value > 0:
            usable[found.gpu, found.unit, measurement_key(found)] = found
    return Measured(usable, left_out)


def compare_figures(
    base: Sequence[tuple[Measured, Match]], second: Measured
) -> tuple[list[ComparedFigure], list[Change | Note]]:
    """Compare each figure of ``second`` with the runs of ``base``; the last of these names the GPUs.

    A figure has changed if it moved by more than 5 % and the noise of the samples. Three or more runs tell how far runs
    lie apart, and the noise between them counts instead. Figures of a GPU that others used are not compared.
    """
    last, matched = base[-1]
    names = {gpu.uuid: called(gpu) for gpu, _ in matched.gpus}
    compared: list[ComparedFigure] = []
    found: list[Change | Note] = []
    gone = set(last.usable)
    new = 0
    for key, now in second.usable.items():
        first = _as_first(key, matched)
        gone.discard(first)
        keys = (*(_as_first(key, of_run) for _, of_run in base[:-1]), first)
        before = [earlier for (run, _), named in zip(base, keys, strict=True) if (earlier := run.usable.get(named))]
        known = base_of([(each.value, each.samples) for each in before if each.value])
        if known is None:
            new += 1
            continue
        gpu, unit, name = first
        value, tolerated = now.value or 0.0, known.tolerated_for(now.samples)
        speed = speed_ratio(value, known.value, unit)
        figure = ComparedFigure(
            subject=names.get(gpu, gpu or ""),
            what=measurement_name(now),
            name=name,
            unit=unit,
            runs=known.runs,
            before=known.value,
            before_low=known.low,
            before_high=known.high,
            after=value,
            ratio=value / known.value,
            tolerated=tolerated,
            changed=max(speed, 1 / speed) > 1 / (1 - tolerated),  # the threshold is the same both ways
        )
        compared.append(figure)
        if figure.changed:
            found.append(_change(figure, known, before, now))
    reasons = sum((report.left_out for report in (*(run for run, _ in base), second)), Counter[str]())
    counts = {"only in the first report": len(gone), "only in the second report": new}
    for what, count in {**counts, **{f"left out: {why}": count for why, count in reasons.items()}}.items():
        if count:
            figures = "1 figure is" if count == 1 else f"{count} figures are"
            found.append(Note(section="measurements", why=f"{figures} {what}"))
    return compared, found


def _change(figure: ComparedFigure, base: Base, before: Sequence[Measurement], after: Measurement) -> Change:
    """The change; what differs in the conditions is told of the slower side, compared with the faster one."""
    faster = speed_ratio(figure.after, figure.before, figure.unit) > 1
    earlier = [each.conditions for each in before if each.conditions]
    now = after.conditions
    why: list[str] = []
    if not faster:
        why += differences(now, earlier, "before")
    elif now is not None and earlier:
        why += [f"before: {text}" for text in differences(earlier[-1], [now], "now")]
    was = before[-1].detail
    if was and after.detail and was != after.detail:
        why.append(f"{after.detail}, before {was}")
    return Change(
        section="measurements",
        subject=figure.subject,
        what=figure.what,
        kind="changed",
        before=base_text(base, figure.unit),
        after=quantity(figure.after, figure.unit),
        ratio=figure.ratio,
        faster=faster,
        tolerated=figure.tolerated,
        why=tuple(why),
    )


def _as_first(key: _Key, matched: Match) -> _Key:
    gpu, unit, name = key
    return matched.as_first(gpu) if gpu else None, unit, matched.as_first(name)
