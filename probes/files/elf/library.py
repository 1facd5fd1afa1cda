"""A small reader for untrusted ELF files: bounded, takes milliseconds, executes nothing.

Dynamic data is read like the loader does it (PT_DYNAMIC through PT_LOAD), so a section table is not needed. Names are
decoded as by ``os.fsdecode``.
"""

from __future__ import annotations

from functools import cached_property

from ...common.tree import Tree
from . import dynamic as dynamic_section
from . import tables
from .dynamic import Dynamic
from .tables import Closing, ElfError, File, Section, Segment

__all__ = ["Elf", "ElfError", "Section"]


class Elf(Closing):
    """An open ELF file. A damaged part raises ElfError when it is read, not before.

    Use it as a context manager, or call ``close``.
    """

    def __init__(self, path: str) -> None:
        """Open ``path`` and read its header; raises ElfError if it is not an ELF file or cannot be read."""
        self.path = path
        self.file = File(path)
        try:
            self.header = tables.read_header(self.file)
        except ElfError:
            self.file.close()
            raise
        self.size = self.file.size
        """Bytes."""
        self.bits = self.header.bits
        """64 or 32."""
        self.machine = tables.MACHINES.get(self.header.machine, f"machine {self.header.machine}")
        """``x86_64``, ``aarch64``, ``cuda`` …"""

    @cached_property
    def kind(self) -> str:
        """``shared``, ``executable`` (position-independent ones too), ``relocatable``, ``core`` or ``type 5``."""
        header_says = tables.KINDS.get(self.header.type, f"type {self.header.type}")
        if self.header.type != tables.ET_DYN:
            return header_says
        if self._flags_1 & dynamic_section.DF_1_PIE:
            return "executable"
        started = any(segment.type == tables.PT_INTERP for segment in self.segments)
        return "executable" if started and self.soname is None else "shared"

    @cached_property
    def soname(self) -> str | None:
        """DT_SONAME."""
        index = self.dynamic.value(dynamic_section.DT_SONAME)
        return None if index is None else self.dynamic.string(index)

    @cached_property
    def needed(self) -> tuple[str, ...]:
        """DT_NEEDED, in order."""
        return tuple(map(self.dynamic.string, self.dynamic.values(dynamic_section.DT_NEEDED)))

    @cached_property
    def rpath(self) -> tuple[str, ...]:
        """DT_RPATH split at colons, with ``$ORIGIN`` and empty entries unchanged; empty if there is a RUNPATH."""
        return self._folders(dynamic_section.DT_RPATH)

    @cached_property
    def runpath(self) -> tuple[str, ...]:
        """DT_RUNPATH, split in the same way."""
        return self._folders(dynamic_section.DT_RUNPATH)

    @property
    def no_default_lib(self) -> bool:
        """Whether the loader skips its cache and the default folders (DF_1_NODEFLIB)."""
        return bool(self._flags_1 & dynamic_section.DF_1_NODEFLIB)

    @cached_property
    def version_needs(self) -> dict[str, tuple[str, ...]]:
        """The symbol versions needed, by file: ``{"libc.so.6": ("GLIBC_2.17", …)}``."""
        return dynamic_section.needed_versions(self.dynamic)

    @cached_property
    def version_definitions(self) -> tuple[str, ...]:
        """The symbol versions defined: ``GLIBCXX_3.4.29`` … of libstdc++."""
        return dynamic_section.defined_versions(self.dynamic)

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

    @property
    def _flags_1(self) -> int:
        return self.dynamic.value(dynamic_section.DT_FLAGS_1) or 0

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
