"""The smallest shared library that a loader would look at, with a dynamic section of one's choice (constructed)."""

from __future__ import annotations

import struct
from collections.abc import Sequence

NEEDED, SONAME, RPATH, RUNPATH = 1, 14, 15, 29
_STRTAB, _STRSZ = 5, 10


def tiny_elf(
    needed: Sequence[str] = (), *, soname: str = "", rpath: str = "", runpath: str = "", machine: int = 62
) -> bytes:
    """A 64-bit little-endian ELF file of type ET_DYN."""
    texts = [(NEEDED, name) for name in needed]
    texts += [(tag, text) for tag, text in ((SONAME, soname), (RPATH, rpath), (RUNPATH, runpath)) if text]
    strings, entries = b"\0", b""
    for tag, text in texts:
        entries += struct.pack("<qQ", tag, len(strings))
        strings += text.encode("utf-8", "surrogateescape") + b"\0"
    start = 64 + 2 * 56
    size = len(entries) + 3 * 16
    entries += struct.pack("<qQqQqQ", _STRTAB, start + size, _STRSZ, len(strings), 0, 0)
    whole = start + size + len(strings)
    header = struct.pack("<16sHHIQQQIHHHHHH", b"\x7fELF\x02\x01\x01", 3, machine, 1, 0, 64, 0, 0, 64, 56, 2, 64, 0, 0)
    load = struct.pack("<IIQQQQQQ", 1, 4, 0, 0, 0, whole, whole, 4096)
    dynamic = struct.pack("<IIQQQQQQ", 2, 4, start, start, start, size, size, 8)
    return header + load + dynamic + entries + strings
