"""Load the compatibility matrix: compiled in an installed package, from its files in a checkout. Rows of a user's own
are laid over it: the same id replaces a row, a new id adds one, and a row of releases without a system replaces those
of every system.
"""

from __future__ import annotations

import errno
import os
import stat
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from itertools import chain, islice
from pathlib import Path
from typing import Any

import msgspec

from envcheck.bounded import doubt_about
from envcheck.bundle import COMPILED
from envcheck.errors import MatrixError
from envcheck.knowledge.compiling import MOST_ENTRIES, MOST_FILES, PROJECTS, compile_folder
from envcheck.knowledge.copies import copies, date_of_rows, rows_folder
from envcheck.knowledge.matrix import ONE_AT_A_TIME, TABLES, Matrix, decode, readable_rows, repair_hint
from envcheck.knowledge.specifier import numbers_in
from envcheck.knowledge.tables import Row, SourceRow
from envcheck.knowledge.tables.software import ReleaseRow
from envcheck.sources import Source
from envcheck.text.lazy import lazy_pattern

_DAY = lazy_pattern(r"20\d\d-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])")


def load_matrix(overlays: tuple[str, ...] = ()) -> Matrix:
    """The newest rows that this installation has, with those of these folders over them: the last outranks.

    Raises MatrixError when it, or an overlay, is malformed.
    """
    with ONE_AT_A_TIME:
        return _loaded(overlays)


@cache
def _loaded(overlays: tuple[str, ...]) -> Matrix:
    if overlays:
        *below, last = overlays
        return lay_over(_loaded(tuple(below)), read_overlay(last, read_folder), last)
    try:
        place = Path(rows_folder())
    except FileNotFoundError as error:
        raise MatrixError(str(error)) from error
    compiled = place / COMPILED
    return read_compiled(compiled) if compiled.is_file() else read_folder(place)


@cache
def matrix_date() -> str:
    """The newest day on which a source of the matrix was read."""
    return date_of_rows() or max(source.read for source in load_matrix().sources.values())


def read_compiled(path: Path) -> Matrix:
    """Read what the build of the wheel wrote; its rows were checked then, and are decoded when they are asked for."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise MatrixError(f"{path}: the compiled matrix cannot be read, {repair_hint()}: {error}") from error
    return Matrix(decode(content, dict[str, msgspec.Raw]))


def check_compiled(content: bytes) -> tuple[str, int, int]:
    """Decode every row of a compiled matrix; return the newest day on which a source was read, the number of rows, and
    of those that only a newer envcheck can read.

    Raises MatrixError for a row without a source, or an incomplete source.
    """
    matrix = Matrix(decode(content, dict[str, msgspec.Raw]))
    every = known = 0
    for name, table in TABLES.items():
        given = matrix.given.get(name, msgspec.Raw(b"{}" if table.grouped else b"[]"))
        groups = decode(given, dict[str, msgspec.Raw]).values() if table.grouped else (given,)
        rows = [row for group in groups for row in readable_rows(group, table.row)]
        every, known = every + sum(len(decode(group, list[msgspec.Raw])) for group in groups), known + len(rows)
        _refuse_twins(name, rows)
        for row in rows:
            if not row.source or not matrix.sources.keys() >= {*row.source}:
                raise MatrixError(f"[[{name}]]: the row {row.id} has no source")
    for key, source in matrix.sources.items():
        _refuse_incomplete(key, source)
    return max((source.read for source in matrix.sources.values()), default=""), every, every - known


def read_folder(place: Path) -> Matrix:
    """Read and check the files of a folder. Raises MatrixError naming table and row."""
    document = compile_folder(place, TABLES)
    sources = {key: _source(key, source) for key, source in document.pop("sources").items()}
    return Matrix({"sources": sources, **{table: _rows(table, rows) for table, rows in document.items()}})


def _source(key: str, source: Any) -> SourceRow:
    try:
        row = msgspec.convert(source, SourceRow)
    except msgspec.ValidationError as error:
        raise MatrixError(f"source {key}: {error}") from error
    _refuse_incomplete(key, row)
    return row


def _refuse_incomplete(key: str, source: SourceRow) -> None:
    if not (source.title and source.address and _DAY.fullmatch(source.read)):
        raise MatrixError(f"source {key}: it needs a title, an address and the day it was read (2026-11-20)")


def _rows(table: str, contents: list[dict[str, Any]]) -> tuple[Row, ...]:
    rows: list[Row] = []
    for number, content in enumerate(contents, start=1):
        try:
            rows.append(msgspec.convert(content, TABLES[table].row))
        except msgspec.ValidationError as error:
            file = str(content["source"][0]).partition("/")[0]
            file = file if file.endswith(".jsonl") else f"{file}.toml"
            # A reader looks for the first field.
            label = next((f"{key} = {value!r}" for key, value in content.items() if key != "source"), "empty")
            raise MatrixError(f"{file}: [[{table}]] number {number} ({label}): {error}") from error
    _refuse_twins(table, rows)
    return tuple(rows)


def _refuse_twins(table: str, rows: Iterable[Row]) -> None:
    for name, count in Counter(row.id for row in rows).items():
        if count > 1:
            raise MatrixError(f"[[{table}]]: {count} rows are called {name}")


_NOTHING_THERE = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG})
"""Errors of a path that leads to nothing, unless the last part of it is there."""


def overlay_folders(named: str | None, variables: Mapping[str, str], unread: Callable[[str], None]) -> tuple[str, ...]:
    """The folders that count, the last outranks: the configuration folder if it has rows, then what is named.

    ``unread`` is called with a folder of the configuration, or of newer rows, that is unreadable or that others may
    have written: it may be somebody else's, as where a container has root's HOME and another user.
    """
    for _, place, doubt in copies():
        if doubt:
            unread(f"newer rows in {place} are left out: {doubt}")
    own = _configuration_folder(variables, unread)
    return tuple(str(place) for place in (own, Path(named) if named else None) if place is not None)


def lay_over(base: Matrix, own: Matrix, place: str) -> Matrix:
    """``base`` with the rows of ``own``, which were read from ``place``; their sources say so."""
    prefix = f"{place}/"
    sources = {
        prefix + key: msgspec.structs.replace(source, title=source.title + _origin(place))
        for key, source in own.sources.items()
    }
    given: dict[str, Any] = {"sources": {**base.sources, **sources}}
    for name, table in TABLES.items():
        rows = [
            msgspec.structs.replace(row, source=tuple(prefix + key for key in row.source))
            for row in getattr(own, table.attribute)
        ]
        given[name] = _joined(name, getattr(base, table.attribute), rows)
    return Matrix(given)


def decides(sources: Iterable[Source], place: str) -> bool:
    """Whether rows of the overlay ``place`` are among those that are cited."""
    return any(is_from(source, place) for source in sources)


def is_from(source: Source, place: str) -> bool:
    return source.title.endswith(_origin(place))


def read_overlay(place: str, read: Callable[[Path], Matrix]) -> Matrix:
    """The rows of a folder. Raises MatrixError that names it."""
    folder = Path(place)
    try:
        is_folder = stat.S_ISDIR(folder.stat().st_mode)
    except (FileNotFoundError, NotADirectoryError):
        is_folder = False
    except OSError as error:
        raise MatrixError(f"{place}: the folder of rows cannot be read: {error.strerror or error}") from None
    if not is_folder:
        raise MatrixError(f"{place}: there is no such folder of rows for the matrix")
    try:
        found = read(folder)
    except MatrixError as error:
        text = str(error)
        raise MatrixError(text if text.startswith(place) else f"{place}: {text}") from None
    unheeded = [each.attribute for each in TABLES.values() if each.shipped and getattr(found, each.attribute)]
    if unheeded:
        raise MatrixError(f"{place}: {' and '.join(unheeded)} are read from the rows that came with envcheck alone")
    return found


def _configuration_folder(variables: Mapping[str, str], unread: Callable[[str], None]) -> Path | None:
    base = variables.get("XDG_CONFIG_HOME") or (f"{variables['HOME']}/.config" if variables.get("HOME") else "")
    if not base.startswith("/"):  # to be ignored, by the XDG Base Directory Specification
        return None
    place = Path(base) / "envcheck" / "matrix"
    try:
        with os.scandir(place) as entries:
            names = [entry.name for entry in islice(entries, MOST_ENTRIES + 1)]
    except OSError as error:
        if error.errno not in _NOTHING_THERE or os.path.lexists(place):
            unread(f"{place} cannot be read ({error.strerror or error}): rows in it are left out")
        return None
    files = [name for name in names if name.endswith(".toml")]
    for name in (*files[:MOST_FILES], PROJECTS):
        if doubt := doubt_about(f"{place}/{name}"):
            unread(f"rows in {place} are left out, because of {name}: {doubt}; --matrix {place} uses them")
            return None
    return place if files or len(names) > MOST_ENTRIES or os.path.lexists(place / PROJECTS) else None


def _origin(place: str) -> str:
    return f" (from {place})"


def _joined(table: str, base: Sequence[Row], own: Sequence[Row]) -> tuple[Row, ...]:
    """Own rows in the place of those with their id, the others where rows of their kind are looked for."""
    outranking = {row.id: row for row in own}
    found: dict[str, Row] = {}
    for row in base:
        other = outranking.get(row.id) or (outranking.get(row.builds) if isinstance(row, ReleaseRow) else None)
        found.setdefault((other or row).id, other or row)
    rows = (found | outranking).values()
    if table in _ORDER:
        return tuple(sorted(rows, key=_ORDER[table]))
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(row.name if isinstance(row, ReleaseRow) else "", []).append(row)
    return tuple(chain.from_iterable(groups.values()))


_ORDER: dict[str, Callable[[Any], Any]] = {
    "cuda": lambda row: numbers_in(row.version),
    "torch": lambda row: numbers_in(row.version),
    "driver": lambda row: (row.os, row.branch),
}
"""Kinds of rows that ascend: whoever asks for the newest takes the last."""
