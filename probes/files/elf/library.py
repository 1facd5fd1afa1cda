"""A small reader for untrusted ELF files: bounded, takes milliseconds, executes nothing.

Dynamic data is read like the loader does it (PT_DYNAMIC through PT_LOAD), so a section table is not needed. Names are
decoded as by ``os.fsdecode``. Sources: System V gABI, chapter 5; LSB, symbol versioning.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from functools import cached_property

from ...common.tree import Tree
from . import tables
from .tables import PT_DYNAMIC, PT_LOAD, BlockCache, ByteReader, Closing, ElfError, Header, Section, Segment, text

STRINGS_LIMIT = 1 << 22  # Most bytes of one name or path, and of all together
VERSION_LIMIT = 1 << 14  # Most versions, needed or defined, of all files together

DT_NULL, DT_NEEDED, DT_HASH, DT_STRTAB, DT_SYMTAB, DT_RELA, DT_STRSZ = 0, 1, 4, 5, 6, 7, 10
DT_SONAME, DT_RPATH, DT_JMPREL, DT_RUNPATH = 14, 15, 23, 29
DT_GNU_HASH, DT_VERSYM, DT_FLAGS_1 = 0x6FFFFEF5, 0x6FFFFFF0, 0x6FFFFFFB
DT_VERDEF, DT_VERDEFNUM, DT_VERNEED, DT_VERNEEDNUM = 0x6FFFFFFC, 0x6FFFFFFD, 0x6FFFFFFE, 0x6FFFFFFF
DF_1_NODEFLIB = 0x800
_BASE_VERSION = 1
_FIRST_READ = 192


class OutsideError(ElfError):
    """A dynamic section points outside the part that the loader maps."""


class Dynamic:
    """The entries of PT_DYNAMIC, and access to what they point to."""

    def __init__(self, file: ByteReader, header: Header, segments: list[Segment]) -> None:
        self._file = file
        self._order = header.order
        self._loaded = [segment for segment in segments if segment.type == PT_LOAD]
        dynamic = [segment for segment in segments if segment.type == PT_DYNAMIC]
        self.there = bool(dynamic)
        self._entries: dict[int, list[int]] = {}
        self._strings: dict[int, str] = {}
        self._string_bytes = STRINGS_LIMIT
        layout = struct.Struct(header.order + ("qQ" if header.bits == 64 else "iI"))
        for segment in dynamic[:1]:
            size = min(segment.size, (1 << 14) * layout.size) // layout.size * layout.size
            for tag, value in layout.iter_unpack(self._file.exactly(segment.offset, size, "its dynamic section")):
                if tag == DT_NULL:
                    break
                self._entries.setdefault(tag, []).append(value)

    def value(self, tag: int) -> int | None:
        """The last entry with this tag, as for the loader."""
        values = self._entries.get(tag)
        return values[-1] if values else None

    def values(self, tag: int) -> list[int]:
        return self._entries.get(tag, [])

    def offset(self, address: int) -> int:
        """The file offset of a loaded address; raises ElfError if nothing is loaded there."""
        for segment in self._loaded:
            if segment.address <= address < segment.address + segment.size:
                return segment.offset + address - segment.address
        raise ElfError("its dynamic section points outside what is loaded")

    def offset_of(self, tag: int) -> int | None:
        """The file offset that the entry points to; None without such an entry."""
        address = self.value(tag)
        return None if address is None else self.offset(address)

    def string(self, index: int) -> str:
        """The string at ``index`` of the dynamic string table; raises ElfError if it does not end in the table."""
        if index in self._strings:
            return self._strings[index]
        table, table_size = self.offset_of(DT_STRTAB), self.value(DT_STRSZ) or 0
        limit = min(table_size - index, 1 << 16)
        if self._string_bytes <= 0:
            raise ElfError("its names are longer than any real ones")
        if table is None or limit <= 0:
            raise (OutsideError if table_size else ElfError)(
                "a name of its dynamic section lies outside the table of names"
            )
        size = _FIRST_READ
        while True:
            raw, end, _ = self._file.read(table + index, min(size, limit)).partition(b"\0")
            if end:
                self._string_bytes -= len(raw)
                self._strings[index] = text(raw)
                return self._strings[index]
            if size >= limit:
                raise ElfError("a name of its dynamic section does not end")
            size *= 4

    def unpack(self, layout: str, offset: int) -> tuple[int, ...]:
        whole = self._order + layout
        return struct.unpack(whole, self._file.exactly(offset, struct.calcsize(whole), "its version table"))


def _chain(dynamic: Dynamic, layout: str, start: int, count: int, next_field: int) -> list[tuple[int, tuple[int, ...]]]:
    """Offset and fields of at most ``count`` records of a version table from ``start``, each further on."""
    found: list[tuple[int, tuple[int, ...]]] = []
    offset = start
    for _ in range(min(count, VERSION_LIMIT)):
        fields = dynamic.unpack(layout, offset)
        found.append((offset, fields))
        if fields[next_field] == 0:
            break
        offset += fields[next_field]
    return found


def _needs(dynamic: Dynamic) -> Iterator[tuple[str, int, int]]:
    """For each needed symbol version the file that must define it, its index, and the offset of its name."""
    start = dynamic.offset_of(DT_VERNEED)
    left = VERSION_LIMIT
    needs = _chain(dynamic, "HHIII", start, dynamic.value(DT_VERNEEDNUM) or 0, next_field=4) if start else ()
    for at, (_, count, name, first, _) in needs:
        versions = _chain(dynamic, "IHHII", at + first, min(count, left), next_field=4)
        left -= len(versions)
        yield from ((dynamic.string(name), version[2], version[3]) for _, version in versions)


def numbered_needs(dynamic: Dynamic) -> dict[int, str]:
    """The version indexes of symbols, each with the file that must define the version."""
    return {number: file for file, number, _ in _needs(dynamic)}


__all__ = ["Elf", "ElfError", "Section"]


class Elf(Closing):
    """An open ELF file. A damaged part raises ElfError when it is read, not before.

    Use it as a context manager, or call ``close``.
    """

    def __init__(self, path: str) -> None:
        """Open ``path`` and read its header; raises ElfError if it is not an ELF file or cannot be read."""
        self.path = path
        self.file = BlockCache(path)
        try:
            self.header = tables.read_header(self.file)
        except ElfError:
            self.file.close()
            raise
        self.size = self.file.size  # Bytes
        self.bits = self.header.bits  # 64 or 32
        self.machine = tables.MACHINES.get(self.header.machine, f"machine {self.header.machine}")
        """``x86_64``, ``aarch64``, ``cuda`` …"""

    @cached_property
    def soname(self) -> str | None:
        index = self.dynamic.value(DT_SONAME)
        return None if index is None else self.dynamic.string(index)

    @cached_property
    def needed(self) -> tuple[str, ...]:
        """DT_NEEDED, in order."""
        return tuple(map(self.dynamic.string, self.dynamic.values(DT_NEEDED)))

    @cached_property
    def rpath(self) -> tuple[str, ...]:
        """DT_RPATH split at colons, with ``$ORIGIN`` and empty entries unchanged; empty if there is a RUNPATH."""
        return self._folders(DT_RPATH)

    @cached_property
    def runpath(self) -> tuple[str, ...]:
        """DT_RUNPATH, split in the same way."""
        return self._folders(DT_RUNPATH)

    @property
    def no_default_lib(self) -> bool:
        """Whether the loader skips its cache and the default folders (DF_1_NODEFLIB)."""
        return bool((self.dynamic.value(DT_FLAGS_1) or 0) & DF_1_NODEFLIB)

    @cached_property
    def version_needs(self) -> dict[str, tuple[str, ...]]:
        """The symbol versions needed, by file: ``{"libc.so.6": ("GLIBC_2.17", …)}``."""
        found: dict[str, dict[str, None]] = {}
        for file, _, name in _needs(self.dynamic):
            found.setdefault(file, {})[self.dynamic.string(name)] = None
        return {file: tuple(versions) for file, versions in found.items()}

    @cached_property
    def version_definitions(self) -> tuple[str, ...]:
        """The symbol versions defined: ``GLIBCXX_3.4.29`` … of libstdc++."""
        dynamic = self.dynamic
        start = dynamic.offset_of(DT_VERDEF)
        found: dict[str, None] = {}
        if start is None:
            return ()
        definitions = _chain(dynamic, "HHHHIII", start, dynamic.value(DT_VERDEFNUM) or 0, next_field=6)
        for at, (_, flags, _, count, _, first, _) in definitions:
            if count and not flags & _BASE_VERSION:
                name, _ = dynamic.unpack("II", at + first)
                found[dynamic.string(name)] = None
        return tuple(found)

    @cached_property
    def section_list(self) -> list[Section]:
        """All sections in order; several may have one name."""
        return tables.read_sections(self.file, self.header)

    @cached_property
    def sections(self) -> dict[str, tuple[int, int]]:
        """Name to (offset, size in the file) of the first section of that name."""
        return {one.name: (one.offset, one.size) for one in reversed(self.section_list)}

    def read(self, offset: int, size: int) -> bytes:
        """Bytes of the file; fewer at its end, and never more than ``tables.READ_LIMIT``."""
        return self.file.read(offset, size)

    def close(self) -> None:
        self.file.close()

    @cached_property
    def segments(self) -> list[Segment]:
        """The segments that the loader would map, in the file's order."""
        return tables.read_segments(self.file, self.header)

    @cached_property
    def dynamic(self) -> Dynamic:
        return Dynamic(self.file, self.header, self.segments)

    def _folders(self, tag: int) -> tuple[str, ...]:
        index = self.dynamic.value(tag)
        return () if index is None else tuple(self.dynamic.string(index).split(":"))


# The constants of a library or program: only its section ``.rodata``.
#
# Of a library of 30 MB one megabyte is read.


_SECTION = ".rodata"


def constants(tree: Tree, path: str) -> bytes | None:
    """The bytes of ``.rodata``, at most ``tables.READ_LIMIT``, or None if the file has no readable one."""
    if not tree.is_file(path):
        return None
    try:
        with Elf(tree.place(path)) as elf:
            place = elf.sections.get(_SECTION)
            return None if place is None else elf.read(*place)
    except ElfError:
        return None
