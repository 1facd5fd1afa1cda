"""GPU code in a file of any kind: recognized by its first bytes, and archives member by member."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ._elf_file import ElfError, File, Reader, Window
from ._elf_headers import read_header
from ._fatbin_archive import is_archive, members
from ._fatbin_cubin import MACHINE, RELOCATABLE, cubin, is_relocatable, ptx
from ._fatbin_places import LINKABLE_SECTION, LOADABLE_SECTION, OWN_SECTIONS, Place, places, worth_searching
from ._fatbin_walk import ALIGNMENT, START, Image, walk

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


def search(file: File, bounds: Bounds, *, everywhere: bool) -> Iterator[Found]:
    """All GPU code in the file; in all plain data too if it is meant to be ``everywhere``, else only in little of it.

    What is wrong is noted in ``bounds``, or raised as ElfError where nothing more can be read.
    """
    if not is_archive(file.read(0, 8)):
        yield from _in_file(file, bounds, everywhere=everywhere)
        return
    for member in members(file, bounds):
        try:
            yield from _in_member(file, member, bounds, everywhere=everywhere)
        except ElfError as error:
            bounds.note(f"a member of the archive: {error}")


def _in_member(archive: File, member: Member, bounds: Bounds, *, everywhere: bool) -> Iterator[Found]:
    if member.path is not None:
        with File(member.path) as beside:
            yield from _in_file(beside, bounds, everywhere=everywhere)
        return
    for found in _in_file(Window(archive, member.offset, member.size), bounds, everywhere=everywhere):
        yield found._replace(image=found.image._replace(offset=found.image.offset + member.offset))


def _in_file(file: Reader, bounds: Bounds, *, everywhere: bool) -> Iterator[Found]:
    start = file.read(0, len(START))
    if start.startswith(ELF_START):
        header = read_header(file)
        if header.machine == MACHINE:
            yield Found("", header.type == RELOCATABLE, cubin(file, header))
        else:
            yield from _in_host_elf(file, header, bounds, everywhere=everywhere)
    elif start == START:
        yield from _in_place(file, Place("", 0, file.size), bounds)
    else:
        text = ptx(file)
        if text is None:
            bounds.note("it is no ELF file, archive, fatbin or PTX" if file.size else "it is empty")
        else:
            yield Found("", relocatable=False, image=text)


def _in_host_elf(file: Reader, header: Header, bounds: Bounds, *, everywhere: bool) -> Iterator[Found]:
    found = places(file, header, bounds)
    before = bounds.containers
    for place in found.own:
        yield from _in_place(file, place, bounds)
    there = bounds.containers - before
    if there < found.registered:
        bounds.note(f"it registers {found.registered} fatbins with CUDA, of which {there} were found")
    for place in found.data if everywhere else worth_searching(file, found, bounds):
        yield from _in_place(file, place, bounds)


def _in_place(file: Reader, place: Place, bounds: Bounds) -> Iterator[Found]:
    unit = ALIGNMENT if place.name in OWN_SECTIONS else 1
    for image in walk(file, place.start, place.end, bounds, unit):
        if place.name == LOADABLE_SECTION:
            yield Found(place.name, relocatable=False, image=image)
        else:
            yield Found(place.name, place.name == LINKABLE_SECTION or is_relocatable(file, image), image)
