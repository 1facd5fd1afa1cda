"""Regenerate the fields of ``[[release]]`` rows that METADATA provides, and add rows for new releases."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

from packaging.version import Version
from tomlkit.items import Table

from envcheck.knowledge.specifier import parse_specifier, parse_version, speaks_of
from envcheck.refresh.document import RowChange, Work, on_one_line, sources_of
from envcheck.refresh.metadata import PYTHON, Metadata, narrower, pin, python_range, same
from envcheck.refresh.wheel_files import Release

ReadMetadata = Callable[[Release], Sequence[Metadata]]
"""METADATA of the wheels of a release for the newest CPython and for the oldest, once where that is one wheel."""
TABLE = "release"

_NUMBERS = 3  # Most numbers of a release in the matrix

_KEPT = ("os",)  # Fields that a new row copies from the newest known one, since METADATA does not provide them


class _Facts:
    """The METADATA of each release, read once."""

    def __init__(self, read: ReadMetadata, needs: Mapping[str, str]) -> None:
        self._read = cache(read)
        self._needs = needs

    def of(self, release: Release, key: str, machines: Sequence[str]) -> str | None:
        """The specifier of one need, with alternatives where wheels for several Pythons need different things."""
        metadata = self._read(release)
        distribution = self._needs[key]
        if distribution == PYTHON:
            return python_range(release, metadata[0].requires_python)
        pins = sorted({spec for one in metadata if (spec := pin(one, distribution, machines))})
        return "|".join(pins) or None


class _ReleaseRun(NamedTuple):
    """Consecutive releases with the same needs."""

    releases: tuple[Release, ...]
    needs: dict[str, str | None]


def regenerate(work: Work, releases: Sequence[Release], read: ReadMetadata) -> Iterator[RowChange]:
    """Change the rows of ``work`` in place; yields the differences."""
    facts = _Facts(read, work.generated.needs)
    rows = [row for row in work.document.rows(TABLE) if row["name"] == work.name]
    for row in rows:
        if sources_of(row) == [work.generated.source]:
            yield from _regenerate_row(work, row, releases, facts)
        elif work.generated.source in sources_of(row):
            # Report where METADATA contradicts a row that was completed by hand. Such a row may be narrower.
            machines = [str(machine) for machine in row.get("machine", ())]
            wanted = work.generated.needs
            for key in (key for key in row.get("needs", {}) if wanted.get(key, PYTHON) != PYTHON):
                own = str(row["needs"][key])
                specifiers = {
                    facts.of(release, key, machines)
                    for release in covered(str(row["versions"]), _versions(rows), releases)
                }
                wider = " or ".join(sorted(spec for spec in specifiers if spec and not narrower(own, spec)))
                if wider:
                    how = f"{key}: the row says {own}, METADATA {wider}; left alone: it cites other sources too"
                    yield RowChange(f"{work.name} {row['versions']}", how, made=False)
    if rows:
        yield from _add_missing(work, releases, facts)


def covered(own: str, every: Collection[str], releases: Iterable[Release]) -> list[Release]:
    """The releases of a row with the versions ``own``. A post-release belongs to the rows that tell it apart, if any of
    ``every`` row's do.
    """
    naming = {text for text in every if parse_specifier(text).names_post}
    return [
        release
        for release in releases
        if _covers(own, release.version)
        and (
            own in naming or release.version.post is None or not any(_covers(each, release.version) for each in naming)
        )
    ]


@cache
def _covers(text: str, version: Version) -> bool:
    """Here ``1.1`` is a release; in questions it means the family 1.1.x."""
    found = parse_version(_written(version, _NUMBERS))
    return found is not None and speaks_of(text, found) == "all"


def _versions(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    return [str(row["versions"]) for row in rows]


def _regenerate_row(work: Work, row: Table, releases: Sequence[Release], facts: _Facts) -> Iterator[RowChange]:
    rows = [other for other in work.document.rows(TABLE) if other["name"] == work.name]
    versions = _versions(rows)
    spoken_of = covered(str(row["versions"]), versions, releases)
    if not spoken_of:
        return
    others = [other for other, own in zip(rows, versions, strict=True) if covered(own, versions, spoken_of)]
    elsewhere = {key for other in others if other is not row for key in other.get("needs", {})}
    keys = [key for key in work.generated.needs if key in row.get("needs", {}) or key not in elsewhere]
    machines = [str(machine) for machine in row.get("machine", ())]
    runs = _runs(spoken_of, releases, lambda release: {key: facts.of(release, key, machines) for key in keys})
    first, *further = runs
    place = work.document.rows(TABLE).index(row)
    template = row.unwrap()
    if further:
        yield RowChange(f"{work.name} {row['versions']}", f"needs differ: split into {len(runs)} rows")
        row["versions"] = _text(first.releases, releases)
    what, own = f"{work.name} {row['versions']}", row.setdefault("needs", on_one_line({}))
    for key, spec in first.needs.items():
        old = str(own.get(key, ""))
        if spec is None and old:
            del own[key]
            yield RowChange(what, f"{key}: {old} -> no longer required")
        elif spec is not None and not (old and same(old, spec)):
            own[key] = spec
            yield RowChange(what, f"{key}: {old} -> {spec}" if old else f"{key}: {spec}, which the row did not say")
    for offset, run in enumerate(further, start=1):
        needs = {**template.get("needs", {}), **run.needs}
        needs = {key: spec for key, spec in needs.items() if spec is not None}
        content = template | {"versions": _text(run.releases, releases), "needs": needs}
        work.document.insert(TABLE, place + offset, content)


def _add_missing(work: Work, releases: Sequence[Release], facts: _Facts) -> Iterator[RowChange]:
    """Add rows for releases without one that are newer than the oldest known release."""
    rows = [row for row in work.document.rows(TABLE) if row["name"] == work.name]
    versions = _versions(rows)
    known = [release for release in releases if any(_covers(own, release.version) for own in versions)]
    if not known:
        return
    new = [release for release in releases if release not in known and release.version > known[0].version]
    wanted = work.generated.needs
    for run in _runs(new, releases, lambda release: {key: facts.of(release, key, release.machines) for key in wanted}):
        newest_known = next(
            (row for row in reversed(rows) if _covers(str(row["versions"]), known[-1].version)), rows[-1]
        )
        needs = {key: spec for key, spec in run.needs.items() if spec is not None}
        row: dict[str, Any] = {"name": work.name, "versions": _text(run.releases, releases), "needs": needs}
        row |= {key: list(newest_known[key]) for key in _KEPT if key in newest_known}
        machines = run.releases[-1].machines
        row |= ({"machine": list(machines)} if machines else {}) | {"source": [work.generated.source]}
        if needs:
            own = [place for place, row in enumerate(work.document.rows(TABLE)) if row["name"] == work.name]
            work.document.insert(TABLE, own[-1] + 1, row)
            listed = ", ".join(f"{key} {spec}" for key, spec in itertools.islice(row["needs"].items(), 4))
            yield RowChange(f"{work.name} {row['versions']}", f"new row: {listed}")


def _runs(
    chosen: Sequence[Release], releases: Sequence[Release], needs: Callable[[Release], dict[str, str | None]]
) -> list[_ReleaseRun]:
    """Runs of ``chosen`` that are consecutive among all releases and have the same needs."""
    places = {release.version: place for place, release in enumerate(releases)}
    runs: list[_ReleaseRun] = []
    for release in chosen:
        wanted = needs(release)
        last = runs[-1] if runs else None
        follows = last and places[last.releases[-1].version] + 1 == places[release.version]
        pairs = [(old, wanted[key]) for key, old in last.needs.items()] if last else []
        if last and follows and all(old == new or same(old or "", new or "") for old, new in pairs):
            runs[-1] = _ReleaseRun((*last.releases, release), wanted)
        else:
            runs.append(_ReleaseRun((release,), wanted))
    return runs


def _text(run: Sequence[Release], releases: Sequence[Release]) -> str:
    return specifier_of([release.version for release in run], [release.version for release in releases])


def specifier_of(run: Sequence[Version], versions: Sequence[Version]) -> str:
    """A specifier that admits exactly these of all versions; both are ascending."""
    first, last = run[0], run[-1]
    if first == last:
        return f"=={_exactly(first, versions)}"
    after = next((version for version in versions if version > last), None)
    return f">={first},<{after}" if after is not None else f">={first},<={_exactly(last, versions)}"


def _exactly(version: Version, versions: Sequence[Version]) -> str:
    """A version with enough numbers to stand for itself only: ``==1.1`` would admit 1.1.1, ``==1.1.0`` does not."""
    count = len(version.release)
    longer = [len(other.release) for other in versions if other.release[:count] == version.release]
    return _written(version, max(longer, default=count))


def _written(version: Version, numbers: int) -> str:
    post = "" if version.post is None else f".post{version.post}"
    return version.base_version + ".0" * (numbers - len(version.release)) + post
