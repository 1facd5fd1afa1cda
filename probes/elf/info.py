"""The part of an ELF file that the dynamic loader reads before it maps the file; each file is read once."""

from __future__ import annotations

import os
import stat
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from ..kit.tree import refused
from .library import Elf, ElfError, open_elf
from .refused import why_refused
from .tables import ET_EXEC, PT_INTERP, File, read_segments, text

if TYPE_CHECKING:
    from collections.abc import Mapping

# Many small, adjacent reads of one file with few system calls.

_BLOCK = 1 << 13
_SMALL = 1 << 10
_BLOCKS = 256


class BlockCache(File):
    """A file that is read in blocks; larger reads bypass the cache."""

    def __init__(self, file: File) -> None:
        self.path, self.size = file.path, file.size
        self._file = file
        self._blocks: dict[int, bytes] = {}

    def read(self, offset: int, size: int) -> bytes:
        number, start = divmod(offset, _BLOCK)
        if size > _SMALL or start + size > _BLOCK or offset < 0 or size <= 0:
            return self._file.read(offset, size)
        block = self._blocks.get(number)
        if block is None:
            if len(self._blocks) >= _BLOCKS:
                self._blocks.clear()
            block = self._blocks[number] = self._file.read(number * _BLOCK, _BLOCK)
        return block[start : start + size]

    def close(self) -> None:
        self._file.close()


def open_near(path: str) -> Elf:
    """Open an ELF file through a block cache; raises ElfError if it is none or cannot be read."""
    elf = open_elf(path)
    elf.file = BlockCache(elf.file)
    return elf


# What the dynamic loader reads of a file before it maps it.


_KEPT = 8192
_PATH_LIMIT = 4096
_HEADS: dict[tuple[int, int, int, int], ElfInfo] = {}


class Identity(NamedTuple):
    """The identity of a file, whatever its path: the loader maps no file twice."""

    device: int
    inode: int


class _Read(NamedTuple):
    """The fields; a NamedTuple has no place for cached attributes."""

    place: str
    """Path on the running system, below the request's root."""
    identity: Identity
    bits: int = 0
    order: str = ""
    """``<`` or ``>``, as ``struct`` has it."""
    machine: str = ""
    program: bool = False
    """Whether it is a program with a fixed address, which no process can load as a library."""
    soname: str | None = None
    needed: tuple[str, ...] = ()
    rpath: tuple[str, ...] = ()
    """Empty if there is a RUNPATH, which overrides it."""
    runpath: tuple[str, ...] | None = None
    """None if there is none."""
    no_defaults: bool = False
    refused: str | None = None
    """Why the loader would refuse this file, as one sentence."""
    problem: str | None = None
    """Why the file could not be read completely."""

    version_needs: Mapping[str, tuple[str, ...]] = {}
    """The symbol versions needed, by file; empty if the table is damaged."""
    version_definitions: tuple[str, ...] = ()
    """The symbol versions that it defines; empty if the table is damaged."""


class ElfInfo(_Read):
    """The dynamic section of a file, as far as it could be read."""

    @cached_property
    def interpreter(self) -> str | None:
        """The loader that a program names."""
        try:
            with open_near(self.place) as elf:
                return _interpreter(elf)
        except ElfError:
            return None


def elf_info(place: str) -> ElfInfo | None:
    """The ELF facts of a file; None if it is not an ELF file or may not be opened.

    Raises OSError where a path can lead nowhere for another reason (a link in a circle, a name that is too long).
    """
    try:
        found = os.stat(place)
    except (FileNotFoundError, NotADirectoryError, PermissionError) as error:
        refused(place, error)
        return None
    key = (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)
    if key not in _HEADS:
        head = _read(place, Identity(found.st_dev, found.st_ino), regular=stat.S_ISREG(found.st_mode))
        if head is None:
            return None
        if len(_HEADS) >= _KEPT:
            _HEADS.clear()
        _HEADS[key] = head
    return _HEADS[key]


def _read(place: str, identity: Identity, *, regular: bool) -> ElfInfo | None:
    if not regular:
        return ElfInfo(place, identity, refused="it is not a regular file")
    try:
        elf = open_near(place)
    except ElfError as error:
        return ElfInfo(place, identity, refused=str(error)) if os.access(place, os.R_OK) else None
    with elf:
        known: dict[str, Any] = {"bits": elf.bits, "order": elf.header.order, "machine": elf.machine}
        known["program"] = elf.header.type == ET_EXEC
        try:
            known["refused"] = why_refused(elf)
            known.update(_dynamic(elf))
            known.update(_versions(elf))
        except ElfError as error:
            known["problem"] = str(error)
        return ElfInfo(place, identity, **known)


def _dynamic(elf: Elf) -> dict[str, Any]:
    runpath = elf.runpath or None
    rpath = () if runpath else elf.rpath
    return {
        "soname": elf.soname,
        "needed": elf.needed,
        "rpath": () if rpath == ("",) else rpath,
        "runpath": () if runpath == ("",) else runpath,
        "no_defaults": elf.no_default_lib,
    }


def _versions(elf: Elf) -> dict[str, Any]:
    try:
        return {"version_needs": elf.version_needs, "version_definitions": elf.version_definitions}
    except ElfError:
        return {}


def _interpreter(elf: Elf) -> str | None:
    for segment in read_segments(elf.file, elf.header):
        if segment.type == PT_INTERP:
            return text(elf.read(segment.offset, min(segment.size, _PATH_LIMIT)).partition(b"\0")[0]) or None
    return None
