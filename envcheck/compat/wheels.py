"""What PyPI lists and has wheels of: whether a release exists, and can be installed on a system, for a Python, beside a
glibc. A version between two that PyPI lists, which it does not list itself, may be none.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import combinations
from typing import TypeVar

import msgspec

from envcheck.compat.question import Question, agree, listed, overall, summary
from envcheck.knowledge.matrix import Matrix
from envcheck.knowledge.names import CUDA_PARTS, HARDWARE, scheme
from envcheck.knowledge.relations.fit import VERDICTS, Fit, FitVerdict, conclude
from envcheck.knowledge.relations.torch import MINORS, minors_within
from envcheck.knowledge.specifier import Version, covered, parse_specifier, parse_version, speaks_of
from envcheck.knowledge.tables import Row
from envcheck.knowledge.tables.software import ExtraRequirementRow, PublishedRow, ReleaseRow, RequirementRow, WheelRow

R = TypeVar("R", ReleaseRow, WheelRow, RequirementRow, ExtraRequirementRow)

_IN_WORDS = {"linux": "Linux", "windows": "Windows", "macos": "macOS", "any": "every system"}
_ANY = "any"
ANY_LATER = f"3.{MINORS - 1}"  # Among the Pythons of a release, that there is no last one


def wheels_of(matrix: Matrix, name: str, version: Version, rows: Sequence[ReleaseRow] = ()) -> tuple[WheelRow, ...]:
    """The rows of a release, or of the releases of a family. ``rows`` are what else is known of it.

    A post-release that other rows name, and none of PyPI's does, is another index's; so is a release that rows by hand
    list, and those of PyPI do not.
    """
    if version.local or version.pre or name not in matrix.wheels_by_name:
        return ()
    found, named = _from_pypi(matrix, name, version)
    return () if not named and _names_post(rows) else found


@lru_cache(maxsize=1 << 14)  # one machine asks for the same releases hundreds of times
def _from_pypi(matrix: Matrix, name: str, version: Version) -> tuple[tuple[WheelRow, ...], bool]:
    """The rows of what PyPI lists; whether they speak of this very release, where it is a post-release."""
    found = covering(matrix.wheels_by_name.get(name, ()), version)
    from_pypi = {row.source for row in found}
    listing = [row.source for row in matrix.published_by_name.get(name, ()) if lists(row, version)]
    if listing and from_pypi.isdisjoint(listing):
        return (), True
    required = requirements_covering(matrix, name, version)
    return found, version.post is None or _names_post(found) or _names_post(required)


@lru_cache(maxsize=1 << 12)
def releases_covering(matrix: Matrix, name: str, version: Version) -> tuple[ReleaseRow, ...]:
    return covering(matrix.rows_of(name), version)


@lru_cache(maxsize=1 << 14)  # a plan asks about every release that is open, again after each that it chooses
def requirements_covering(matrix: Matrix, name: str, version: Version) -> tuple[RequirementRow, ...]:
    return covering(matrix.requirements_by_name.get(name, ()), version)


def _names_post(rows: Sequence[R]) -> bool:
    return any(parse_specifier(row.versions).names_post for row in rows)


def covering(rows: Sequence[R], version: Version) -> tuple[R, ...]:
    """The rows of a release, or of the releases of a family; of a post-release, those of its build that tell it from
    others of its release, if any do, and those that speak of something else.
    """
    found = [row for row in rows if speaks_of(row.versions, version) != "none"]
    posts = [] if version.post is None else [(row, parse_specifier(row.versions).bounds) for row in found]
    naming = [row for row, its in posts if any(one.post is not None and one.numbers == version.numbers for one in its)]
    topics = {topic for row in naming for topic in _topics(row)}
    return tuple(row for row in found if not topics or row in naming or topics.isdisjoint(_topics(row)))


def _topics(row: ReleaseRow | WheelRow | RequirementRow) -> set[tuple[str, str]]:
    """What a row speaks of, by the build: GPUs, or other packages."""
    if not isinstance(row, ReleaseRow):
        return {("", "")}
    of_gpus = row.cuda or row.targets or row.code or row.capability_min or row.capability_max or row.capabilities
    topics = [*(["GPUs"] if of_gpus else []), *(["packages"] if row.needs or row.bundles else [])]
    return {(row.build, topic) for topic in topics or [""]}


def gpu_is_asked(question: Question) -> bool:
    """Whether what was named is to use a GPU."""
    return bool((HARDWARE | CUDA_PARTS) & (question.labels.keys() | question.libraries.keys()))


def pythons_here(question: Question, row: WheelRow) -> str | None:
    """The Pythons with a wheel for the system in question; None where it has none."""
    systems = _systems(question)
    served = row.pythons
    if question.free_threaded:
        pure = {system: spec for system, spec in row.pythons.items() if system == _ANY}
        served = pure | row.free_threaded
    found = [part for system, spec in served.items() if system in systems for part in spec.split("|")]
    return "|".join(dict.fromkeys(found)) if found else None


def _systems(question: Question) -> tuple[str, ...]:
    """The systems whose wheels can be installed; a Mac whose processor was not named may have either."""
    if question.os == "macos" and "machine" not in question.labels:
        return ("macos-x86_64", "macos-aarch64", _ANY)
    return f"{_os(question)}-{question.machine}", _ANY


def serves(question: Question, wheels: Sequence[WheelRow]) -> bool:
    return any(pythons_here(question, row) for row in wheels)


def tells_pythons(question: Question, wheels: Sequence[WheelRow]) -> bool:
    """Whether the names of the wheels tell the last Python too; those of wheels for any later one do not."""
    specs = [spec for row in wheels if (spec := pythons_here(question, row))]
    return bool(specs) and all(
        any(bound.operator in ("<", "==", "<=") for bound in bounds)
        for spec in specs
        for bounds in parse_specifier(spec).alternatives
    )


def wheel_fits(
    question: Question, label: str, name: str, wheels: Sequence[WheelRow], rows: Sequence[ReleaseRow]
) -> list[Fit]:
    """What the wheels of a release say; where a family's releases differ, which of them fit."""
    if question.systems:
        return []  # the wheels for Jetsons come from other indexes
    members, about, fits = list[tuple[str, Fit]](), dict[str, None](), list[Fit]()
    for row in wheels:
        fits = list(_row_fits(question, label, name, row, rows))
        installable = bool(row.archive_pythons) or pythons_here(question, row) is not None
        verdict = overall(fits) if fits or not installable else "compatible"
        members.append((f"{name} {row.versions}", summary(verdict, "", fits[:1])))
        about |= dict.fromkeys(part for fit in fits for part in fit.about)
    if len({fit.verdict for _, fit in members}) < 2 or not about:
        return fits
    return [agree(members, question.labels.get(name, label)).concerning(*about)]


def _row_fits(question: Question, label: str, name: str, row: WheelRow, rows: Sequence[ReleaseRow]) -> Iterator[Fit]:
    compiles_later = bool(rows) and question.matrix.has_trait(name, "compiles-where-it-runs")
    if row.archive_pythons:
        # What is compiled where it is installed: pip refuses the Pythons that the archive does not declare.
        pythons = " or ".join(part.replace(",", ", ") for part in row.archive_pythons.split("|"))
        only = f"PyPI has {label} as a source archive alone, for Python {pythons}"
        for python in question.versions.get("python", ()):
            if covered(row.archive_pythons, python) == "none":
                reason, change = f"{only}; this is {python}", f"Python {pythons}"
                fit = conclude(question.matrix, "incompatible", reason, row, change=change)
                yield fit.concerning(name, "python")
            elif not compiles_later and not any("python" in other.needs for other in rows):
                reason = f"{only}; whether it can be compiled there is not documented"
                yield conclude(question.matrix, "unknown", reason, row).concerning(name, "python")
        return
    spec = pythons_here(question, row)
    if spec is None and question.free_threaded and any(system in row.pythons for system in _systems(question)):
        reason = f"PyPI has no wheel of {label} for free-threaded Python on {_here(question, row)}"
        yield conclude(question.matrix, "incompatible", reason, row).concerning(name, "python")
    elif spec is None:
        # Where a row names the system in question, what is compiled there runs there.
        named = any(
            _os(question) in other.os and ("machine" not in question.labels or question.machine in other.machine)
            for other in rows
        )
        if not (row.archive and (named or compiles_later)):
            yield from _no_wheel(question, label, name, row)
    if spec is None:
        return
    for part in ("os", "machine"):
        if part in question.labels:
            reason = f"PyPI has a wheel of {label} for {_here(question, row)}"
            yield conclude(question.matrix, "compatible", reason, row).concerning(name, part)
    pythons = " or ".join(part.replace(",", ", ") for part in spec.split("|"))
    kind = "free-threaded Python" if question.free_threaded else "Python"
    for python in question.versions.get("python", ()):
        verdict = VERDICTS[covered(spec, python)]
        reason = f"PyPI has wheels of {label} for {_here(question, row)} and {kind} {pythons}"
        reason += "" if verdict == "compatible" else f"; this is {python}"
        fit = conclude(question.matrix, verdict, reason, row, change=f"{kind} {pythons}")
        yield fit.concerning(name, "python")
    yield from _glibc(question, label, name, row)


def _no_wheel(question: Question, label: str, name: str, row: WheelRow) -> Iterator[Fit]:
    """A source archive may be compiled where there is no wheel, and another index may have one."""
    there = listed([in_words(system) for system in row.pythons])
    reason = f"PyPI has wheels of {label} for {there}, none for {in_words(_systems(question)[0])}"
    verdict: FitVerdict = "unknown"
    if row.archive:
        reason += "; whether its source archive can be compiled there is not documented"
    elif any(name in row.packages and _os(question) in row.os for row in question.matrix.indexes):  # PyTorch's
        reason += "; whether another index has one is not known"
    else:
        verdict = "incompatible"
    named = [part for part in ("os", "machine") if part in question.labels]
    for part in named or ([] if row.archive else ["os"]):
        yield conclude(question.matrix, verdict, reason, row, change=f"os {there}").concerning(name, part)


def _glibc(question: Question, label: str, name: str, row: WheelRow) -> Iterator[Fit]:
    """A wheel for every system holds nothing that is linked against glibc."""
    least = parse_version(row.glibc.get(question.machine, ""), scheme("glibc"))
    if least and _ANY not in row.pythons and not libcs(question):
        # A release of a distribution was named that no row knows.
        for distribution in sorted(question.matrix.distribution_names & question.versions.keys()):
            by = "os" if "os" in question.labels else distribution
            reason = f"the wheels of {label} on PyPI need glibc {least} or newer; the matrix does not know that of"
            reason = f"{reason} {distribution} {question.versions[distribution][0]}"
            yield conclude(question.matrix, "unknown", reason, row).concerning(name, by)
    for there, by, source, rows in libcs(question) if question.os in ("linux", "wsl") else ():
        if _ANY in row.pythons:
            reason = f"a wheel of {label} on PyPI is for every system, whatever its glibc"
            yield conclude(question.matrix, "compatible", reason, row).concerning(name, by)
        elif least:
            verdict = VERDICTS[covered(f">={least}", there)]
            reason = f"the wheels of {label} on PyPI need glibc {least} or newer, this is {there}{source}"
            fit = conclude(question.matrix, verdict, reason, row, *rows, change=f"glibc >= {least}")
            yield fit.concerning(name, by)


def libcs(question: Question) -> list[tuple[Version, str, str, tuple[Row, ...]]]:
    """Each glibc that was named, or that of the Linux distribution which was; what tells of it, in words, by rows."""
    named = question.versions.get("glibc")
    implied = question.implied.get("glibc")
    if named or implied is None:
        return [(there, "glibc", "", ()) for there in named or ()]
    return [(implied.version, implied.by, f" (it comes with {implied.label})", (implied.row,))]


def _os(question: Question) -> str:
    return "linux" if question.os == "wsl" else question.os


def _here(question: Question, row: WheelRow) -> str:
    return listed([in_words(system) for system in _systems(question) if system in row.pythons], "or")


def in_words(system: str) -> str:
    os, _, machine = system.partition("-")
    return f"{_IN_WORDS[os]} {machine}".strip()


class Gap(msgspec.Struct, frozen=True):
    """A number that no release has, between two that have been published."""

    older: Version
    newer: Version
    rows: tuple[PublishedRow, ...]  # What lists them


@lru_cache(maxsize=1 << 12)
def gap_of(matrix: Matrix, name: str, version: Version) -> Gap | None:
    """The gap between PyPI's releases into which a version falls; None where it is one, or nobody can tell.

    What the component's own rows name, and what another index carries, may have been taken from PyPI, or never have
    been there.
    """
    if version.family or version.pre:
        return None
    rows = matrix.published_by_name.get(name, ())
    listed = published(matrix, name)
    place = bisect_left(listed, _order(version), key=_order)
    after = bisect_right(listed, _order(version), lo=place, key=_order)
    if not place or after == len(listed) or any(_stands_for(version, one) for one in listed):
        return None
    named = name == "torch" and any(row.version == str(version) for row in matrix.torch)
    for row in matrix.rows_of(name):  # whether one names this version alone, or is about another index that has it
        spec, size = parse_specifier(row.versions), len(version.numbers)
        exact = (bound for bound in spec.bounds if bound.operator == "==" and len(bound.numbers) >= size)
        named = named or any(_stands_for(version, Version(bound.numbers, post=bound.post)) for bound in exact)
        named = named or (bool(row.index) and version.post is None and spec.cover(version) == "all")
    if named:
        return None
    return Gap(listed[place - 1], listed[after], rows)


@lru_cache(maxsize=1 << 10)
def published(matrix: Matrix, name: str) -> Sequence[Version]:
    """The releases of a component that PyPI lists, ascending; none where the matrix has no list of them."""
    texts = [word for row in matrix.published_by_name.get(name, ()) for text in row.releases for word in text.split()]
    return sorted((version for text in texts if (version := parse_version(text))), key=_order)


def is_published(matrix: Matrix, name: str, version: Version) -> bool:
    """Whether PyPI lists a release, or one of a family."""
    own = not version.local and not version.pre
    return own and any(_stands_for(version, one) for one in published(matrix, name))


def not_published(question: Question, name: str, version: Version) -> Fit | None:
    """That PyPI lists no such release, though older and newer ones; None where it does, or nobody can tell."""
    gap = None if version.local else gap_of(question.matrix, name, version)
    if gap is None:
        return None
    reason = f"PyPI lists no release {name} {version}, but {gap.older} and then {gap.newer}"
    change = f"{name} {gap.older}"
    return conclude(question.matrix, "unknown", f"{reason}: it may never have been published", *gap.rows, change=change)


def series_meant(matrix: Matrix, name: str, version: Version) -> tuple[Version, Version] | None:
    """The series that 1.13.0 stands for where its first release is 1.13.1, and that release: documents call the series
    so. Where there is a 1.13.0, or a row speaks of it, it means that one alone.
    """
    gap = gap_of(matrix, name, version) if version.numbers[2:] == (0,) else None
    if gap is None or gap.newer.numbers[:2] != version.numbers[:2]:
        return None
    return version._replace(numbers=version.numbers[:2]), gap.newer


def release_meant(matrix: Matrix, name: str, version: Version) -> Version | None:
    """The release that a short version names where PyPI lists it in these very words, as 0.22 with 0.22.1 after it, or
    where it is the only one: 59.5 for 59.5.0.
    """
    if not version.family:
        return None
    padded = (*version.numbers, *(0,) * version.scheme.numbers)[: version.scheme.numbers]
    listed = published(matrix, name)
    within = [one for one in listed if one.numbers[: len(version.numbers)] == version.numbers]
    alone = len(within) == 1 and within[0][:3] == (padded, version.pre, version.post)
    return version._replace(numbers=padded) if alone or any(one[:3] == version[:3] for one in listed) else None


@lru_cache(maxsize=1 << 13)  # plans that are judged in one run pin much of the same
def pythons_of(
    matrix: Matrix, name: str, version: Version, systems: tuple[str, ...], *, compiled: bool = False
) -> frozenset[str]:
    """The minor versions of CPython that PyPI has files of a release for on one of the ``systems`` (``linux-x86_64``);
    none where that is not known. A source archive beside wheels may serve any; what is ``compiled`` leaves it out.
    """
    specs: list[str] = []
    for row in wheels_of(matrix, name, version._replace(local="")):
        specs.append("|".join(spec for where, spec in row.pythons.items() if where in systems) or row.archive_pythons)
        if not specs[-1] or (not compiled and row.archive and row.pythons and _ANY not in row.pythons):
            return frozenset()
    return frozenset.intersection(*map(frozenset, map(minors_within, specs))) if specs else frozenset[str]()


def without_python(pythons: Mapping[str, frozenset[str]]) -> tuple[str, str, str] | None:
    """The first two releases, of those whose Pythons are known, that no Python has files of; and that in words."""
    known = {label: found for label, found in pythons.items() if found}
    common = frozenset.intersection(*known.values()) if known else None
    for one, other in combinations(known, 2) if not common else ():
        if not known[one] & known[other]:
            spans = [f"{label} for Python {span_of(known[label])}" for label in (one, other)]
            return one, other, f"PyPI has files of {spans[0]}, and of {spans[1]}"
    return None


def span_of(pythons: Collection[str]) -> str:
    """Minor versions of Python in words: ``3.9 to 3.12``."""
    first, *others = sorted(pythons, key=lambda python: int(python.partition(".")[2]))
    end = " or newer" if ANY_LATER in others else f" to {others[-1]}" if others else ""
    return first + end


def python_fits(question: Question) -> Iterator[Fit]:
    """Of the releases that were named, whether there is a Python with files of them."""
    if question.systems or "python" in question.versions:
        return
    exact = [(name, its[0]._replace(local="")) for name, its in question.versions.items() if len(its) == 1]
    named = {f"{name} {version}": (name, version) for name, version in exact if not version.family}
    systems = _systems(question)
    if found := without_python({label: pythons_of(question.matrix, *one, systems) for label, one in named.items()}):
        rows = [row for label in found[:2] for row in wheels_of(question.matrix, *named[label])]
        fit = conclude(question.matrix, "incompatible", f"no Python can have both: {found[2]}", *rows)
        yield fit.concerning(*(named[label][0] for label in found[:2]))


def toolkit_fits(question: Question) -> Iterator[Fit]:
    """That there is no toolkit of an nvcc that was named, though drivers report its CUDA."""
    for version in question.nvcc:
        row = question.matrix.cuda_rows.get(version)
        if row is not None and not row.toolkit:
            reason = f"no toolkit of CUDA {version} was published; drivers alone report it"
            yield conclude(question.matrix, "unknown", reason, row).concerning("nvcc")


def lists(row: PublishedRow, version: Version) -> bool:
    """Whether a row lists a release that a version may mean."""
    listed, exact = _listed(row.releases)
    return (version.numbers, version.post) in exact or any(_stands_for(version, one) for one in listed)


@lru_cache(maxsize=1 << 10)  # each of some hundred releases is looked for among all of them
def _listed(releases: tuple[str, ...]) -> tuple[tuple[Version, ...], frozenset[tuple[tuple[int, ...], int | None]]]:
    """The releases, and what tells each from the others."""
    found = tuple(filter(None, map(parse_version, (word for text in releases for word in text.split()))))
    return found, frozenset((one.numbers, one.post) for one in found)


def _stands_for(version: Version, release: Version) -> bool:
    """Whether a version as it was written may mean a release: further numbers and posts are often left out."""
    numbers = release.numbers + (0,) * len(version.numbers)
    return numbers[: len(version.numbers)] == version.numbers and version.post in (None, release.post)


def _order(version: Version) -> tuple[tuple[int, ...], int]:
    """By which releases are sorted: 1.0 and 1.0.0 are one, and a post-release follows its release."""
    numbers = version.numbers
    while numbers and not numbers[-1]:
        numbers = numbers[:-1]
    return numbers, -1 if version.post is None else version.post
