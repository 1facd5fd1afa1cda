"""Where in an ELF file for the host GPU code lies.

CUDA's own tools put it into three sections. Apart from them a program may keep fatbins as plain data and hand them to
the driver itself, as cuFFT and cuRAND of CUDA 13 and TensorRT do. Samples tell that it does; to find all of them, the
data has to be searched (about a quarter of a second for a gigabyte).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ._elf_headers import PT_LOAD, SHF_ALLOC, SHF_EXECINSTR, SHT_PROGBITS, read_sections, read_segments
from ._fatbin_walk import first_start

if TYPE_CHECKING:
    from ._elf_file import File
    from ._elf_headers import Header, Section
    from ._fatbin_walk import Bounds

LOADABLE_SECTION, LINKABLE_SECTION = ".nv_fatbin", "__nv_relfatbin"
OWN_SECTIONS = (LOADABLE_SECTION, LINKABLE_SECTION, ".cask_resource")
"""The third holds kernels of cuBLASLt, cuDNN and cuSPARSELt."""
_REGISTRATION = ".nvFatBinSegment"
_UNREAD = {".llvm.offloading": "LLVM's offloading code"}

SAMPLED_FROM, SAMPLED_FROM_ALONE = 1 << 20, 32 << 20
"""Smaller sections of plain data are not sampled, in files with code in CUDA's own sections and in others."""
SAMPLES, SAMPLE_SIZE = 16, 1 << 14
SEARCHED_AT_ONCE = 16 << 20
"""A section that was found to hold code is searched without being asked to, if it is not larger."""


class Place(NamedTuple):
    """A part of the file."""

    name: str
    start: int
    end: int


def places(file: File, header: Header, base: int, limit: int, bounds: Bounds) -> tuple[list[Place], list[Place]]:
    """Where the ELF file at ``base``, with ``limit`` bytes, holds GPU code of CUDA's tools, and where plain data.

    Without a table of sections, or where its names do not fit what is registered, everything that would be loaded
    counts as the first. No byte is in two places. Raises ElfError where the tables are not all there.
    """
    sections = read_sections(file, header, base)
    own = [one for one in sections if one.name in OWN_SECTIONS]
    registered = any(one.name == _REGISTRATION and one.size for one in sections)
    for one in sections:
        if one.name in _UNREAD and one.size:
            bounds.note(f"it holds {_UNREAD[one.name]}, which is not read")
    if not sections or (registered and not own):
        loaded = [segment for segment in read_segments(file, header) if segment.type == PT_LOAD] if not base else []
        return _apart([Place("", one.offset, one.offset + one.size) for one in loaded], file.size, bounds), []
    found = _apart([_place(one, base) for one in own], base + limit, bounds)
    data = [_place(one, base) for one in sections if _is_plain_data(one)]
    return found, _apart(data, base + limit, None)


def sampled(file: File, data: list[Place], smallest: int) -> list[Place]:
    """The places of plain data, of so many bytes at least, in which samples hold the beginning of a fatbin."""
    return [place for place in data if place.end - place.start >= smallest and _sample(file, place)]


def _sample(file: File, place: Place) -> bool:
    distance = (place.end - place.start) // SAMPLES & -SAMPLE_SIZE
    starts = range(place.start, place.start + SAMPLES * distance, distance)
    return any(first_start(file.read(start, SAMPLE_SIZE)) >= 0 for start in starts)


def _place(section: Section, base: int) -> Place:
    return Place(section.name, base + section.offset, base + section.offset + section.size)


def _is_plain_data(section: Section) -> bool:
    loaded = section.flags & SHF_ALLOC and not section.flags & SHF_EXECINSTR
    return section.type == SHT_PROGBITS and bool(loaded) and section.name not in OWN_SECTIONS


def _apart(found: list[Place], end: int, bounds: Bounds | None) -> list[Place]:
    """The places in order, without what overlaps the one before or lies beyond the end (which is noted)."""
    apart: list[Place] = []
    done = 0
    for place in sorted(found, key=lambda one: (one.start, one.end)):
        if place.end > end and bounds:
            bounds.note(f"{place.name or 'what is loaded'} lies beyond the end of the file")
        start, stop = max(place.start, done), min(place.end, end)
        if start < stop:
            apart.append(Place(place.name, start, stop))
            done = stop
    return apart
