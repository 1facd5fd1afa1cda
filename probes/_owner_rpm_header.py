"""Read the header of an installed RPM package: name, version, and the files with their sizes.

The form is that of a header without its magic: two big-endian counts, an index of entries (tag, type, offset, count)
and the store to which they point (rpm's documentation, "RPM V4 package format", section "Header").
"""

from __future__ import annotations

import struct
from typing import NamedTuple

NAME, VERSION, RELEASE, EPOCH = 1000, 1001, 1002, 1003
FILE_SIZES, LONG_FILE_SIZES = 1028, 5008
FOLDER_INDEXES, BASE_NAMES, FOLDER_NAMES = 1116, 1117, 1118
_ENTRIES = 4096
_FILES = 1 << 18
_ENTRY = struct.Struct(">IIII")


class File(NamedTuple):
    path: str
    size: int | None


class Package(NamedTuple):
    name: str
    version: str
    """With its release, and its epoch where it has one: ``12.4.5.8-1``."""
    files: tuple[File, ...]


class _Header:
    """The index and store of a header; what is damaged is not there."""

    def __init__(self, blob: bytes) -> None:
        count, size = struct.unpack_from(">II", blob) if len(blob) >= 8 else (0, 0)
        count = min(count, _ENTRIES, (len(blob) - 8) // _ENTRY.size if len(blob) >= 8 else 0)
        start = 8 + count * _ENTRY.size
        self._store = blob[start : start + size]
        self._index = {
            tag: (offset, number) for tag, _, offset, number in _ENTRY.iter_unpack(blob[8:start]) if number <= _FILES
        }

    def texts(self, tag: int) -> list[str]:
        offset, count = self._index.get(tag, (0, 0))
        parts = self._store[offset:].split(b"\0", count)[:count] if count else []
        return [part.decode("utf-8", "replace") for part in parts]

    def text(self, tag: int) -> str:
        return next(iter(self.texts(tag)[:1]), "")

    def numbers(self, tag: int, letter: str = "I") -> list[int]:
        offset, count = self._index.get(tag, (0, 0))
        size = struct.calcsize(letter)
        raw = self._store[offset : offset + count * size]
        return list(struct.unpack(f">{len(raw) // size}{letter}", raw[: len(raw) // size * size]))


def read(blob: bytes) -> Package | None:
    """The package of a header, or None for what is none."""
    header = _Header(blob)
    name, version = header.text(NAME), header.text(VERSION)
    if not name or not version:
        return None
    epoch = header.numbers(EPOCH)
    release = header.text(RELEASE)
    full = f"{epoch[0]}:{version}" if epoch else version
    return Package(name, f"{full}-{release}" if release else full, tuple(_files(header)))


def name_in(start: bytes) -> str:
    """The name in a header of which only the start is there; empty where it is not in that."""
    return _Header(start).text(NAME)


def _files(header: _Header) -> list[File]:
    folders, indexes = header.texts(FOLDER_NAMES), header.numbers(FOLDER_INDEXES)
    sizes: list[int] = header.numbers(LONG_FILE_SIZES, "Q") or header.numbers(FILE_SIZES)
    return [
        File(folders[index] + name, sizes[place] if place < len(sizes) else None)
        for place, (name, index) in enumerate(zip(header.texts(BASE_NAMES), indexes))  # noqa: B905  may differ, if damaged
        if index < len(folders)
    ]
