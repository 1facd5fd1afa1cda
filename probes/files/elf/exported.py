"""Exported symbols of a library by name, and the numbers in their machine code (x86-64, AArch64), without running it.

Symbols are found through the hash table, like the loader does: System V gABI, chapter 5 (DT_HASH); glibc's loader
(DT_GNU_HASH). A function that returns a version has it as constants in its instructions. All 32-bit constants in its
code are candidates, including false ones that start within another instruction. Callers accept a result only if exactly
one candidate is plausible.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

from ...common.lazy import lazy_pattern
from .library import DT_GNU_HASH, DT_HASH, DT_STRTAB, DT_SYMTAB, Elf
from .tables import ElfError

_CHAIN_LIMIT = 4096
_AT_ONCE = 64
_SYMBOL = "IBBHQQ"
_SYMBOL_SIZE = 24


class SymbolPlace(NamedTuple):
    """The location of a symbol's content in the file."""

    offset: int
    size: int  # Size in the symbol table, in bytes


class Exports:
    """The exported symbols of an open 64-bit library; raises ElfError for damaged tables."""

    def __init__(self, elf: Elf) -> None:
        if elf.bits != 64:
            raise ElfError("it is not a 64-bit library")
        self._elf = elf
        self._order = elf.header.order
        self._dynamic = elf.dynamic

    def find(self, name: str) -> SymbolPlace | None:
        """The location of the symbol's content, or None if the library does not export it."""
        for number in self._numbers(name.encode()):
            table = self._dynamic.offset_of(DT_SYMTAB) or 0
            *_, address, size = self._dynamic.unpack(_SYMBOL, table + number * _SYMBOL_SIZE)
            return SymbolPlace(self._dynamic.offset(address), size)
        return None

    def defines(self, wanted: bytes, hashed: int) -> bool:
        """Whether the library exports the name, of which ``hashed`` is the ``gnu_hash``."""
        words, shift = self._filter
        if words:
            word = words[hashed // 64 % len(words)]
            if not (word >> hashed % 64) & (word >> (hashed >> shift) % 64) & 1:
                return False
        return next(self._numbers(wanted), None) is not None

    def _numbers(self, wanted: bytes) -> Iterator[int]:
        """The indexes of defined symbols with this name."""
        table, names = self._dynamic.offset_of(DT_SYMTAB), self._dynamic.offset_of(DT_STRTAB)
        if table is None or names is None:
            return
        for number in self._by_hash(wanted) if self._gnu is None else self._by_gnu_hash(gnu_hash(wanted)):
            name, _, _, section, _, _ = self._dynamic.unpack(_SYMBOL, table + number * _SYMBOL_SIZE)
            if section and self._elf.read(names + name, len(wanted) + 1) == wanted + b"\0":
                yield number

    @cached_property
    def _gnu(self) -> tuple[int, int, int, int, int] | None:
        """DT_GNU_HASH: its offset, number of buckets, first symbol, number of words and shift of its filter."""
        start = self._dynamic.offset_of(DT_GNU_HASH)
        if start is None:
            return None
        buckets, first, words, shift = self._dynamic.unpack("IIII", start)
        return start, buckets, first, words, shift

    @cached_property
    def _filter(self) -> tuple[tuple[int, ...], int]:
        start, _, _, words, shift = self._gnu or (0, 0, 0, 0, 0)
        raw = self._elf.file.exactly(start + 16, words * 8, "its table of hashes")
        return struct.unpack(f"{self._order}{words}Q", raw), shift

    def _by_gnu_hash(self, key: int) -> list[int]:
        start, buckets, first, words, _ = self._gnu or (0, 0, 0, 0, 0)
        if not buckets:
            return []
        heads = start + 16 + words * 8
        (number,) = self._dynamic.unpack("I", heads + key % buckets * 4)
        if number < first:
            return []
        chain = heads + buckets * 4 - first * 4
        found: list[int] = []
        for at in range(number, number + _CHAIN_LIMIT, _AT_ONCE):
            raw = self._elf.read(chain + at * 4, _AT_ONCE * 4)
            for place, value in enumerate(struct.unpack(f"{self._order}{len(raw) // 4}I", raw[: len(raw) // 4 * 4])):
                if value | 1 == key | 1:
                    found.append(at + place)
                if value & 1:
                    return found
        raise ElfError("a chain of its table of hashes does not end")

    def _by_hash(self, wanted: bytes) -> list[int]:
        start = self._dynamic.offset_of(DT_HASH)
        if start is None:
            return []
        buckets, chains = self._dynamic.unpack("II", start)
        if not buckets:
            return []
        key = 0
        for byte in wanted:
            key = (key << 4) + byte
            high = key & 0xF0000000
            key = (key ^ high >> 24) & ~high & 0xFFFFFFFF
        (number,) = self._dynamic.unpack("I", start + 8 + key % buckets * 4)
        found: list[int] = []
        while 0 < number < chains and len(found) < _CHAIN_LIMIT:
            found.append(number)
            (number,) = self._dynamic.unpack("I", start + 8 + buckets * 4 + number * 4)
        return found


def gnu_hash(name: bytes) -> int:
    """The hash of DT_GNU_HASH: Bernstein's, starting from 5381."""
    key = 5381
    for byte in name:
        key = (key * 33 + byte) & 0xFFFFFFFF
    return key


_STORE = (
    rb"\xc7(?:[\x00-\x03\x06\x07]|\x04.|\x05.{4}|[\x40-\x43\x45-\x47].|\x44..|[\x80-\x83\x85-\x87].{4}|\x84.{5})(....)"
)
"""``mov dword ptr [...], number``: opcode C7 /0 with every way to name the place in memory."""
_STORED = lazy_pattern(rb"(?=" + _STORE + rb")", re.DOTALL)
_LOADED = lazy_pattern(rb"(?=[\xb8-\xbf](....))", re.DOTALL)  # ``mov register, number``: opcodes B8 to BF
_STORED_AND_DONE = lazy_pattern(rb"\xc7\x07(....)\x31\xc0\xc3", re.DOTALL)
"""A complete function that stores a number through its first argument and returns 0."""

_MOVE, _KEEP = 0x52800000, 0x72800000  # AArch64's MOVZ and MOVK for 32-bit registers
_OPCODE = 0xFF800000
_ZERO = rb"\x00\x00\x80\x52"
_STORE_WORD = rb"..\x00\xb9"
_RETURN = rb"\xc0\x03\x5f\xd6"
_STORED_AND_DONE_ON_ARM = lazy_pattern(
    rb"(...\x52)(?:" + _ZERO + _STORE_WORD + rb"|" + _STORE_WORD + _ZERO + rb")" + _RETURN, re.DOTALL
)
"""The same on AArch64: MOVZ, STR (without offset) and ``mov w0, 0`` in either order, RET."""


def constants(code: bytes, machine: str) -> list[int]:
    """The constants in ``code``, in order; empty for other processors."""
    if machine == "x86_64":
        found = [*_STORED.finditer(code), *_LOADED.finditer(code)]
        return [struct.unpack("<I", match[1])[0] for match in sorted(found, key=lambda match: match.start())]
    return _moved(code) if machine == "aarch64" else []


def stored_through_argument(code: bytes, machine: str) -> set[int]:
    """The numbers that short functions in ``code`` store through an argument before they return 0."""
    if machine == "x86_64":
        return {struct.unpack("<I", match[1])[0] for match in _STORED_AND_DONE.finditer(code)}
    if machine == "aarch64":
        matches = [match for match in _STORED_AND_DONE_ON_ARM.finditer(code) if match.start() % 4 == 0]
        return {number for match in matches for number in _moved(match[1])}
    return set()


def _moved(code: bytes) -> list[int]:
    """Each register's value after the MOVZ and the MOVK that build it."""
    found: list[tuple[int, int]] = []
    for word in struct.unpack(f"<{len(code) // 4}I", code[: len(code) // 4 * 4]):
        register, value, shift = word & 31, word >> 5 & 0xFFFF, (word >> 21 & 1) * 16
        if word & _OPCODE == _MOVE:
            found.append((register, value << shift))
        elif word & _OPCODE == _KEEP:
            place = next((i for i in range(len(found) - 1, -1, -1) if found[i][0] == register), None)
            if place is not None:
                found[place] = (register, found[place][1] & ~(0xFFFF << shift) | value << shift)
    return [value for _, value in found]
