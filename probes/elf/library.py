"""A small reader of ELF files that nobody vouches for: bounded, in milliseconds, without executing anything.

What the dynamic loader needs is read as the loader finds it (PT_DYNAMIC through PT_LOAD), so a library without a
section table reads the same. Names are text in which bytes that are no UTF-8 are kept as ``os.fsdecode`` keeps them.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from ..kit.tree import Tree
from . import dynamic as dynamic_section
from .dynamic import Dynamic
from .tables import (
    ET_DYN,
    KINDS,
    MACHINES,
    PT_INTERP,
    ElfError,
    File,
    Section,
    Segment,
    read_header,
    read_sections,
    read_segments,
)

if TYPE_CHECKING:
    from types import TracebackType

__all__ = ["Elf", "ElfError", "Section", "open_elf"]


class Elf:
    """An open ELF file. Whatever is damaged raises ElfError when it is asked for, and only then.

    Use it as a context manager, or call ``close``.
    """

    def __init__(self, path: str) -> None:
        """Open ``path`` and read its header; raises ElfError where it is no ELF file or cannot be read."""
        self.path = path
        self.file = File(path)
        try:
            self.header = read_header(self.file)
        except ElfError:
            self.file.close()
            raise
        self.size = self.file.size
        """Bytes."""
        self.bits = self.header.bits
        """64 or 32."""
        self.machine = MACHINES.get(self.header.machine, f"machine {self.header.machine}")
        """``x86_64``, ``aarch64``, ``cuda`` …"""

    @cached_property
    def kind(self) -> str:
        """``shared``, ``executable`` (position-independent ones too), ``relocatable``, ``core`` or ``type 5``."""
        header_says = KINDS.get(self.header.type, f"type {self.header.type}")
        if self.header.type != ET_DYN:
            return header_says
        if self._flags_1 & dynamic_section.DF_1_PIE:
            return "executable"
        started = any(segment.type == PT_INTERP for segment in self.segments)
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
        """DT_RPATH split at colons, ``$ORIGIN`` and empty entries as they stand; void where there is a RUNPATH."""
        return self._folders(dynamic_section.DT_RPATH)

    @cached_property
    def runpath(self) -> tuple[str, ...]:
        """DT_RUNPATH, split in the same way."""
        return self._folders(dynamic_section.DT_RUNPATH)

    @property
    def no_default_lib(self) -> bool:
        """Whether the loader leaves out its cache of the default folders and these folders (DF_1_NODEFLIB)."""
        return bool(self._flags_1 & dynamic_section.DF_1_NODEFLIB)

    @cached_property
    def version_needs(self) -> dict[str, tuple[str, ...]]:
        """File to the versions needed of it: ``{"libc.so.6": ("GLIBC_2.17", …)}``."""
        return dynamic_section.needed_versions(self.dynamic)

    @cached_property
    def version_definitions(self) -> tuple[str, ...]:
        """The versions offered: ``GLIBCXX_3.4.29`` … of libstdc++."""
        return dynamic_section.defined_versions(self.dynamic)

    @cached_property
    def section_list(self) -> list[Section]:
        """All sections in order; several may have one name."""
        return read_sections(self.file, self.header)

    @cached_property
    def sections(self) -> dict[str, tuple[int, int]]:
        """Name to (offset, size in the file) of the first section of that name."""
        return {one.name: (one.offset, one.size) for one in reversed(self.section_list)}

    def read(self, offset: int, size: int) -> bytes:
        """Bytes of the file: fewer where it ends, and never more than ``tables.READ_LIMIT``."""
        return self.file.read(offset, size)

    def close(self) -> None:
        self.file.close()

    def __enter__(self) -> Elf:  # noqa: PYI034  Self is newer than the oldest interpreter that reads this
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @cached_property
    def segments(self) -> list[Segment]:
        """What the loader would map, in the file's order."""
        return read_segments(self.file, self.header)

    @cached_property
    def dynamic(self) -> Dynamic:
        """What PT_DYNAMIC says."""
        return Dynamic(self.file, self.header, self.segments)

    @property
    def _flags_1(self) -> int:
        return self.dynamic.value(dynamic_section.DT_FLAGS_1) or 0

    def _folders(self, tag: int) -> tuple[str, ...]:
        index = self.dynamic.value(tag)
        return () if index is None else tuple(self.dynamic.string(index).split(":"))


def open_elf(path: str) -> Elf:
    """Open an ELF file; raises ElfError with one sentence where it is none or cannot be read."""
    return Elf(path)


# The constants that a compiler put into a library or a program: its section ``.rodata``, and no more of it.
#
# Of a library of 30 MB one megabyte is read.


_SECTION = ".rodata"


def constants(tree: Tree, path: str) -> bytes | None:
    """The bytes of ``.rodata``, at most ``tables.READ_LIMIT``, or None when the file has none that can be read."""
    if not tree.is_file(path):
        return None
    try:
        with open_elf(tree.place(path)) as elf:
            place = elf.sections.get(_SECTION)
            return None if place is None else elf.read(*place)
    except ElfError:
        return None
