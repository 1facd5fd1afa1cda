"""Where in an ELF file for the host GPU code lies.

CUDA's own tools put it into three sections. Apart from them a program may keep fatbins as plain data and hand them to
the driver itself, as cuFFT and cuRAND of CUDA 13 and TensorRT do. Samples tell that it does; to find all of them, the
data has to be searched (about a second for a gigabyte).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ._elf_headers import PT_LOAD, SHF_ALLOC, SHF_EXECINSTR, SHT_PROGBITS, read_sections, read_segments
from ._fatbin_walk import first_start

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ._elf_file import Reader
    from ._elf_headers import Header, Section
    from ._fatbin_walk import Bounds

LOADABLE_SECTION, LINKABLE_SECTION = ".nv_fatbin", "__nv_relfatbin"
OWN_SECTIONS = (LOADABLE_SECTION, LINKABLE_SECTION, ".cask_resource")
"""The third holds kernels of cuBLASLt, cuDNN and cuSPARSELt."""
_REGISTRATION = ".nvFatBinSegment"
_REGISTRATION_SIZE = {64: 24, 32: 16}
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


class Places(NamedTuple):
    """Parts in the order of the file, none of which overlap within a list."""

    own: list[Place]
    """Where CUDA's tools put code."""
    data: list[Place]
    """Where a program may have put some."""
    registered: int
    """How many fatbins the program tells CUDA of when it starts; all of them lie in the first."""


def places(file: Reader, header: Header, bounds: Bounds) -> Places:
    """Where an ELF file for the host may hold GPU code; raises ElfError where its tables are not all there.

    Without a table of sections, or where fatbins are registered that no section is named for, everything that would
    be loaded counts as CUDA's.
    """
    sections = read_sections(file, header)
    own = [_place(one) for one in sections if one.name in OWN_SECTIONS]
    registered = sum(one.size for one in sections if one.name == _REGISTRATION) // _REGISTRATION_SIZE[header.bits]
    for one in sections:
        if one.name in _UNREAD and one.size:
            bounds.note(f"it holds {_UNREAD[one.name]}, which is not read")
    if not sections or (registered and not own):
        segments = read_segments(file, header)
        own = [Place("", one.offset, one.offset + one.size) for one in segments if one.type == PT_LOAD]
        return Places(_apart(own, file, bounds), [], registered)
    data = [_place(one) for one in sections if _is_plain_data(one)]
    return Places(_apart(own, file, bounds), _apart(data, file, None), registered)


def worth_searching(file: Reader, found: Places, bounds: Bounds) -> list[Place]:
    """Plain data that holds code and is soon searched; that there is more is noted."""
    smallest = SAMPLED_FROM if found.own else SAMPLED_FROM_ALONE
    hits = [one for one in found.data if one.end - one.start >= smallest and _sample(file, one, bounds)]
    large = [one.name for one in hits if one.end - one.start > SEARCHED_AT_ONCE]
    if large:
        bounds.note(f"it holds more GPU code in {', '.join(large)}, outside CUDA's own sections")
    return [one for one in hits if one.end - one.start <= SEARCHED_AT_ONCE]


def _sample(file: Reader, place: Place, bounds: Bounds) -> bool:
    """Whether one of the samples, taken at equal distances, holds the beginning of a fatbin."""
    distance = (place.end - place.start) // SAMPLES
    bounds.count_bytes(SAMPLES * SAMPLE_SIZE)
    starts = range(place.start, place.start + SAMPLES * distance, distance)
    return any(first_start(file.read(start, SAMPLE_SIZE), 1) >= 0 for start in starts)


def _place(section: Section) -> Place:
    return Place(section.name, section.offset, section.offset + section.size)


def _is_plain_data(section: Section) -> bool:
    loaded = section.flags & SHF_ALLOC and not section.flags & SHF_EXECINSTR
    return section.type == SHT_PROGBITS and bool(loaded) and section.name not in OWN_SECTIONS


def _apart(found: Iterable[Place], file: Reader, bounds: Bounds | None) -> list[Place]:
    """The places in order, without what overlaps the one before or lies beyond the end (which is noted)."""
    apart: list[Place] = []
    done = 0
    for place in sorted(found, key=lambda one: (one.start, one.end)):
        if place.end > file.size and bounds:
            bounds.note(f"{place.name or 'what is loaded'} lies beyond the end of the file")
        start, end = max(place.start, done), min(place.end, file.size)
        if start < end:
            apart.append(Place(place.name, start, end))
            done = end
    return apart
