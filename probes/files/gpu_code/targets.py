"""The GPU code in a file: for which compute capabilities it has machine code (cubins) or PTX.

Read are ELF files for the host (libraries, executables, objects), static archives, fatbins, cubins and PTX. Only
headers are read, never the code: a library of half a gigabyte takes some ten milliseconds. What cannot be seen is code
that lies compressed in plain data (part of cuBLASLt's) and code that a program makes when it runs.
"""

from __future__ import annotations

import os
import re
import struct
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import NamedTuple

from ...common.lazy import lazy_pattern
from ..elf import tables
from ..elf.tables import ByteReader, ElfError, File, FileWindow, Header, Section
from . import fatbins
from .fatbins import ELF, NVVM, PTX, RELOCATABLE_PTX, START, Bounds, CodeImage

WHOLE, THIN = b"!<arch>\n", b"!<thin>\n"
MEMBER_LIMIT = 1 << 16
_HEADER_SIZE = 60
_HEADER_END = b"`\n"


def members(file: File, bounds: Bounds) -> Iterator[tuple[str | None, int, int]]:
    """Path, offset and size of the members that are no tables of the archive; raises ElfError at a header that is none.

    Members of a thin archive are files, and only they have a path; one outside its folder is not followed, only noted.
    """
    thin = file.read(0, len(WHOLE)) == THIN
    names = b""
    at = len(WHOLE)
    for _ in range(MEMBER_LIMIT):
        if at + _HEADER_SIZE > file.size:
            return
        raw = file.exactly(at, _HEADER_SIZE, "the header of a member")
        digits = raw[48:58].strip()
        if raw[58:] != _HEADER_END or not digits.isdigit():
            raise ElfError("the archive is damaged: a member has no header")
        name, size = raw[:16].rstrip(), int(digits)
        start, table = at + _HEADER_SIZE, name in {b"/", b"/SYM64/", b"//"}
        inside = table or not thin
        if inside and start + size > file.size:
            bounds.note("the last member of the archive is cut short")
            size = file.size - start
        if name == b"//":
            names = file.read(start, min(size, 1 << 22))
        elif not table:
            yield from [(None, start, size)] if inside else _thin_member(file.path, name, names, bounds)
        at = start + (size + size % 2 if inside else 0)
    bounds.note(f"the archive has more than {MEMBER_LIMIT} members")


def _thin_member(path: str, name: bytes, names: bytes, bounds: Bounds) -> list[tuple[str | None, int, int]]:
    """The file that a thin archive names by an offset into its table of names."""
    offset = name[1:]
    index = int(offset) if name.startswith(b"/") and offset.isdigit() else len(names)
    end = names.find(b"/\n", index, index + (1 << 12))
    text = os.fsdecode(names[index:end]) if end >= 0 else ""
    folder = os.path.realpath(os.path.dirname(path))
    named = os.path.join(folder, text)
    if not text or "\0" in text or not os.path.lexists(named):
        bounds.note("a member of the thin archive is not there")
        return []
    member = os.path.realpath(named)
    if os.path.commonpath([folder, member]) != folder:
        bounds.note("a member of the thin archive lies outside the archive's folder")
        return []
    return [(member, 0, 0)]


# The target of GPU code that stands alone: a cubin (an ELF file for the GPU) or PTX as text.
#
# Where a cubin says its target, as CUDA 11.8, 12.1, 12.4, 12.8, 12.9 and 13.0 write it:
#
# - ABI version 7 (byte 8 of the header): the low byte of ``e_flags`` is the capability, 0x800 means ``a``.
# - ABI version 8, from CUDA 12.8 on: the second byte is the capability; ``a`` is 0x8 in CUDA 12, and from CUDA 13 on
#   the attribute 9 of the section ``.nv.compat``; ``f`` stands only in the arguments of ptxas that ``.note.nv.tkinfo``
#   keeps.


MACHINE = 190  # EM_CUDA
RELOCATABLE = 1  # ET_REL
_NEWER_ABI = 8
_SPECIFIC_OLDER, _SPECIFIC_NEWER = 0x800, 0x8

_ARGUMENT = lazy_pattern(rb"-arch[ =]sm_(\d+)([af]?)\b")
_VARIANT = {b"": 0, b"a": fatbins.ARCHITECTURE_SPECIFIC, b"f": fatbins.FAMILY_SPECIFIC}

_ATTRIBUTE = struct.Struct("<BBH")
_COUNTED_ATTRIBUTE = 4
_ISA_CLASS = 9


def cubin(file: ByteReader, header: Header) -> CodeImage:
    """The cubin as an image; raises ElfError where it is damaged."""
    if header.abi_version < _NEWER_ABI:
        capability = header.flags & 0xFF
        flags = fatbins.ARCHITECTURE_SPECIFIC if header.flags & _SPECIFIC_OLDER else 0
    else:
        capability = header.flags >> 8 & 0xFF
        sections = {section.name: section for section in tables.read_sections(file, header)}
        arguments = _ARGUMENT.findall(_content(file, sections.get(".note.nv.tkinfo")))
        variants = [variant for number, variant in arguments if number == str(capability).encode()]
        specific = header.flags & _SPECIFIC_NEWER or _isa_class(_content(file, sections.get(".nv.compat")))
        flags = _VARIANT[variants[0]] if variants else fatbins.ARCHITECTURE_SPECIFIC if specific else 0
    return CodeImage(ELF, capability, flags, 0, 0, 0, file.size, 0)


def ptx(file: ByteReader) -> CodeImage | None:
    """PTX text as an image, or None where the text does not begin with a version and a target."""
    lines = (line.strip() for line in file.read(0, 1 << 16).splitlines())
    statements = (line for line in lines if line and not line.startswith(b"//"))
    version = re.match(rb"\.version\s+(\d{1,3})\.(\d{1,3})$", next(statements, b""))
    target = re.match(rb"\.target\s+sm_(\d{1,4})([af]?)\b", next(statements, b""))
    if version is None or target is None:
        return None
    return CodeImage(PTX, int(target[1]), _VARIANT[target[2]], int(version[2]), int(version[1]), 0, file.size, 0)


def _content(file: ByteReader, section: Section | None) -> bytes:
    return b"" if section is None else file.read(section.offset, min(section.size, 1 << 16))


def _isa_class(attributes: bytes) -> int:
    """The value of the attribute that says for which class of instructions the code was made; 0 without one."""
    at = 0
    while at + _ATTRIBUTE.size <= len(attributes):
        form, name, value = _ATTRIBUTE.unpack_from(attributes, at)
        if name == _ISA_CLASS and form != _COUNTED_ATTRIBUTE:
            return int(value)
        at += _ATTRIBUTE.size + (value if form == _COUNTED_ATTRIBUTE else 0)
    return 0


# Where in an ELF file for the host GPU code lies.
#
# CUDA's own tools put it into three sections. Apart from them a program may keep fatbins as plain data and hand them to
# the driver itself, as cuFFT and cuRAND of CUDA 13 and TensorRT do. Samples tell that it does; to find all of them, the
# data has to be searched (about a second for a gigabyte).


LOADABLE_SECTION, LINKABLE_SECTION = ".nv_fatbin", "__nv_relfatbin"
OWN_SECTIONS = (LOADABLE_SECTION, LINKABLE_SECTION, ".cask_resource")  # The third is of cuBLASLt, cuDNN and cuSPARSELt
REGISTRATION = ".nvFatBinSegment"
_REGISTRATION_SIZE = {64: 24, 32: 16}
_UNREAD_SECTIONS = {".llvm.offloading": "LLVM's offloading code"}

SAMPLED_FROM, SAMPLED_FROM_ALONE = 1 << 20, 32 << 20
"""Smaller sections of plain data are not sampled, in files with code in CUDA's own sections and in others."""
SAMPLES, SAMPLE_SIZE = 16, 1 << 14
SEARCHED_AT_ONCE = 16 << 20  # A section that was found to hold code is searched without being asked to, up to this size


class CodePlace(NamedTuple):
    name: str
    start: int
    end: int


class CodePlaces(NamedTuple):
    """Parts in the order of the file, none of which overlap within a list."""

    own: list[CodePlace]  # Where CUDA's tools put code
    data: list[CodePlace]  # Where a program may have put some
    registered: int  # How many fatbins the program tells CUDA of when it starts; all of them lie in the first


def places(file: ByteReader, header: Header, bounds: Bounds) -> CodePlaces:
    """Where an ELF file for the host may hold GPU code; raises ElfError where its tables are not all there.

    Without a table of sections, or where fatbins are registered that no section is named for, everything that would
    be loaded counts as CUDA's.
    """
    sections = tables.read_sections(file, header)
    own = [_place(one) for one in sections if one.name in OWN_SECTIONS]
    registered = sum(one.size for one in sections if one.name == REGISTRATION) // _REGISTRATION_SIZE[header.bits]
    for one in sections:
        if one.name in _UNREAD_SECTIONS and one.size:
            bounds.note(f"it holds {_UNREAD_SECTIONS[one.name]}, which is not read")
    if not sections or (registered and not own):
        segments = tables.read_segments(file, header)
        own = [CodePlace("", one.offset, one.offset + one.size) for one in segments if one.type == tables.PT_LOAD]
        return CodePlaces(_without_overlaps(own, file, bounds), [], registered)
    plain = (one for one in sections if one.type == tables.SHT_PROGBITS and one.name not in OWN_SECTIONS)
    data = [_place(one) for one in plain if one.flags & (tables.SHF_ALLOC | tables.SHF_EXECINSTR) == tables.SHF_ALLOC]
    return CodePlaces(_without_overlaps(own, file, bounds), _without_overlaps(data, file, None), registered)


def worth_searching(file: ByteReader, found: CodePlaces, bounds: Bounds) -> list[CodePlace]:
    """Plain data that holds code and is soon searched; that there is more is noted."""
    smallest = SAMPLED_FROM if found.own else SAMPLED_FROM_ALONE
    hits = [one for one in found.data if one.end - one.start >= smallest and _sample(file, one, bounds)]
    large = [one.name for one in hits if one.end - one.start > SEARCHED_AT_ONCE]
    if large:
        bounds.note(f"it holds more GPU code in {', '.join(large)}, outside CUDA's own sections")
    return [one for one in hits if one.end - one.start <= SEARCHED_AT_ONCE]


def _sample(file: ByteReader, place: CodePlace, bounds: Bounds) -> bool:
    """Whether one of the samples, taken at equal distances, holds the beginning of a fatbin."""
    distance = (place.end - place.start) // SAMPLES
    bounds.count_bytes(SAMPLES * SAMPLE_SIZE)
    starts = range(place.start, place.start + SAMPLES * distance, distance)
    return any(fatbins.first_start(file.read(start, SAMPLE_SIZE), 1) >= 0 for start in starts)


def _place(section: Section) -> CodePlace:
    return CodePlace(section.name, section.offset, section.offset + section.size)


def _without_overlaps(found: Iterable[CodePlace], file: ByteReader, bounds: Bounds | None) -> list[CodePlace]:
    """The places in order, without what overlaps the one before or lies beyond the end (which is noted)."""
    apart: list[CodePlace] = []
    done = 0
    for place in sorted(found, key=lambda one: (one.start, one.end)):
        if place.end > file.size and bounds:
            bounds.note(f"{place.name or 'what is loaded'} lies beyond the end of the file")
        start, end = max(place.start, done), min(place.end, file.size)
        if start < end:
            apart.append(CodePlace(place.name, start, end))
            done = end
    return apart


ELF_START = b"\x7fELF"


class CodePiece(NamedTuple):
    section: str
    relocatable: bool
    image: CodeImage


def search(file: File, bounds: Bounds) -> Iterator[CodePiece]:
    """The GPU code in the file; what is wrong is noted in ``bounds``, or raised as ElfError where reading must end."""
    if file.read(0, len(WHOLE)) not in {WHOLE, THIN}:
        yield from _in_file(file, bounds)
        return
    for path, offset, size in members(file, bounds):
        try:
            if path is not None:
                with File(path) as beside:
                    yield from _in_file(beside, bounds)
                continue
            for found in _in_file(FileWindow(file, offset, size), bounds):
                yield found._replace(image=found.image._replace(offset=found.image.offset + offset))
        except ElfError as error:
            bounds.note(f"a member of the archive: {error}")


def _in_file(file: ByteReader, bounds: Bounds) -> Iterator[CodePiece]:
    start = file.read(0, len(START))
    if start.startswith(ELF_START):
        header = tables.read_header(file)
        if header.machine == MACHINE:
            yield CodePiece("", header.type == RELOCATABLE, cubin(file, header))
        else:
            found = places(file, header, bounds)
            before = bounds.containers
            for place in found.own:
                yield from _in_place(file, place, bounds)
            there = bounds.containers - before
            if there < found.registered:
                bounds.note(f"it registers {found.registered} fatbins with CUDA, of which {there} were found")
            for place in worth_searching(file, found, bounds):
                yield from _in_place(file, place, bounds)
    elif start == START:
        yield from _in_place(file, CodePlace("", 0, file.size), bounds)
    else:
        text = ptx(file)
        if text is None:
            bounds.note("it is not an ELF file, archive, fatbin or PTX" if file.size else "it is empty")
        else:
            yield CodePiece("", relocatable=False, image=text)


def _in_place(file: ByteReader, place: CodePlace, bounds: Bounds) -> Iterator[CodePiece]:
    unit = fatbins.ALIGNMENT if place.name in OWN_SECTIONS else 1
    for image in fatbins.walk(file, place.start, place.end, bounds, unit):
        if place.name == LOADABLE_SECTION:
            yield CodePiece(place.name, relocatable=False, image=image)
        else:
            head = file.read(image.content, 18)  # of a plain cubin, which may still have to be linked
            unlinked = len(head) == 18 and head.startswith(b"\x7fELF") and head[16] == RELOCATABLE
            yield CodePiece(place.name, place.name == LINKABLE_SECTION or unlinked, image)


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
    complete: bool  # Whether everything was read; only then may absence be concluded
    problem: str | None  # Why not, as one sentence
    ptx: Mapping[str, str] = {}  # The newest PTX ISA of each target that has PTX


def gpu_targets(path: str) -> GpuTargets:
    """The distinct targets of the GPU code in the file, in milliseconds; never raises.

    Code in plain data counts where little has to be searched for it; else that there is some is the ``problem``.
    """
    bounds = Bounds()
    kinds = {
        (target_of(image.kind, image.capability, image.flags & VARIANTS), relocatable, (image.major, image.minor))
        for _, relocatable, image in pieces(path, bounds)
        if image.kind != NVVM
    }
    targets = ordered((target, relocatable) for target, relocatable, _ in kinds)
    by_isa = sorted(kinds, key=lambda kind: kind[2])
    ptx = {target: f"{isa[0]}.{isa[1]}" for target, _, isa in by_isa if target in targets and "compute" in target}
    return GpuTargets(targets, bounds.problem is None, bounds.problem, ptx)


def pieces(path: str, bounds: Bounds) -> Iterator[CodePiece]:
    """The GPU code of known kinds in a file; what else is wrong is noted in ``bounds``."""
    try:
        with File(path) as file:
            for one in search(file, bounds):
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
