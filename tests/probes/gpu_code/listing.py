"""Every piece of GPU code in a file, as the product finds it: what tests compare with the files and with cuobjdump."""

from typing import NamedTuple
from unittest.mock import patch

from probes.files.gpu_code.fatbins import LZ4, ZSTD, Bounds
from probes.files.gpu_code.targets import KINDS, VARIANTS, CodePiece, ordered, pieces, target_of


class CodeEntry(NamedTuple):
    """One piece of GPU code."""

    kind: str  # ``elf`` (machine code), ``ptx``, or ``lto`` (code that only a linker can use)
    target: str  # ``sm_90a``, ``compute_120f``, ``lto_90``: as nvcc's ``-code`` takes it
    ptx_isa: str | None  # ``8.4``; None but for PTX
    compressed: bool
    relocatable: bool  # Whether it must be linked before it can be loaded
    offset: int  # Offset of its header in the file, in bytes; in the member's file for a thin archive
    size: int  # Size of header and content in the file, in bytes
    section: str  # ``.nv_fatbin``, ``.ldata`` …; empty for what lies in no section


class GpuCode(NamedTuple):
    """All GPU code of a file."""

    entries: tuple[CodeEntry, ...]
    complete: bool
    problem: str | None

    @property
    def targets(self) -> tuple[str, ...]:
        return ordered((entry.target, entry.relocatable) for entry in self.entries if entry.kind != "lto")


@patch("probes.files.gpu_code.targets.worth_searching", lambda _file, found, _bounds: found.data)
def gpu_code(path: str) -> GpuCode:
    """Every piece of GPU code in the file, plain data included, of which the product searches little; never raises."""
    bounds = Bounds()
    return GpuCode(tuple(map(_entry, pieces(path, bounds))), bounds.problem is None, bounds.problem)


def _entry(found: CodePiece) -> CodeEntry:
    image, kind = found.image, KINDS[found.image.kind]
    return CodeEntry(
        kind=kind, target=target_of(image.kind, image.capability, image.flags & VARIANTS),
        ptx_isa=f"{image.major}.{image.minor}" if kind == "ptx" else None, compressed=bool(image.flags & (LZ4 | ZSTD)),
        relocatable=found.relocatable, offset=image.offset, size=image.size, section=found.section,
    )  # fmt: skip
