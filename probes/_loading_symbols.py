"""Which undefined symbols of an extension no library in its scope defines.

Libraries of PyTorch define hundreds of thousands of symbols, an extension asks for some hundreds: each is looked up
through DT_GNU_HASH (of older libraries DT_HASH), as the loader does it, and only the pages that this touches are read.
"""

from __future__ import annotations

import re
import struct
from typing import TYPE_CHECKING

from ._elf import ElfError
from ._elf_dynamic import DT_GNU_HASH, DT_HASH, DT_STRTAB, DT_SYMTAB, DT_VERSYM, Dynamic, numbered_needs
from ._elf_headers import read_segments
from ._library_symbols import Exports
from ._loading_near import open_near

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ._elf import Elf
    from ._loading_heads import Head

UNDEFINED_LIMIT = 20_000
"""Undefined symbols of one file that are looked up; flash-attn and vLLM have some hundreds."""
NAME_LIMIT = 8192
_TABLE_LIMIT = 32 << 20
_WEAK = 2
_SYMBOL = struct.Struct("<IBBHQQ")
_PYTHON = re.compile(rb"_?Py[A-Z_]|_Py")


class UnreadError(ValueError):
    """A file whose symbols cannot be looked up in the way that all current linkers provide for."""


def undefined(head: Head) -> tuple[bytes, ...]:
    """Names that must be found elsewhere: not weak, without a version, none of Python's own.

    Versioned ones belong to libraries that are held to their versions. Raises UnreadError.
    """
    try:
        with open_near(head.place) as elf:
            return tuple(_Table(elf).undefined())
    except (ElfError, struct.error) as error:
        raise UnreadError from error


def asked_of(head: Head, name: str, unbound: re.Pattern[bytes]) -> tuple[bytes, ...]:
    """Names that must be found in the library ``name``: bound to a version of it, or to none and beginning so.

    Raises UnreadError.
    """
    try:
        with open_near(head.place) as elf:
            return tuple(_Table(elf).asked_of(name, unbound))
    except (ElfError, struct.error) as error:
        raise UnreadError from error


def missing(names: Iterable[bytes], scope: Iterable[Head]) -> list[bytes]:
    """Those that no file of the scope defines; raises UnreadError where one cannot be asked."""
    left = {name: gnu_hash(name) for name in names}
    for head in scope:
        if not left:
            break
        try:
            with open_near(head.place) as elf:
                table = _Table(elf)
                left = {name: hashed for name, hashed in left.items() if not table.defines(name, hashed)}
        except (ElfError, struct.error) as error:
            raise UnreadError from error
    return list(left)


def gnu_hash(name: bytes) -> int:
    """The hash of DT_GNU_HASH: Bernstein's, starting from 5381."""
    value = 5381
    for byte in name:
        value = (value * 33 + byte) & 0xFFFFFFFF
    return value


class _Table:
    """The dynamic symbols of one file; raises ElfError where it is damaged."""

    def __init__(self, elf: Elf) -> None:
        if elf.bits != 64 or elf.header.order != "<":
            raise UnreadError
        self._elf = elf
        dynamic = Dynamic(elf.file, elf.header, read_segments(elf.file, elf.header))
        places = [dynamic.offset_of(tag) for tag in (DT_SYMTAB, DT_STRTAB)]
        if None in places:
            raise UnreadError
        self._symbols, self._names = (place or 0 for place in places)
        self._dynamic = dynamic
        self._versions = dynamic.offset_of(DT_VERSYM)
        hashes, old = dynamic.offset_of(DT_GNU_HASH), dynamic.offset_of(DT_HASH)
        self._exports = Exports(elf) if hashes is None else None
        if hashes is not None:
            self._read_hashes(dynamic, hashes)
        elif old is not None:
            _, self._first = dynamic.unpack("II", old)  # that table counts all symbols, in no order
        else:
            raise UnreadError

    def _read_hashes(self, dynamic: Dynamic, hashes: int) -> None:
        self._hashes = hashes
        self._buckets, self._first, self._filters, self._shift = dynamic.unpack("IIII", self._hashes)
        if self._filters == 0 or (self._filters + self._buckets) * 8 > _TABLE_LIMIT:
            raise UnreadError
        self._filter = self._elf.file.exactly(self._hashes + 16, self._filters * 8, "its table of hashes")

    def undefined(self) -> Iterator[bytes]:
        for at, version in self._asked():
            if version <= 1:
                text = self._text(at)
                if text and not _PYTHON.match(text):
                    yield text

    def asked_of(self, name: str, unbound: re.Pattern[bytes]) -> Iterator[bytes]:
        of_it = {number for number, file in numbered_needs(self._dynamic).items() if file == name}
        for at, version in self._asked():
            if version in of_it:
                yield self._text(at)
            elif version <= 1:
                text = self._text(at)
                if unbound.match(text):
                    yield text

    def _asked(self) -> Iterator[tuple[int, int]]:
        """Where the names of undefined symbols lie, and the numbers of their versions; weak ones left out.

        They come before all that is in the GNU table of hashes.
        """
        count = self._first
        if count > UNDEFINED_LIMIT:
            raise UnreadError
        raw = self._elf.file.exactly(self._symbols, count * _SYMBOL.size, "its symbol table")
        versions = self._numbers(count)
        for (name, info, _, section, _, _), version in zip(_SYMBOL.iter_unpack(raw), versions, strict=True):
            if name and section == 0 and info >> 4 != _WEAK:
                yield name, version & 0x7FFF

    def _numbers(self, count: int) -> tuple[int, ...]:
        """The index of each symbol's version; 0 and 1 are none."""
        if self._versions is None:
            return (0,) * count
        return struct.unpack(f"<{count}H", self._elf.file.exactly(self._versions, count * 2, "its table of versions"))

    def _text(self, at: int) -> bytes:
        for size in (256, NAME_LIMIT):
            raw, end, _ = self._elf.read(self._names + at, size).partition(b"\0")
            if end:
                return raw
        raise UnreadError

    def defines(self, name: bytes, hashed: int) -> bool:
        if self._exports is not None:
            return self._exports.find_bytes(name) is not None
        (word,) = struct.unpack_from("<Q", self._filter, hashed // 64 % self._filters * 8)
        if not (word >> hashed % 64) & (word >> (hashed >> self._shift) % 64) & 1 or not self._buckets:
            return False
        heads = self._hashes + 16 + self._filters * 8
        number = self._number(heads + hashed % self._buckets * 4)
        if number < self._first:
            return False
        chain = heads + self._buckets * 4 + (number - self._first) * 4
        return self._in_chain(name, hashed, number, chain)

    def _in_chain(self, name: bytes, hashed: int, number: int, chain: int) -> bool:
        links = self._elf.read(chain, 256)
        for step in range(len(links) // 4):
            (link,) = struct.unpack_from("<I", links, step * 4)
            if link | 1 == hashed | 1 and self._is(number + step, name):
                return True
            if link & 1:
                return False
        raise UnreadError

    def _number(self, offset: int) -> int:
        return int.from_bytes(self._elf.file.exactly(offset, 4, "its table of hashes"), "little")

    def _is(self, number: int, name: bytes) -> bool:
        raw = self._elf.file.exactly(self._symbols + number * _SYMBOL.size, _SYMBOL.size, "its symbol table")
        at, _, _, section, _, _ = _SYMBOL.unpack(raw)
        return section != 0 and self._elf.read(self._names + at, len(name) + 1) == name + b"\0"
