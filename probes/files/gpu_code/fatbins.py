"""Fatbins: the containers in which CUDA's compilers put GPU code, and the headers inside them.

NVIDIA does not describe the format; what follows was found by compiling with CUDA 11.8, 12.x and 13.x and comparing
with what ``cuobjdump`` prints. All numbers are little-endian; bytes from the beginning of each header:

    container   0 u32 magic    4 u16 version (1)    6 u16 size of this header (16)    8 u64 size of all images
    image       0 u16 kind     2 u16 version (0x101)    4 u32 size of this header (64 or more)
                8 u64 size of the content as it lies here    16 u32 compressed size (0: not compressed)
                24 u16 minor, 26 u16 major: of the PTX ISA (1.8 and the like for cubins)
                28 u32 capability (90)    40 u64 flags (below)    56 u64 size when decompressed
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

from ..elf.tables import ByteReader, ElfError

PTX, ELF, CUBIN, NVVM, INDEX, RELOCATABLE_PTX, TILE_IR, CONCATENATED = 1, 2, 4, 8, 32, 64, 128, 256
"""Kinds of images, as cuobjdump names them; ``CUBIN`` is what CUDA wrote before it put cubins into ELF."""

LZ4, ZSTD = 0x2000, 0x8000
ARCHITECTURE_SPECIFIC, FAMILY_SPECIFIC = 0x100000, 0x200000
"""Flags: how the content is compressed, and whether the target is ``sm_90a`` or ``sm_100f``."""

START = b"\x50\xed\x55\xba\x01\x00\x10\x00"  # Magic, version and header size of a container

IMAGE_LIMIT = 1 << 18  # Images and containers of one file together; the most seen is some 25,000, in cuFFT
SEARCH_LIMIT = 1 << 30  # Bytes of one file that are searched for containers; what lies in one is stepped over

ALIGNMENT = 8  # Alignment of containers written by CUDA's tools; TensorRT places its own anywhere
_RARE = 3  # The byte of ``START`` that is rarest in other data

_CONTAINER = struct.Struct("<4x2xHQ")
_IMAGE = struct.Struct("<H2xIQ8xHHI8xQ16x")  # As long as the smallest header
_PEEK = 160  # Bytes: enough for the gap to the next fatbin, where there is one
_SEARCH_FIRST, _SEARCH_MOST = 1 << 12, 1 << 18


class CodeImage(NamedTuple):
    kind: int
    capability: int
    flags: int
    minor: int
    major: int
    offset: int  # Offset of the header in the file
    size: int  # Size of header and content
    content: int  # Offset of the content


class Bounds:
    """How much of one file may still be looked at, and the first thing that was wrong with it."""

    def __init__(self) -> None:
        self.images = IMAGE_LIMIT
        self.bytes = SEARCH_LIMIT
        self.containers = 0  # How many were found
        self.problem: str | None = None

    def note(self, problem: str) -> None:
        """Keep a reason why the list of images is not complete; the first one stays."""
        if self.problem is None:
            self.problem = problem

    def count_image(self) -> None:
        """One more image or container; raises ElfError after the last allowed one."""
        self.images -= 1
        if self.images < 0:
            raise ElfError(f"it holds more than {IMAGE_LIMIT} pieces of GPU code")

    def count_bytes(self, number: int) -> None:
        """So many more bytes searched; raises ElfError when that is too much."""
        self.bytes -= number
        if self.bytes < 0:
            raise ElfError(f"more than {SEARCH_LIMIT >> 20} MiB of it would have to be searched for GPU code")


def walk(file: ByteReader, start: int, end: int, bounds: Bounds, unit: int = ALIGNMENT) -> Iterator[CodeImage]:
    """The images of all fatbins that begin between two offsets, at multiples of ``unit``.

    Damaged ones are noted, and the next is looked for.
    """
    at = start + unit - 1 & -unit
    while end - at >= _CONTAINER.size:
        chunk = file.read(at, min(_PEEK, end - at))
        found = first_start(chunk, unit)
        if found < 0:
            at = _find(file, at, end, bounds, unit)
            continue
        bounds.count_image()
        bounds.containers += 1
        at += found
        if len(chunk) - found < _CONTAINER.size:
            chunk, found = file.exactly(at, _CONTAINER.size, "a fatbin"), 0
        header, size = _CONTAINER.unpack_from(chunk, found)
        stop = at + header + size
        if stop > end:
            bounds.note("a fatbin is cut short")
            stop = end
        yield from _images(file, at + header, stop, chunk[found + header :], bounds)
        at = stop + unit - 1 & -unit


def first_start(data: bytes, unit: int) -> int:
    """The first multiple of ``unit`` at which a container begins in the data, or -1.

    One rare byte of the magic is looked for, in no more bytes than where it can be: so gigabytes are searched in a
    second. A search for all of the magic is slow where there are many zeros, of which it has some.
    """
    column = data[_RARE::unit]
    found = column.find(START[_RARE])
    while found >= 0 and not data.startswith(START, found * unit):
        found = column.find(START[_RARE], found + 1)
    return found * unit if found >= 0 else -1


def _find(file: ByteReader, start: int, end: int, bounds: Bounds, unit: int) -> int:
    """The offset of the next container, or ``end``; raises ElfError when too much would have to be searched."""
    shared = len(START) - 1 & -unit
    step = _SEARCH_FIRST
    at = start
    while end - at >= len(START):
        chunk = file.read(at, min(step, end - at))
        bounds.count_bytes(step)
        found = first_start(chunk, unit)
        if found >= 0:
            return at + found
        if len(chunk) < step:
            break
        at += step - shared
        step = min(step * 4, _SEARCH_MOST)
    return end


def _images(file: ByteReader, start: int, stop: int, peeked: bytes, bounds: Bounds) -> Iterator[CodeImage]:
    """The images of one fatbin; ``peeked`` is what was already read of its beginning."""
    at = start
    data = peeked
    while stop - at >= _IMAGE.size:
        bounds.count_image()
        if len(data) < _IMAGE.size:
            data = file.exactly(at, _IMAGE.size, "the header of GPU code")
        kind, header, size, minor, major, capability, flags = _IMAGE.unpack_from(data)
        data = b""
        total = header + size
        if header < _IMAGE.size or total > stop - at:
            bounds.note("a fatbin is damaged: a piece of GPU code is longer than what holds it")
            return
        yield CodeImage(kind, capability, flags, minor, major, at, total, at + header)
        at += total
