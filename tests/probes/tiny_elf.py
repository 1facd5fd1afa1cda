"""The smallest shared libraries that a loader would look at, with a dynamic section of one's choice (constructed)."""

import struct
from collections.abc import Sequence

NEEDED, SONAME, RPATH, RUNPATH = 1, 14, 15, 29
_STRTAB, _STRSZ = 5, 10


def tiny_elf(
    needed: Sequence[str] = (), *, soname: str = "", rpath: str = "", runpath: str = "", interpreter: str = ""
) -> bytes:
    """A 64-bit little-endian ELF file of type ET_DYN for x86-64; with an interpreter it is a program."""
    texts = [(NEEDED, name) for name in needed]
    texts += [(tag, text) for tag, text in ((SONAME, soname), (RPATH, rpath), (RUNPATH, runpath)) if text]
    strings, entries = interpreter.encode() + b"\0", b""
    for tag, text in texts:
        entries += struct.pack("<qQ", tag, len(strings))
        strings += text.encode("utf-8", "surrogateescape") + b"\0"
    start = 64 + 3 * 56
    size = len(entries) + 3 * 16
    entries += struct.pack("<qQqQqQ", _STRTAB, start + size, _STRSZ, len(strings), 0, 0)
    whole = start + size + len(strings)
    kinds = [(1, 0, whole), (2, start, size), (3 if interpreter else 0, start + size, len(interpreter) + 1)]
    segments = b"".join(struct.pack("<IIQQQQQQ", kind, 4, at, at, at, many, many, 8) for kind, at, many in kinds)
    header = struct.pack("<16sHHIQQQIHHHHHH", b"\x7fELF\x02\x01\x01", 3, 62, 1, 0, 64, 0, 0, 64, 56, 3, 64, 0, 0)
    return header + segments + entries + strings


BASE = 0x1000
HEADER, SEGMENT, DYNAMIC = struct.Struct("<16sHHIQQQIHHHHHH"), struct.Struct("<IIQQQQQQ"), struct.Struct("<qQ")


def library(entries: list[tuple[int, int]], content: bytes = b"", *, size: int | None = None) -> bytes:
    """A library without sections: ``content`` is loaded at ``BASE``, the dynamic section says ``entries``."""
    start = HEADER.size + 2 * SEGMENT.size
    dynamic = b"".join(DYNAMIC.pack(tag, value) for tag, value in [*entries, (0, 0)])
    loaded = len(content) if size is None else size
    return b"".join(
        [
            HEADER.pack(b"\x7fELF\x02\x01\x01", 3, 62, 1, 0, 64, 0, 0, 64, 56, 2, 64, 0, 0),
            SEGMENT.pack(1, 4, start + len(dynamic), BASE, BASE, loaded, loaded, 8),
            SEGMENT.pack(2, 4, start, 0, 0, len(dynamic), len(dynamic), 8), dynamic, content,
        ],
    )  # fmt: skip
