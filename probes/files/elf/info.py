"""What the dynamic loader reads of an ELF file before it maps it, and why it refuses one; each file is read once.

The checks are those of glibc's ``elf/dl-load.c``: ``open_verify`` (the header), ``_dl_map_object_from_fd`` and
``elf_get_dynamic_info`` (the segments, the dynamic section). If a dynamic section points outside the mapped part, the
loader reports no error: the process dies of SIGSEGV.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from contextlib import suppress
from functools import cached_property
from typing import Any, NamedTuple

from ...common.tree import refused
from .library import DT_GNU_HASH, DT_HASH, DT_JMPREL, DT_RELA, DT_STRTAB, DT_SYMTAB, Elf, OutsideError
from .tables import ET_DYN, ET_EXEC, KINDS, PT_DYNAMIC, PT_INTERP, PT_LOAD, ElfError, Segment, read_segments, text

_HEADS: dict[tuple[int, int, int, int], ElfInfo] = {}


class Identity(NamedTuple):
    """The identity of a file, whatever its path: the loader maps no file twice."""

    device: int
    inode: int


class _Read(NamedTuple):
    """The fields; a NamedTuple has no place for cached attributes."""

    place: str  # Path on the running system, below the request's root
    identity: Identity
    bits: int = 0
    order: str = ""  # ``<`` or ``>``, as ``struct`` has it
    machine: str = ""
    program: bool = False  # Whether it is a program with a fixed address, which no process can load as a library
    soname: str | None = None
    needed: tuple[str, ...] = ()
    rpath: tuple[str, ...] = ()  # Empty if there is a RUNPATH, which overrides it
    runpath: tuple[str, ...] | None = None  # None if there is none
    no_defaults: bool = False
    refused: str | None = None  # Why the loader would refuse this file, as one sentence
    problem: str | None = None  # Why the file could not be read completely

    version_needs: Mapping[str, tuple[str, ...]] = {}  # The symbol versions needed, by file; empty if damaged
    version_definitions: tuple[str, ...] = ()  # The symbol versions that it defines; empty if the table is damaged


class ElfInfo(_Read):
    """The dynamic section of a file, as far as it could be read."""

    @cached_property
    def interpreter(self) -> str | None:
        """The loader that a program names."""
        try:
            with Elf(self.place) as elf:
                for segment in read_segments(elf.file, elf.header):
                    if segment.type == PT_INTERP:
                        path = elf.read(segment.offset, min(segment.size, 4096)).partition(b"\0")[0]
                        return text(path) or None
                return None
        except ElfError:
            return None


def elf_info(place: str) -> ElfInfo | None:
    """The ELF facts of a file; None if it is not an ELF file or may not be opened.

    Raises OSError where a path can lead nowhere for another reason (a link in a circle, a name that is too long).
    """
    try:
        found = os.stat(place)
    except (FileNotFoundError, NotADirectoryError, PermissionError) as error:
        refused(place, error)
        return None
    key = (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)
    if key not in _HEADS:
        head = _read(place, Identity(found.st_dev, found.st_ino), regular=stat.S_ISREG(found.st_mode))
        if head is None:
            return None
        if len(_HEADS) >= 8192:
            _HEADS.clear()
        _HEADS[key] = head
    return _HEADS[key]


def _read(place: str, identity: Identity, *, regular: bool) -> ElfInfo | None:
    if not regular:
        return ElfInfo(place, identity, refused="it is not a regular file")
    try:
        elf = Elf(place)
    except ElfError as error:
        return ElfInfo(place, identity, refused=str(error)) if os.access(place, os.R_OK) else None
    with elf:
        known: dict[str, Any] = {"bits": elf.bits, "order": elf.header.order, "machine": elf.machine}
        known["program"] = elf.header.type == ET_EXEC
        try:
            known["refused"] = _why_refused(elf)
            runpath = elf.runpath or None
            rpath = () if runpath else elf.rpath
            known.update(soname=elf.soname, needed=elf.needed, no_defaults=elf.no_default_lib)
            known.update(rpath=() if rpath == ("",) else rpath, runpath=() if runpath == ("",) else runpath)
            with suppress(ElfError):
                known.update(version_needs=elf.version_needs, version_definitions=elf.version_definitions)
        except ElfError as error:
            known["problem"] = str(error)
        return ElfInfo(place, identity, **known)


_CURRENT = 1
_SYSV, _GNU = 0, 3
_OTHER_SYSTEMS = frozenset({"arm", "mips"})  # Machines whose loader accepts other values of EI_OSABI
_ABI_VERSIONS = 16  # More than glibc has ever defined (``LIBC_ABI_MAX``)
_POINTERS = (DT_STRTAB, DT_SYMTAB, DT_HASH, DT_GNU_HASH, DT_RELA, DT_JMPREL)
_IN_HEADER = "its ELF header is damaged"
_IN_SECTION = "its dynamic section is damaged"
_CUT_OFF = "it is cut off"
ENDS_THE_PROCESS = (_IN_SECTION, _CUT_OFF)  # The beginning of sentences about files that crash the loader


def _why_refused(elf: Elf) -> str | None:
    """The reason as one sentence; None if the loader would accept the file. Raises ElfError if the disk fails."""
    ident, header = elf.read(0, 24), elf.header
    version = int.from_bytes(ident[20:24], "little" if header.order == "<" else "big")
    system, abi = ident[7], ident[8]
    foreign = system not in (_SYSV, _GNU) or (abi and (system == _SYSV or abi >= _ABI_VERSIONS)) or any(ident[9:16])
    wrong = ""
    if ident[6] != _CURRENT or version != _CURRENT:
        wrong = "its version is none"
    elif foreign and elf.machine not in _OTHER_SYSTEMS:
        wrong = "it names another operating system"
    elif header.type not in (ET_DYN, ET_EXEC):
        wrong = f"it is neither a library nor a program, but {KINDS.get(header.type, f'type {header.type}')}"
    if wrong:
        return f"{_IN_HEADER}: {wrong}"
    try:
        segments = elf.segments
    except ElfError as error:
        return f"{_IN_HEADER}: {error}"
    mapped = [segment for segment in segments if segment.type == PT_LOAD]
    end = max((segment.offset + segment.size for segment in mapped), default=0)
    if end > elf.size:
        return f"{_CUT_OFF}: {elf.size} of at least {end} bytes are there"
    if not mapped:
        return f"{_IN_HEADER}: it has no segment to load"
    if header.type != ET_DYN:
        return None
    section = next((segment for segment in segments if segment.type == PT_DYNAMIC), None)
    if section is None:
        return f"{_IN_HEADER}: it has no dynamic section"
    if not _is_mapped(section.address, mapped):
        return f"{_IN_HEADER}: its dynamic section lies outside what is loaded"
    dynamic = elf.dynamic
    if dynamic.value(DT_STRTAB) is None:
        return f"{_IN_SECTION}: it names no table of names"
    if any((address := dynamic.value(tag)) and not _is_mapped(address, mapped) for tag in _POINTERS):
        return f"{_IN_SECTION}: it points outside what is loaded"
    try:
        _ = elf.soname, elf.needed
    except OutsideError as error:
        return f"{_IN_SECTION}: {error}"
    return None


def _is_mapped(address: int, mapped: list[Segment]) -> bool:
    return any(segment.address <= address < segment.address + max(segment.memory, segment.size) for segment in mapped)
