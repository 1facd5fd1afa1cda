"""The GPU code in a file: for which compute capabilities it has machine code (cubins) or PTX.

Read are ELF files for the host (libraries, executables, objects), static archives, fatbins, cubins and PTX. Only
headers are read, never the code: a library of half a gigabyte takes some ten milliseconds. What cannot be seen is code
that lies compressed in plain data (part of cuBLASLt's) and code that a program makes when it runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple

from ..elf.tables import ElfError, File
from .fatbins import (
    ARCHITECTURE_SPECIFIC,
    CONCATENATED,
    CUBIN,
    ELF,
    FAMILY_SPECIFIC,
    INDEX,
    LZ4,
    NVVM,
    PTX,
    RELOCATABLE_PTX,
    TILE_IR,
    ZSTD,
    Bounds,
)
from .search import CodePiece, search

_KINDS = {ELF: "elf", CUBIN: "elf", PTX: "ptx", RELOCATABLE_PTX: "ptx", NVVM: "lto"}
_PREFIXES = {"elf": "sm", "ptx": "compute", "lto": "lto"}
_UNREAD = {TILE_IR: "tile IR", CONCATENATED: "concatenated"}
_VARIANTS = ARCHITECTURE_SPECIFIC | FAMILY_SPECIFIC
_SUFFIXES = {ARCHITECTURE_SPECIFIC: "a", FAMILY_SPECIFIC: "f"}


class CodeEntry(NamedTuple):
    """One piece of GPU code."""

    kind: str
    """``elf`` (machine code), ``ptx``, or ``lto`` (code that only a linker can use)."""
    target: str
    """``sm_90a``, ``compute_120f``, ``lto_90``: as nvcc's ``-code`` takes it."""
    ptx_isa: str | None
    """``8.4``; None but for PTX."""
    compressed: bool
    relocatable: bool
    """Whether it must be linked before it can be loaded."""
    offset: int
    """Offset of its header in the file, in bytes; in the member's file for a thin archive."""
    size: int
    """Size of header and content in the file, in bytes."""
    section: str
    """``.nv_fatbin``, ``.ldata`` …; empty for what lies in no section."""


class GpuCode(NamedTuple):
    """All GPU code of a file."""

    entries: tuple[CodeEntry, ...]
    complete: bool
    """Whether everything was read; only then may absence be concluded."""
    problem: str | None
    """Why not, as one sentence."""

    @property
    def targets(self) -> tuple[str, ...]:
        """Distinct targets by capability, ``sm_`` before ``compute_``.

        Code that must be linked counts only where there is no other: rests of linking stay in shared libraries.
        """
        return _ordered((entry.target, entry.relocatable) for entry in self.entries if entry.kind != "lto")


class GpuTargets(NamedTuple):
    """The targets of a file, as ``GpuCode.targets``."""

    targets: tuple[str, ...]
    complete: bool
    problem: str | None


def gpu_code(path: str) -> GpuCode:
    """Every piece of GPU code in the file, plain data included; never raises.

    Takes about a second for each gigabyte of plain data in the file.
    """
    bounds = Bounds()
    entries = tuple(map(_entry, _known(_found(path, bounds, everywhere=True), bounds)))
    return GpuCode(entries, bounds.problem is None, bounds.problem)


def gpu_targets(path: str) -> GpuTargets:
    """The distinct targets of the GPU code in the file, in milliseconds; never raises.

    Code in plain data counts where little has to be searched for it; else that there is some is the ``problem``, and
    ``gpu_code`` lists it.
    """
    bounds = Bounds()
    kinds = {
        (image.kind, image.capability, image.flags & _VARIANTS, relocatable)
        for _, relocatable, image in _known(_found(path, bounds, everywhere=False), bounds)
        if image.kind != NVVM
    }
    targets = _ordered((_target(*target), relocatable) for *target, relocatable in kinds)
    return GpuTargets(targets, bounds.problem is None, bounds.problem)


def _found(path: str, bounds: Bounds, *, everywhere: bool) -> Iterator[CodePiece]:
    try:
        with File(path) as file:
            yield from search(file, bounds, everywhere=everywhere)
    except ElfError as error:
        bounds.note(str(error))


def _known(found: Iterable[CodePiece], bounds: Bounds) -> Iterator[CodePiece]:
    """What is code of a known kind; other kinds are noted."""
    for one in found:
        kind = one.image.kind
        if kind == RELOCATABLE_PTX:
            yield one._replace(relocatable=True)
        elif kind in _KINDS:
            yield one
        elif kind != INDEX:
            bounds.note(f"it holds GPU code of a kind that is not read: {_UNREAD.get(kind, kind)}")


def _entry(found: CodePiece) -> CodeEntry:
    image = found.image
    kind = _KINDS[image.kind]
    return CodeEntry(
        kind=kind,
        target=_target(image.kind, image.capability, image.flags & _VARIANTS),
        ptx_isa=f"{image.major}.{image.minor}" if kind == "ptx" else None,
        compressed=bool(image.flags & (LZ4 | ZSTD)),
        relocatable=found.relocatable,
        offset=image.offset,
        size=image.size,
        section=found.section,
    )


@lru_cache(maxsize=256)
def _target(kind: int, capability: int, variant: int) -> str:
    return f"{_PREFIXES[_KINDS[kind]]}_{capability}{_SUFFIXES.get(variant, '')}"


def _ordered(targets: Iterable[tuple[str, bool]]) -> tuple[str, ...]:
    """The distinct targets of what can be loaded, or else of what must be linked."""
    distinct = set(targets)
    loadable = {target for target, relocatable in distinct if not relocatable}
    return tuple(sorted(loadable or {target for target, _ in distinct}, key=_by_capability))


def _by_capability(target: str) -> tuple[bool, int, str]:
    prefix, _, capability = target.partition("_")
    return prefix != "sm", int(capability.rstrip("af")), target
