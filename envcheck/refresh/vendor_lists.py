"""Regenerate rows from lists that NVIDIA keeps: the branches of its data center drivers, and a file for each release of
CUDA or cuDNN that it redistributes.

What only its documents tell is not filled in, the CUDA of a driver or the GPUs of a cuDNN: a line says that it is open.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec
from packaging.version import Version

from envcheck.errors import UsageError
from envcheck.refresh.document import RowChange, Work, assign, sources_of
from envcheck.refresh.release_rows import TABLE, covered
from envcheck.refresh.wheel_files import Release

ReadFile = Callable[[str], bytes]  # The list, or, by its name, a file that the list names
MOST_BYTES = 8 << 20
_FILE = re.compile(r"redistrib_([0-9]{1,4}(?:\.[0-9]{1,4}){2,3})\.json")
_OF_ANY_MINOR = ("driver_linux", "driver_windows")
"""Fields that are the same for every minor of a major version of CUDA."""


class _Branch(msgspec.Struct, frozen=True):
    type: str


class _Component(msgspec.Struct, frozen=True):
    version: str = ""
    cuda_variant: list[str] = []


def regenerate(work: Work, read: ReadFile) -> Iterator[RowChange]:
    """Change the rows of ``work`` in place; yields the differences. A list that cannot be read changes nothing."""
    by_name = {"driver": _branches, "cuda": _toolkits}
    try:
        yield from by_name.get(work.name, _libraries)(work, read)
    except UsageError as error:
        yield RowChange(work.name, f"{error}; its rows stay as they are", made=False)
    except (msgspec.DecodeError, UnicodeDecodeError, ValueError) as error:
        yield RowChange(work.name, f"{work.source['address']} is not such a list: {error}", made=False)


def _branches(work: Work, read: ReadFile) -> Iterator[RowChange]:
    branches = msgspec.json.decode(read(""), type=dict[int, _Branch])
    for number, branch in sorted(branches.items()):
        rows = {int(row["branch"]): row for row in work.document.rows("driver") if "os" not in row}
        kind, row, what = work.generated.kinds.get(branch.type), rows.get(number), f"driver R{number}"
        if kind is None:
            yield RowChange(what, f"its kind, {branch.type!r}, is none of [generated.driver]", made=False)
        elif row is None and number > min(rows):
            place = work.document.rows("driver").index(rows[max(each for each in rows if each < number)]) + 1
            work.document.insert("driver", place, {"branch": number, "kind": kind, "source": [work.generated.source]})
            yield RowChange(what, f"new row: {kind}; the list does not say which CUDA it supports")
        elif row is not None and row.get("kind") != kind:
            how = f"kind: {row.get('kind', 'none')} -> {kind}"
            if sources_of(row) != [work.generated.source] and "kind" in row:
                yield RowChange(what, f"{how}; left alone: it cites other sources too", made=False)
                continue
            _set(work, row, {"kind": kind})
            yield RowChange(what, how)


def _toolkits(work: Work, read: ReadFile) -> Iterator[RowChange]:
    for release in _listed(read):
        rows = {Version(row["version"]): row for row in work.document.rows("cuda")}
        minor = Version(f"{release.major}.{release.minor}")
        row, what = rows.get(minor), f"cuda {minor}"
        if row is not None and str(release) not in row.get("releases", ()):
            _set(work, row, {"releases": sorted({*row.get("releases", ()), str(release)}, key=Version)})
            yield RowChange(what, f"releases: {release} is new")
        elif row is None and minor > min(rows):
            before = rows[max(each for each in rows if each < minor)]
            new: dict[str, Any] = {"version": str(minor), "releases": [str(release)]}
            if Version(before["version"]).major == minor.major:
                new |= {field: before[field] for field in _OF_ANY_MINOR if field in before}
            driver = _component(read, release, "nvidia_driver").version
            new |= {"bundled_driver": driver} if driver else {}
            place = work.document.rows("cuda").index(before) + 1
            work.document.insert("cuda", place, new | {"source": [work.generated.source], "confidence": "medium"})
            came = f"came with driver {driver}" if driver else "came without a driver"
            yield RowChange(what, f"new row: {came}; the list does not say which GPUs it compiles for")


def _libraries(work: Work, read: ReadFile) -> Iterator[RowChange]:
    every = [str(row["versions"]) for row in work.document.rows(TABLE) if row["name"] == work.name]
    releases = [Release(version, ()) for version in _listed(read)]
    known = {release.version for own in every for release in covered(own, every, releases)}
    for version in (release.version for release in releases if known and release.version > min(known)):
        if version not in known:
            cuda = " and ".join(_component(read, version, work.name).cuda_variant) or "which it does not say"
            how = f"no row has it: it is for CUDA {cuda}; its support matrix says for which GPUs"
            yield RowChange(f"{work.name} {version}", how, made=False)


def _listed(read: ReadFile) -> list[Version]:
    return sorted({Version(text) for text in _FILE.findall(read("").decode())})


def _component(read: ReadFile, release: Version, name: str) -> _Component:
    """What the file of a release says of a component; an empty one, where it names none."""
    content = msgspec.json.decode(read(f"redistrib_{release}.json"), type=dict[str, Any])
    return msgspec.convert(content.get(name, {}), _Component)


def _set(work: Work, row: Any, fields: Mapping[str, Any]) -> None:
    """Change fields of a row, which cites the list from then on."""
    cited, own = sources_of(row), work.generated.source
    for field, value in {**fields, "source": cited if own in cited else [*cited, own]}.items():
        assign(row, field, value)
