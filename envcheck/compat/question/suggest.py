"""The nearest change of one component that would make everything fit. Every suggestion was asked before it is made."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import islice

from envcheck.compat.matrix import Matrix
from envcheck.compat.names import canonical, scheme
from envcheck.compat.question.candidates import TORCH, release_candidates
from envcheck.compat.question.decision import Decision, decide, work
from envcheck.compat.question.hardware import NAME as FORWARD
from envcheck.compat.question.question import Judgement, Question, readable
from envcheck.compat.question.reading import read_question
from envcheck.compat.relations.torch import builds, tag_of
from envcheck.compat.specifier import Version, parse_specifier, parse_version
from envcheck.compat.tables import Os
from envcheck.components import Bound, Component
from envcheck.versions import DriverRelease

_DRIVER_HINT = re.compile(r"driver (>= ?|R)([0-9]+)(\.[0-9.]+)?")

_MOST_TRIED = 40
"""Changes of one component that are tried, nearest first."""
_LEAST_TRIED = 4
_MOST_WORK = 1000
"""What may be spent on all of them, as families count it: a question that names majors is judged for all releases."""
_MOST_NARROWED = 60
"""Of that, what may be spent on the families of each change."""


def suggest(matrix: Matrix, components: Sequence[Component], decision: Decision) -> tuple[str, ...]:
    """Single changes with which the answer is compatible, for each component that all objections are about."""
    question, objections = decision.question, decision.objections
    shared = set.intersection(*(set(objection.about) for objection in objections)) if objections else set()
    each = work(matrix, components, read_question(matrix, components)) * max(len(shared), 1)
    most = min(_MOST_TRIED, max(_MOST_WORK // each, _LEAST_TRIED))
    found: list[str] = []
    for place, component in enumerate(components):
        name = canonical(component.name)
        if _no_such_build(name, decision):
            found += _other_builds(matrix, components, question, place)
        if name not in shared:
            continue
        if name == FORWARD and _fits(matrix, [*components[:place], *components[place + 1 :]]):
            found.append(f"no {FORWARD}")
            continue
        for value in islice(_values(matrix, question, name, objections), most):
            changed = [*components[:place], _exactly(component, value), *components[place + 1 :]]
            if _fits(matrix, changed):
                found.append(_told(matrix, question, components, place, value))
                break
    return tuple(found)


def _no_such_build(name: str, decision: Decision) -> bool:
    """Whether all that is unknown is a build of PyTorch that was never published."""
    open_ones = [judgement for judgement in decision.judgements if judgement.fit.verdict == "unknown"]
    return (
        name == TORCH
        and decision.verdict == "unknown"
        and any(judgement.about == (TORCH,) and judgement.fit.nearest_change for judgement in open_ones)
    )


def _other_builds(matrix: Matrix, components: Sequence[Component], question: Question, place: int) -> Iterator[str]:
    """The builds of the named release with which everything fits; all of them, where nothing else is named."""
    version = question.versions[TORCH][-1]
    own = [row for row in matrix.torch if row.version == str(version)]
    for build in (build for row in own for build in builds(row, question.os, question.machine)):
        value = f"{version}+{tag_of(build.cuda)}"
        changed = [*components[:place], _exactly(components[place], value), *components[place + 1 :]]
        if len(components) == 1 or _fits(matrix, changed):
            yield f"{TORCH} {value}"


def superseded(matrix: Matrix, question: Question) -> tuple[str, ...]:
    """For projects that ended: the last stack that works, as their rows tell it."""
    rows = (
        row
        for name, versions in question.versions.items()
        for version in versions
        for candidate in release_candidates(matrix, question, name, version)
        for row in (*candidate.rows, *candidate.partial)
    )
    return tuple(dict.fromkeys(row.superseded for row in rows if row.superseded))


def _fits(matrix: Matrix, components: Sequence[Component]) -> bool:
    return decide(matrix, components, _MOST_NARROWED).verdict == "compatible"


def _exactly(component: Component, value: str) -> Component:
    return component._replace(bounds=(Bound("==", value),))


def _values(matrix: Matrix, question: Question, name: str, objections: Sequence[Judgement]) -> Iterator[str]:
    """What could stand in the place of a component, nearest first."""
    writer, versions = _WRITERS.get(name), question.versions.get(name, ())
    if name == "driver" and question.drivers:
        yield from _drivers(matrix, question, [objection.fit.nearest_change for objection in objections])
    elif writer and (versions or name in _WITHOUT_VERSION):
        yield from writer(matrix, question)
    elif versions and name != "driver":
        known = [str(version) for version in matrix.known_versions(name)]
        yield from _nearest(known, _older(known, versions[0]))


def _older(known: Sequence[str], version: Version) -> int:
    """How many of the known versions are older."""
    return sum(1 for text in known if (other := parse_version(text)) and other.numbers < version.numbers)


def _nearest(known: Sequence[str], place: int) -> Iterator[str]:
    """The members of an ascending sequence by their distance from a place in it, older ones first."""
    order = sorted(range(len(known)), key=lambda at: (at - place + 0.5 if at >= place else place - at - 0.5, at))
    yield from (known[at] for at in order)


def _drivers(matrix: Matrix, question: Question, hints: Sequence[str]) -> Iterator[str]:
    """What the relations themselves ask for; then other minimums from the named release up, and branches down."""
    present = question.drivers[0]
    for hint in hints:
        match = _DRIVER_HINT.fullmatch(hint)
        if match:
            yield match[2] + (match[3] or ("" if match[1] == "R" else ".00"))
    releases = sorted(release for text in _named_drivers(matrix, question) if (release := DriverRelease.parse(text)))
    yield from (str(release) for release in releases if release > present)
    kind = "windows" if question.windows_driver else "linux"
    branches = sorted({row.branch for row in matrix.drivers if row.os == kind}, reverse=True)
    yield from (str(branch) for branch in branches if branch < present.branch)


def _named_drivers(matrix: Matrix, question: Question) -> Iterator[str | None]:
    for cuda in matrix.cuda:
        yield cuda.driver_windows if question.windows_driver else cuda.driver_linux
        if not question.windows_driver:
            yield cuda.bundled_driver
    for row in matrix.releases:
        spec = row.needs.get("driver-windows" if question.windows_driver else "driver-linux")
        for bound in parse_specifier(spec).bounds if spec else ():
            if bound.operator in (">=", "=="):
                yield ".".join(map(str, bound.numbers))


def _toolkits(name: str) -> Callable[[Matrix, Question], Iterator[str]]:
    def write(matrix: Matrix, question: Question) -> Iterator[str]:
        known, present = matrix.toolkits, question.versions[name][0]
        release = len(present.numbers) > len(known[0])
        if release:
            rows = [row for row in matrix.cuda if row.version == f"{present.numbers[0]}.{present.numbers[1]}"]
            yield from (update.release for row in rows for update in reversed(row.updates))
        texts = [str(version) for version in known if not (release and version == present.numbers[:2])]
        yield from _nearest(texts, _older(texts, present))

    return write


def _pythons(matrix: Matrix, question: Question) -> Iterator[str]:
    texts = {row.python_min for row in matrix.torch} | {row.python_max for row in matrix.torch}
    minors = [version.numbers[1] for text in texts if text and (version := parse_version(text))]
    known = [f"3.{minor}" for minor in range(min(minors, default=0), max(minors, default=0) + 1)]
    present = question.versions["python"][0]
    yield from _nearest(known, _older(known, present))


def _torches(matrix: Matrix, question: Question) -> Iterator[str]:
    """Other builds of the release, newest CUDA first; then the wheels on PyPI of other releases."""
    version = question.versions["torch"][-1]
    known = [row.version for row in matrix.torch]
    own = [row for row in matrix.torch if row.version.startswith(str(version))]
    for row in own:
        yield from (f"{row.version}+{tag_of(build.cuda)}" for build in builds(row, question.os, question.machine))
    yield from _nearest(known, _older(known, version))


def _engines(_tables: Matrix, question: Question) -> Iterator[str]:
    yield from (str(version) for version in question.versions.get("tensorrt", ()))


def _runtimes(matrix: Matrix, question: Question) -> Iterator[str]:
    yield from (str(version) for version in question.versions.get("tensorrt-engine", ()))
    known = [str(version) for version in matrix.known_versions("tensorrt")]
    yield from _nearest(known, _older(known, question.versions["tensorrt"][0]))


def _told_version(matrix: Matrix, name: str, value: str) -> str:
    """A version, with those that the same row covers: ``cudnn >=9.7, <9.11``."""
    version = parse_version(value, scheme(name))
    rows = [row for row in matrix.rows_of(name) if version and parse_specifier(row.versions).cover(version) == "all"]
    ranged = len(rows) == 1 and name not in _WRITERS and "," in rows[0].versions
    return readable(name, rows[0].versions) if ranged else f"{name} {value}"


def _modules(_tables: Matrix, question: Question) -> Iterator[str]:
    yield "proprietary" if question.flavour == "open" else "open"


def _systems(_tables: Matrix, question: Question) -> Iterator[str]:
    """Another system has other driver releases: it is no change of one component when a driver is named."""
    if not question.drivers:
        systems: tuple[Os, ...] = ("linux", "wsl", "windows")
        yield from (system for system in systems if system != question.os)


_WRITERS: dict[str, Callable[[Matrix, Question], Iterator[str]]] = {
    "cuda": _toolkits("cuda"),
    "nvcc": _toolkits("nvcc"),
    "cuda-compat": _toolkits("cuda-compat"),
    "python": _pythons,
    "torch": _torches,
    "tensorrt": _runtimes,
    "tensorrt-engine": _engines,
    "kernel-module": _modules,
    "os": _systems,
}


_WITHOUT_VERSION = ("kernel-module", "os")
"""Components that are words; of any other, nothing is near what names no known release."""


def _told(matrix: Matrix, question: Question, components: Sequence[Component], place: int, value: str) -> str:
    """A change in words; a driver counts as a minimum where the newest known branch fits too."""
    name = canonical(components[place].name)
    if name == "kernel-module":
        return f"the {value} kernel module"
    if name != "driver":
        return _told_version(matrix, name, value)
    value = value.removesuffix(".00")
    kind = "windows" if question.windows_driver else "linux"
    newest = max((row.until or row.branch for row in matrix.drivers if row.os == kind), default=0)
    changed = [*components[:place], _exactly(components[place], str(newest)), *components[place + 1 :]]
    if _fits(matrix, changed):
        return f"driver >= {value}"
    return f"driver {value}" if "." in value else f"driver R{value}"
