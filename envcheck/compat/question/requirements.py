"""What the wheels on PyPI require, by their METADATA, against what was named."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from envcheck.compat.matrix import Matrix
from envcheck.compat.names import canonical, scheme
from envcheck.compat.question.candidates import Candidate, runs_here
from envcheck.compat.question.published import published
from envcheck.compat.question.question import Question, agree
from envcheck.compat.question.software import BEST_FIRST, need_fit
from envcheck.compat.relations.fit import Fit, conclude
from envcheck.compat.specifier import Version, covered, parse_specifier
from envcheck.compat.tables import RequirementRow


def requirement_fits(question: Question, candidate: Candidate) -> Iterator[Fit]:
    """What PyPI's wheels require: where a row of releases covers it too, only what pip also refuses."""
    if question.systems:
        return
    told = {canonical(key) for row in candidate.rows for key in row.needs}
    here = [row for row in candidate.requirements if _required_here(question, row)]
    for name, versions in question.versions.items():
        rows = [(row, spec) for row in here for key, spec in row.needs.items() if canonical(key) == name]
        if rows:
            fits = [(str(version), _required(question, candidate, rows, name, version)) for version in versions]
            fit = agree(fits, question.labels.get(name, name))
            if fit.bad or name not in told:
                yield fit.concerning(candidate.name, name)


def _required_here(question: Question, row: RequirementRow) -> bool:
    pythons = question.versions.get("python", ())
    fitting = not row.python or not pythons or any(parse_specifier(row.python).cover(one) != "none" for one in pythons)
    return fitting and runs_here(row, question)


def _required(
    question: Question, candidate: Candidate, rows: Sequence[tuple[RequirementRow, str]], name: str, version: Version
) -> Fit:
    """What they say of a version. Where no Python was named, the one that suits best counts; a family's other releases
    may not require it.
    """
    matrix = question.matrix
    by_releases: dict[str, list[tuple[RequirementRow, Fit]]] = defaultdict(list)
    for row, spec in rows:
        fit = need_fit(matrix, candidate, row, name, spec, version)
        by_releases[row.versions].append((row, _unbounded(matrix, candidate, row, name, spec, version) or fit))
    best = {versions: _for_some_python(question, fits) for versions, fits in by_releases.items()}
    whole = [fit for versions, fit in best.items() if versions not in candidate.partly]
    if whole or all(fit.ok for fit in best.values()):
        return next((fit for fit in whole if fit.bad), list(best.values())[-1])
    members = [(f"{candidate.name} {versions}", fit) for versions, fit in best.items()]
    if _has_others(question, candidate, list(best)):
        members.append(("others", conclude(matrix, "compatible", f"{candidate.label} does not require {name}")))
    return agree(members, candidate.label)


def _has_others(question: Question, candidate: Candidate, told: Sequence[str]) -> bool:
    """Whether a family has a release of which the rows do not speak; so it has, where its releases are not listed."""
    family = question.versions.get(candidate.name, ())[:1]
    within = [
        one
        for one in published(question.matrix, candidate.name)
        if family and one.numbers[: len(family[0].numbers)] == family[0].numbers
    ]
    return not within or any(all(covered(spec, one) == "none" for spec in told) for one in within)


def _unbounded(
    matrix: Matrix, candidate: Candidate, row: RequirementRow, name: str, spec: str, version: Version
) -> Fit | None:
    """A wheel that is compiled against one major version: a requirement without an end says nothing of others."""
    if not matrix.has_trait(name, "binary-interface"):
        return None
    bounds = parse_specifier(spec).bounds
    later = version.numbers[0] > max(bound.numbers[0] for bound in bounds)
    if (
        not later
        or {bound.operator for bound in bounds} - {">=", ">", "!="}
        or all(system == "any" for wheel in candidate.wheels for system in wheel.pythons)
    ):
        return None
    reason = f"{candidate.label} needs {spec}, and this is {version}; whether it works with that major version"
    return conclude(matrix, "unknown", f"{reason} is not documented", row)


def _for_some_python(question: Question, fits: Sequence[tuple[RequirementRow, Fit]]) -> Fit:
    """The requirement for the Python that suits best; there may be Pythons for which there is none."""
    row, best = min(fits, key=lambda item: BEST_FIRST.index(item[1].verdict))
    named = "python" in question.versions
    spec = parse_specifier("|".join(row.python for row, _ in fits)) if row.python and not named else None
    ends = [bound.numbers for bound in spec.bounds] if spec else []
    near = [Version((major, minor - step), scheme=scheme("python")) for major, minor in ends for step in (0, 1)]
    if best.ok or spec is None or all(spec.cover(python) == "all" for python in near):
        return best
    reason = f"{best.reason}; that is so for Python {row.python}"
    return conclude(question.matrix, "unknown", reason, *(row for row, _ in fits), change=best.nearest_change)
