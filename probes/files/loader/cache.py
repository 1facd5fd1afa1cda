"""The search path of the dynamic loader: its folders in order, and ``/etc/ld.so.cache``."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
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


class Cache(NamedTuple):
    """The entries in the loader's order, and whether all were read."""

    entries: tuple[tuple[str, str], ...]
    """Requested name and path."""
    complete: bool


def parse(data: bytes) -> Cache:
    """Parse a cache; damaged or truncated parts are left out, and ``complete`` is then False."""
    table = _CacheTable(data)
    found = []
    for _, name_at, path_at, _, _ in table.rows:
        name, path = _string(data, table.start + name_at), _string(data, table.start + path_at)
        if name and path:
            found.append((name, path))
    return Cache(tuple(found), complete=len(found) == table.count)


class _CacheTable:
    """The offset of the newer table (``start``), its rows, and the number it claims (None: no table)."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.start = _start(data)
        self.rows: list[tuple[int, ...]] = []
        self.count: int | None = None
        header = data[self.start : self.start + _HEADER]
        if len(header) < _HEADER or not header.startswith(_MAGIC):
            return
        self.order = ">" if header[_FLAGS_AT] & 3 == _BIG_ENDIAN else "<"
        (self.count,) = struct.unpack_from(self.order + "I", header, len(_MAGIC))
        entry = struct.Struct(self.order + "iIIIQ")
        table = data[self.start + _HEADER : self.start + _HEADER + self.count * entry.size]
        self.rows = list(entry.iter_unpack(table[: len(table) // entry.size * entry.size]))

    def subfolders(self) -> list[str]:
        """The names of subfolders that entries refer to by index; empty if there are none."""
        for tag, offset, size in self._sections():
            if tag == _SUBFOLDERS:
                numbers = self._numbers(offset, size // 4)
                return [_string(self.data, self.start + number) or "" for number in numbers]
        return []

    def _sections(self) -> Iterator[tuple[int, int, int]]:
        (at,) = self._numbers(_EXTENSIONS_AT, 1) or (0,)
        magic, count = self._numbers(at, 2) or (0, 0)
        if at and magic == _EXTENSIONS_MAGIC:
            for number in range(min(count, _MAX_SECTIONS)):
                tag, _, offset, size = self._numbers(at + 8 + number * 16, 4) or (0, 0, 0, 0)
                yield tag, offset, size

    def _numbers(self, at: int, count: int) -> tuple[int, ...]:
        """32-bit numbers at an offset from the header; none if the data ends before."""
        raw = self.data[self.start + at : self.start + at + 4 * min(count, len(self.data))]
        return struct.unpack(f"{self.order}{count}I", raw) if len(raw) == 4 * count else ()


class Lookup:
    """A cache by name: ``Lookup(data).entries(b"libcuda.so.1")``."""

    def __init__(self, data: bytes) -> None:
        table = _CacheTable(data)
        self._data = data
        self._start = table.start
        self._subfolders = table.subfolders() if table.count else []
        self._rows: dict[bytes, list[tuple[int, ...]]] = {}
        for row in table.rows:
            at = table.start + row[1]
            end = data.find(b"\0", at, at + _MAX_STRING)
            self._rows.setdefault(data[at:end], []).append(row)
        self.complete = table.count == len(table.rows)
        """Whether it could be read whole."""

    def entries(self, name: str) -> list[CacheEntry]:
        """The entries for a name, in the cache's order."""
        rows = self._rows.get(name.encode("utf-8", "surrogateescape"), ())
        return [entry for row in rows if (entry := self._entry(row)) is not None]

    def _entry(self, row: tuple[int, ...]) -> CacheEntry | None:
        flags, _, path_at, _, capabilities = row
        path = _string(self._data, self._start + path_at)
        named = capabilities & ~_LEVEL & ~0xFFFFFFFF == _NAMED
        number = capabilities & 0xFFFFFFFF
        if path is None or (named and number >= len(self._subfolders)):
            return None
        return CacheEntry(
            path, flags, self._subfolders[number] if named else None, legacy=bool(capabilities) and not named
        )


def _start(data: bytes) -> int:
    if not data.startswith(_OLD_MAGIC) or len(data) < _OLD_HEADER:
        return 0
    (count,) = struct.unpack_from("=I", data, _OLD_HEADER - 4)
    end = _OLD_HEADER + int(count) * _OLD_ENTRY
    return end + -end % _ALIGNMENT


def _string(data: bytes, at: int) -> str | None:
    end = data.find(b"\0", at, at + _MAX_STRING)
    return data[at:end].decode("utf-8", "replace") if end > at else None


_CACHE = "/etc/ld.so.cache"
_CACHE_LIMIT = 16 * 1024 * 1024
_MAX_FOLDERS = 200

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
    data = tree.read_bytes(_CACHE, _CACHE_LIMIT)
    cache = parse(data) if data is not None else None
    return LoaderPath(
        variable=library_path(tree),
        cache=cache.entries if cache else (),
        defaults=tuple(_distinct(tree, (folder for pattern in _DEFAULTS for folder in tree.expand(pattern)))),
        complete=cache.complete if cache else not tree.lexists(_CACHE),
    )


def _distinct(tree: Tree, folders: Iterable[str]) -> Iterable[str]:
    """The first name of each folder: /lib is often a link to /usr/lib."""
    by_real: dict[str | None, str] = {}
    for folder in folders:
        by_real.setdefault(tree.resolve(folder), folder)
    return by_real.values()


def library_path(tree: Tree) -> tuple[str, ...]:
    """The folders of LD_LIBRARY_PATH; an empty entry is the current folder, one with ``$`` depends on the program."""
    value = tree.variables.get("LD_LIBRARY_PATH", "")
    if not value:
        return ()
    cwd = tree.cwd
    entries = [entry for entry in value.replace(";", ":").split(":") if "$" not in entry][:_MAX_FOLDERS]
    return tuple(dict.fromkeys(entry if entry.startswith("/") else f"{cwd}/{entry}".rstrip("/") for entry in entries))
