"""Read the installed files from a wheel's RECORD, extracting a few of its thousands of lines.

RECORD, by PyPA's "Recording installed projects": one line of CSV for each file, with its path (relative to the folder
that holds the ``.dist-info``), a hash and the size in bytes.
"""

from __future__ import annotations

import os
import posixpath
import re
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from ..kit.library_names import MAYBE, family_of
from ..kit.tree import Tree, refused

if TYPE_CHECKING:
    from collections.abc import Iterator

RECORD_LIMIT = 64 << 20
_LINE_LIMIT = 8192
_KEPT = 20_000
_LINES = 300_000
_DECISIVE = 5000
"""Most files of one wheel that are compared in every check."""
_PACKAGE = re.compile(rb"/__init__\.py\"?,")
_RARE = (
    re.compile(rb"\.so(?:\.[0-9.]{1,20})?\"?,"),
    re.compile(rb"/bin/[^/\n,\"]+\"?,"),
    re.compile(rb"\.bc\"?,"),
    _PACKAGE,
)
_NATIVE = re.compile(r"\.so(?:\.[0-9.]{1,20})?$|\.bc$|/bin/[^/]+$")
_UNUSED = re.compile(r"tests?|testing|.*_tests?|test_.*|examples?|benchmarks?|docs?|conftest\.py", re.IGNORECASE)
"""Parts of paths of files that imports do not need; slimmed images have them removed."""
_FOR_TESTS = re.compile(r"test|libbackend_with_compiler", re.IGNORECASE)
"""A pattern for libraries that only tests load."""

_READ: dict[tuple[str, int, int], Manifest] = {}
_DECIDING: dict[tuple[str, int, int], tuple[tuple[Recorded, ...], bool]] = {}


class Recorded(NamedTuple):
    """A file in a wheel's RECORD."""

    path: str
    """Absolute path inside the root; links in it are not followed."""
    size: int | None
    hash: str | None
    """``sha256=…``"""


class Manifest(NamedTuple):
    """The CUDA libraries that one wheel lists, and whether its RECORD could be read."""

    libraries: tuple[Recorded, ...]
    there: bool


def recorded_by(tree: Tree, dist_info: str) -> Manifest:
    """The contents of the RECORD in ``dist_info``, read once for each state of the file."""
    path = f"{dist_info}/RECORD"
    key = _state(tree, path)
    if key is None:
        return Manifest((), there=False)
    if key not in _READ:
        if len(_READ) >= _KEPT:
            _READ.clear()
        data = tree.read_bytes(path, RECORD_LIMIT)
        site = posixpath.dirname(dist_info)
        _READ[key] = Manifest(tuple(_libraries(data or b"", site)), there=data is not None)
    return _READ[key]


def is_native(path: str) -> bool:
    """Whether a file is a library, a compiled module or a program, by its name."""
    return _NATIVE.search(path) is not None


def decisive(tree: Tree, dist_info: str) -> tuple[tuple[Recorded, ...], bool]:
    """The files that show cheaply whether a package is intact, and whether the list is complete.

    Its libraries and programs, the modules in its uppermost folders, and the packages right below. Files for tests are
    left out, and files outside the folder for packages (scripts, whose first line installers write).
    """
    key = _state(tree, f"{dist_info}/RECORD")
    if key is None:
        return (), True
    if key not in _DECIDING:
        if len(_DECIDING) >= _KEPT:
            _DECIDING.clear()
        _DECIDING[key] = _decisive(tree, dist_info)
    return _DECIDING[key]


def _decisive(tree: Tree, dist_info: str) -> tuple[tuple[Recorded, ...], bool]:
    data = tree.read_bytes(f"{dist_info}/RECORD", RECORD_LIMIT) or b""
    site = posixpath.dirname(dist_info)
    found: dict[str, Recorded] = {}
    if len(data) > _LINES and data.count(b"\n") > _LINES:
        return (), False
    for line in _lines(data):
        recorded = _recorded(line.decode("utf-8", "surrogateescape"), site)
        if recorded is None or not decides(recorded.path[len(site) + 1 :] if _inside(recorded.path, site) else ""):
            continue
        if len(found) >= _DECISIVE:
            return tuple(found.values()), False
        found[recorded.path] = recorded
    return tuple(found.values()), True


def all_files(tree: Tree, dist_info: str) -> Iterator[Recorded]:
    """All files of the package with a hash that imports, programs or libraries could use."""
    data = tree.read_bytes(f"{dist_info}/RECORD", RECORD_LIMIT) or b""
    site = posixpath.dirname(dist_info)
    own = posixpath.basename(dist_info)
    for line in data.decode("utf-8", "surrogateescape").split("\n"):
        recorded = _recorded(line, site)
        if recorded is None or not recorded.hash or not _inside(recorded.path, site):
            continue
        parts = recorded.path[len(site) + 1 :].split("/")
        if own not in parts and "__pycache__" not in parts and not parts[-1].endswith((".pyc", ".pyo")):
            yield recorded


def for_tests(path: str) -> bool:
    """Whether a file is only for tests, examples or documentation, by its path in the folder for packages."""
    parts = path.split("/")
    return any(map(_is_unused, parts)) or (is_native(path) and _FOR_TESTS.search(parts[-1]) is not None)


@lru_cache(maxsize=4096)  # thousands of paths share the same folders
def _is_unused(part: str) -> bool:
    return _UNUSED.fullmatch(part) is not None


def decides(path: str) -> bool:
    """Whether a file, by its path in the folder for packages, is one that shows cheaply whether a package is intact."""
    if not path or for_tests(path):
        return False
    if is_native(path):
        return True
    depth = path.count("/")
    return path.endswith(".py") and (depth <= 1 or (depth == 2 and path.endswith("/__init__.py")))


def _inside(path: str, site: str) -> bool:
    return path.startswith(f"{site}/")


def _lines(data: bytes) -> Iterator[bytes]:
    """The lines that may be decisive, found by rare characters: neither hashes nor sizes contain a slash."""
    yield from [line for line in data.split(b"\n") if line.count(b"/") < 2]
    for pattern in _RARE:
        for match in pattern.finditer(data):
            start = data.rfind(b"\n", max(match.start() - _LINE_LIMIT, 0), match.start()) + 1
            depth = data.count(b"/", start, match.end())
            if depth > 2 and pattern is _PACKAGE:
                continue
            end = data.find(b"\n", match.start(), match.end() + _LINE_LIMIT)
            yield data[start : len(data) if end < 0 else end]


def _state(tree: Tree, path: str) -> tuple[str, int, int] | None:
    place = tree.place(path)
    try:
        found = os.stat(place)
    except (OSError, ValueError) as error:
        refused(path, error)
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
        if recorded is not None and family_of(recorded.path.rpartition("/")[2]) is not None:
            found.append(recorded)
    return found


def _recorded(line: str, site: str) -> Recorded | None:
    fields = _quoted(line) if '"' in line else line.rstrip("\r").split(",")
    if len(fields) != 3 or "\0" in fields[0] or not fields[0]:
        return None
    path, digest, number = fields
    size = int(number) if number.isascii() and number.isdigit() and len(number) < 19 else None
    return Recorded(_joined(site, path.replace("\\", "/")), size, digest or None)


def _joined(site: str, path: str) -> str:
    plain = path[0] not in "./" and "/." not in path and "//" not in path
    return f"{site}/{path}" if plain else posixpath.normpath(posixpath.join(site, path))


def _quoted(line: str) -> list[str]:
    """The fields of a line with quoted fields."""
    import csv

    try:
        return next(csv.reader([line.rstrip("\r")]), [])
    except csv.Error:
        return []
