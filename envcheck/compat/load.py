"""Load the compatibility matrix: compiled in an installed package, from its files in a checkout."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from envcheck.bundle import folder
from envcheck.compat.compiling import COMPILED, FIELDS, compile_folder
from envcheck.compat.decoding import ONE_AT_A_TIME, decode
from envcheck.compat.matrix import ROW_TYPES, Matrix
from envcheck.compat.tables import Row, SourceRow
from envcheck.errors import MatrixError

_DAY = re.compile(r"20\d\d-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])")


def load_matrix(overlays: tuple[str, ...] = ()) -> Matrix:
    """The matrix that came with this installation, with the rows of these folders over it: the last outranks.

    Raises MatrixError when it, or an overlay, is malformed.
    """
    with ONE_AT_A_TIME:
        return _shipped() if not overlays else _overlaid(overlays)


@cache
def _overlaid(overlays: tuple[str, ...]) -> Matrix:
    from envcheck.compat.overlay import lay_over, read_overlay  # noqa: PLC0415 - few have rows of their own

    joined = _shipped()
    for place in overlays:
        joined = lay_over(joined, read_overlay(place, read_folder), place)
    return joined


@cache
def _shipped() -> Matrix:
    try:
        place = folder("matrix")
    except FileNotFoundError as error:
        raise MatrixError(str(error)) from error
    compiled = place / COMPILED
    return read_compiled(compiled) if compiled.is_file() else read_folder(place)


def matrix_date() -> str:
    """The newest day on which a source of the matrix was read."""
    return max(source.read for source in load_matrix().sources.values())


def read_compiled(path: Path) -> Matrix:
    """Read what the build of the wheel wrote; its rows were checked then, and are decoded when they are asked for."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise MatrixError(f"{path}: the compiled matrix cannot be read, install envcheck again: {error}") from error
    return Matrix(**decode(content, dict[str, msgspec.Raw]))


def read_folder(place: Path) -> Matrix:
    """Read and check the files of a folder. Raises MatrixError naming table and row."""
    document = compile_folder(place)
    sources = {key: _source(key, source) for key, source in document["sources"].items()}
    tables = {field: _rows(table, document[field]) for table, field in FIELDS.items()}
    return Matrix(sources=sources, **tables)


def _source(key: str, source: Any) -> SourceRow:
    try:
        row = msgspec.convert(source, SourceRow)
    except msgspec.ValidationError as error:
        raise MatrixError(f"source {key}: {error}") from error
    if not (row.title and row.address and _DAY.fullmatch(row.read)):
        raise MatrixError(f"source {key}: it needs a title, an address and the day it was read (2026-11-20)")
    return row


def _rows(table: str, contents: list[dict[str, Any]]) -> tuple[Row, ...]:
    rows: list[Row] = []
    for number, content in enumerate(contents, start=1):
        try:
            rows.append(msgspec.convert(content, ROW_TYPES[FIELDS[table]]))
        except msgspec.ValidationError as error:
            file = str(content["source"][0]).partition("/")[0]
            file = file if file.endswith(".jsonl") else f"{file}.toml"
            # A reader looks for the first field.
            label = next((f"{key} = {value!r}" for key, value in content.items() if key != "source"), "empty")
            raise MatrixError(f"{file}: [[{table}]] number {number} ({label}): {error}") from error
    for name, count in Counter(row.id for row in rows).items():
        if count > 1:
            raise MatrixError(f"[[{table}]]: {count} rows are called {name}")
    return tuple(rows)
