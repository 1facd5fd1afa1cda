"""The search path of the dynamic loader: its folders in order, and ``/etc/ld.so.cache``."""

from __future__ import annotations

import struct
from typing import NamedTuple

from ...common.tree import Tree

# Read ``/etc/ld.so.cache``, in which glibc's loader looks libraries up by name.
#
# The format is that of glibc's ``dl-cache.h``: a header, entries of fixed size, and strings that they point to by their
# distance from the header. Older systems put an entry table of an older format in front of it.

_MAGIC = b"glibc-ld.so.cache1.1"
_OLD_MAGIC = b"ld.so-1.7.0"
_OLD_HEADER = 16
_OLD_ENTRY = 12
_ALIGNMENT = 8

_HEADER = 48
_FLAGS_AT = 28
_BIG_ENDIAN = 3
_MAX_STRING = 4096

_EXTENSIONS_AT = 32
_EXTENSIONS_MAGIC = 0xEAA42174
_SUBFOLDERS = 1
_MAX_SECTIONS = 64
_NAMED = 1 << 62
_LEVEL = ((1 << 10) - 1) << 32
"""Bits of an entry's capabilities with the instruction set level, which the entry's name repeats."""


class CacheEntry(NamedTuple):
    """A file that the cache has for a name."""

    path: str
    flags: int
    """Kind of library and architecture: 0x0303 for x86-64, 0x0a03 for AArch64."""
    subfolder: str | None
    """The required subfolder of ``glibc-hwcaps`` (``x86-64-v3``); None: none."""
    legacy: bool
    """Whether it requires capability bits of old loaders."""


class Lookup:
    """A cache by name: ``Lookup(data).entries(b"libcuda.so.1")``. Damaged or truncated parts are left out."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._start = 0
        if data.startswith(_OLD_MAGIC) and len(data) >= _OLD_HEADER:
            (count,) = struct.unpack_from("=I", data, _OLD_HEADER - 4)
            end = _OLD_HEADER + int(count) * _OLD_ENTRY
            self._start = end + -end % _ALIGNMENT
        self._subfolders: list[str] = []
        self._rows: list[tuple[int, ...]] = []
        self._by_name: dict[bytes, list[tuple[int, ...]]] = {}
        self._count: int | None = None
        header = data[self._start : self._start + _HEADER]
        if len(header) < _HEADER or not header.startswith(_MAGIC):
            return
        self._order = ">" if header[_FLAGS_AT] & 3 == _BIG_ENDIAN else "<"
        (self._count,) = struct.unpack_from(self._order + "I", header, len(_MAGIC))
        entry = struct.Struct(self._order + "iIIIQ")
        table = data[self._start + _HEADER : self._start + _HEADER + self._count * entry.size]
        self._rows = list(entry.iter_unpack(table[: len(table) // entry.size * entry.size]))
        for row in self._rows:
            at = self._start + row[1]
            self._by_name.setdefault(data[at : data.find(b"\0", at, at + _MAX_STRING)], []).append(row)
        # The names of subfolders that entries refer to by index.
        (at,) = self._numbers(_EXTENSIONS_AT, 1) or (0,)
        magic, sections = self._numbers(at, 2) or (0, 0)
        for number in range(min(sections, _MAX_SECTIONS) if at and magic == _EXTENSIONS_MAGIC else 0):
            tag, _, offset, size = self._numbers(at + 8 + number * 16, 4) or (0, 0, 0, 0)
            if tag == _SUBFOLDERS:
                self._subfolders = [self._string(place) or "" for place in self._numbers(offset, size // 4)]
                break

    @property
    def complete(self) -> bool:
        """Whether it could be read whole."""
        return self._count == len(self._rows)

    def pairs(self) -> tuple[tuple[tuple[str, str], ...], bool]:
        """Every name with its path, in the loader's order, and whether all could be read."""
        pairs = ((self._string(row[1]), self._string(row[2])) for row in self._rows)
        found = tuple((name, path) for name, path in pairs if name and path)
        return found, len(found) == self._count

    def entries(self, name: str) -> list[CacheEntry]:
        """The entries for a name, in the cache's order."""
        found: list[CacheEntry] = []
        for flags, _, path_at, _, capabilities in self._by_name.get(name.encode("utf-8", "surrogateescape"), ()):
            path = self._string(path_at)
            named = capabilities & ~_LEVEL & ~0xFFFFFFFF == _NAMED
            number = capabilities & 0xFFFFFFFF
            if path is not None and not (named and number >= len(self._subfolders)):
                subfolder = self._subfolders[number] if named else None
                found.append(CacheEntry(path, flags, subfolder, legacy=bool(capabilities) and not named))
        return found

    def _numbers(self, at: int, count: int) -> tuple[int, ...]:
        """32-bit numbers at an offset from the header; none if the data ends before."""
        raw = self._data[self._start + at : self._start + at + 4 * min(count, len(self._data))]
        return struct.unpack(f"{self._order}{count}I", raw) if len(raw) == 4 * count else ()

    def _string(self, at: int) -> str | None:
        end = self._data.find(b"\0", self._start + at, self._start + at + _MAX_STRING)
        return self._data[self._start + at : end].decode("utf-8", "replace") if end > self._start + at else None


_CACHE = "/etc/ld.so.cache"

_DEFAULTS = ("/lib/*-linux-gnu*", "/usr/lib/*-linux-gnu*", "/lib64", "/usr/lib64", "/lib", "/usr/lib")


class LoaderPath(NamedTuple):
    """The loader's search path: folders of LD_LIBRARY_PATH, then entries of the cache, then built-in folders."""

    variable: tuple[str, ...]
    cache: tuple[tuple[str, str], ...]
    """Name and path, in the cache's order."""
    defaults: tuple[str, ...]
    complete: bool
    """Whether the cache was read completely, or does not exist."""


def search_path(tree: Tree) -> LoaderPath:
    """The loader's search path for a program started with the variables of the request."""
    data = tree.read_bytes(_CACHE, 16 * 1024 * 1024)
    cache, complete = Lookup(data).pairs() if data is not None else ((), not tree.lexists(_CACHE))
    by_real: dict[str | None, str] = {}
    for folder in (folder for pattern in _DEFAULTS for folder in tree.expand(pattern)):
        by_real.setdefault(tree.resolve(folder), folder)  # the first name of each: /lib is often a link to /usr/lib
    return LoaderPath(library_path(tree), cache, tuple(by_real.values()), complete)


def library_path(tree: Tree) -> tuple[str, ...]:
    """The folders of LD_LIBRARY_PATH; an empty entry is the current folder, one with ``$`` depends on the program."""
    value = tree.variables.get("LD_LIBRARY_PATH", "")
    if not value:
        return ()
    cwd = tree.cwd
    entries = [entry for entry in value.replace(";", ":").split(":") if "$" not in entry][:200]
    return tuple(dict.fromkeys(entry if entry.startswith("/") else f"{cwd}/{entry}".rstrip("/") for entry in entries))
