"""The Python modules deep in a package: whether they are there in their recorded size, and who imports them.

Thousands of small files, of which a program imports a part. Each is asked for its size alone, until the time for it is
over; what differs is worth a closer look.
"""

from __future__ import annotations

import ast
import os
import posixpath
import re
import stat
import time
import warnings
from typing import TYPE_CHECKING

from ..kit.tree import Tree, refused
from .wheels import RECORD_LIMIT, Recorded, decides, for_tests

if TYPE_CHECKING:
    from collections.abc import Iterator

SECONDS = 0.5
"""For the modules of all packages: enough for a warm cache or a local disk, not for a cold network file system."""
_LINE = re.compile(rb"^([^./,\"\n][^,\"\n]{0,1000}\.py),[^,\n]{0,200},(\d{1,18})\r?$", re.MULTILINE)
_SOURCE_LIMIT = 1 << 20
_BESIDE = 300
"""Most modules of one folder that are read for what they import."""


class Modules:
    """Looks at the modules of one package after the other."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._until = time.monotonic() + SECONDS
        self._imported: dict[str, frozenset[str]] = {}
        self._named: dict[str, bool] = {}
        self.compared = 0
        self.complete = True
        """Whether all were looked at."""

    def differing(self, dist_info: str, *, sized: bool) -> Iterator[Recorded]:
        """Those that are missing, or no file of their recorded size; ``sized``: sizes are meaningful."""
        site = posixpath.dirname(dist_info)
        data = self._tree.read_bytes(f"{dist_info}/RECORD", RECORD_LIMIT) or b""
        by_folder: dict[bytes, list[tuple[bytes, int]]] = {}
        for path, size in _LINE.findall(data):
            folder, _, name = path.rpartition(b"/")
            by_folder.setdefault(folder, []).append((name, int(size)))
        for raw, files in by_folder.items():
            folder = os.fsdecode(raw)
            if for_tests(folder):
                continue
            if time.monotonic() > self._until:
                self.complete = False
                return
            place = self._tree.place(f"{site}/{folder}")
            is_there = os.path.isdir(place)
            near = folder.count("/") < 2
            for raw_name, size in files:
                name = os.fsdecode(raw_name)
                if (near and decides(f"{folder}/{name}")) or for_tests(name):
                    continue
                self.compared += 1
                found = _size(f"{place}/{name}")
                if found is None or (sized and found != size):
                    recorded = Recorded(f"{site}/{folder}/{name}", size, None)
                    # A folder that is gone as a whole was left out of a slimmed image, unless something imports it.
                    if is_there or self.is_imported(recorded.path, site) or self._is_named_beside(site, folder):
                        yield recorded

    def is_imported(self, path: str, site: str) -> bool:
        """Whether each package from the uppermost one down imports the next part of the path when it is imported."""
        parts = path[len(site) + 1 : -len(".py")].split("/")
        if parts[-1] == "__init__":
            parts.pop()
        return all(
            parts[at] in self._imports(f"{site}/{'/'.join(parts[:at])}/__init__.py") for at in range(1, len(parts))
        )

    def _is_named_beside(self, site: str, folder: str) -> bool:
        """Whether a module beside a package imports it, at the beginning of a line."""
        if folder not in self._named:
            parent, _, name = (part.replace("/", ".").encode() for part in folder.rpartition("/"))
            spelt = re.escape(parent), re.escape(name)
            line = re.compile(
                rb"^(?:from|import) (?:\.|%s\.|(?:\.|%s) import .*\b)%s\b" % (spelt[0], *spelt), re.MULTILINE
            )
            place = posixpath.dirname(f"{site}/{folder}")
            modules = [each for each in self._tree.list_names(place) or () if each.endswith(".py")][:_BESIDE]
            sources = (self._tree.read_bytes(f"{place}/{each}", _SOURCE_LIMIT) for each in modules)
            self._named[folder] = any(line.search(source or b"") for source in sources)
        return self._named[folder]

    def _imports(self, path: str) -> frozenset[str]:
        if path not in self._imported:
            self._imported[path] = frozenset(_imported_names(self._tree.read_bytes(path, _SOURCE_LIMIT)))
        return self._imported[path]


def _size(place: str) -> int | None:
    """The size of a regular file; None for anything else, which is to be looked at more closely."""
    try:
        found = os.lstat(place)
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return None
    except OSError as error:
        refused(place, error)
        return None
    return found.st_size if stat.S_ISREG(found.st_mode) else None


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
