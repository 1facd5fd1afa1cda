"""What a build needs, and what it brings, against the other components that were named."""

from __future__ import annotations

from collections.abc import Iterator

from envcheck.compat.cuda_rows import admitted_toolkits
from envcheck.compat.fit import Fit, FitVerdict, conclude
from envcheck.compat.question.candidates import Candidate
from envcheck.compat.question.forward import NAME as FORWARD
from envcheck.compat.question.forward import replaces_driver
from envcheck.compat.question.hardware import runner_of, runs
from envcheck.compat.question.judgement import Judgement, agree, retell
from envcheck.compat.question.names import SYSTEMS, canonical
from envcheck.compat.question.question import Question
from envcheck.compat.question.wording import readable
from envcheck.compat.specifier import Cover, Version, parse_specifier
from envcheck.compat.tables import ReleaseRow, Tables
from envcheck.versions import DriverRelease

_VERDICTS: dict[Cover, FitVerdict] = {"all": "compatible", "some": "unknown", "none": "incompatible"}
_DRIVERS = {"driver-linux": False, "driver-windows": True, "driver": None}
"""Whether Windows' numbers are meant."""
_SETS = SYSTEMS | {"cuda", "deepstream"}
"""Software that is one set of versions: another version of what it brings is not known to work."""


def judge_needs(tables: Tables, question: Question, candidate: Candidate, row: ReleaseRow) -> Iterator[Judgement]:
    """Every need whose component is named (or comes with one that is), and everything brought that is named too."""
    for key, spec in row.needs.items():
        if candidate.cuda and (key == "cuda" or key in _DRIVERS):
            continue  # the row speaks of a build for another CUDA
        if key in _DRIVERS:
            yield from _driver(tables, question, candidate, row, key)
        elif key == "cuda":
            yield from _cuda(tables, question, candidate, row)
        else:
            yield from _version(tables, question, candidate, row, canonical(key), spec)
    for key, version in row.bundles.items():
        name = canonical(key)
        if name in question.versions and name not in map(canonical, row.needs):
            yield Judgement((candidate.name, name), _brought(tables, question, candidate, row, name, version))


def _version(
    tables: Tables, question: Question, candidate: Candidate, row: ReleaseRow, name: str, spec: str
) -> Iterator[Judgement]:
    if name in question.versions:
        fits = [
            (str(version), _need(tables, candidate, row, name, spec, version)) for version in question.versions[name]
        ]
        yield Judgement((candidate.name, name), agree(fits, question.labels.get(name, name)))
    elif name in question.implied:
        implied = question.implied[name]
        if not {implied.by, candidate.name} <= SYSTEMS:
            fit = _need(tables, candidate, row, name, spec, implied.version)
            reason = f"{fit.reason} (it comes with {implied.label})"
            yield Judgement((candidate.name, implied.by), retell(tables, fit, reason, row, implied.row))


def _need(tables: Tables, candidate: Candidate, row: ReleaseRow, name: str, spec: str, version: Version) -> Fit:
    verdict = _VERDICTS[parse_specifier(spec).cover(version)]
    wanted = readable(name, spec)
    if verdict == "compatible":
        return conclude(tables, verdict, f"{candidate.label} needs {wanted}, and this is {version}", row)
    which = f"some {name} {version} are, others are not" if verdict == "unknown" else f"this is {version}"
    return conclude(tables, verdict, f"{candidate.label} needs {wanted}; {which}", row, change=wanted)


def _driver(tables: Tables, question: Question, candidate: Candidate, row: ReleaseRow, key: str) -> Iterator[Judgement]:
    windows = _DRIVERS[key]
    if not question.drivers or windows not in (None, question.windows_driver):
        return
    fits = [(str(driver), _driver_need(tables, candidate, row, key, driver)) for driver in question.drivers]
    fit = agree(fits, question.labels["driver"])
    replaced = question.compat is not None and replaces_driver(tables, question, question.compat)
    if fit.bad and candidate.name != FORWARD and replaced:
        reason = f"{fit.reason}; whether cuda-compat makes up for it is not documented"
        fit = conclude(tables, "unknown", reason, row)
    yield Judgement((candidate.name, "driver"), fit)


def _driver_need(tables: Tables, candidate: Candidate, row: ReleaseRow, key: str, driver: DriverRelease) -> Fit:
    spec = row.needs[key]
    verdict = _VERDICTS[parse_specifier(spec).cover(Version(tuple(driver)))]
    wanted = readable("driver", spec)
    if verdict == "compatible":
        return conclude(tables, verdict, f"{candidate.label} needs {wanted}, and this is {driver}", row)
    return conclude(tables, verdict, f"{candidate.label} needs {wanted}; this is {driver}", row, change=wanted)


def _cuda(tables: Tables, question: Question, candidate: Candidate, row: ReleaseRow) -> Iterator[Judgement]:
    """CUDA is the one that is named, else nvcc's, else PyTorch's for what runs within it, else any that is admitted."""
    spec = row.needs["cuda"]
    if "cuda" in question.versions:
        yield from _version(tables, question, candidate, row, "cuda", spec)
    elif "nvcc" in question.versions:
        yield from _version(tables, question, candidate, row, "nvcc", spec)
    elif "cuda" in question.implied and (question.implied["cuda"].by != "torch" or "torch" in row.needs):
        yield from _version(tables, question, candidate, row, "cuda", spec)
    runner = runner_of(question)
    if runner and row.cuda is None and "cuda" not in question.versions:
        fit = _any_runs(tables, question, candidate, row)
        if fit:
            yield Judgement((candidate.name, runner), fit)


def _any_runs(tables: Tables, question: Question, candidate: Candidate, row: ReleaseRow) -> Fit | None:
    """Whether the driver runs any CUDA that the row admits; None when the matrix knows none of them."""
    admitted = admitted_toolkits(tables, parse_specifier(row.needs["cuda"]))
    fits: list[Fit] = []
    for cuda in admitted:
        fits.append(runs(tables, question, cuda))
        if fits[-1].ok:
            break
    if not fits:
        return None
    best = min(fits, key=lambda fit: ("compatible", "unknown", "incompatible").index(fit.verdict))
    reason = f"{candidate.label} needs {readable('CUDA', row.needs['cuda'])}: {best.reason}"
    return retell(tables, best, reason, row)


def _brought(tables: Tables, question: Question, candidate: Candidate, row: ReleaseRow, name: str, version: str) -> Fit:
    """A copy of its own does no harm to another one; system software is not known to work with another one."""
    label = question.labels.get(name, name)
    spec = parse_specifier(version)
    covers = {spec.cover(member) for member in question.versions[name]}
    if covers & {"all", "some"}:
        return conclude(tables, "compatible", f"{candidate.label} comes with {name} {version}", row)
    reason = f"{candidate.label} comes with {name} {version} of its own"
    if candidate.name in _SETS:
        return conclude(tables, "unknown", f"{reason}; whether {label} works there is not documented", row)
    return conclude(tables, "compatible", f"{reason}; {label} beside it does no harm", row)
