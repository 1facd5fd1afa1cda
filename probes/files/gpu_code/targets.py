"""The GPU code in a file: for which compute capabilities it has machine code (cubins) or PTX.

Read are ELF files for the host (libraries, executables, objects), static archives, fatbins, cubins and PTX. Only
headers are read, never the code: a library of half a gigabyte takes some ten milliseconds. What cannot be seen is code
that lies compressed in plain data (part of cuBLASLt's) and code that a program makes when it runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import NamedTuple

from ..elf.tables import ElfError, File
from . import fatbins
from .fatbins import ELF, NVVM, PTX, RELOCATABLE_PTX, Bounds
from .search import CodePiece, search

KINDS = {ELF: "elf", fatbins.CUBIN: "elf", PTX: "ptx", RELOCATABLE_PTX: "ptx", NVVM: "lto"}
_PREFIXES = {"elf": "sm", "ptx": "compute", "lto": "lto"}
_UNREAD = {fatbins.TILE_IR: "tile IR", fatbins.CONCATENATED: "concatenated"}
VARIANTS = fatbins.ARCHITECTURE_SPECIFIC | fatbins.FAMILY_SPECIFIC
_SUFFIXES = {fatbins.ARCHITECTURE_SPECIFIC: "a", fatbins.FAMILY_SPECIFIC: "f"}


class GpuTargets(NamedTuple):
    targets: tuple[str, ...]
    """Distinct ones by capability, ``sm_`` before ``compute_``.

    Code that must be linked counts only where there is no other: rests of linking stay in shared libraries.
    """
    complete: bool
    """Whether everything was read; only then may absence be concluded."""
    problem: str | None
    """Why not, as one sentence."""
    ptx: Mapping[str, str] = {}
    """The newest PTX ISA of each target that has PTX."""


def gpu_targets(path: str) -> GpuTargets:
    """The distinct targets of the GPU code in the file, in milliseconds; never raises.

    Code in plain data counts where little has to be searched for it; else that there is some is the ``problem``.
    """
    bounds = Bounds()
    kinds = {
        (target_of(image.kind, image.capability, image.flags & VARIANTS), relocatable, (image.major, image.minor))
        for _, relocatable, image in pieces(path, bounds, everywhere=False)
        if image.kind != NVVM
    }
    targets = ordered((target, relocatable) for target, relocatable, _ in kinds)
    by_isa = sorted(kinds, key=lambda kind: kind[2])
    ptx = {target: f"{isa[0]}.{isa[1]}" for target, _, isa in by_isa if target in targets and "compute" in target}
    return GpuTargets(targets, bounds.problem is None, bounds.problem, ptx)


def pieces(path: str, bounds: Bounds, *, everywhere: bool) -> Iterator[CodePiece]:
    """The GPU code of known kinds in a file; what else is wrong is noted in ``bounds``.

    With ``everywhere`` all plain data is searched, which takes about a second for each gigabyte.
    """
    try:
        with File(path) as file:
            for one in search(file, bounds, everywhere=everywhere):
                kind = one.image.kind
                if kind == RELOCATABLE_PTX:
                    yield one._replace(relocatable=True)
                elif kind in KINDS:
                    yield one
                elif kind != fatbins.INDEX:
                    bounds.note(f"it holds GPU code of a kind that is not read: {_UNREAD.get(kind, kind)}")
    except ElfError as error:
        bounds.note(str(error))


@lru_cache(maxsize=256)
def target_of(kind: int, capability: int, variant: int) -> str:
    return f"{_PREFIXES[KINDS[kind]]}_{capability}{_SUFFIXES.get(variant, '')}"


def ordered(targets: Iterable[tuple[str, bool]]) -> tuple[str, ...]:
    """The distinct targets of what can be loaded, or else of what must be linked."""
    distinct = set(targets)
    loadable = {target for target, relocatable in distinct if not relocatable}
    return tuple(sorted(loadable or {target for target, _ in distinct}, key=_by_capability))


def _by_capability(target: str) -> tuple[bool, int, str]:
    return not target.startswith("sm_"), int(target.partition("_")[2].rstrip("af")), target
