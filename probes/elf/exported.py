"""Find an exported symbol of a library by name, through the hash table like the loader.

Sources: System V gABI, chapter 5 (DT_HASH); glibc's loader (DT_GNU_HASH).
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from .dynamic import DT_GNU_HASH, DT_HASH, DT_STRTAB, DT_SYMTAB, Dynamic
from .library import Elf
from .tables import ElfError, read_segments

_CHAIN_LIMIT = 4096
_AT_ONCE = 16
_SYMBOL = "IBBHQQ"
_SYMBOL_SIZE = 24


class Place(NamedTuple):
    """The location of a symbol's content in the file."""

    offset: int
    size: int
    """Size in the symbol table, in bytes."""


class Exports:
    """The exported symbols of an open 64-bit library; raises ElfError for damaged tables."""

    def __init__(self, elf: Elf) -> None:
        if elf.bits != 64:
            raise ElfError("it is not a 64-bit library")
        self._elf = elf
        self._order = elf.header.order
        self._dynamic = Dynamic(elf.file, elf.header, read_segments(elf.file, elf.header))

    def find(self, name: str) -> Place | None:
        """The location of the symbol's content, or None if the library does not export it."""
        return self.find_bytes(name.encode())

    def find_bytes(self, wanted: bytes) -> Place | None:
        """The same, for a name in bytes."""
        start = self._dynamic.offset_of(DT_GNU_HASH)
        candidates = self._by_gnu_hash(start, wanted) if start is not None else self._by_hash(wanted)
        for number in candidates:
            place = self._symbol(number, wanted)
            if place is not None:
                return place
        return None

    def _symbol(self, number: int, wanted: bytes) -> Place | None:
        table, names = self._dynamic.offset_of(DT_SYMTAB), self._dynamic.offset_of(DT_STRTAB)
        if table is None or names is None:
            return None
        name, _, _, section, address, size = self._dynamic.unpack(_SYMBOL, table + number * _SYMBOL_SIZE)
        if not section or self._elf.read(names + name, len(wanted) + 1) != wanted + b"\0":
            return None
        return Place(self._dynamic.offset(address), size)

    def _by_gnu_hash(self, start: int, wanted: bytes) -> list[int]:
        buckets, first, filters, _ = self._dynamic.unpack("IIII", start)
        if not buckets:
            return []
        key = _gnu_hash(wanted)
        heads = start + 16 + filters * 8
        (number,) = self._dynamic.unpack("I", heads + key % buckets * 4)
        chain = heads + buckets * 4 - first * 4
        found: list[int] = []
        for at in range(number, number + _CHAIN_LIMIT, _AT_ONCE) if number >= first else ():
            raw = self._elf.read(chain + at * 4, _AT_ONCE * 4)
            for place, value in enumerate(struct.unpack(f"{self._order}{len(raw) // 4}I", raw[: len(raw) // 4 * 4])):
                if value | 1 == key | 1:
                    found.append(at + place)
                if value & 1:
                    return found
        return found

    def _by_hash(self, wanted: bytes) -> list[int]:
        start = self._dynamic.offset_of(DT_HASH)
        if start is None:
            return []
        buckets, chains = self._dynamic.unpack("II", start)
        if not buckets:
            return []
        (number,) = self._dynamic.unpack("I", start + 8 + _elf_hash(wanted) % buckets * 4)
        found: list[int] = []
        while 0 < number < chains and len(found) < _CHAIN_LIMIT:
            found.append(number)
            (number,) = self._dynamic.unpack("I", start + 8 + buckets * 4 + number * 4)
        return found


def _gnu_hash(name: bytes) -> int:
    key = 5381
    for byte in name:
        key = (key * 33 + byte) & 0xFFFFFFFF
    return key


def _elf_hash(name: bytes) -> int:
    key = 0
    for byte in name:
        key = (key << 4) + byte
        high = key & 0xF0000000
        key = (key ^ high >> 24) & ~high & 0xFFFFFFFF
    return key
