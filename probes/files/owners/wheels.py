"""The files that a wheel installed, by its RECORD: libraries, the files that decide, and modules deep in a package.

RECORD, by PyPA's "Recording installed projects": one line of CSV for each file, with its path (relative to the folder
that holds the ``.dist-info``), a hash and the size in bytes. A few of its thousands of lines are extracted.
"""

from __future__ import annotations

import ast
import os
import posixpath
import re
import stat
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple, TypeVar

from ...common.lazy import lazy_pattern
from ...common.library_names import MAYBE, family_of
from ...common.tree import Tree, refused

RECORD_LIMIT = 64 << 20
_LINE_LIMIT = 8192
_LINES = 300_000
_DECISIVE = 5000  # Most files of one wheel that are compared in every check
_PACKAGE = lazy_pattern(rb"/__init__\.py\"?,")
_RARE = (
    lazy_pattern(rb"\.so(?:\.[0-9.]{1,20})?\"?,"),
    lazy_pattern(rb"/bin/[^/\n,\"]+\"?,"),
    lazy_pattern(rb"\.bc\"?,"),
    _PACKAGE,
)
_NATIVE = lazy_pattern(r"\.so(?:\.[0-9.]{1,20})?$|\.bc$|/bin/[^/]+$")
_UNUSED = lazy_pattern(r"tests?|.*_tests?|test_.*|examples?|benchmarks?|docs?|conftest\.py", re.IGNORECASE)
"""Parts of paths of files that imports do not need; slimmed images have them removed."""
_MAYBE_UNUSED = lazy_pattern(r"test|example|benchmark|doc|libbackend_with_compiler", re.IGNORECASE)
"""What such paths hold, and those of libraries for tests: few others do, and one search tells."""
_FOR_TESTS = lazy_pattern(
    r"test|libbackend_with_compiler", re.IGNORECASE
)  # A pattern for libraries that only tests load

_READ: dict[tuple[str, str, int, int], Any] = {}  # What was read of a RECORD, by the reader and the state of the file
_KEPT: dict[str, bytes | None] = {}
_KEPT_MOST = 64 << 20  # Bytes


class Recorded(NamedTuple):
    """A file in a wheel's RECORD."""

    path: str  # Absolute path inside the root; links in it are not followed
    size: int | None
    hash: str | None  # ``sha256=…``


_Read = TypeVar("_Read")


def keep_lists(tree: Tree, dist_infos: Iterable[str]) -> None:
    """Read the RECORDs of an environment, instead of those of the one before: five readers ask for each, and the forks
    that share these.
    """
    _KEPT.clear()
    left = _KEPT_MOST
    for each in dist_infos:
        data = tree.read_bytes(f"{each}/RECORD", min(RECORD_LIMIT, left))
        left -= len(data or b"")
        if left <= 0:
            break
        _KEPT[each] = data


def list_of(tree: Tree, dist_info: str) -> bytes | None:
    """The content of a RECORD; None if it cannot be read."""
    return _KEPT[dist_info] if dist_info in _KEPT else tree.read_bytes(f"{dist_info}/RECORD", RECORD_LIMIT)


def _of_record(read: Callable[[bytes | None, str], _Read]) -> Callable[[Tree, str], _Read]:
    """Have ``read`` take the RECORD in a ``.dist-info`` (None: unreadable) and the site folder around it, once for each
    state of the file.
    """

    def once(tree: Tree, dist_info: str) -> _Read:
        path, site = f"{dist_info}/RECORD", posixpath.dirname(dist_info)
        place = tree.place(path)
        try:
            found = os.stat(place)
        except (OSError, ValueError) as error:
            refused(path, error)
            return read(None, site)
        key = (read.__name__, place, found.st_size, found.st_mtime_ns)
        if key not in _READ:
            if len(_READ) >= 20_000:
                _READ.clear()
            _READ[key] = read(list_of(tree, dist_info), site)
        known: _Read = _READ[key]
        return known

    return once


_COMPILED = lazy_pattern(rb"\.(?:so(?:\.[0-9.]{1,20})?|cubin|fatbin|ptx)(?=\"?,)")
_FIRST = lazy_pattern(rb"^\"?([^/,\"\n]{1,200})[^\n]*(?:\n\1/[^\n]*)*", re.MULTILINE)
"""A name on the uppermost level, with all lines that follow below the same name: most lists are in order."""


@_of_record
def compiled_by(data: bytes | None, site: str) -> tuple[tuple[str, ...], frozenset[str]]:
    """The paths of libraries and GPU code that a wheel lists, but for tests, and all names on its uppermost level."""
    data = data or b""
    starts = ((data.rfind(b"\n", 0, match.start()) + 1, match.end()) for match in _COMPILED.finditer(data))
    paths = (data[start:end].lstrip(b'"').decode("utf-8", "surrogateescape") for start, end in starts)
    tops = frozenset(name.decode("utf-8", "surrogateescape") for name in set(_FIRST.findall(data)))
    kept = (path for path in paths if path[0] not in "./" and "/." not in path and not for_tests(path))
    return tuple(f"{site}/{path}" for path in kept), tops


_TOP = lazy_pattern(rb"^([^/,\"\n.][^/,\"\n]{0,200}/__init__\.py,[^,\n]*,[^,\n]*)$", re.MULTILINE)


@_of_record
def first_package(data: bytes | None, site: str) -> Recorded | None:
    """The first import package that a wheel lists, by its ``__init__.py``."""
    lines = (match[1].decode("utf-8", "surrogateescape") for match in _TOP.finditer(data or b""))
    return recorded_in(found, site) if (found := next((line for line in lines if not for_tests(line)), None)) else None


def line_of(data: bytes, path: str) -> bytes:
    """The line about a path in a list that begins with a line break; empty if there is none."""
    name = path.encode("utf-8", "surrogateescape")
    for start in (b"\n%s," % name, b'\n"%s",' % name):
        at = data.find(start)
        if at >= 0:
            return data[at + 1 : at + len(start) + 200].partition(b"\n")[0].strip()
    return b""


def line_about(tree: Tree, dist_info: str, path: str) -> bytes:
    """The line of a RECORD about a path in its folder for packages; empty if there is none."""
    _, tops = compiled_by(tree, dist_info)
    return line_of(b"\n" + (list_of(tree, dist_info) or b""), path) if path.partition("/")[0] in tops else b""


def is_native(path: str) -> bool:
    """Whether a file is a library, a compiled module or a program, by its name."""
    return _NATIVE.search(path) is not None


@_of_record
def decisive(data: bytes | None, site: str) -> tuple[tuple[Recorded, ...], bool]:
    """The files that show cheaply whether a package is intact, and whether the list is complete.

    Its libraries and programs, the modules in its uppermost folders, and the packages right below. Files for tests are
    left out, and files outside the folder for packages (scripts, whose first line installers write).
    """
    found: dict[str, Recorded] = {}
    if data is None or (len(data) > _LINES and data.count(b"\n") > _LINES):
        return (), data is None
    for line in _lines(data):
        recorded = recorded_in(line.decode("utf-8", "surrogateescape"), site)
        if recorded is None or not recorded.path.startswith(f"{site}/") or not decides(recorded.path[len(site) + 1 :]):
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
        recorded = recorded_in(line, site)
        if recorded is None or not recorded.hash or not recorded.path.startswith(f"{site}/"):
            continue
        parts = recorded.path[len(site) + 1 :].split("/")
        if own not in parts and "__pycache__" not in parts and not parts[-1].endswith((".pyc", ".pyo")):
            yield recorded


def for_tests(path: str) -> bool:
    """Whether a file is only for tests, examples or documentation, by its path in the folder for packages."""
    if not _MAYBE_UNUSED.search(path):
        return False
    parts = path.split("/")
    return any(map(_UNUSED.fullmatch, parts)) or (is_native(path) and _FOR_TESTS.search(parts[-1]) is not None)


def decides(path: str) -> bool:
    """Whether a file, by its path in the folder for packages, is one that shows cheaply whether a package is intact."""
    if not path or for_tests(path):
        return False
    if is_native(path):
        return True
    depth = path.count("/")
    return path.endswith(".py") and (depth <= 1 or (depth == 2 and path.endswith("/__init__.py")))


def _lines(data: bytes) -> Iterator[bytes]:
    """The lines that may be decisive, found by rare characters: neither hashes nor sizes contain a slash."""
    yield from [line for line in data.split(b"\n") if line.count(b"/") < 2]
    for pattern in _RARE:
        for match in pattern.finditer(data):
            start = data.rfind(b"\n", max(match.start() - _LINE_LIMIT, 0), match.start()) + 1
            if data.count(b"/", start, match.end()) > 2 and pattern is _PACKAGE:
                continue
            end = data.find(b"\n", match.start(), match.end() + _LINE_LIMIT)
            yield data[start : len(data) if end < 0 else end]


_HEADER = lazy_pattern(rb"(/include/)[^\n\",]{0,200}\.(?:h|hpp|cuh|inl)\"?,")
_SOURCE = lazy_pattern(rb"\.(?:c|cu|cpp)\"?,")


@_of_record
def sources_by(data: bytes | None, site: str) -> list[Recorded]:
    """The sources of C and CUDA that a wheel lists, and the first file of each folder of headers; none for tests."""
    data = data or b""
    at = [match.start() for match in _SOURCE.finditer(data)]
    header = _HEADER.search(data)
    while header:
        at.append(header.start())
        folder = data[data.rfind(b"\n", 0, header.start()) + 1 : header.end(1)]
        rest = re.compile(rb"[^\n]*(?:\n%s[^\n]*)*" % re.escape(folder)).match(data, header.end())
        header = _HEADER.search(data, rest.end() if rest else len(data))
    lines = (data[data.rfind(b"\n", 0, each) + 1 :].partition(b"\n")[0] for each in at)
    found = (recorded_in(line.decode("utf-8", "surrogateescape"), site) for line in lines)
    return [
        each for each in found if each and each.path.startswith(f"{site}/") and not for_tests(each.path[len(site) :])
    ]


@_of_record
def libraries_by(data: bytes | None, site: str) -> list[Recorded] | None:
    """The CUDA libraries that a wheel lists; None if it has no RECORD that can be read."""
    if data is None:
        return None
    found: list[Recorded] = []
    end = 0
    for match in MAYBE.finditer(data):
        if match.start() < end:
            continue
        start = data.rfind(b"\n", max(match.start() - _LINE_LIMIT, 0), match.start()) + 1
        end = data.find(b"\n", match.end(), match.end() + _LINE_LIMIT)
        end = len(data) if end < 0 else end
        recorded = recorded_in(data[start:end].decode("utf-8", "replace"), site)
        if recorded is not None and family_of(recorded.path.rpartition("/")[2]) is not None:
            found.append(recorded)
    return found


def recorded_in(line: str, site: str) -> Recorded | None:
    """The file that a line of the RECORD in ``site`` is about; None for no such line."""
    fields = line.rstrip("\r").split(",")
    if '"' in line:
        import csv

        try:
            fields = next(csv.reader([line.rstrip("\r")]), [])
        except csv.Error:
            return None
    if len(fields) != 3 or "\0" in fields[0] or not fields[0]:
        return None
    path, digest, number = fields
    size = int(number) if number.isascii() and number.isdigit() and len(number) < 19 else None
    path = path.replace("\\", "/")
    plain = path[0] not in "./" and "/." not in path and "//" not in path
    place = f"{site}/{path}" if plain else posixpath.normpath(posixpath.join(site, path))
    return Recorded(place, size, digest or None)


SECONDS = 0.5  # For the modules of all packages: enough for a warm cache or a local disk, not for a cold network
_SOURCE_LIMIT = 1 << 20
_MODULE = lazy_pattern(r"\.py,[^,\n]*,([0-9]{1,18})\r?$", re.MULTILINE)  # The end of a line, and its beginning's end
_BESIDE = 300  # Most modules of one folder that are read for what they import


class Modules:
    """Looks at the modules of one package after the other."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._until = time.monotonic() + SECONDS
        self._imported: dict[str, frozenset[str]] = {}
        self._named: dict[str, bool] = {}
        self.compared = 0
        self.complete = True  # Whether all were looked at

    def differing(self, dist_info: str, *, sized: bool) -> Iterator[Recorded]:
        """Those that are missing, or no file of their recorded size; ``sized``: sizes are meaningful. What decides is
        left out: the modules in its uppermost folders, and the packages right below.
        """
        site = posixpath.dirname(dist_info)
        data = (list_of(self._tree, dist_info) or b"").decode("utf-8", "surrogateescape")
        by_folder: dict[str, list[tuple[str, int]]] = {}
        for match in _MODULE.finditer(data):
            path = data[data.rfind("\n", 0, match.start()) + 1 : match.start() + len(".py")]
            folder, _, name = path.rpartition("/")
            depth = folder.count("/")
            if (depth > 1 or (depth == 1 and name != "__init__.py")) and path[0] not in './"' and "," not in path:
                by_folder.setdefault(folder, []).append((name, int(match[1])))
        for folder, files in by_folder.items():
            if for_tests(folder):
                continue
            if time.monotonic() > self._until:
                self.complete = False
                return
            place = self._tree.place(f"{site}/{folder}")
            for name, size in files:
                if _MAYBE_UNUSED.search(name) and for_tests(name):
                    continue
                self.compared += 1
                try:
                    there = os.lstat(f"{place}/{name}")
                    if stat.S_ISREG(there.st_mode) and (there.st_size == size or not sized):
                        continue
                except (OSError, ValueError) as error:
                    refused(f"{place}/{name}", error)
                recorded = Recorded(f"{site}/{folder}/{name}", size, None)
                # A folder that is gone as a whole was left out of a slimmed image, unless something imports it.
                if os.path.isdir(place) or self.is_imported(recorded.path, site) or self.is_named_beside(site, folder):
                    yield recorded

    def is_imported(self, path: str, site: str) -> bool:
        """Whether each package from the uppermost one down imports the next part of the path when it is imported."""
        parts = path[len(site) + 1 : -len(".py")].split("/")
        if parts[-1] == "__init__":
            parts.pop()
        for at in range(1, len(parts)):
            package = f"{site}/{'/'.join(parts[:at])}/__init__.py"
            if package not in self._imported:
                source = self._tree.read_bytes(package, _SOURCE_LIMIT)
                self._imported[package] = frozenset(_imported_names(source))
            if parts[at] not in self._imported[package]:
                return False
        return True

    def is_named_beside(self, site: str, module: str) -> bool:
        """Whether a module beside a package or module imports it, at the beginning of a line."""
        if module not in self._named:
            parent, _, name = (part.replace("/", ".").encode() for part in module.rpartition("/"))
            spelt = re.escape(parent), re.escape(name)
            line = re.compile(
                rb"^(?:from|import) (?:\.|%s\.|(?:\.|%s) import .*\b)%s\b" % (spelt[0], *spelt), re.MULTILINE
            )
            place = posixpath.dirname(f"{site}/{module}")
            modules = [each for each in self._tree.list_names(place) or () if each.endswith(".py")][:_BESIDE]
            sources = (self._tree.read_bytes(f"{place}/{each}", _SOURCE_LIMIT) for each in modules)
            self._named[module] = any(line.search(source or b"") for source in sources)
        return self._named[module]


def _imported_names(source: bytes | None) -> Iterator[str]:
    """The names in a module's import statements, but those of functions and of type checkers."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            statements: list[ast.stmt] = list(ast.parse(source or b"").body)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    while statements:
        each = statements.pop()
        if isinstance(each, (ast.Import, ast.ImportFrom)):
            names = [alias.name for alias in each.names] + [getattr(each, "module", None) or ""]
            for name in names:
                yield from name.split(".")
        elif isinstance(each, ast.If):
            statements += each.orelse if "TYPE_CHECKING" in ast.dump(each.test) else [*each.body, *each.orelse]
        elif isinstance(each, ast.Try):
            statements += [*each.body, *each.orelse, *each.finalbody, *(one for it in each.handlers for one in it.body)]
        elif isinstance(each, ast.With):
            statements += each.body
