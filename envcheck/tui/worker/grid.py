"""Releases by CUDA builds of a framework, and which of them fit a machine."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeVar

from envcheck.compat.choose import evaluate
from envcheck.errors import EnvcheckError
from envcheck.knowledge.load import load_matrix
from envcheck.model.components import parse_components

if TYPE_CHECKING:
    from envcheck.knowledge.tables import ReleaseRow, TorchRow

_NEWEST = 16
_AROUND = 2
"""Releases in the grid: the newest, and the neighbours of the requested one on both sides."""

_Row = TypeVar("_Row")
Cell = Literal["fits", "no", "?", ""]
_CELLS: dict[str, Cell] = {"compatible": "fits", "incompatible": "no"}


@dataclass(frozen=True)
class Grid:
    """A grid that is not judged yet; ``stated[row][column]`` is the build of a cell, as a component."""

    name: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    stated: tuple[tuple[str, ...], ...]


def grid(package: str, overlays: Sequence[str] = ()) -> Grid | None:
    """The grid of ``package`` (``torch``, ``torch==2.4.0+cu121``); None where the matrix has no release of it."""
    found = load_matrix(tuple(overlays))
    name, _, build = package.partition("==")
    name, version = name.strip().lower(), build.partition("+")[0].strip()
    if name == "torch":
        return _torch(_shown(found.torch[::-1], [row.version for row in found.torch[::-1]], version))
    rows = [row for row in found.releases if row.name == name and _single(row)]
    return _releases(name, rows, version) if rows else None


def _shown(newest_first: Sequence[_Row], versions: Sequence[str], version: str) -> list[_Row]:
    """The rows of the grid; ``versions`` are those of ``newest_first``."""
    wanted = versions.index(version) if version in versions else 0
    return [row for place, row in enumerate(newest_first) if place < _NEWEST or abs(place - wanted) <= _AROUND]


def row(stated: Sequence[str], fixed: Sequence[str], overlays: Sequence[str] = ()) -> tuple[Cell, ...]:
    """Whether each build of a row fits the ``fixed`` components; empty where there is no build."""
    cells: list[Cell] = []
    for build in stated:
        cell: Cell = ""
        with suppress(EnvcheckError):
            if build:
                cell = "?"  # what cannot be read cannot be judged
                components = tuple(one for text in (*fixed, build) for one in parse_components(text))
                cell = _CELLS.get(evaluate(load_matrix(tuple(overlays)), components).verdict, "?")
        cells.append(cell)
    return tuple(cells)


def names(overlays: Sequence[str] = ()) -> tuple[str, ...]:
    """The packages that have a grid."""
    found = load_matrix(tuple(overlays))
    return "torch", *sorted({found_row.name for found_row in found.releases if _single(found_row)})


def _torch(rows: Sequence[TorchRow]) -> Grid:
    tags = sorted({_tag(build.cuda) for row in rows for build in row.builds if build.cuda}, key=_by_number)
    built = {
        (row.version, _tag(build.cuda))
        for row in rows
        for build in row.builds
        if build.cuda and build.os == "linux" and build.machine == "x86_64"
    }
    releases = tuple(row.version for row in rows)
    stated = tuple(
        tuple(f"torch=={release}+{tag}" if (release, tag) in built else "" for tag in tags) for release in releases
    )
    return Grid("torch", releases, tuple(tags), stated)


def _releases(name: str, rows: Sequence[ReleaseRow], version: str) -> Grid:
    """The grid of another package than PyTorch."""
    every = sorted({_single(row) for row in rows}, key=_by_number)
    versions = _shown(every, every, version)
    rows = [row for row in rows if _single(row) in versions]
    tags = sorted({row.build or _tag(row.cuda or "") for row in rows}, key=_by_number)
    stated = []
    for one in versions:
        built = {row.build or _tag(row.cuda or ""): row.build for row in rows if _single(row) == one}
        stated.append(
            tuple(f"{name}=={one}{f'+{built[tag]}' if built[tag] else ''}" if tag in built else "" for tag in tags)
        )
    return Grid(name, tuple(versions), tuple(tags), tuple(stated))


def _single(row: ReleaseRow) -> str:
    """The release of a row about one release or one series (``==2.16.*``); else empty."""
    versions = row.versions.removeprefix("==").removesuffix(".*")
    return versions if row.versions.startswith("==") and not set(versions) & set("<>=,|*! ") else ""


def _tag(cuda: str) -> str:
    return f"cu{cuda.replace('.', '')}" if cuda else "any"


def _by_number(text: str) -> list[int]:
    """Newest first."""
    numbers = "".join(character if character.isdecimal() else " " for character in text)
    return [-int(number[:18]) for number in numbers.split()] or [1]
