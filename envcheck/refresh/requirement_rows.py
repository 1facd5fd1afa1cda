"""Write the rows of requirements: what the wheels of each release require of other components, by METADATA."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

from packaging.utils import canonicalize_name

from envcheck.refresh.generated import Change, Project, rewrite
from envcheck.refresh.metadata import Metadata, bounds_by_python, bounds_by_wheel, of_name
from envcheck.refresh.release_rows import specifier_of
from envcheck.refresh.wheel_files import Platform, Release, WheelFile

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


def regenerate(project: Project, releases: Sequence[Release], read: _Read, known: Collection[str]) -> Iterator[Change]:
    """Write all of these rows anew, about what it requires of the ``known``; yields the differences."""
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        try:
            needs = list(pool.map(lambda release: _needs(release, read, set(known) - {project.name}), releases))
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    told = [both for both in zip(releases, needs, strict=True) if both[1] or not _silent(both[0])]
    rows = list(_rows([release for release, _ in told], [wanted for _, wanted in told]))
    yield from rewrite(project, "requirements", rows, ("versions", "python", "os", "machine"))


def _silent(release: Release) -> bool:
    """Whether it has a source archive alone: one that names nothing may just not say."""
    return not release.wheels[0].file.name.endswith(".whl")


def _needs(release: Release, read: _Read, known: Collection[str]) -> _Needs:
    """What the wheels require, joined over the platforms that require the same."""
    platforms = release.platforms
    places: dict[tuple[str, str, str], list[Platform]] = defaultdict(list)
    for os in dict.fromkeys(os for os, _ in platforms):
        metadata = _by_python(release, os, read)
        for platform in (platform for platform in platforms if platform[0] == os):
            for name in _named(metadata, known):
                for python, spec in _bounds(metadata, name, platform):
                    places[name, python, spec].append(platform)
    found: _Needs = defaultdict(dict)
    for (name, python, spec), there in places.items():
        for os_names, machines in _narrowed(there, platforms):
            found[_Declared(python, os_names, machines)][name] = spec
    return dict(found)


_Wheels = list[tuple[tuple[int, int], Metadata]]
"""METADATA of the wheels for a system, by the CPythons that they are for."""


def _by_python(release: Release, os: str, read: _Read) -> _Wheels:
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


def _bounds(metadata: _Wheels, name: str, platform: Platform) -> list[tuple[str, str]]:
    if all(of_name(one, name) == of_name(metadata[0][1], name) for _, one in metadata):
        return bounds_by_python(metadata[0][1], name, platform)
    return bounds_by_wheel(metadata, name, platform)


def _named(metadata: _Wheels, known: Collection[str]) -> list[str]:
    """What any of the wheels names of what the matrix knows."""
    named = dict.fromkeys(canonicalize_name(item.name) for _, one in metadata for item in one.requirements)
    return [name for name in named if name in known or name.startswith(_LIBRARIES)]


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
