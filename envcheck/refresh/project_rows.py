"""Write the rows of a project: wheels and published releases from file names, requirements from METADATA."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from functools import cache
from itertools import groupby
from typing import Any, NamedTuple, TypeAlias

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.tags import Tag

from envcheck.knowledge.days import days_in, spelled
from envcheck.refresh.document import Project, RowChange, rewrite
from envcheck.refresh.index import IndexFile, in_parallel
from envcheck.refresh.metadata import Metadata, bounds_by_python, extras_of
from envcheck.refresh.release_rows import specifier_of
from envcheck.refresh.wheel_files import MACHINES, Files, Platform, Release, WheelFile, files_of

Python = tuple[int, int]
_PYTHONS: tuple[Python, ...] = ((2, 7), *((3, minor) for minor in range(40)))
"""The CPythons that wheels are asked for; the last ones are years ahead, and stand for all that may come."""
_Release: TypeAlias = tuple[int, int, int]
_PATCHES = range(40)  # The releases of each; the last one stands for all that may come
_FIRST_FREE = (3, 13)  # The first CPython with a build without the global interpreter lock (PEP 703)
_OLD_NAMES = {"manylinux1": (2, 5), "manylinux2010": (2, 12), "manylinux2014": (2, 17)}
_MOST_ON_LINE = 40  # Releases in one text
_ANY = "any"
_SYSTEMS = (_ANY, "linux-x86_64", "linux-aarch64", "windows-x86_64", "macos-x86_64", "macos-aarch64")


def regenerate(project: Project, files: Sequence[IndexFile]) -> Iterator[RowChange]:
    """Write all of these rows anew; yields the differences."""
    yield from rewrite(project, "wheels", wheel_rows(project.name, files), ("versions",))
    words = ((" ".join(row["releases"]).split(), row.get("days", "")) for row in project.line.get("published", ()))
    before = {name: day for names, text in words for name, day in zip(names, days_in(text), strict=False)}
    yield from rewrite(project, "published", published_rows(project.name, files, before), ())


def published_rows(
    name: str, files: Sequence[IndexFile], before: Mapping[str, date | None] = {}
) -> list[dict[str, Any]]:
    """The row of a project; what shares its first two numbers is one text, since lines with many dots are refused.

    A release came on the day of its first file. A mirror may have had it later than PyPI: the day ``before`` counts if
    it is earlier.
    """
    given = files_of(files, name)
    runs = [list(map(str, run)) for _, run in groupby(given, lambda version: version.release[:2])]
    texts = [" ".join(run[at : at + _MOST_ON_LINE]) for run in runs for at in range(0, len(run), _MOST_ON_LINE)]
    days = [
        min(filter(None, (before.get(str(version)), *(file.uploaded for file in own.every))), default=None)
        for version, own in given.items()
    ]
    yanked = (str(version) for version, own in given.items() if all(file.yanked for file in own.every))
    row = {"releases": texts, "days": spelled(days), "yanked": " ".join(yanked)}
    return [{field: value for field, value in row.items() if value}] if texts else []


def wheel_rows(name: str, files: Sequence[IndexFile]) -> list[dict[str, Any]]:
    """The rows of a project; consecutive releases with the same wheels share one."""
    given = files_of(files, name)
    versions = list(given)
    rows = []
    releases = [(version, _of_release(own.installable())) for version, own in given.items()]
    for row, run in groupby(releases, lambda release: release[1]):
        if row["pythons"] or row.get("archive_pythons"):
            rows.append({"versions": specifier_of([version for version, _ in run], versions), **row})
    return rows


def _of_release(own: Files) -> dict[str, Any]:
    """What the files of a release say, as fields of its row."""
    pythons: dict[bool, dict[str, set[_Release]]] = {False: defaultdict(set), True: defaultdict(set)}
    glibc: dict[str, tuple[int, int]] = {}
    for file, _, tags in own.wheels:
        named = [_pythons(file.requires_python, tags, free_threaded=free_threaded) for free_threaded in pythons]
        for served, own_pythons in zip(pythons.values(), named, strict=True):
            for system in (system for tag in tags for system in _systems(tag.platform)):
                served[system] |= own_pythons
        for tag in tags if any(named) else ():  # PyPy's tell nothing of CPython's
            machine = next((one for one in ("x86_64", "aarch64") if tag.platform.endswith(one)), None)
            match = re.match(r"manylinux_([0-9]{1,4})_([0-9]{1,4})_", tag.platform)
            numbers = (int(match[1]), int(match[2])) if match else _OLD_NAMES.get(tag.platform.partition("_")[0])
            if machine and numbers:
                glibc[machine] = min(glibc.get(machine, numbers), numbers)
    ordinary, free = (
        {system: _specifier(served[system]) for system in _SYSTEMS if served.get(system)} for served in pythons.values()
    )
    free.pop(_ANY, None)  # those without compiled code serve every build
    floors = {machine: ".".join(map(str, glibc[machine])) for machine in sorted(glibc, reverse=True)}
    alone = own.archives[-1].requires_python if own.archives and not own.wheels else ""
    row = {
        "pythons": ordinary,
        "free_threaded": free,
        "glibc": floors,
        "archive": bool(own.archives),
        "archive_pythons": _specifier(_admitted(alone)) if alone else "",
    }
    return {key: value for key, value in row.items() if value or key == "pythons"}


@cache
def _pythons(requires_python: str, tags: frozenset[Tag], *, free_threaded: bool) -> frozenset[_Release]:
    """The CPythons that a wheel can be installed for, or those without the global interpreter lock."""
    asked = _PYTHONS[_PYTHONS.index(_FIRST_FREE) :] if free_threaded else _PYTHONS
    served = (python for python in asked if any(_serves(tag, python, free_threaded=free_threaded) for tag in tags))
    return _admitted(requires_python).intersection((*python, patch) for python in served for patch in _PATCHES)


def _serves(tag: Tag, python: Python, *, free_threaded: bool) -> bool:
    """Whether wheels with a tag are for a CPython; the stable ABI of old is not for those without the lock."""
    of_free = tag.abi.startswith("cp") and tag.abi.endswith("t")
    match = re.fullmatch(r"(cp|py)([23])([0-9]{0,4})", tag.interpreter)
    is_own = of_free or tag.abi in ("none", "abi3t") if free_threaded else not of_free
    if match is None or int(match[2]) != python[0] or not is_own:
        return False
    named, later = int(match[3] or 0), tag.abi == ("abi3t" if free_threaded else "abi3")
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
    specs = []
    for run, out in zip(runs, left_out, strict=True):
        first, last = run[0], run[-1]
        whole = first[2] == _PATCHES[0] and last[2] == _PATCHES[-1] and not out
        if whole and first[:2] == last[:2] and first[:2] != _PYTHONS[-1]:
            specs.append(f"=={_written_out(first)}")
            continue
        end = f",<{_written_out(_next(last))}" if last[2] == _PATCHES[-1] else f",<={'.'.join(map(str, last))}"
        end = "" if last == (*_PYTHONS[-1], _PATCHES[-1]) else end
        specs.append(f">={_written_out(first)}{end}{''.join(f',!={_written_out(each)}' for each in out)}")
    return "|".join(specs)


def _next(release: _Release) -> _Release:
    major, minor, patch = release
    return (major, minor + 1, 0) if patch == _PATCHES[-1] else (major, minor, patch + 1)


def _written_out(release: _Release) -> str:
    """The first release of a minor version is written as that version."""
    return ".".join(map(str, release if release[2] else release[:2]))


_LIBRARIES = "nvidia-"  # How NVIDIA's distributions of libraries begin; frameworks pin them
_ANY_PYTHON = (0, 0)  # Stands for the Pythons of a wheel for any


class _Declared(NamedTuple):
    """For which Pythons, systems and machines something is required; empty for all of the release."""

    python: str
    os: tuple[str, ...]
    machine: tuple[str, ...]
    extras: tuple[str, ...] = ()


_Needs = dict[_Declared, dict[str, str]]
_Read = Callable[[WheelFile], Metadata]


def regenerate_requirements(
    project: Project, releases: Sequence[Release], read: _Read, known: Collection[str], pool: ThreadPoolExecutor
) -> Iterator[RowChange]:
    """Write all of these rows anew, about what it requires of the ``known``; yields the differences."""
    of_extras = project.name if "extras" in project.line else ""
    others = set(known) - {project.name}
    needs = in_parallel(pool, lambda release: _needs(release, read, others, of_extras), releases)
    # A source archive that names nothing at all may just not say.
    stated = [
        (release, wanted)
        for release, wanted in zip(releases, needs, strict=True)
        if wanted or release.wheels[0].file.name.endswith(".whl") or read(release.wheels[0]).requirements
    ]
    names = ("versions", "python", "os", "machine")
    for field, of_extra in (("requirements", False), ("extras", True)) if of_extras else (("requirements", False),):
        wanted = [{key: its for key, its in needs.items() if bool(key.extras) == of_extra} for _, needs in stated]
        rows = list(_rows([release for release, _ in stated], wanted))
        yield from rewrite(project, field, rows, (*names, "extras") if of_extra else names)


def _needs(release: Release, read: _Read, known: Collection[str], of_extras: str = "") -> _Needs:
    """What the wheels require, joined over the platforms that require the same; with the name of a project, what its
    extras add too.
    """
    platforms = release.platforms
    places: dict[tuple[str, str, str, str], list[Platform]] = defaultdict(list)
    for os in dict.fromkeys(os for os, _ in platforms):
        metadata = _by_python(release, os, read)
        own = [extras_of(one, of_extras) for _, one in metadata] if of_extras else []
        extras = {"": {""}} | {name: {"", *_implied(own, name)} for each in own for name in sorted(each)}
        for platform in (platform for platform in platforms if platform[0] == os):
            for name in dict.fromkeys(name for _, one in metadata for name in one.by_name):
                if name not in known and not name.startswith(_LIBRARIES):
                    continue
                plain = bounds_by_python(metadata, name, platform)
                others = {each for _, one in metadata for each in one.extras_for(name)}
                for extra, meant in extras.items():
                    if extra and not others & meant:
                        continue  # it changes nothing here
                    for python, spec in bounds_by_python(metadata, name, platform, meant) if extra else plain:
                        if not extra or (python, spec) not in plain:
                            places[name, python, spec, extra].append(platform)
    found: _Needs = defaultdict(dict)
    everywhere = {os for os, _ in platforms}
    for (name, python, spec, extra), there in places.items():
        by_machines: dict[tuple[str, ...], list[str]] = defaultdict(list)
        for os in dict.fromkeys(os for os, _ in there):
            here, every = ([machine for system, machine in some if system == os] for some in (there, platforms))
            by_machines[() if here == every else tuple(here)].append(os)
        for machines, systems in by_machines.items():
            os_names = () if set(systems) == everywhere else tuple(systems)
            found[_Declared(python, os_names, machines, (extra,) if extra else ())][name] = spec
    for declared, wanted in [*found.items()]:  # extras that bring the same share a row
        same = [one for one in found if one[:3] == declared[:3] and one.extras and found[one] == wanted]
        if declared.extras and len(same) > 1:
            for one in same:
                del found[one]
            found[declared._replace(extras=tuple(sorted(name for one in same for name in one.extras)))] = wanted
    return dict(found)


def _implied(own: Sequence[dict[str, set[str]]], extra: str) -> set[str]:
    """An extra, and those of the same project that it asks for."""
    found, new = set[str](), {extra}
    while new:
        found |= new
        new = {each for one in new for its in own for each in its.get(one, ())} - found
    return found


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
            row |= {"machine": list(declared.machine)} if declared.machine else {}
            yield row | ({"extras": list(declared.extras)} if declared.extras else {})
        start = end
