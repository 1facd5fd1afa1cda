"""Read ``/etc/ld.so.cache``, in which glibc's loader looks libraries up by name.

The format is that of glibc's ``dl-cache.h``: a header, entries of fixed size, and strings that they point to by their
distance from the header. Older systems put an entry table of an older format in front of it.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

_MAGIC = b"glibc-ld.so.cache1.1"
_OLD_MAGIC = b"ld.so-1.7.0"
_OLD_HEADER = 16
_OLD_ENTRY = 12
_ALIGNMENT = 8

_HEADER = 48
_FLAGS_AT = 28
_BIG_ENDIAN = 3
_MAX_STRING = 4096


class Cache(NamedTuple):
    """The entries, in the loader's order, and whether all could be read."""

    entries: tuple[tuple[str, str], ...]
    """Name that is looked up, and path."""
    complete: bool


def parse(data: bytes) -> Cache:
    """Parse a cache; what is damaged or cut off is left out, and said by ``complete``."""
    start = _start(data)
    header = data[start : start + _HEADER]
    if len(header) < _HEADER or not header.startswith(_MAGIC):
        return Cache((), complete=False)
    order = ">" if header[_FLAGS_AT] & 3 == _BIG_ENDIAN else "<"
    (count,) = struct.unpack_from(order + "I", header, len(_MAGIC))
    entry = struct.Struct(order + "iIIIQ")
    table = data[start + _HEADER : start + _HEADER + count * entry.size]
    whole = len(table) // entry.size
    found = []
    for _, name_at, path_at, _, _ in entry.iter_unpack(table[: whole * entry.size]):
        name, path = _string(data, start + name_at), _string(data, start + path_at)
        if name and path:
            found.append((name, path))
    return Cache(tuple(found), complete=len(found) == count)


def _start(data: bytes) -> int:
    if not data.startswith(_OLD_MAGIC) or len(data) < _OLD_HEADER:
        return 0
    (count,) = struct.unpack_from("=I", data, _OLD_HEADER - 4)
    end = _OLD_HEADER + int(count) * _OLD_ENTRY
    return end + -end % _ALIGNMENT


def _string(data: bytes, at: int) -> str | None:
    end = data.find(b"\0", at, at + _MAX_STRING)
    return data[at:end].decode("utf-8", "replace") if end > at else None
