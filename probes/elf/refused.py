"""Why the dynamic loader refuses an ELF file for this machine: the checks of glibc before it maps a file.

By glibc's ``elf/dl-load.c``: ``open_verify`` (the header), ``_dl_map_object_from_fd`` and ``elf_get_dynamic_info`` (the
segments, the dynamic section). If a dynamic section points outside the mapped part, the loader reports no error: the
process dies of SIGSEGV.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .dynamic import DT_GNU_HASH, DT_HASH, DT_JMPREL, DT_RELA, DT_STRTAB, DT_SYMTAB, OutsideError
from .tables import ET_DYN, ET_EXEC, PT_DYNAMIC, PT_LOAD, ElfError

if TYPE_CHECKING:
    from .library import Elf
    from .tables import Segment

_CURRENT = 1
_SYSV, _GNU = 0, 3
_OTHER_SYSTEMS = frozenset({"arm", "mips"})
"""Machines whose loader accepts other values of EI_OSABI."""
_ABI_VERSIONS = 16
"""More than glibc has ever defined (``LIBC_ABI_MAX``)."""
_POINTERS = (DT_STRTAB, DT_SYMTAB, DT_HASH, DT_GNU_HASH, DT_RELA, DT_JMPREL)
_IN_HEADER = "its ELF header is damaged"
_IN_SECTION = "its dynamic section is damaged"
_CUT_OFF = "it is cut off"
ENDS_THE_PROCESS = (_IN_SECTION, _CUT_OFF)
"""The beginning of sentences about files that crash the loader."""


def why_refused(elf: Elf) -> str | None:
    """The reason as one sentence; None if the loader would accept the file. Raises ElfError if the disk fails."""
    wrong = _header(elf)
    if wrong:
        return f"{_IN_HEADER}: {wrong}"
    try:
        segments = elf.segments
    except ElfError as error:
        return f"{_IN_HEADER}: {error}"
    end = max((segment.offset + segment.size for segment in segments if segment.type == PT_LOAD), default=0)
    if end > elf.size:
        return f"{_CUT_OFF}: {elf.size} of at least {end} bytes are there"
    if not any(segment.type == PT_LOAD for segment in segments):
        return f"{_IN_HEADER}: it has no segment to load"
    return _dynamic(elf, segments) if elf.header.type == ET_DYN else None


def _header(elf: Elf) -> str | None:
    ident, header = elf.read(0, 24), elf.header
    version = int.from_bytes(ident[20:24], "little" if header.order == "<" else "big")
    if ident[6] != _CURRENT or version != _CURRENT:
        return "its version is none"
    if elf.machine not in _OTHER_SYSTEMS:
        system, abi = ident[7], ident[8]
        if system not in (_SYSV, _GNU) or (abi and (system == _SYSV or abi >= _ABI_VERSIONS)) or any(ident[9:16]):
            return "it names another operating system"
    return None if header.type in (ET_DYN, ET_EXEC) else f"it is neither a library nor a program, but {elf.kind}"


def _dynamic(elf: Elf, segments: list[Segment]) -> str | None:
    section = next((segment for segment in segments if segment.type == PT_DYNAMIC), None)
    if section is None:
        return f"{_IN_HEADER}: it has no dynamic section"
    mapped = [segment for segment in segments if segment.type == PT_LOAD]
    if not _is_mapped(section.address, mapped):
        return f"{_IN_HEADER}: its dynamic section lies outside what is loaded"
    dynamic = elf.dynamic
    if dynamic.value(DT_STRTAB) is None:
        return f"{_IN_SECTION}: it names no table of names"
    leads_out = (address for tag in _POINTERS if (address := dynamic.value(tag)) and not _is_mapped(address, mapped))
    if any(leads_out):
        return f"{_IN_SECTION}: it points outside what is loaded"
    try:
        _ = elf.soname, elf.needed
    except OutsideError as error:
        return f"{_IN_SECTION}: {error}"
    return None


def _is_mapped(address: int, mapped: list[Segment]) -> bool:
    return any(segment.address <= address < segment.address + max(segment.memory, segment.size) for segment in mapped)
