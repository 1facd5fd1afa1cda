"""The rows of CUDA versions, and which versions stand for each other."""

from __future__ import annotations

from envcheck.compat.specifier import Specifier, Version
from envcheck.compat.tables import CudaRow, Tables
from envcheck.versions import CudaVersion

_FIRST_MAJOR_WITH_MINOR_COMPATIBILITY = 11


def cuda_row(tables: Tables, cuda: CudaVersion) -> CudaRow | None:
    """The row of a version."""
    name = str(cuda)
    return next((row for row in tables.cuda if row.version == name), None)


def toolkits(tables: Tables) -> list[CudaVersion]:
    """The versions that toolkits were published of, ascending; drivers report others besides."""
    return [version for row in tables.cuda if row.toolkit and (version := CudaVersion.parse(row.version))]


def admitted_toolkits(tables: Tables, spec: Specifier) -> list[CudaVersion]:
    """The published versions of which a specifier admits any release, ascending."""
    return [version for version in toolkits(tables) if spec.cover(Version(tuple(version))) != "none"]


def minor_compatible(cuda: CudaVersion) -> bool:
    """Whether a driver for any minor version of this major runs what was built with ``cuda``."""
    return cuda.major >= _FIRST_MAJOR_WITH_MINOR_COMPATIBILITY
