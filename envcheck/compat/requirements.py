"""What releases on PyPI require, by the METADATA of their wheels, their extras and groups of which one package is
enough: declared for a system and a Python, and against what was named.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache

from msgspec.structs import replace

from envcheck.compat.candidates import Candidate, named_by, release_candidates, runs_here
from envcheck.compat.package_needs import satisfies
from envcheck.compat.question import Question, agree, exactly, listed, summary
from envcheck.compat.reading import MACHINES, OS
from envcheck.compat.software import BEST_FIRST, candidate_fits, need_fit
from envcheck.compat.wheels import gpu_is_asked, is_published, published, requirements_covering
from envcheck.knowledge.matrix import Matrix
from envcheck.knowledge.names import canonical, scheme
from envcheck.knowledge.relations.fit import Fit, conclude
from envcheck.knowledge.relations.torch import build_of, tag_of, torch_row
from envcheck.knowledge.specifier import Version, covered, parse_specifier, parse_version, speaks_of
from envcheck.knowledge.tables import Machine
from envcheck.knowledge.tables.software import ExtraRow, ReleaseRow, RequirementRow
from envcheck.model.components import Component
from envcheck.model.versions import CudaVersion


def requirement_fits(question: Question, candidate: Candidate) -> Iterator[Fit]:
    """What PyPI's wheels require: where a row of releases covers it too, only what pip also refuses."""
    if question.systems:
        return
    named = {key for row in candidate.rows for key in row.needs}
    pythons = question.versions.get("python", ())
    here = [
        row
        for row in candidate.requirements
        if runs_here(row, question.os, question.machine)
        and (not row.python or not pythons or any(covered(row.python, python) != "none" for python in pythons))
    ]
    for name, versions in question.versions.items():
        rows = [(row, row.needs[name]) for row in here if name in row.needs]
        if rows:
            fits = [(str(version), _required(question, candidate, rows, name, version)) for version in versions]
            fit = agree(fits, question.labels.get(name, name))
            if fit.bad or name not in named:
                yield fit.concerning(candidate.name, name)


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
    # Whether the family has a release of which the rows do not speak; so it has, where its releases are not listed.
    family = question.versions.get(candidate.name, ())[:1]
    within = [
        one
        for one in published(matrix, candidate.name)
        if family and one.numbers[: len(family[0].numbers)] == family[0].numbers
    ]
    if not within or any(all(covered(spec, one) == "none" for spec in best) for one in within):
        members.append(("others", conclude(matrix, "compatible", f"{candidate.label} does not require {name}")))
    return agree(members, candidate.label)


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
    if best.ok and spec and any(fit.bad for _, fit in fits):
        where = " or ".join(dict.fromkeys(row.python for row, fit in fits if fit.bad))
        return replace(best, reason=f"{best.reason}; it does not fit with Python {where}")
    if best.ok or spec is None or all(spec.cover(python) == "all" for python in near):
        return best
    reason = f"{best.reason}; that is so for Python {row.python}"
    return conclude(question.matrix, "unknown", reason, *(row for row, _ in fits), change=best.nearest_change)


_OF_A_BUILD = ("nvidia-", "cuda-")
"""How the packages start that a build of PyTorch requires for its own CUDA version."""


def declared(
    matrix: Matrix,
    name: str,
    version: str,
    markers: Mapping[str, str],
    *,
    build: str | None = "",
    extras: Collection[str] = (),
) -> Mapping[str, str]:
    """Bounds on other distributions by name, as far as they are the same for every Python that ``markers`` admit.

    ``build`` is the local tag that the index serves PyTorch with; None: not known.
    """
    known = extras or name in matrix.requirements_by_name
    return declared_for(matrix, name, version, tuple(markers.items()), build, tuple(extras)) if known else {}


@lru_cache(maxsize=1 << 15)  # of one plan many sets are tried, which differ in a few entries
def declared_for(
    matrix: Matrix,
    name: str,
    version: str,
    marks: tuple[tuple[str, str], ...],
    build: str | None,
    extras: tuple[str, ...],
) -> Mapping[str, str]:
    """``declared`` by markers as a key."""
    release, _, tag = version.partition("+")
    number, markers = parse_version(release), dict(marks)
    if number is None or (number.post and not is_published(matrix, name, number)):
        return {}  # a post-release that PyPI does not have is another index's, for what that one has
    rows = requirements_covering(matrix, name, number)
    holding = [row for row in rows if speaks_of(row.versions, number) == "all" and _holds(row, markers)]
    found: dict[str, str] = {}
    of_extras = [row for row in matrix.extra_requirements_by_name.get(name, ()) if {*row.extras} & {*extras}]
    holding += [row for row in of_extras if speaks_of(row.versions, number) == "all" and _holds(row, markers)]
    for other, bounds in (need for row in holding for need in row.needs.items()):
        found[other] = f"{found[other]},{bounds}" if other in found else bounds
    for extra in extras_of(matrix, name, release):
        if set(extra.extras) & set(extras):
            found |= {other: f"=={release}" for other, bounds in extra.brings.items() if bounds == "="}
    return _of_torch(matrix, version, tag, build, found, markers) if name == "torch" else found


def is_excluded(matrix: Matrix, name: str, version: str, other: str, there: str) -> bool:
    """Whether an installer passes over a release beside a pinned one, since it requires another for every Python."""
    number = parse_version(version) if other in named_by(canonical(name), matrix) else None
    rows = requirements_covering(matrix, name, number) if number is not None else ()
    asked = [row.needs[other] for row in rows if other in row.needs]
    return bool(asked) and all(satisfies(spec, there) is False for spec in asked)


def _of_torch(
    matrix: Matrix, version: str, tag: str, build: str | None, found: dict[str, str], markers: Mapping[str, str]
) -> dict[str, str]:
    """What a build of PyTorch requires: the rows hold for PyPI's, and others require the libraries of their CUDA."""
    row, tag = torch_row(matrix, version), tag or build or ""
    default = row.default_cuda if row else None
    if build is not None and (not tag or (default and tag == tag_of(default))):
        return found
    of_a_build = _OF_A_BUILD if not tag or tag.startswith("cu") else (*_OF_A_BUILD, "triton")
    shared = {name: bounds for name, bounds in found.items() if not name.startswith(of_a_build)}
    cuda = CudaVersion.from_tag(tag) if tag.startswith("cu") else None
    machine = _machine(markers) if _system(markers) == "linux" else None
    other = build_of(matrix, row.version, cuda, "linux", machine) if row and cuda and machine else None
    if other is None or not other.pinned:
        return shared
    major = other.cuda.partition(".")[0]
    libraries = {"cudnn": other.cudnn, "nccl": other.nccl, "cusparselt": other.cusparselt}
    return shared | {f"nvidia-{each}-cu{major}": f"=={its}" for each, its in libraries.items() if its}


def _holds(row: RequirementRow, markers: Mapping[str, str]) -> bool:
    if (row.os and _system(markers) not in row.os) or (row.machine and _machine(markers) not in row.machine):
        return False
    python = parse_version(markers.get("python_version", ""))
    return not row.python or (python is not None and covered(row.python, python) == "all")


def _system(markers: Mapping[str, str]) -> str:
    return OS.get(markers.get("sys_platform", ""), "")


def _machine(markers: Mapping[str, str]) -> Machine | None:
    return MACHINES.get(markers.get("platform_machine", "").lower())


def system_in(markers: Mapping[str, str]) -> str:
    """The system as rows of wheels name it: ``linux-x86_64``, ``macos-aarch64``."""
    return f"{_system(markers)}-{_machine(markers)}"


def extras_of(matrix: Matrix, name: str, version: str) -> list[ExtraRow]:
    number = parse_version(version)
    return [row for row in matrix.extras if row.name == name and number and speaks_of(row.versions, number) == "all"]


def brought(rows: Sequence[ExtraRow], version: str, extras: Collection[str]) -> list[Component] | None:
    """The components that come with ``extras`` of a release; None where no row covers any of them."""
    found = [row for row in rows if set(row.extras) & set(extras)]
    if not found:
        return None
    return [exactly(name, version if bound == "=" else bound) for row in found for name, bound in row.brings.items()]


def one_of_fits(question: Question, candidate: Candidate) -> Iterator[Fit]:
    """For each group of which one package is enough: what the one says that fits best, and why others do not.

    A package that is named itself is asked as every other component, and stands for its group.
    """
    if not gpu_is_asked(question):
        return
    for row, group in ((each, group) for each in candidate.rows for group in each.one_of):
        unnamed = group if not set(group) & question.versions.keys() else ()
        members = [(name, *member) for name in unnamed if (member := _newest_member(question, row, name))[1]]
        if not members:
            continue
        best, label, fits = min(members, key=lambda member: rank(member[2]))
        refused = [(other, next((fit for fit in its if fit.bad), None)) for _, other, its in members]
        others = [(other, fit) for other, fit in refused if fit and other != label]
        if refusal := next((fit for fit in fits if fit.bad), None):
            refusals = [fit for _, fit in refused if fit]
            reasons = "; ".join(dict.fromkeys(fit.reason for fit in refusals))
            reason = f"{candidate.label} needs {listed([other for _, other, _ in members], 'or')}: {reasons}"
            joined = summary("incompatible", reason, refusals).concerning(*refusal.about)
            fits = [replace(joined, nearest_change=refusal.nearest_change)]
        else:
            not_with = "".join(f"; not with {other}: {fit.reason}" for other, fit in others)
            fits = [
                replace(fit, reason=f"{candidate.label} with {label}: {fit.reason}{'' if number else not_with}")
                for number, fit in enumerate(fits)
            ]
        for fit in fits:
            yield fit.concerning(*dict.fromkeys(candidate.name if name == best else name for name in fit.about))


def _newest_member(question: Question, row: ReleaseRow, name: str) -> tuple[str, list[Fit]]:
    """The newest release of one of the packages that would do, and what is said of it; without any, nothing."""
    spec = parse_specifier(row.needs[name])
    known = [version for version in question.matrix.known_versions(name) if spec.cover(version) == "all"]
    newest = (version._replace(scheme=scheme(name)) for version in known[-1:])
    builds = (one for version in newest for one in release_candidates(question, name, version))
    return min(
        ((one.label, candidate_fits(question, one)) for one in builds), key=lambda item: rank(item[1]), default=("", [])
    )


def rank(fits: Iterable[Fit]) -> tuple[int, int]:
    """What is least fits best."""
    verdicts = [fit.verdict for fit in fits]
    return verdicts.count("incompatible"), verdicts.count("unknown")
