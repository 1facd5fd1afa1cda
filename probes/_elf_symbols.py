"""The dynamic symbols of a library, found without its section table."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, NamedTuple

from ._elf_dynamic import DT_GNU_HASH, DT_HASH, DT_STRSZ, DT_STRTAB, DT_SYMTAB, Dynamic
from ._elf_file import READ_LIMIT, ElfError, Reader
from ._elf_headers import SHT_DYNSYM, Header, Names, Section

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

SYMBOL_LIMIT = 1 << 21
"""No library has as many; the largest of PyTorch has some 200,000."""
NAMES_LIMIT = 1 << 28
"""Bytes of all names together."""
CHAIN_LIMIT = 1 << 16
"""Symbols that share one bucket of a hash table."""
_AT_ONCE = 1 << 14
_SYMBOL = {64: "IBBHQQ", 32: "IIIBBH"}
_INFO_AND_SECTION = {64: (1, 3), 32: (3, 5)}
_WEAK = 2


class Symbol(NamedTuple):
    name: str
    weak: bool
    """The loader does without an undefined one."""
    defined: bool


def symbols(file: Reader, header: Header, dynamic: Dynamic, sections: Sequence[Section]) -> Iterator[Symbol]:
    """The named symbols of the dynamic symbol table in its order; raises ElfError where it is damaged."""
    start = dynamic.offset_of(DT_SYMTAB)
    if start is None:
        return
    layout = struct.Struct(header.order + _SYMBOL[header.bits])
    info, section = _INFO_AND_SECTION[header.bits]
    names = _names(file, dynamic)
    left = _count(file, header, dynamic, sections)
    if left > SYMBOL_LIMIT:
        raise ElfError(f"it claims {left} symbols")
    while left > 0:
        here = min(left, _AT_ONCE)
        raw = file.exactly(start, here * layout.size, "its symbol table")
        for fields in layout.iter_unpack(raw):
            if fields[0]:
                yield Symbol(names.at(fields[0]), fields[info] >> 4 == _WEAK, fields[section] != 0)
        start, left = start + len(raw), left - here


def _names(file: Reader, dynamic: Dynamic) -> Names:
    offset, size = dynamic.offset_of(DT_STRTAB), dynamic.value(DT_STRSZ) or 0
    if offset is None or size > min(file.size, READ_LIMIT):
        raise ElfError(f"its table of names claims {size} bytes")
    return Names(file.exactly(offset, size, "its table of names"), NAMES_LIMIT)


def _count(file: Reader, header: Header, dynamic: Dynamic, sections: Sequence[Section]) -> int:
    """How many symbols there are: a hash table tells, for the dynamic section does not."""
    hashes = dynamic.offset_of(DT_HASH)
    if hashes is not None:
        return dynamic.unpack("II", hashes)[1]
    hashes = dynamic.offset_of(DT_GNU_HASH)
    if hashes is not None:
        return _count_of_gnu_hash(file, header, dynamic, hashes)
    table = next((one for one in sections if one.type == SHT_DYNSYM and one.entry_size), None)
    return table.size // table.entry_size if table else 0


def _count_of_gnu_hash(file: Reader, header: Header, dynamic: Dynamic, start: int) -> int:
    """One more than the last symbol of the last chain; the chains hold the defined symbols in order."""
    buckets, first, filters, _ = dynamic.unpack("IIII", start)
    if buckets > SYMBOL_LIMIT or filters > SYMBOL_LIMIT:
        raise ElfError(f"its table of hashes claims {buckets} buckets and {filters} filters")
    heads = start + 16 + filters * header.bits // 8
    raw = file.exactly(heads, buckets * 4, "its table of hashes")
    last = max((head for (head,) in struct.iter_unpack(header.order + "I", raw)), default=0)
    if last < first:
        return first
    chains = heads + len(raw)
    for number in range(last, last + CHAIN_LIMIT):
        if dynamic.unpack("I", chains + (number - first) * 4)[0] & 1:
            return number + 1
    raise ElfError("its table of hashes does not end")
