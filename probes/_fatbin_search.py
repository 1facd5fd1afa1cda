"""GPU code in a file of any kind: recognized by its first bytes, and archives member by member."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ._elf_file import ElfError, File
from ._elf_headers import read_header
from ._fatbin_archive import is_archive, members
from ._fatbin_cubin import MACHINE, RELOCATABLE, cubin, is_relocatable, ptx
from ._fatbin_places import (
    LINKABLE_SECTION,
    LOADABLE_SECTION,
    SAMPLED_FROM,
    SAMPLED_FROM_ALONE,
    SEARCHED_AT_ONCE,
    Place,
    places,
    sampled,
)
from ._fatbin_walk import START, Image, walk

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ._elf_headers import Header
    from ._fatbin_archive import Member
    from ._fatbin_walk import Bounds

ELF_START = b"\x7fELF"


class Found(NamedTuple):
    """One piece of GPU code, and where it was."""

    section: str
    relocatable: bool
    image: Image


class Part(NamedTuple):
    """A file, or a member in an archive."""

    file: File
    start: int
    size: int


def search(file: File, bounds: Bounds, *, everywhere: bool) -> Iterator[Found]:
    """All GPU code in the file; in all plain data too if it is meant to be ``everywhere``, else only in little of it.

    What is wrong is noted in ``bounds``, or raised as ElfError where nothing more can be read.
    """
    if not is_archive(file.read(0, 8)):
        yield from _in_part(Part(file, 0, file.size), bounds, everywhere=everywhere)
        return
    for member in members(file, bounds):
        try:
            yield from _in_member(file, member, bounds, everywhere=everywhere)
        except ElfError as error:
            bounds.note(f"a member of the archive: {error}")


def _in_member(archive: File, member: Member, bounds: Bounds, *, everywhere: bool) -> Iterator[Found]:
    if member.path is None:
        yield from _in_part(Part(archive, member.offset, member.size), bounds, everywhere=everywhere)
        return
    with File(member.path) as beside:
        yield from _in_part(Part(beside, 0, beside.size), bounds, everywhere=everywhere)


def _in_part(part: Part, bounds: Bounds, *, everywhere: bool) -> Iterator[Found]:
    start = part.file.read(part.start, min(part.size, len(START)))
    if start.startswith(ELF_START):
        header = read_header(part.file, part.start)
        if header.machine == MACHINE:
            yield Found("", header.type == RELOCATABLE, cubin(part.file, header, part.start, part.size))
        else:
            yield from _in_host_elf(part, header, bounds, everywhere=everywhere)
    elif start == START:
        yield from _in_place(part.file, Place("", part.start, part.start + part.size), bounds)
    else:
        text = ptx(part.file, part.start, part.size)
        if text is None:
            bounds.note("it is no ELF file, archive, fatbin or PTX" if part.size else "it is empty")
        else:
            yield Found("", relocatable=False, image=text)


def _in_host_elf(part: Part, header: Header, bounds: Bounds, *, everywhere: bool) -> Iterator[Found]:
    own, data = places(part.file, header, part.start, part.size, bounds)
    for place in own:
        yield from _in_place(part.file, place, bounds)
    for place in data if everywhere else _worth_searching(part.file, own, data, bounds):
        yield from _in_place(part.file, place, bounds)


def _in_place(file: File, place: Place, bounds: Bounds) -> Iterator[Found]:
    for image in walk(file, place.start, place.end, bounds):
        if place.name == LOADABLE_SECTION:
            yield Found(place.name, relocatable=False, image=image)
        else:
            yield Found(place.name, place.name == LINKABLE_SECTION or is_relocatable(file, image), image)


def _worth_searching(file: File, own: list[Place], data: list[Place], bounds: Bounds) -> list[Place]:
    """Plain data that holds code and is soon searched; that there is more is noted."""
    hits = sampled(file, data, SAMPLED_FROM if own else SAMPLED_FROM_ALONE)
    large = [place.name for place in hits if place.end - place.start > SEARCHED_AT_ONCE]
    if large:
        bounds.note(f"it holds more GPU code in {', '.join(large)}, outside CUDA's own sections")
    return [place for place in hits if place.end - place.start <= SEARCHED_AT_ONCE]
