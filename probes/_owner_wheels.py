"""Which libraries a wheel says are its own: the lines of its RECORD, of which nothing is copied but these.

RECORD, by PyPA's "Recording installed projects": one line of CSV for each file, with its path (relative to the folder
that holds the ``.dist-info``), a hash and the size in bytes.
"""

from __future__ import annotations

import os
import posixpath
from typing import NamedTuple

from ._env_head import read_start
from ._kit import Request, below
from ._library_families import MAYBE, family_of
from ._links import is_there

RECORD_LIMIT = 64 << 20
_LINE_LIMIT = 8192
_KEPT = 20_000

_READ: dict[tuple[str, int, int], Manifest] = {}


class Recorded(NamedTuple):
    """A file as its wheel recorded it."""

    path: str
    """Absolute, as the examined machine sees it; links in it are not followed."""
    size: int | None
    hash: str | None
    """``sha256=…``"""


class Manifest(NamedTuple):
    """The libraries of CUDA's families that one wheel lists."""

    libraries: tuple[Recorded, ...]
    there: bool
    """Whether there is a RECORD that could be read."""


def recorded_by(request: Request, dist_info: str) -> Manifest:
    """What the RECORD in the folder ``dist_info`` says; read once for each state of the file."""
    path = f"{dist_info}/RECORD"
    key = _state(request, path)
    if key is None:
        return Manifest((), there=False)
    if key not in _READ:
        if len(_READ) >= _KEPT:
            _READ.clear()
        data = read_start(request, path, RECORD_LIMIT)
        site = posixpath.dirname(dist_info)
        _READ[key] = Manifest(tuple(_libraries(data or b"", site)), there=data is not None)
    return _READ[key]


def _state(request: Request, path: str) -> tuple[str, int, int] | None:
    place = below(request, path)
    try:
        found = os.stat(place)
    except (OSError, ValueError):
        return None
    return place, found.st_size, found.st_mtime_ns


def _libraries(data: bytes, site: str) -> list[Recorded]:
    found: list[Recorded] = []
    end = 0
    for match in MAYBE.finditer(data):
        if match.start() < end:
            continue
        start = data.rfind(b"\n", max(match.start() - _LINE_LIMIT, 0), match.start()) + 1
        end = data.find(b"\n", match.end(), match.end() + _LINE_LIMIT)
        end = len(data) if end < 0 else end
        recorded = _recorded(data[start:end].decode("utf-8", "replace"), site)
        if recorded is not None:
            found.append(recorded)
    return found


def _recorded(line: str, site: str) -> Recorded | None:
    row = _quoted(line) if '"' in line else line.rstrip("\r").split(",")
    if len(row) != 3 or family_of(row[0].rpartition("/")[2]) is None or "\0" in row[0]:
        return None
    size = int(row[2]) if row[2].isascii() and row[2].isdigit() and len(row[2]) < 19 else None
    return Recorded(posixpath.normpath(posixpath.join(site, row[0])), size, row[1] or None)


def _quoted(line: str) -> list[str]:
    """The fields of a line in which some are quoted."""
    import csv

    try:
        return next(csv.reader([line.rstrip("\r")]), [])
    except csv.Error:
        return []


def missing(request: Request, dist_info: str) -> list[str]:
    """The libraries that the wheel lists and that are not there (a link counts for what it leads to)."""
    paths = [recorded.path for recorded in recorded_by(request, dist_info).libraries]
    return [path for path in paths if not is_there(request, path)]
