"""The GPU code in a file: which compute capabilities it has machine code (cubins) or PTX for."""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ._elf import ElfError, open_elf

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ._elf_file import File

MAGIC = 0xBA55ED50
_SECTIONS = frozenset({".nv_fatbin", "__nv_relfatbin"})
_HEAD = struct.Struct("<IHHQ")
_ENTRY = struct.Struct("<HHIQIIHHIIIQQQ")
_ENTRY_LIMIT = 1 << 20
_TARGET = re.compile(r"(sm|compute)_(\d+)([a-z]?)")


@dataclass(frozen=True)
class Entry:
    """One piece of GPU code."""

    kind: str
    """``elf`` or ``ptx``."""
    target: str
    """``sm_90a``, ``compute_120f`` …"""
    ptx_isa: str | None
    compressed: bool
    relocatable: bool
    offset: int
    """Of the entry's header in the file, bytes."""
    size: int
    """Of header and content in the file, bytes."""


@dataclass(frozen=True)
class GpuCode:
    entries: tuple[Entry, ...]
    complete: bool
    """Whether the whole file could be looked through."""
    problem: str | None
    """Why not."""

    @property
    def targets(self) -> tuple[str, ...]:
        """Distinct targets by capability, ``sm_`` before ``compute_``."""
        return tuple(sorted({entry.target for entry in self.entries}, key=_by_capability))


@dataclass(frozen=True)
class GpuTargets:
    targets: tuple[str, ...]
    complete: bool
    problem: str | None


def gpu_code(path: str) -> GpuCode:
    """Every entry of the GPU code in a file; never raises for what the file holds or is."""
    entries: list[Entry] = []
    try:
        with open_elf(path) as elf:
            for section in elf.section_list:
                if section.name in _SECTIONS:
                    entries.extend(_walk(elf.file, section.offset, section.offset + section.size))
    except ElfError as error:
        return GpuCode(tuple(entries), complete=False, problem=str(error))
    return GpuCode(tuple(entries), complete=True, problem=None)


def gpu_targets(path: str) -> GpuTargets:
    """The distinct targets of the GPU code in a file, ordered as ``GpuCode.targets``."""
    code = gpu_code(path)
    return GpuTargets(code.targets, code.complete, code.problem)


def _by_capability(target: str) -> tuple[bool, int, str]:
    match = _TARGET.fullmatch(target)
    return (target.startswith("compute"), int(match[2]) if match else 0, target)


def _walk(file: File, at: int, end: int) -> Iterator[Entry]:
    while at + _HEAD.size <= end:
        magic, _, head, size = _HEAD.unpack(file.exactly(at, _HEAD.size, "a fatbin"))
        if magic != MAGIC:
            at += 8
            continue
        inner, stop = at + head, at + head + size
        while inner + _ENTRY.size <= stop:
            fields = _ENTRY.unpack(file.exactly(inner, _ENTRY.size, "a fatbin entry"))
            kind, _, header_size, payload, _, _, minor, major, capability, _, _, flags, _, _ = fields
            if header_size < _ENTRY.size:
                break
            name = "ptx" if kind == 1 else "elf"
            prefix = "compute" if kind == 1 else "sm"
            isa = f"{major}.{minor}" if kind == 1 else None
            yield Entry(name, f"{prefix}_{capability}", isa, bool(flags & 0x2000), False, inner, header_size + payload)
            inner += header_size + payload
        at = stop
