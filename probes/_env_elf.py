"""The constants that a compiler put into a 64-bit little-endian ELF file: its section ``.rodata``, and no more of it.

Read by the section table (ELF-64 object file format), so that of a library of 30 MB one megabyte is read.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import BinaryIO

from ._env_paths import is_file
from ._kit import Request, below

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_CLASS64_LITTLE = b"\x7fELF\x02\x01"
_SECTIONS = 4096
_NAMES = 1 << 20
SIZE_LIMIT = 64 << 20


def constants(request: Request, path: str) -> bytes | None:
    """The bytes of ``.rodata``, at most ``SIZE_LIMIT``, or None when the file has none that can be read."""
    if not is_file(request, path):
        return None
    try:
        with Path(below(request, path)).open("rb") as file:
            return _section(file, b".rodata")
    except (OSError, struct.error):
        return None


def _section(file: BinaryIO, wanted: bytes) -> bytes | None:
    head = file.read(_HEADER.size)
    if not head.startswith(_CLASS64_LITTLE):
        return None
    fields = _HEADER.unpack(head)
    table, entry_size, count, names_index = fields[6], fields[11], fields[12], fields[13]
    if entry_size != _SECTION.size or count > _SECTIONS or names_index >= count:
        return None
    raw = _bytes_at(file, table, entry_size * count)
    sections = [_SECTION.unpack_from(raw, i * entry_size) for i in range(count)]
    names = _bytes_at(file, sections[names_index][4], min(sections[names_index][5], _NAMES))
    for section in sections:
        name, offset, size = section[0], section[4], section[5]
        if names[name : name + len(wanted) + 1] == wanted + b"\0":
            return _bytes_at(file, offset, min(size, SIZE_LIMIT))
    return None


def _bytes_at(file: BinaryIO, offset: int, size: int) -> bytes:
    if offset >= 1 << 62:  # beyond what any file system holds; seek would raise OverflowError
        return b""
    file.seek(offset)
    return file.read(size)
