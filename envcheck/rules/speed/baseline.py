"""Whether a measurement is slower than the baseline."""

from __future__ import annotations

import msgspec

from envcheck.checks import Evidence
from envcheck.rules.api import Facts, MeasurementSubject, Outcome, passed, rule
from envcheck.rules.facts.machine import gpu_title
from envcheck.rules.facts.measurements import measurement_key, measurement_name, quantity, spread
from envcheck.rules.speed.ceilings import figure_of
from envcheck.rules.speed.trust import why_not_judged
from envcheck.snapshot import Measurement

TOLERATED = 0.05
"""Share by which a figure may be slower, besides the spreads of both runs."""


def _earlier(subject: MeasurementSubject, facts: Facts) -> Measurement | None:
    """The same quantity of the same GPU."""
    wanted = (subject.measurement.gpu, measurement_key(subject.measurement))
    baseline = facts.snapshot.baseline
    return next((earlier for earlier in baseline if (earlier.gpu, measurement_key(earlier)) == wanted), None)


def _has_both(subject: MeasurementSubject, facts: Facts) -> bool:
    return not why_not_judged(subject.gpu, subject.measurement) and _earlier(subject, facts) is not None


@rule(layer="gpu", scope="node", per="measurement", arises=_has_both)
def slower_than_baseline(subject: MeasurementSubject, facts: Facts) -> Outcome | None:
    """A measurement is slower than the baseline.

    What it checks
        Checks each measured quantity against the same quantity of the same GPU (by UUID) in the file
        written by --save-baseline. A twentieth, plus the spread of both runs, is tolerated.

    Why it matters
        A slowdown against last month shows wear, dust, a changed setting or a slower library long
        before a GPU falls below what its model should reach.

    How to fix
        Compare the two reports: driver and libraries, clocks, power limit, temperature. If the change
        is intended, save a new baseline.

    Sources
        NVIDIA DCGM diagnostics:
            https://docs.nvidia.com/datacenter/dcgm/latest/user-guide/dcgm-diagnostics.html
    """
    measured, earlier = subject.measurement, _earlier(subject, facts)
    if earlier is None or not measured.value or not earlier.value:
        return None
    ratio = earlier.value / measured.value if measured.unit == "s" else measured.value / earlier.value
    allowed = 1 - TOLERATED - spread(measured.samples) / 2 - spread(earlier.samples) / 2
    name = f"{gpu_title(subject.gpu)}: {measurement_name(measured)}"
    evidence = (
        Evidence(what="measured", value=quantity(measured.value, measured.unit), source=measured.detail or "bench"),
        Evidence(what="baseline", value=quantity(earlier.value, earlier.unit), source=earlier.detail or "baseline"),
    )
    figure = msgspec.structs.replace(figure_of(subject.gpu, measured), baseline=earlier.value)
    if ratio >= allowed:
        found = passed(f"{name}: {ratio:.0%} of the baseline", *evidence, decided_by="measured")
        return msgspec.structs.replace(found, figure=figure)
    return Outcome(
        status="warn",
        title=f"{name}: {1 - ratio:.0%} slower than the baseline",
        message=f"It was {quantity(earlier.value, earlier.unit)}, now {quantity(measured.value, measured.unit)}.",
        evidence=evidence,
        figure=figure,
        decided_by="measured",
    )
