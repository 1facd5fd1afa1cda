"""Whether frameworks get out of the GPU what the libraries below them do, and which settings keep them from it."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from envcheck.knowledge.performance.expected import band_of
from envcheck.knowledge.performance.quantities import framework_tested, quantity_of
from envcheck.knowledge.relations.variables import effects
from envcheck.knowledge.tables.hardware import SettingRow
from envcheck.model.checks import Evidence, Fix
from envcheck.model.snapshot import Framework, Measurement, ProbeRun, Snapshot
from envcheck.rules.api import Facts, MeasurementSubject, Outcome, failure, note, passed, rule, warning
from envcheck.rules.facts.measurements import figures_beside, measurement_name, percent, quantity
from envcheck.rules.facts.variables import relevant_variables
from envcheck.rules.fixes.frameworks import install_gpu_build
from envcheck.rules.speed.figures import figure_of, value_evidence

GAIN = 1.15  # How many times as fast the same work must be without a setting for a note. Repetitions differ by less
_SHOWN = 6
_SLOW = "The library is fast, the framework is slow."
_LOWERED = "The figure would be higher."


def _first_word(name: str) -> str:
    return name.partition("-")[0]


def library_figure(measured: Measurement, snapshot: Snapshot) -> Measurement | None:
    """The figure of envcheck's own for the same work on the same GPU; None where it was not measured or is wrong.

    Its variant is that of the framework's figure up to the last comma, behind which stands how the framework did it.
    """
    known = quantity_of(measured.name)
    if known is None or known.ceiling != "library":
        return None
    variant = (measured.variant or "").rpartition(", ")[0] or None
    beside = figures_beside(measured, snapshot.measurements)
    alike = (found for found in beside if (found.gpu, found.variant) == (measured.gpu, variant))
    fitting = (found for found in alike if not measured.shape or found.shape == measured.shape)
    right = (found for found in fitting if found.verification is None or found.verification.right)

    def rank(found: Measurement) -> tuple[float, float]:
        """Of a collective the message of the nearest size comes first."""
        sizes = sorted(filter(None, (found.size, measured.size)))
        return sizes[1] / sizes[0] if len(sizes) == 2 else 1.0, -(found.value or 0.0)

    return min(right, key=rank, default=None)


@rule(layer="framework", decided_by="measured")
def framework_slower_than_library(subject: MeasurementSubject, facts: Facts) -> Outcome | None:
    """A framework is slower than the library that it uses."""
    measured = subject.measurement
    library = library_figure(measured, facts.snapshot)
    if library is None or not measured.value or not library.value:
        return None
    share = measured.value / library.value
    name = f"{subject.gpu.title}: {measurement_name(measured)}"
    band = band_of(facts.matrix, subject.gpu, measured)
    of_library = f"the library ({measurement_name(library)})"
    evidence = [value_evidence("measured", measured), value_evidence(of_library, library)]
    if band is not None:
        remark = " (a floor: never measured here)" if band.wide else ""
        evidence.append(Evidence("expected", f"at least {percent(band.low)} of that{remark}", band.id))
    figure = msgspec.structs.replace(
        figure_of(subject.gpu, measured), ceiling=library.value, share=share, expected_low=band.low if band else None
    )
    low = band is not None and share < band.low
    # Variables of NCCL belong to other figures. Within its band only one that is known to lower this figure counts.
    variables = [
        (each, effect)
        for each in relevant_variables(facts)
        if "nccl" not in each.row.reader
        for effect in effects(each.row, each.value, ("speed",))
        if effect.status == "warn" and (low or measured.name in effect.figures)
    ]
    if band is None or not (low or variables):
        title = f"{name}: {percent(share)} of what the library reaches"
        return passed(title, *evidence, figure=figure)
    framework = _framework(measured.name, facts)
    who = f"reported by {framework.name}" if framework else ""
    settings = [row for row in _settings(framework, facts) if measured.name in row.quantities and not row.slow]
    causes = [f"{variable.name} is set: {effect.text}" for variable, effect in variables]
    causes += [row.text for row in settings]
    return warning(
        title=f"{name}: {percent(share)} of what the library reaches",
        message=f"{_SLOW if low else _LOWERED} {'. '.join(causes) or 'No setting explains it'}.",
        evidence=(
            *evidence,
            *(variable.evidence for variable, _ in variables),
            *(Evidence(row.answer, row.value, who) for row in settings),
        ),
        figure=figure,
        fixes=(
            *(Fix(f"Unset {variable.name} for this program") for variable, _ in variables),
            *(Fix(row.fix) for row in settings),
        ),
        sources=facts.matrix.cite(band, *(variable.row for variable, _ in variables), *settings),
    )


def _framework(name: str, facts: Facts) -> Framework | None:
    """The record of the framework that a quantity belongs to, with what it answered."""
    found = [each for each in facts.frameworks if _first_word(each.name) == _first_word(name) and each.trial]
    return next((each for each in found if each.trial and each.trial.answers), None)


def _settings(framework: Framework | None, facts: Facts) -> Iterator[SettingRow]:
    answers = framework.trial.answers if framework and framework.trial else {}
    word = _first_word(framework.name) if framework else ""
    return (row for row in facts.matrix.settings if row.framework == word and answers.get(row.answer) == row.value)


@rule(layer="framework", decided_by="measured")
def framework_leaves_speed(snapshot: Snapshot, facts: Facts) -> Outcome | None:
    """A framework setting costs performance."""
    remarks = list(_remarks(snapshot, facts))
    if not remarks:
        return None
    row, slow, fast = remarks[0]
    times = (fast.value or 0.0) / (slow.value or 1.0)
    title = framework_tested(slow.name) or ""
    return note(
        title=f"{title}: {row.text}, {times:.1f} times slower than without that",
        message=". ".join(
            f"{each.text}: {quantity(one.value or 0, one.unit)} instead of {quantity(other.value or 0, other.unit)}"
            for each, one, other in remarks
        )
        + ".",
        evidence=tuple(
            Evidence(measurement_name(each), quantity(each.value or 0, each.unit), each.detail)
            for _, one, other in remarks[:_SHOWN]
            for each in (one, other)
        ),
        fixes=tuple(dict.fromkeys(Fix(each.fix) for each, _, _ in remarks)),
        sources=facts.matrix.cite(*(each for each, _, _ in remarks)),
    )


def _remarks(snapshot: Snapshot, facts: Facts) -> Iterator[tuple[SettingRow, Measurement, Measurement]]:
    """Settings with both figures, where they differ."""
    figures = {
        (each.name, f"{each.precision or ''} {each.variant or ''}".strip()): each
        for each in snapshot.measurements
        if framework_tested(each.name) and each.value and (each.verification is None or each.verification.right)
    }
    for word in dict.fromkeys(_first_word(name) for name, _ in figures):
        for row in _settings(_framework(word, facts), facts):
            for name in row.quantities:
                slow, fast = figures.get((name, row.slow)), figures.get((name, row.fast))
                if slow and fast and (fast.value or 0.0) >= GAIN * (slow.value or 0.0):
                    yield row, slow, fast


def _tried(run: ProbeRun) -> str:
    return run.name.removeprefix("bench.").partition("_")[0] if run.name.startswith("bench.") else ""


@rule(layer="framework", decided_by="measured", symptom=True)
def framework_fails_at_work(snapshot: Snapshot, _facts: Facts) -> Outcome | None:
    """A framework fails on work of ordinary size."""
    figures = (found for found in snapshot.measurements if framework_tested(found.name))
    asked = [found for found in figures if found.failed or found.verification or found.value]
    failed = [found for found in asked if found.failed]
    died = [run for run in snapshot.runs if run.status == "crashed" and framework_tested(_tried(run))]
    names = dict.fromkeys(framework_tested(found.name) or "" for found in asked)
    if not asked and not died:
        return None
    if not failed and not died:
        return passed(f"{', '.join(names)} compute{'s' if len(names) == 1 else ''} at full size")
    first = measurement_name(failed[0]) if failed else died[0].title
    text = (failed[0].missing if failed else died[0].detail) or ""
    return failure(
        title=f"{first} fails: {text}"[:160],
        message=text if text.endswith(".") else f"{text}.",
        evidence=(
            *(Evidence(measurement_name(each), each.missing or "", "bench") for each in failed),
            *(Evidence(run.title, run.detail, run.name) for run in died),
        )[:_SHOWN],
    )


@rule(layer="framework", decided_by="framework-ran")
def framework_measured_on_cpu(snapshot: Snapshot, facts: Facts) -> Outcome | None:
    """A measured framework computes on the CPU."""
    # The frameworks that were to be measured, are not built for CUDA and computed on the CPU.
    asked = {run.framework for run in snapshot.runs if framework_tested(_tried(run)) and run.status != "skipped"}
    on_cpu = (each for each in facts.frameworks if each.name in asked and each.cpu_only)
    found = [each for each in on_cpu if each.ran_on_gpu is False]
    if not found:
        return None
    # Packages of the same framework for CUDA, whose files were overwritten or are not used.
    for_cuda = [other for other in facts.distributions if "gpu" in other.name or "cuda" in other.name]
    beside = {}
    for each in found:
        alike = (other for other in for_cuda if _first_word(other.name) == _first_word(each.name))
        beside[each.name] = [other for other in alike if other.name != each.name]
    none_on_gpu = not any(framework_tested(each.name) and each.value for each in snapshot.measurements)
    bad = [each for each in found if none_on_gpu or beside[each.name] or each.name == "torch"]
    first = (bad or found)[0]
    title = framework_tested(_first_word(first.name)) or first.name
    others = [f"{each.name} {each.version}" for each in beside[first.name]]
    also = f", although {' and '.join(others)} is installed" if others else ""
    return Outcome(
        status="fail" if bad else "note",
        title=f"{title} computes on the CPU: {first.name} {first.version} is a CPU build",
        message=f"{first.name} {first.version} is a CPU build{also}. It says: {_error(first)}",
        evidence=tuple(Evidence(f"reported by {each.name}", _error(each), "trial") for each in (bad or found)[:_SHOWN]),
        fixes=install_gpu_build(facts, first),
        frameworks=tuple(each.name for each in bad or found),
    )


def _error(framework: Framework) -> str:
    return (framework.trial.error if framework.trial else None) or ""
