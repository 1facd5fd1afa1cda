"""Write the rows of ``[[requirement]]``: what the wheels of each release require of other components, by METADATA."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

from packaging.utils import canonicalize_name

from envcheck.refresh.generated import Change, Work, rewrite
from envcheck.refresh.metadata import Metadata, Required, required
from envcheck.refresh.release_rows import specifier_of
from envcheck.refresh.wheel_files import Release, WheelFile

TABLE = "requirement"

_AT_ONCE = 8
"""Releases whose METADATA is read in parallel."""
_LIBRARIES = "nvidia-"
"""How NVIDIA's distributions of libraries begin; frameworks pin them."""


class _Declared(NamedTuple):
    """For which Pythons and machines something is required."""

    python: str
    machine: tuple[str, ...]


_Needs = dict[_Declared, dict[str, str]]


def regenerate(
    work: Work, releases: Sequence[Release], read: Callable[[WheelFile], Metadata], known: Collection[str]
) -> Iterator[Change]:
    """Write all rows of ``work.name`` anew, about what it requires of the ``known``; yields the differences."""
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        try:
            found = list(pool.map(lambda release: _common(release, read), releases))
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    needs = [_needs(release, metadata, known) for release, metadata in zip(releases, found, strict=True)]
    yield from rewrite(work, TABLE, list(_rows(work, releases, needs)), ("versions", "python", "machine"))


def _common(release: Release, read: Callable[[WheelFile], Metadata]) -> Metadata:
    """What the wheels for Linux of the oldest and of the newest CPython both say: some are built with other bounds."""
    wheels = release.for_platform("linux", release.machines[0] if release.machines else "x86_64")
    if not wheels:
        return Metadata("", ())
    ends = {order(wheels, key=lambda wheel: max(wheel.pythons, default=(0, 0))) for order in (min, max)}
    first, *others = [read(wheel) for wheel in ends]
    shared = [one for one in first.requirements if all(one in other.requirements for other in others)]
    return first._replace(requirements=tuple(shared))


def _needs(release: Release, metadata: Metadata, known: Collection[str]) -> _Needs:
    named = dict.fromkeys(canonicalize_name(item.name) for item in metadata.requirements)
    found: _Needs = defaultdict(dict)
    for name in named:
        if name in known or name.startswith(_LIBRARIES):
            for one in required(metadata, name, release.machines):
                found[_Declared(one.python, _narrowed(one, release))][name] = one.spec
    return dict(found)


def _narrowed(one: Required, release: Release) -> tuple[str, ...]:
    """The machines of a requirement, where it is not that of all wheels."""
    return () if set(one.machines) >= set(release.machines) else one.machines


def _rows(work: Work, releases: Sequence[Release], needs: Sequence[_Needs]) -> Iterator[dict[str, Any]]:
    """One row for consecutive releases that require the same."""
    versions = [release.version for release in releases]
    start = 0
    for end in range(1, len(needs) + 1):
        if end < len(needs) and needs[end] == needs[start]:
            continue
        spec = specifier_of(versions[start:end], versions)
        for declared, wanted in sorted(needs[start].items()):
            row: dict[str, Any] = {"name": work.name, "versions": spec, "needs": dict(sorted(wanted.items()))}
            row |= {"python": declared.python} if declared.python else {}
            row |= {"machine": list(declared.machine)} if declared.machine else {}
            yield row | {"source": [work.generated.source]}
        start = end
