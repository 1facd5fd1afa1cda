"""The target of GPU code that stands alone: a cubin (an ELF file for the GPU) or PTX as text.

Where a cubin says its target, as CUDA 11.8, 12.1, 12.4, 12.8, 12.9 and 13.0 write it:

- ABI version 7 (byte 8 of the header): the low byte of ``e_flags`` is the capability, 0x800 means ``a``.
- ABI version 8, from CUDA 12.8 on: the second byte is the capability; ``a`` is 0x8 in CUDA 12, and from CUDA 13 on the
  attribute 9 of the section ``.nv.compat``; ``f`` stands only in the arguments of ptxas that ``.note.nv.tkinfo`` keeps.
"""

from __future__ import annotations

import re
import struct
from typing import TYPE_CHECKING

from ._elf_file import Reader
from ._elf_headers import read_sections
from ._fatbin_walk import ARCHITECTURE_SPECIFIC, ELF, FAMILY_SPECIFIC, PTX, Image

if TYPE_CHECKING:
    from ._elf_headers import Header, Section

MACHINE = 190
"""EM_CUDA."""
RELOCATABLE = 1
"""ET_REL."""
_NEWER_ABI = 8
_SPECIFIC_OLDER, _SPECIFIC_NEWER = 0x800, 0x8
_NOTES_LIMIT = 1 << 16
_PTX_LIMIT = 1 << 16

_ARGUMENT = re.compile(rb"-arch[ =]sm_(\d+)([af]?)\b")
_VARIANT = {b"": 0, b"a": ARCHITECTURE_SPECIFIC, b"f": FAMILY_SPECIFIC}
_PTX_VERSION = re.compile(rb"\.version\s+(\d{1,3})\.(\d{1,3})$")
_PTX_TARGET = re.compile(rb"\.target\s+sm_(\d{1,4})([af]?)\b")

_ATTRIBUTE = struct.Struct("<BBH")
_COUNTED_ATTRIBUTE = 4
_ISA_CLASS = 9


def cubin(file: Reader, header: Header) -> Image:
    """The cubin as an image; raises ElfError where it is damaged."""
    if header.abi_version < _NEWER_ABI:
        capability = header.flags & 0xFF
        flags = ARCHITECTURE_SPECIFIC if header.flags & _SPECIFIC_OLDER else 0
    else:
        capability = header.flags >> 8 & 0xFF
        flags = _variant(file, header, capability)
    return Image(ELF, capability, flags, 0, 0, 0, file.size, 0)


def is_relocatable(file: Reader, image: Image) -> bool:
    """Whether the content is a plain cubin that still has to be linked."""
    head = file.read(image.content, 18)
    return len(head) == 18 and head.startswith(b"\x7fELF") and head[16] == RELOCATABLE


def ptx(file: Reader) -> Image | None:
    """PTX text as an image, or None where the text does not begin with a version and a target."""
    lines = (line.strip() for line in file.read(0, _PTX_LIMIT).splitlines())
    said = (line for line in lines if line and not line.startswith(b"//"))
    version = _PTX_VERSION.match(next(said, b""))
    target = _PTX_TARGET.match(next(said, b""))
    if version is None or target is None:
        return None
    return Image(PTX, int(target[1]), _VARIANT[target[2]], int(version[2]), int(version[1]), 0, file.size, 0)


def _variant(file: Reader, header: Header, capability: int) -> int:
    sections = {section.name: section for section in read_sections(file, header)}
    for number, variant in _ARGUMENT.findall(_content(file, sections.get(".note.nv.tkinfo"))):
        if number == str(capability).encode():
            return _VARIANT[variant]
    if header.flags & _SPECIFIC_NEWER or _isa_class(_content(file, sections.get(".nv.compat"))):
        return ARCHITECTURE_SPECIFIC
    return 0


def _content(file: Reader, section: Section | None) -> bytes:
    return b"" if section is None else file.read(section.offset, min(section.size, _NOTES_LIMIT))


def _isa_class(attributes: bytes) -> int:
    """The value of the attribute that says for which class of instructions the code was made; 0 without one."""
    at = 0
    while at + _ATTRIBUTE.size <= len(attributes):
        form, name, value = _ATTRIBUTE.unpack_from(attributes, at)
        if name == _ISA_CLASS and form != _COUNTED_ATTRIBUTE:
            return int(value)
        at += _ATTRIBUTE.size + (value if form == _COUNTED_ATTRIBUTE else 0)
    return 0
