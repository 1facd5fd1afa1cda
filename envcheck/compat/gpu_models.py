"""The matrix's rows of GPU models alone: for a question that must not wait for all of the matrix."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import msgspec

from envcheck.bundle import folder
from envcheck.compat.compiling import COMPILED, read_rows, row_files
from envcheck.compat.gpu_names import by_name, find_by_name
from envcheck.compat.tables import GpuRow
from envcheck.errors import MatrixError


class _Models(msgspec.Struct, frozen=True):
    gpus: tuple[GpuRow, ...] = ()


@cache
def _by_key() -> dict[str, GpuRow]:
    return by_name(_rows(folder("matrix")))


def _rows(place: Path) -> tuple[GpuRow, ...]:
    compiled = place / COMPILED
    try:
        if compiled.is_file():
            return msgspec.json.decode(compiled.read_bytes(), type=_Models).gpus
        files = [path for path in row_files(place) if b"[[gpu]]" in path.read_bytes()]
        return tuple(row for path in files for row in msgspec.convert(read_rows(path, "gpu"), list[GpuRow]))
    except (OSError, msgspec.DecodeError) as error:
        raise MatrixError(f"{place}: the matrix cannot be read, install envcheck again: {error}") from error


def find_model(name: str) -> GpuRow | None:
    """The shipped model called ``name``, as ``Matrix.find_gpu`` finds it; raise MatrixError where it is damaged."""
    return find_by_name(_by_key(), name)
