"""The rows of CUDA versions, and which versions stand for each other."""

from __future__ import annotations

from typing import NamedTuple

from envcheck.compat.specifier import Specifier, Version
from envcheck.compat.tables import CudaRow, Tables
from envcheck.versions import CudaVersion

_FIRST_MAJOR_WITH_MINOR_COMPATIBILITY = 11


class _Index(NamedTuple):
    tables: Tables
    rows: dict[CudaVersion, CudaRow]
    toolkits: list[CudaVersion]


_latest: list[_Index] = []
"""The index of the Tables that were asked last: rows do not change, and nearly every caller has the same Tables."""


def cuda_row(tables: Tables, cuda: CudaVersion) -> CudaRow | None:
    """The row of a version."""
    return _index(tables).rows.get(cuda)


def known_cuda(tables: Tables) -> dict[CudaVersion, CudaRow]:
    """The rows of all versions, ascending."""
    return _index(tables).rows


def toolkits(tables: Tables) -> list[CudaVersion]:
    """The versions that toolkits were published of, ascending; drivers report others besides."""
    return _index(tables).toolkits


def admitted_toolkits(tables: Tables, spec: Specifier) -> list[CudaVersion]:
    """The published versions of which a specifier admits any release, ascending."""
    return [version for version in toolkits(tables) if spec.cover(Version(tuple(version))) != "none"]


def minor_compatible(cuda: CudaVersion) -> bool:
    """Whether a driver for any minor version of this major runs what was built with ``cuda``."""
    return cuda.major >= _FIRST_MAJOR_WITH_MINOR_COMPATIBILITY


def may_exist(tables: Tables, cuda: CudaVersion) -> bool:
    """Whether there is, or may come to be, a toolkit of this version: a tag such as cu999 names none."""
    known = toolkits(tables)
    return cuda in known or (bool(known) and cuda > known[-1] and cuda.major <= known[-1].major + 1)


def around(tables: Tables, cuda: CudaVersion) -> tuple[CudaVersion, CudaVersion] | None:
    """The toolkits before and after a version that only drivers report; None for any other version."""
    row = cuda_row(tables, cuda)
    known = toolkits(tables)
    before, after = [one for one in known if one < cuda], [one for one in known if one > cuda]
    return (before[-1], after[0]) if row and not row.toolkit and before and after else None


def _index(tables: Tables) -> _Index:
    if not _latest or _latest[0].tables is not tables:
        read = ((CudaVersion.parse(row.version), row) for row in tables.cuda)
        rows = {version: row for version, row in read if version}
        _latest[:] = [_Index(tables, rows, [version for version, row in rows.items() if row.toolkit])]
    return _latest[0]
