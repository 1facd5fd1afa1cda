"""Write the rows of a project: wheels and published releases from file names, requirements from METADATA."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import groupby
from typing import Any, NamedTuple, TypeAlias

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.tags import Tag
from packaging.utils import (
    InvalidSdistFilename,
    InvalidWheelFilename,
    canonicalize_name,
    parse_sdist_filename,
    parse_wheel_filename,
)
from packaging.version import InvalidVersion, Version

from envcheck.refresh.document import Project, RowChange, rewrite
from envcheck.refresh.index import IndexFile
from envcheck.refresh.metadata import Metadata, bounds_by_python, bounds_by_wheel, of_name
from envcheck.refresh.release_rows import specifier_of
from envcheck.refresh.wheel_files import MACHINES, Platform, Release, WheelFile, installable

Python = tuple[int, int]
_PYTHONS: tuple[Python, ...] = ((2, 7), *((3, minor) for minor in range(40)))
"""The CPythons that wheels are asked for; the last ones are years ahead, and stand for all that may come."""
_Release: TypeAlias = tuple[int, int, int]
_PATCHES = range(40)
"""The releases of each; the last one stands for all that may come."""
_FIRST_FREE = (3, 13)
"""The first CPython with a build without the global interpreter lock (PEP 703)."""
_INTERPRETER = re.compile(r"(cp|py)([23])([0-9]{0,4})")
_GLIBC = re.compile(r"manylinux_([0-9]{1,4})_([0-9]{1,4})_")
_OLD_NAMES = {"manylinux1": (2, 5), "manylinux2010": (2, 12), "manylinux2014": (2, 17)}
_MOST_ON_LINE = 40
"""Releases in one text."""
_ANY = "any"
_SYSTEMS = (_ANY, "linux-x86_64", "linux-aarch64", "windows-x86_64", "macos-x86_64", "macos-aarch64")


class _Wheels(NamedTuple):
    """What the files of one release say."""

    version: Version
    pythons: dict[str, str]
    free_threaded: dict[str, str]
    glibc: dict[str, str]
    archive: bool
    archive_pythons: str


def regenerate(project: Project, files: Sequence[IndexFile]) -> Iterator[RowChange]:
    """Write all of these rows anew; yields the differences."""
    yield from rewrite(project, "wheels", wheel_rows(project.name, files), ("versions",))
    yield from rewrite(project, "published", published_rows(project.name, files), ())


def published_rows(name: str, files: Sequence[IndexFile]) -> list[dict[str, Any]]:
    """The row of a project; what shares its first two numbers is one text, since lines with many dots are refused."""
    versions = sorted(version for version in _files(files, name) if not version.is_prerelease and not version.local)
    runs = [list(map(str, run)) for _, run in groupby(versions, lambda version: version.release[:2])]
    texts = [" ".join(run[at : at + _MOST_ON_LINE]) for run in runs for at in range(0, len(run), _MOST_ON_LINE)]
    return [{"releases": texts}] if texts else []


def wheel_rows(name: str, files: Sequence[IndexFile]) -> list[dict[str, Any]]:
    """The rows of a project; consecutive releases with the same wheels share one."""
    of_release = _files(installable(files), name)  # yanked files count where a release has no other
    versions = sorted(one for one in of_release if not one.is_prerelease and not one.local)
    runs: list[list[_Wheels]] = []
    for one in (_of_release(version, *of_release[version]) for version in versions):
        if runs and runs[-1][-1][1:] == one[1:]:
            runs[-1].append(one)
        else:
            runs.append([one])
    return [
        _row(specifier_of([one.version for one in run], versions), run[0])
        for run in runs
        if run[0].pythons or run[0].archive_pythons
    ]


def _row(versions: str, wheels: _Wheels) -> dict[str, Any]:
    row: dict[str, Any] = {"versions": versions, "pythons": wheels.pythons}
    row |= {"free_threaded": wheels.free_threaded} if wheels.free_threaded else {}
    row |= {"glibc": wheels.glibc} if wheels.glibc else {}
    row |= {"archive": True} if wheels.archive else {}
    return row | ({"archive_pythons": wheels.archive_pythons} if wheels.archive_pythons else {})


_Files: TypeAlias = tuple[list[tuple[IndexFile, frozenset[Tag]]], IndexFile | None]
"""The wheels of a release with their tags, and its source archive."""


def _files(files: Iterable[IndexFile], project: str) -> dict[Version, _Files]:
    """The files of each release."""
    wheels: dict[Version, list[tuple[IndexFile, frozenset[Tag]]]] = defaultdict(list)
    archives: dict[Version, IndexFile] = {}
    for file in files:
        try:
            if file.name.endswith(".whl"):
                name, version, _, tags = parse_wheel_filename(file.name)
                if name == canonicalize_name(project):
                    wheels[version].append((file, tags))
            else:
                archives[parse_sdist_filename(file.name)[1]] = file
        except (InvalidWheelFilename, InvalidSdistFilename, InvalidVersion):
            continue
    return {version: (wheels.get(version, []), archives.get(version)) for version in {*wheels, *archives}}


def _of_release(
    version: Version, wheels: Sequence[tuple[IndexFile, frozenset[Tag]]], archive: IndexFile | None
) -> _Wheels:
    pythons: dict[bool, dict[str, set[_Release]]] = {False: defaultdict(set), True: defaultdict(set)}
    glibc: dict[str, tuple[int, int]] = {}
    for file, tags in wheels:
        for free_threaded, served in pythons.items():
            own = _pythons(file.requires_python, tags, free_threaded=free_threaded)
            for system in (system for tag in tags for system in _systems(tag.platform)):
                served[system] |= own
        for tag in tags:
            least = _glibc(tag.platform)
            if least:
                machine, numbers = least
                glibc[machine] = min(glibc.get(machine, numbers), numbers)
    ordinary, free = (
        {system: _specifier(served[system]) for system in _SYSTEMS if served.get(system)} for served in pythons.values()
    )
    free.pop(_ANY, None)  # those without compiled code serve every build
    floors = {machine: ".".join(map(str, glibc[machine])) for machine in sorted(glibc, reverse=True)}
    alone = archive.requires_python if archive and not wheels else ""
    return _Wheels(version, ordinary, free, floors, archive is not None, _specifier(_admitted(alone)) if alone else "")


@cache
def _pythons(requires_python: str, tags: frozenset[Tag], *, free_threaded: bool) -> frozenset[_Release]:
    """The CPythons that a wheel can be installed for, or those without the global interpreter lock."""
    asked = _PYTHONS[_PYTHONS.index(_FIRST_FREE) :] if free_threaded else _PYTHONS
    serves = _serves_free_threaded if free_threaded else _serves
    served = (python for python in asked if any(serves(tag, python) for tag in tags))
    return _admitted(requires_python).intersection((*python, patch) for python in served for patch in _PATCHES)


def _serves(tag: Tag, python: Python) -> bool:
    own_abi = not (tag.abi.startswith("cp") and tag.abi.endswith("t"))
    return own_abi and _named(tag, python, later=tag.abi == "abi3")


def _serves_free_threaded(tag: Tag, python: Python) -> bool:
    """The stable ABI of old is not theirs."""
    own_abi = tag.abi in ("none", "abi3t") or (tag.abi.startswith("cp") and tag.abi.endswith("t"))
    return own_abi and _named(tag, python, later=tag.abi == "abi3t")


def _named(tag: Tag, python: Python, *, later: bool) -> bool:
    match = _INTERPRETER.fullmatch(tag.interpreter)
    if match is None or int(match[2]) != python[0]:
        return False
    named = int(match[3] or 0)
    return python[1] == named or ((later or match[1] == "py") and python[1] > named)


@cache
def _admitted(requires_python: str) -> frozenset[_Release]:
    every = ((*python, patch) for python in _PYTHONS for patch in _PATCHES)
    try:
        spec = SpecifierSet(requires_python)
    except InvalidSpecifier:
        return frozenset(every)
    return frozenset(release for release in every if spec.contains(".".join(map(str, release))))


def _systems(platform: str) -> list[str]:
    """Wheels for musl are for no system of the matrix, which speaks of glibc's."""
    if platform == "any":
        return [_ANY]
    os = "windows" if platform.startswith("win") else "macos" if platform.startswith("macosx") else "linux"
    if platform.startswith("musllinux"):
        return []
    if os == "macos" and platform.endswith("universal2"):
        return ["macos-x86_64", "macos-aarch64"]
    machine = next((known for ending, known in MACHINES.items() if platform.endswith(ending)), None)
    return [f"{os}-{machine}"] if machine and f"{os}-{machine}" in _SYSTEMS else []


def _glibc(platform: str) -> tuple[str, tuple[int, int]] | None:
    machine = next((one for one in ("x86_64", "aarch64") if platform.endswith(one)), None)
    match = _GLIBC.match(platform)
    numbers = (int(match[1]), int(match[2])) if match else _OLD_NAMES.get(platform.partition("_")[0])
    return (machine, numbers) if machine and numbers else None


def _specifier(pythons: Collection[_Release]) -> str:
    """Runs of consecutive releases, oldest first; one that reaches the end is open."""
    runs: list[list[_Release]] = []
    left_out: list[list[_Release]] = []
    """Of each run, single releases between others."""
    for release in sorted(pythons):
        if runs and release == _next(runs[-1][-1]):
            runs[-1].append(release)
        elif runs and release == _next(_next(runs[-1][-1])) and release[:2] == runs[-1][-1][:2]:
            left_out[-1].append(_next(runs[-1][-1]))
            runs[-1].append(release)
        else:
            runs.append([release])
            left_out.append([])
    return "|".join(_run(run[0], run[-1], out) for run, out in zip(runs, left_out, strict=True))


def _run(first: _Release, last: _Release, left_out: Sequence[_Release]) -> str:
    whole = first[2] == _PATCHES[0] and last[2] == _PATCHES[-1] and not left_out
    if whole and first[:2] == last[:2] and first[:2] != _PYTHONS[-1]:
        return f"=={_written_out(first)}"
    end = f",<{_written_out(_next(last))}" if last[2] == _PATCHES[-1] else f",<={'.'.join(map(str, last))}"
    end = "" if last == (*_PYTHONS[-1], _PATCHES[-1]) else end
    return f">={_written_out(first)}{end}{''.join(f',!={_written_out(each)}' for each in left_out)}"


def _next(release: _Release) -> _Release:
    major, minor, patch = release
    return (major, minor + 1, 0) if patch == _PATCHES[-1] else (major, minor, patch + 1)


def _written_out(release: _Release) -> str:
    """The first release of a minor version is written as that version."""
    return ".".join(map(str, release if release[2] else release[:2]))


_AT_ONCE = 8
"""Releases whose METADATA is read in parallel."""
_LIBRARIES = "nvidia-"
"""How NVIDIA's distributions of libraries begin; frameworks pin them."""
_ANY_PYTHON = (0, 0)
"""Stands for the Pythons of a wheel for any."""


class _Declared(NamedTuple):
    """For which Pythons, systems and machines something is required; empty for all of the release."""

    python: str
    os: tuple[str, ...]
    machine: tuple[str, ...]


_Needs = dict[_Declared, dict[str, str]]
_Read = Callable[[WheelFile], Metadata]


def regenerate_requirements(
    project: Project, releases: Sequence[Release], read: _Read, known: Collection[str]
) -> Iterator[RowChange]:
    """Write all of these rows anew, about what it requires of the ``known``; yields the differences."""
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        try:
            needs = list(pool.map(lambda release: _needs(release, read, set(known) - {project.name}), releases))
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    # A source archive that names nothing may just not say.
    stated = [
        (release, wanted)
        for release, wanted in zip(releases, needs, strict=True)
        if wanted or release.wheels[0].file.name.endswith(".whl")
    ]
    rows = list(_rows([release for release, _ in stated], [wanted for _, wanted in stated]))
    yield from rewrite(project, "requirements", rows, ("versions", "python", "os", "machine"))


def _needs(release: Release, read: _Read, known: Collection[str]) -> _Needs:
    """What the wheels require, joined over the platforms that require the same."""
    platforms = release.platforms
    places: dict[tuple[str, str, str], list[Platform]] = defaultdict(list)
    for os in dict.fromkeys(os for os, _ in platforms):
        metadata = _by_python(release, os, read)
        for platform in (platform for platform in platforms if platform[0] == os):
            named = dict.fromkeys(canonicalize_name(item.name) for _, one in metadata for item in one.requirements)
            for name in map(str, named):
                if name not in known and not name.startswith(_LIBRARIES):
                    continue
                for python, spec in _bounds(metadata, name, platform):
                    places[name, python, spec].append(platform)
    found: _Needs = defaultdict(dict)
    for (name, python, spec), there in places.items():
        for os_names, machines in _narrowed(there, platforms):
            found[_Declared(python, os_names, machines)][name] = spec
    return dict(found)


_MetadataByPython = list[tuple[tuple[int, int], Metadata]]
"""METADATA of the wheels for a system, by the CPythons that they are for."""


def _by_python(release: Release, os: str, read: _Read) -> _MetadataByPython:
    """Those of the oldest and the newest CPython; all of them, where these two require different things."""
    machine = next(machine for system, machine in release.platforms if system == os)
    wheels: dict[tuple[int, int], WheelFile] = {}
    for wheel in sorted(release.for_platform(os, machine), key=lambda wheel: (wheel.build, wheel.file.name)):
        wheels |= dict.fromkeys(wheel.pythons or {_ANY_PYTHON}, wheel)
    first, last = wheels[min(wheels)], wheels[max(wheels)]
    ends = [(min(wheels), read(first))]
    ends += [(max(wheels), read(last))] if last is not first else []
    if len({frozenset(map(str, metadata.requirements)) for _, metadata in ends}) == 1:
        return ends[:1]
    between = {wheel: read(wheel) for wheel in dict.fromkeys(wheels.values()) if wheel not in (first, last)}
    return [(python, between.get(wheels[python]) or dict(ends)[python]) for python in sorted(wheels)]


def _bounds(metadata: _MetadataByPython, name: str, platform: Platform) -> list[tuple[str, str]]:
    if all(of_name(one, name) == of_name(metadata[0][1], name) for _, one in metadata):
        return bounds_by_python(metadata[0][1], name, platform)
    return bounds_by_wheel(metadata, name, platform)


def _narrowed(
    there: Sequence[Platform], platforms: Sequence[Platform]
) -> Iterator[tuple[tuple[str, ...], tuple[str, ...]]]:
    """Systems and machines of a requirement; empty where it holds for all of the release, or of the systems."""
    by_machines: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for os in dict.fromkeys(os for os, _ in there):
        here, every = ([machine for system, machine in some if system == os] for some in (there, platforms))
        by_machines[() if here == every else tuple(here)].append(os)
    everywhere = {os for os, _ in platforms}
    for machines, systems in by_machines.items():
        yield () if set(systems) == everywhere else tuple(systems), machines


def _rows(releases: Sequence[Release], needs: Sequence[_Needs]) -> Iterator[dict[str, Any]]:
    """One row for consecutive releases that require the same."""
    versions = [release.version for release in releases]
    start = 0
    for end in range(1, len(needs) + 1):
        if end < len(needs) and needs[end] == needs[start]:
            continue
        spec = specifier_of(versions[start:end], versions)
        for declared, wanted in sorted(needs[start].items()):
            row: dict[str, Any] = {"versions": spec, "needs": dict(sorted(wanted.items()))}
            row |= {"python": declared.python} if declared.python else {}
            row |= {"os": list(declared.os)} if declared.os else {}
            yield row | ({"machine": list(declared.machine)} if declared.machine else {})
        start = end
