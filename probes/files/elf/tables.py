"""Untrusted ELF files: bounded reads, the header, segments, sections and string tables."""

from __future__ import annotations

import os
import stat
import struct
from types import TracebackType
from typing import NamedTuple, TypeVar

from ...common.tree import refused

# An untrusted file, read piecewise with ``pread``.
#
# Not mapped into memory: a mapped file that another program shortens kills its reader with SIGBUS.

READ_LIMIT = 64 << 20  # Most bytes of a single read, whatever a file claims

_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
_BLOCK = 1 << 13
_SMALL = 1 << 10
_BLOCKS = 256

_Self = TypeVar("_Self", bound="Closing")


class ElfError(ValueError):
    """Why a file cannot be read, as one sentence without the path."""


class Closing:
    """Something that is closed as a context manager, or by ``close``."""

    def close(self) -> None:
        raise NotImplementedError

    def __enter__(self: _Self) -> _Self:  # noqa: PYI019  Self is newer than the oldest interpreter that reads this
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class ByteReader:
    """Something with bytes at offsets."""

    path: str
    size: int  # Bytes

    def read(self, offset: int, size: int) -> bytes:
        """The bytes there, fewer where it ends or ``READ_LIMIT`` does; raises ElfError if the disk fails."""
        raise NotImplementedError

    def exactly(self, offset: int, size: int, what: str) -> bytes:
        """Exactly ``size`` bytes; raises ElfError, which names ``what``, beyond the end."""
        data = self.read(offset, size)
        if len(data) != size:
            raise ElfError(f"{what} lies beyond the end of the file")
        return data


class File(ByteReader, Closing):
    """A regular file, open for reading; closed as a context manager, or with the last reference."""

    def __init__(self, path: str) -> None:
        """Open ``path``; raises ElfError if it is not a regular file or cannot be opened."""
        self.path = path
        self._descriptor = -1
        try:
            _require_regular(os.stat(path))  # first: opening a device can change its state
            self._descriptor = os.open(path, _FLAGS)
            found = os.fstat(self._descriptor)
            _require_regular(found)
        except (OSError, ValueError) as error:
            refused(path, error)
            self.close()
            raise ElfError(_reason(error)) from error
        self.size = found.st_size

    def read(self, offset: int, size: int) -> bytes:
        left = self.size - offset
        if size > left or size > READ_LIMIT:
            size = min(left, READ_LIMIT)
        if offset < 0 or size <= 0:
            return b""
        try:
            return os.pread(self._descriptor, size, offset)
        except OSError as error:
            raise ElfError(_reason(error)) from error

    def close(self) -> None:
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def __del__(self) -> None:
        self.close()


class BlockCache(File):
    """A file that is read in blocks, which are kept: tables lie close together. Larger reads bypass the cache."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self._blocks: dict[int, bytes] = {}

    def read(self, offset: int, size: int) -> bytes:
        number, start = divmod(offset, _BLOCK)
        if size > _SMALL or start + size > _BLOCK or offset < 0 or size <= 0:
            return super().read(offset, size)
        block = self._blocks.get(number)
        if block is None:
            if len(self._blocks) >= _BLOCKS:
                self._blocks.clear()
            block = self._blocks[number] = super().read(number * _BLOCK, _BLOCK)
        return block[start : start + size]


class FileWindow(ByteReader):
    """A part of a file as a file of its own; reads cannot leave it."""

    def __init__(self, whole: ByteReader, start: int, size: int) -> None:
        self.path = whole.path
        self.start = start
        self.size = max(0, min(size, whole.size - start))
        self._whole = whole

    def read(self, offset: int, size: int) -> bytes:
        return self._whole.read(self.start + offset, min(size, self.size - offset)) if offset >= 0 else b""


def _require_regular(found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise ElfError("it is not a regular file")


def _reason(error: Exception) -> str:
    if isinstance(error, ElfError):
        return str(error)
    return f"it cannot be read: {getattr(error, 'strerror', None) or error}"


# The three tables of an ELF file: its header, its segments (program headers) and its sections; and tables of names.
#
# By the System V gABI, chapters 4 and 5; 32 and 64 bit, both byte orders.


NAMES_LIMIT = 16 << 20  # Most bytes read of the section name table, and of the names taken from it

MACHINES = {
    3: "i386", 8: "mips", 20: "ppc", 21: "ppc64", 22: "s390", 40: "arm", 62: "x86_64", 183: "aarch64", 190: "cuda",
    243: "riscv", 258: "loongarch",
}  # fmt: skip
"""``e_machine`` in words."""

PT_LOAD, PT_DYNAMIC, PT_INTERP = 1, 2, 3
ET_EXEC, ET_DYN = 2, 3
KINDS = {1: "relocatable", 4: "core"}  # ``e_type`` in words, of what no process loads
SHT_PROGBITS, SHT_SYMTAB, SHT_NOBITS = 1, 2, 8
SHF_ALLOC, SHF_EXECINSTR = 0x2, 0x4

_HEADER = {64: "16xHHIQQQIHHHHHH", 32: "16xHHIIIIIHHHHHH"}
_SEGMENT = {64: "IIQQQQQQ", 32: "IIIIIIII"}
_SECTION = {64: "IIQQQQIIQQ", 32: "IIIIIIIIII"}
_BITS = {1: 32, 2: 64}
_ORDER = {1: "<", 2: ">"}
_COUNT_ELSEWHERE, _NAMES_ELSEWHERE = 0, 0xFFFF


class Header(NamedTuple):
    order: str  # ``<`` or ``>``, as ``struct`` wants it
    bits: int
    abi_version: int  # Byte 8 of ``e_ident``
    type: int
    machine: int
    flags: int
    segments: tuple[int, int, int]  # Offset, size of an entry, how many
    sections: tuple[int, int, int]
    names: int  # Index of the section that holds the names of sections


class Segment(NamedTuple):
    type: int
    offset: int
    address: int
    size: int  # In the file
    memory: int  # Size in memory, in bytes


class Section(NamedTuple):
    name: str
    type: int
    flags: int
    offset: int
    size: int  # In the file: 0 where the section only takes room in memory


def read_header(file: ByteReader) -> Header:
    """The ELF header; raises ElfError if the file has none."""
    ident = file.read(0, 16)
    if not ident.startswith(b"\x7fELF"):
        raise ElfError("it is not an ELF file" if file.size else "it is empty")
    bits, order = (_BITS.get(ident[4]), _ORDER.get(ident[5])) if len(ident) == 16 else (None, None)
    if bits is None or order is None:
        raise ElfError("its ELF header names no known class and byte order")
    layout = struct.Struct(order + _HEADER[bits])
    fields = layout.unpack(file.exactly(0, layout.size, "its ELF header"))
    kind, machine, _, _, segments, sections, flags, _, segment_size, segment_count, section_size, count, names = fields
    tables = (segments, segment_size, segment_count), (sections, section_size, count)
    return Header(order, bits, ident[8], kind, machine, flags, *tables, names)


def read_segments(file: ByteReader, header: Header) -> list[Segment]:
    """The segments that the loader would map, in the file's order; raises ElfError for an incomplete table."""
    offset, size, count = header.segments
    if not count:
        return []
    layout = struct.Struct(header.order + _SEGMENT[header.bits])
    if size != layout.size or count > 1 << 12:
        raise ElfError(f"its table of segments is damaged: {count} entries of {size} bytes")
    raw = file.exactly(offset, size * count, "its table of segments")
    if header.bits == 64:
        return [Segment(e[0], e[2], e[3], e[5], e[6]) for e in layout.iter_unpack(raw)]
    return [Segment(e[0], e[1], e[2], e[4], e[5]) for e in layout.iter_unpack(raw)]


def section_table(file: ByteReader, header: Header) -> tuple[list[tuple[int, ...]], bytes]:
    """The entries of the table of sections, and the table of their names; raises ElfError for an incomplete table."""
    offset, size, count = header.sections
    if not offset:
        return [], b""
    layout = struct.Struct(header.order + _SECTION[header.bits])
    names_index = header.names
    if count == _COUNT_ELSEWHERE or names_index == _NAMES_ELSEWHERE:
        first = layout.unpack(file.exactly(offset, layout.size, "its table of sections"))
        count = first[5] if count == _COUNT_ELSEWHERE else count
        names_index = first[6] if names_index == _NAMES_ELSEWHERE else names_index
    if size != layout.size or count > 1 << 18:
        raise ElfError(f"its table of sections is damaged: {count} entries of {size} bytes")
    entries = list(layout.iter_unpack(file.exactly(offset, size * count, "its table of sections")))
    named = entries[names_index] if names_index < len(entries) else (0,) * 10
    return entries, file.read(named[4], min(named[5], NAMES_LIMIT))


def read_sections(file: ByteReader, header: Header) -> list[Section]:
    """All sections in order, names outside the table of names as empty; raises ElfError for an incomplete table."""
    (entries, table), left = section_table(file, header), NAMES_LIMIT
    names: list[str] = []
    for place, *_ in entries:
        end = table.find(b"\0", place)
        left -= max(0, (end if end >= 0 else len(table)) - place)  # names may overlap
        if left < 0:
            raise ElfError("its names are longer than any real ones")
        names.append(text(table[place:end]) if end >= 0 else "")
    return [
        Section(name, kind, flags, offset, 0 if kind == SHT_NOBITS else size)
        for name, (_, kind, flags, _, offset, size, *_) in zip(names, entries)
    ]


def text(raw: bytes) -> str:
    """Decode a name as ``os.fsdecode`` does, since the loader compares bytes."""
    return raw.decode("utf-8", "surrogateescape")
