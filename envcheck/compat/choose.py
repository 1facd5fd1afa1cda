"""Which versions to try in the place of those that were named: members of families, and nearest changes.

A short version stands for several releases, a family: it fits when one release of each family fits with all that was
named. Where every member fits, or none, the relations say so themselves; the search is for what they leave open. That
none fits is said only of families whose members are all known, as those that PyPI lists are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import NamedTuple

import msgspec

from envcheck.compat.candidates import TORCH
from envcheck.compat.fits import ENGINE, all_fits
from envcheck.compat.hardware import NAME as FORWARD
from envcheck.compat.narrowing import releases_of
from envcheck.compat.package_needs import exact, specifiers
from envcheck.compat.question import CONTAINER, Question, exactly, listed, overall, summary
from envcheck.compat.reading import gpu_of, read_question
from envcheck.compat.requirements import declared
from envcheck.compat.wheels import published
from envcheck.knowledge.matrix import Matrix
from envcheck.knowledge.names import PLATFORM, SETS, canonical
from envcheck.knowledge.relations.fit import Fit, FitVerdict, conclude
from envcheck.knowledge.relations.torch import builds, minors_within, pythons_with_wheels, tag_of, torch_row
from envcheck.knowledge.specifier import Version, parse_specifier, parse_version
from envcheck.knowledge.tables.hardware import SharedNameRow
from envcheck.model.components import Component
from envcheck.model.versions import DriverRelease
from envcheck.text.lazy import lazy_pattern

_RUNS_ON = PLATFORM | {"gpu", "driver", "python", FORWARD}
_LISTED = ("cuda", "nvcc", TORCH)
"""Components whose releases rows name one by one; those of others may be listed as published."""
_ONE_FOR_ALL = (ENGINE, "tensorrt")
"""An engine loads in the version that built it: that one of each would do, says nothing of those that are there."""
MOST_WORK = 1200
"""What may be spent on members that are tried, newest first, in the place of their families, at some 0.1 ms a unit."""
_ONE_TRIAL = 10
"""What a question costs in which each component is one release; the members of families come on top."""

_DRIVER_HINT = lazy_pattern(r"driver (>= ?|R)([0-9]+)(\.[0-9.]+)?")
OFFERED_ONE_BY_ONE = frozenset({"cuda", "nvcc", "cuda-compat", "python", "torch", "tensorrt", "tensorrt-engine"})
"""Components of which single releases are offered; of others, all releases that the same row covers."""


class Result(NamedTuple):
    """What the relations say of a question, with a member in the place of each family that mattered."""

    question: Question
    components: tuple[Component, ...]
    fits: tuple[Fit, ...]
    objections: tuple[Fit, ...] = ()  # What a change would have to remove
    members: Mapping[str, str] = MappingProxyType({})
    """The members of families with which it fits, by canonical name."""

    @property
    def verdict(self) -> FitVerdict:
        return overall(self.fits)


class Family(msgspec.Struct, frozen=True):
    """A component that stands for several releases, each of which may be tried in its place."""

    place: int
    name: str
    members: tuple[str, ...]  # Newest first


def evaluate(matrix: Matrix, components: Sequence[Component], most: int = MOST_WORK) -> Result:
    """Answer a question; raise UsageError for what no question can be made of.

    ``most`` is what may be spent on trying members of families. A result that is compatible only because a further
    component chose another build than the one that is meant stays open.
    """
    for place, component in enumerate(components):
        if canonical(component.name) == "gpu" and gpu_of(matrix, component) is None:
            shared = matrix.find_shared_name(component.exact or "")
            if shared:
                return _of_each(matrix, components, place, shared, most)
    result = narrowed(matrix, components, most)
    if result.verdict != "compatible":
        return result
    left_out, objections = _without_one(result.question, components, most)
    reason = f"without {left_out} the question means another build, which does not fit"
    doubts = [summary("unknown", f"{reason}: {fit.reason}", [fit]).concerning(*fit.about) for fit in objections]
    return result._replace(fits=(*result.fits, *doubts), objections=objections)


def required_torch_fits(question: Question, components: Sequence[Component]) -> Iterator[Fit]:
    """Why the PyTorch does not run that a package requires, as torchaudio does, where none is named, nor its CUDA."""
    where = [each for each in components if canonical(each.name) in _RUNS_ON]
    if not where or {TORCH, "cuda", CONTAINER} & question.labels.keys():
        return
    matrix = question.matrix

    def refusals(release: str) -> tuple[Fit, ...]:
        return narrowed(matrix, [exactly(TORCH, release), *where], 0).objections[:1]

    releases, markers = releases_of(question)
    for name, version in releases:
        required = exact(specifiers(declared(matrix, name, version, markers).get(TORCH, "")))
        pin = f"{required}+{version.partition('+')[2]}".rstrip("+")  # from the index of its own tag
        # What does not come from PyTorch's index takes any build of that release, which another index may have.
        row = torch_row(matrix, pin) if required and not matrix.has_trait(name, "cuda-of-torch") else None
        others = builds(row, question.os, question.machine) if row else ()
        of_any = (f"{row.version}+{tag_of(build.cuda)}" for build in others if row)
        for fit in refusals(pin) if required and all(map(refusals, (pin, *of_any))) else ():
            reason = f"{question.labels[name].replace('==', ' ')} requires torch {pin}: {fit.reason}"
            yield summary("incompatible", reason, [fit]).concerning(
                name, *(each for each in fit.about if each != TORCH)
            )


def _of_each(matrix: Matrix, components: Sequence[Component], place: int, row: SharedNameRow, most: int) -> Result:
    """The answer for GPUs that share a name: what holds for each of them; where they differ, nobody can tell."""
    each = [(one, evaluate(matrix, replaced(components, place, one), most)) for one in row.compute_capabilities]
    verdicts = {result.verdict for _, result in each}
    deciding = [(one, next(fit for fit in result.fits if fit.verdict == result.verdict)) for one, result in each]
    refusals = "; ".join(f"with {one}, {fit.reason}" for one, fit in deciding)
    reason = f"{row.name} may have compute capability {listed(row.compute_capabilities, 'or')}: {refusals}"
    verdict: FitVerdict = verdicts.pop() if len(verdicts) == 1 else "unknown"
    cited = [fit for _, fit in deciding]
    fit = summary(verdict, reason, [*cited, conclude(matrix, verdict, "", row)]).concerning("gpu")
    return each[-1][1]._replace(components=tuple(components), fits=(fit,), objections=())


def replaced(components: Sequence[Component], place: int, value: str) -> list[Component]:
    return [*components[:place], exactly(components[place].name, value), *components[place + 1 :]]


def narrowed(matrix: Matrix, components: Sequence[Component], most: int) -> Result:
    """Answer a question, with a member in the place of each family that leaves it open."""
    result = _once(matrix, tuple(components))
    if result.verdict != "unknown":
        return result
    doubts = [set(fit.about) for fit in result.fits if fit.verdict == "unknown"]
    doubtful = set().union(*doubts)
    families = [family for family in families_of(components, result.question) if family.name in doubtful]
    if not families or not all(doubt & {family.name for family in families} for doubt in doubts):
        return result
    families.sort(key=lambda family: (len(family.members), family.name))
    search = _Search(matrix, most)
    found = search.run(result, families)
    if found is not None:
        open_ones = [family for family in families if family.name in found.members]
        chosen = listed([f"{family.name} {found.members[family.name]}" for family in open_ones])
        verbs = ("stands", "fits") if len(open_ones) == 1 else ("stand", "fit")
        stands = f"{verbs[0]} for several releases, of which {chosen} {verbs[1]}"
        if all(len(family.members) == 1 for family in open_ones):
            stands = f"{verbs[0]} for {chosen} alone"
        reason = f"{_written(components, open_ones)} {stands}"
        deciding = [fit for fit in found.fits if found.members.keys() & set(fit.about)]
        about = dict.fromkeys(name for fit in deciding for name in fit.about)
        return found._replace(fits=(summary("compatible", reason, deciding).concerning(*about), *found.fits))
    if search.open or not all(family.name in _LISTED or published(matrix, family.name) for family in families):
        return result
    objections = [refused.objections[0] for refused in search.refused[:2]]
    reasons = "; ".join(dict.fromkeys(objection.reason for objection in objections))
    reason = f"no release that {_written(components, families)} stands for fits: {reasons}"
    about = dict.fromkeys([*(family.name for family in families), *(name for one in objections for name in one.about)])
    refusal = summary("incompatible", reason, objections).concerning(*about)
    return result._replace(fits=(*result.fits, refusal), objections=(*result.objections, refusal))


@lru_cache(maxsize=1 << 10)  # questions that differ in one component are the same without it
def _once(matrix: Matrix, components: tuple[Component, ...]) -> Result:
    question = read_question(matrix, components)
    fits = tuple(all_fits(question))
    return Result(question, components, fits, tuple(fit for fit in fits if fit.bad))


class _Search:
    """Puts one member after the other in the place of each family, and goes on only with what may still fit."""

    def __init__(self, matrix: Matrix, most: int) -> None:
        self.open = False  # Whether anything was left undecided, or untried
        self.refused: list[Result] = []
        self._matrix = matrix
        self._left = most

    def run(self, base: Result, families: Sequence[Family]) -> Result | None:
        """The first that fits; families that are not among its members fit as they are."""
        first, *rest = families
        for member in first.members:
            if self._left <= 0:
                self.open = True
                return None
            self._left -= work(rest)
            tried = _once(self._matrix, tuple(replaced(base.components, first.place, member)))
            tried = tried._replace(members={**base.members, first.name: member})
            if tried.verdict == "incompatible":
                self.refused.append(tried)
            elif tried.verdict == "compatible":
                return tried
            elif rest:
                found = self.run(tried, rest)
                if found is not None:
                    return found
            else:
                self.open = True
        return None


def work(families: Iterable[Family]) -> int:
    return _ONE_TRIAL + sum(len(family.members) for family in families)


def families_of(components: Sequence[Component], question: Question) -> Iterator[Family]:
    for place, component in enumerate(components):
        name = canonical(component.name)
        if component.exact is None or (ENGINE in question.versions and name in _ONE_FOR_ALL):
            continue
        matrix, versions = question.matrix, question.versions.get(name, ())
        members: list[str] = []
        if name in ("cuda", "nvcc"):
            members = [str(version) for version in reversed(question.cuda if name == "cuda" else question.nvcc)]
        elif len(versions) == 1 and versions[0].family:
            # The releases that are published, or those and narrower families that rows name.
            start, local = versions[0].numbers, f"+{versions[0].local}" if versions[0].local else ""
            for one in reversed(
                matrix.known_versions(name)
                if name in _LISTED
                else published(matrix, name) or matrix.named_versions(name)
            ):
                if one.numbers[: len(start)] == start and len(one.numbers) > len(start):
                    members.append(f"{one}{local}")
        if len(members) > 1 or (members and versions and versions[0].family):
            yield Family(place, name, tuple(members))


def _written(components: Sequence[Component], families: Sequence[Family]) -> str:
    return listed([str(components[place]) for place in sorted(family.place for family in families)])


def _without_one(question: Question, components: Sequence[Component], most: int) -> tuple[str, tuple[Fit, ...]]:
    """A component without which the rest does not fit: naming it chose another build than the one that is meant.

    A further component can only narrow a question, save for the package of forward compatibility, for a set of
    software, within which its parts fit together, and for conda's package that is there to choose the build.
    """
    if FORWARD in question.labels:
        return "", ()
    platform = [exactly("os", question.os), exactly("machine", question.machine)]
    named = [component for component in components if canonical(component.name) not in PLATFORM]
    for place in range(len(named) if len(named) > 2 else 0):
        one = named[place].name
        if canonical(one) in SETS or question.matrix.has_trait(one, "chooses-cuda-of-torch"):
            continue
        objections = narrowed(question.matrix, [*named[:place], *named[place + 1 :], *platform], most).objections
        if objections:
            return str(named[place]), objections
    return "", ()


# Versions that could stand in the place of a component, nearest first.


def alternatives(question: Question, name: str, hints: Sequence[str]) -> Iterator[str]:
    """What could stand in the place of a component; ``hints`` are changes that the relations ask for."""
    present = question.versions.get(name, ())
    if name == "kernel-module":
        yield "proprietary" if question.flavour == "open" else "open"
    elif name == "os":
        # Another system has other driver releases: it is no change of one component when a driver is named.
        yield from (os for os in ("linux", "wsl", "windows") if os != question.os and not question.drivers)
    elif name == "driver":
        yield from _drivers(question, hints) if question.drivers else ()
    elif present:
        matrix = question.matrix
        if name in ("cuda", "nvcc", "cuda-compat"):
            yield from _toolkits(matrix, present[0])
        elif name == "python":
            spec = "|".join(filter(None, (pythons_with_wheels(matrix, row) for row in matrix.torch)))
            yield from _nearest(minors_within(spec), present)
        elif name == TORCH:
            # Other builds of the release, newest CUDA first; then the wheels on PyPI of other releases.
            for row in matrix.torch:
                if row.version.startswith(str(present[-1])):
                    found = builds(row, question.os, question.machine)
                    yield from (f"{row.version}+{tag_of(build.cuda)}" for build in found)
            yield from _nearest([row.version for row in matrix.torch], present[-1:])
        elif name == ENGINE:
            yield from map(str, question.versions.get("tensorrt", ()))
        else:
            if name == "tensorrt":
                yield from map(str, question.versions.get(ENGINE, ()))
            yield from _nearest([str(version) for version in matrix.known_versions(name)], present)


def _nearest(known: Sequence[str], present: Sequence[Version]) -> Iterator[str]:
    """Ascending versions by their distance from the first of ``present``, older ones first."""
    start = sum(1 for text in known if (other := parse_version(text)) and other.numbers < present[0].numbers)
    order = sorted(range(len(known)), key=lambda at: (at - start + 0.5 if at >= start else start - at - 0.5, at))
    yield from (known[at] for at in order)


def _toolkits(matrix: Matrix, present: Version) -> Iterator[str]:
    known = matrix.toolkits
    release = len(present.numbers) > len(known[0])
    if release:
        rows = [row for row in matrix.cuda if row.version == f"{present.numbers[0]}.{present.numbers[1]}"]
        yield from (update.release for row in rows for update in reversed(row.updates))
    texts = [str(version) for version in known if not (release and version == present.numbers[:2])]
    yield from _nearest(texts, (present,))


def _drivers(question: Question, hints: Sequence[str]) -> Iterator[str]:
    """What the relations themselves ask for; then other minimums from the named release up, and branches down."""
    matrix, present, windows = question.matrix, question.drivers[0], question.windows_driver
    for match in filter(None, map(_DRIVER_HINT.fullmatch, hints)):
        yield match[2] + (match[3] or ("" if match[1] == "R" else ".00"))
    named = [row.driver_windows if windows else row.driver_linux for row in matrix.cuda]
    named += [row.bundled_driver for row in matrix.cuda if not windows]
    for row in matrix.releases:
        spec = row.needs.get("driver-windows" if windows else "driver-linux")
        bounds = parse_specifier(spec).bounds if spec else ()
        named += [".".join(map(str, bound.numbers)) for bound in bounds if bound.operator in (">=", "==")]
    releases = sorted(release for text in named if (release := DriverRelease.parse(text)))
    yield from (str(release) for release in releases if release > present)
    os = "windows" if windows else "linux"
    branches = sorted({row.branch for row in matrix.drivers if row.os == os}, reverse=True)
    yield from (str(branch) for branch in branches if branch < present.branch)
