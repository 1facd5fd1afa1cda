"""Compare the checks and the measured figures of two reports."""

from __future__ import annotations

from collections.abc import Iterator

from envcheck.checks import Check, Report
from envcheck.diff.facts import called
from envcheck.diff.match import Match
from envcheck.diff.record import Change, Note
from envcheck.rules.facts.measurements import measurement_key, measurement_name, quantity, spread
from envcheck.rules.speed.baseline import TOLERATED
from envcheck.snapshot import Measurement

_Key = tuple[str | None, str]


def compare_checks(first: Report, second: Report, matched: Match) -> Iterator[Change | Note]:
    """Checks that appeared, disappeared or changed status."""
    before = {check.id: check for check in first.checks}
    after = {matched.as_first(check.id): check for check in second.checks}
    for identity, check in before.items():
        other = after.get(identity)
        if other is None:
            yield Change(section="checks", what=identity, kind="vanished", before=_status(check))
        elif _status(check) != _status(other):
            yield Change(section="checks", what=identity, kind="changed", before=_status(check), after=_status(other))
    for identity, check in after.items():
        if identity not in before:
            yield Change(section="checks", what=identity, kind="appeared", after=_status(check))


def _status(check: Check) -> str:
    return f"{check.status}, ignored" if check.ignored else check.status


def compare_figures(first: Report, second: Report, matched: Match) -> Iterator[Change | Note]:
    """Figures that differ by more than 5 % and more than the spread of both runs."""
    before = {_key(found): found for found in first.measurements if found.value}
    after = {_key(found, matched): found for found in second.measurements if found.value}
    names = {gpu.uuid: called(gpu) for gpu, _ in matched.gpus}
    for key, figure in before.items():
        other = after.get(key)
        if other is not None and figure.unit == other.unit:
            yield from _figure(names.get(figure.gpu, figure.gpu or ""), figure, other)
    for missing, place in ((before.keys() - after.keys(), "first"), (after.keys() - before.keys(), "second")):
        if missing:
            told = "1 figure is" if len(missing) == 1 else f"{len(missing)} figures are"
            yield Note(section="measurements", why=f"{told} only in the {place} report")


def _key(measured: Measurement, matched: Match | None = None) -> _Key:
    name = measurement_key(measured)
    if matched is None:
        return measured.gpu, name
    return matched.as_first(measured.gpu) if measured.gpu else None, matched.as_first(name)


def _figure(subject: str, before: Measurement, after: Measurement) -> Iterator[Change]:
    if not before.value or not after.value:
        return
    ratio = after.value / before.value
    allowed = TOLERATED + spread(before.samples) / 2 + spread(after.samples) / 2
    # The threshold is symmetric: the order of the reports does not matter.
    if max(ratio, 1 / ratio) <= 1 / (1 - min(allowed, 0.9)):
        return
    yield Change(
        section="measurements",
        subject=subject,
        what=measurement_name(before),
        kind="changed",
        before=quantity(before.value, before.unit),
        after=quantity(after.value, after.unit),
        ratio=ratio,
        faster=ratio < 1 if before.unit == "s" else ratio > 1,
    )
