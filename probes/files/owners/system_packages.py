"""The rpm or Debian package of a file, by the databases of rpm (SQLite or Berkeley DB) and dpkg; neither is run."""

from __future__ import annotations

import posixpath
import re
import struct
from collections.abc import Collection, Iterator
from contextlib import suppress
from typing import NamedTuple

from ...common.lazy import lazy_pattern
from ...common.library_names import MAYBE, family_of
from ...common.tree import Tree
from ..elf.tables import ElfError, File
from ..loader.setup import Paths
from .claims import Claim

# The values of a Berkeley DB hash file, which rpm's ``Packages`` is up to RHEL 8: no library for it is at hand.
#
# By Berkeley DB's ``db_page.h``: a page of metadata tells where the buckets start; a bucket is a chain of pages whose
# items lie from the page's end backwards, keys and values in turn; a long value lies on a chain of overflow pages.

_MAGIC = 0x061561
_HASH_PAGES = frozenset({2, 13})
_OVERFLOW = 7
_OFF_PAGE = 3
_INLINE = 1
_HEADER = 26
_SPARES = 32
_BUCKETS = 1 << 16
_PAGES = 1 << 17  # Most pages that are read, so that a circular chain cannot block the probe


class DamagedError(ValueError):
    """The file is not Berkeley DB hash file, or is truncated."""


class HashFile:
    """An open hash file; raises DamagedError if it is none or is truncated."""

    def __init__(self, file: File) -> None:
        self._file, self._left = file, _PAGES
        start = file.read(0, 512)
        order = {_MAGIC.to_bytes(4, "little"): "<", _MAGIC.to_bytes(4, "big"): ">"}.get(start[12:16])
        if order is None or len(start) < 512:
            raise DamagedError("it is not a hash file of Berkeley DB")
        self._order = order
        (self._size,) = self._numbers(start, "I", 20)
        (self._last_bucket,) = self._numbers(start, "I", 72)
        self._spares = self._numbers(start, f"{_SPARES}I", 96)
        if self._size not in (512, 1024, 2048, 4096, 8192, 16384, 32768, 65536) or self._last_bucket > _BUCKETS:
            raise DamagedError("its page of metadata is damaged")

    def values(self, wanted: int) -> Iterator[tuple[bytes, int, int]]:
        """Every value of at least ``wanted`` bytes, or else the first page and the size of what overflows its page."""
        for bucket in range(self._last_bucket + 1):
            additional = self._spares[min(bucket.bit_length(), _SPARES - 1)]  # pages before the bucket
            for page in self._chain(bucket + additional, _HASH_PAGES):
                (count,) = self._numbers(page, "H", 20)
                offsets = self._numbers(page, f"{count}H", _HEADER)
                for offset, end in zip(offsets[1::2], offsets[::2]):
                    kind = page[offset] if offset < len(page) else 0
                    if kind == _INLINE and end - offset > wanted:
                        yield page[offset + 1 : end], 0, 0
                    elif kind == _OFF_PAGE:
                        first, size = self._numbers(page, "II", offset + 4)
                        if wanted <= size <= 32 << 20:
                            yield b"", first, size

    def overflow(self, first: int, size: int) -> bytes:
        """At least ``size`` bytes of a long value, if it has that many."""
        parts: list[bytes] = []
        length = 0
        for page in self._chain(first, frozenset({_OVERFLOW})):
            (here,) = self._numbers(page, "H", 22)
            parts.append(page[_HEADER : _HEADER + here])
            length += len(parts[-1])
            if length >= size:
                break
        return b"".join(parts)

    def _chain(self, number: int, kinds: frozenset[int]) -> Iterator[bytes]:
        while number:
            self._left -= 1
            if self._left < 0:
                raise DamagedError("it is circular, or too large")
            page = self._file.read(number * self._size, self._size)
            if len(page) != self._size or page[25] not in kinds:
                return
            yield page
            (number,) = self._numbers(page, "I", 16)

    def _numbers(self, data: bytes, layout: str, offset: int) -> tuple[int, ...]:
        try:
            return struct.unpack_from(self._order + layout, data, offset)
        except struct.error:
            raise DamagedError("a page is damaged") from None


# Read the header of an installed RPM package: name, version, and the files with their sizes.
#
# The form is that of a header without its magic: two big-endian counts, an index of entries (tag, type, offset, count)
# and the store to which they point (rpm's documentation, "RPM V4 package format", section "Header").


NAME, VERSION, RELEASE, EPOCH = 1000, 1001, 1002, 1003
FILE_SIZES, LONG_FILE_SIZES = 1028, 5008
FOLDER_INDEXES, BASE_NAMES, FOLDER_NAMES = 1116, 1117, 1118
_FILES = 1 << 18
_ENTRY = struct.Struct(">IIII")


class RpmPackage(NamedTuple):
    name: str
    version: str  # The version with its release, and its epoch if there is one: ``12.4.5.8-1``
    files: tuple[tuple[str, int | None], ...]  # Paths and sizes


class _RpmHeader:
    """The index and store of a header; damaged entries are left out."""

    def __init__(self, blob: bytes) -> None:
        count, size = struct.unpack_from(">II", blob) if len(blob) >= 8 else (0, 0)
        count = min(count, 4096, (len(blob) - 8) // _ENTRY.size if len(blob) >= 8 else 0)
        start = 8 + count * _ENTRY.size
        self._store = blob[start : start + size]
        self._index = {
            tag: (offset, number) for tag, _, offset, number in _ENTRY.iter_unpack(blob[8:start]) if number <= _FILES
        }

    def texts(self, tag: int) -> list[str]:
        offset, count = self._index.get(tag, (0, 0))
        parts = self._store[offset:].split(b"\0", count)[:count] if count else []
        return [part.decode("utf-8", "replace") for part in parts]

    def text(self, tag: int) -> str:
        return next(iter(self.texts(tag)[:1]), "")

    def numbers(self, tag: int, letter: str = "I") -> list[int]:
        offset, count = self._index.get(tag, (0, 0))
        size = struct.calcsize(letter)
        raw = self._store[offset : offset + count * size]
        return list(struct.unpack(f">{len(raw) // size}{letter}", raw[: len(raw) // size * size]))


def read(blob: bytes) -> RpmPackage | None:
    """The package of a header, or None if there is none."""
    header = _RpmHeader(blob)
    name, version = header.text(NAME), header.text(VERSION)
    if not name or not version:
        return None
    epoch = header.numbers(EPOCH)
    release = header.text(RELEASE)
    full = f"{epoch[0]}:{version}" if epoch else version
    folders, indexes = header.texts(FOLDER_NAMES), header.numbers(FOLDER_INDEXES)
    sizes: list[int] = header.numbers(LONG_FILE_SIZES, "Q") or header.numbers(FILE_SIZES)
    files = tuple(
        (folders[index] + base, sizes[place] if place < len(sizes) else None)
        for place, (base, index) in enumerate(zip(header.texts(BASE_NAMES), indexes))
        if index < len(folders)
    )
    return RpmPackage(name, f"{full}-{release}" if release else full, files)


def name_in(start: bytes) -> str:
    """The name in a truncated header; empty if the name is not in that part."""
    return _RpmHeader(start).text(NAME)


# Which RPM package a file belongs to, by rpm's own database; rpm is not asked.
#
# An SQLite database is opened read-only and immutable, so that SQLite creates no files; the older form (up to RHEL 8)
# is a hash file of Berkeley DB. SUSE's form (ndb) is not read: its files have no owner here.


_PACKAGES = 2000
_SMALLEST = 64
_START = 4096  # Bytes of a header that contain its index and its name
_STEPS = 2_000_000  # Most instructions of SQLite's machine for one query, so that no crafted file blocks the probe


def rpm_owners(tree: Tree, wanted: Collection[str]) -> dict[str, list[Claim]]:
    """The packages that list the real paths ``wanted``."""
    found: dict[str, list[Claim]] = {}
    paths = Paths(tree)
    places = ((tree.resolve(name), read_blobs) for name, read_blobs in DATABASES.items() if wanted)
    first = next(((path, read_blobs) for path, read_blobs in places if path and tree.is_file(path)), None)
    packages = map(read, first[1](tree.place(first[0]))) if first else ()
    for package in filter(None, packages):
        for path, size in package.files:
            folder, name = posixpath.split(path)
            if family_of(name) is None:
                continue
            real = f"{paths.folder(folder)}/{name}"
            if real in wanted:
                found.setdefault(real, []).append(Claim("rpm", package.name, package.version, size))
    return found


def _from_sqlite(place: str) -> list[bytes]:
    """The headers of packages with CUDA-like names."""
    import sqlite3

    name = place.replace("%", "%25").replace("?", "%3f").replace("#", "%23")
    try:
        connection = sqlite3.connect(f"file:{name}?mode=ro&immutable=1", uri=True, timeout=0.1)
    except sqlite3.Error:
        return []
    left = [_STEPS // 1000]

    def stop() -> bool:
        left[0] -= 1
        return left[0] < 0

    try:
        connection.set_progress_handler(stop, 1000)
        connection.execute("PRAGMA trusted_schema = OFF")
        rows = connection.execute("SELECT key, hnum FROM Name").fetchmany(100_000)
        numbers = [number for name, number in rows if isinstance(name, str) and NAMES.match(name)][:_PACKAGES]
        question = "SELECT blob FROM Packages WHERE hnum = ? AND length(blob) <= ?"
        answers = [connection.execute(question, (number, 32 << 20)).fetchone() for number in numbers]
    except sqlite3.Error:
        return []
    finally:
        connection.close()
    return [answer[0] for answer in answers if answer is not None and isinstance(answer[0], bytes)]


def _from_berkeley(place: str) -> list[bytes]:
    """The same from a hash file; of other packages only the beginning with the name is read."""
    found: list[bytes] = []
    with suppress(DamagedError, ElfError), File(place) as opened:
        file = HashFile(opened)
        for inline, first, size in file.values(_SMALLEST):
            if NAMES.match(name_in(inline or file.overflow(first, _START))) and len(found) < _PACKAGES:
                found.append(inline or file.overflow(first, size)[:size])
    return found


DATABASES = {
    "/usr/lib/sysimage/rpm/rpmdb.sqlite": _from_sqlite,
    "/var/lib/rpm/rpmdb.sqlite": _from_sqlite,
    "/usr/lib/sysimage/rpm/Packages": _from_berkeley,
    "/var/lib/rpm/Packages": _from_berkeley,
}
"""The places of rpm's database, and the function that reads each; the first existing one counts."""

INFO = "/var/lib/dpkg/info"
STATUS = "/var/lib/dpkg/status"
NAMES = lazy_pattern(r"(?:lib)?(?:cu|nv|nccl|npp|magma|tensorrt|deepstream)")
"""Beginnings of the names of packages with CUDA libraries."""

_LISTS = 3000


def dpkg_owners(tree: Tree, wanted: Collection[str]) -> dict[str, list[Claim]]:
    """The packages that list the real paths ``wanted``."""
    names = [name for name in tree.folder_names(INFO)[0] if name.endswith(".list") and NAMES.match(name)]
    found: dict[str, list[str]] = {}
    paths = Paths(tree)
    for name in names[:_LISTS] if wanted else ():
        data = tree.read_bytes(f"{INFO}/{name}", 4 << 20) or b""
        package = name[: -len(".list")].partition(":")[0]
        lines = data.decode("utf-8", "replace").split("\n") if MAYBE.search(data) else ()
        for path in (line for line in lines if line.startswith("/") and family_of(line.rpartition("/")[2])):
            folder, file = posixpath.split(path)
            real = f"{paths.folder(folder)}/{file}"
            if real in wanted and package not in found.setdefault(real, []):
                found[real].append(package)
    status = b"\n" + (tree.read_bytes(STATUS, 64 << 20) or b"") + b"\n\n" if found else b""
    versions: dict[str, str] = {}
    for package in {package for packages in found.values() for package in packages}:
        start = status.find(b"\nPackage: " + package.encode() + b"\n")
        stanza = status[start : status.find(b"\n\n", start + 1)] if start >= 0 else b""
        match = re.search(rb"\nVersion: ([0-9A-Za-z.+:~-]{1,200})(?=\n|$)", stanza)
        if match:
            versions[package] = match[1].decode()
    return {path: [Claim("dpkg", name, versions.get(name, "")) for name in names] for path, names in found.items()}
