"""A CUDA library by the path of its file, called through ctypes."""

from __future__ import annotations

import ctypes
from contextlib import suppress
from typing import Any

from ..elf.library import Elf, ElfError
from ..elf.tables import PT_LOAD
from .device import LibraryError, Unavailable
from .measurement import Bench


class Library:
    """The library of a family that the examined environment would load.

    A library that is not there raises Unavailable; one that cannot be loaded, or whose call fails, LibraryError.
    ``first`` names the families whose libraries it opens by name while it works: in the environment's process those are
    loaded already.
    """

    def __init__(self, bench: Bench, family: str, title: str, first: tuple[str, ...] = (), path: str = "") -> None:
        paths = [path] if path else bench.libraries.get(family, [])
        if not paths:
            raise Unavailable(f"no {title} was found: neither the examined environment nor a toolkit holds one")
        self.title, self.path = title, paths[0]
        for other in (found[0] for each in first if (found := bench.libraries.get(each))):
            _refuse_truncated(title, other)
            with suppress(OSError):  # what the library cannot do without it, its own calls say
                ctypes.CDLL(other)
        _refuse_truncated(title, self.path)
        try:
            self._library = ctypes.CDLL(self.path)
        except OSError as error:
            raise LibraryError(f"{title} cannot be loaded: {error}", self.path) from error

    def offers(self, function: str) -> bool:
        """Whether it exports a function."""
        return hasattr(self._library, function)

    def function(self, name: str) -> Any:
        """A function as ctypes has it; raise Unavailable where this release has none of that name."""
        try:
            return getattr(self._library, name)
        except AttributeError:
            raise Unavailable(f"this release of {self.title} has no {name}") from None

    def ask(self, name: str, *arguments: object) -> None:
        """Call a function that returns a status; raise LibraryError where that is not 0."""
        status = int(self.function(name)(*arguments))
        if status != 0:
            raise LibraryError(f"{name}: {self.describe(status)}", self.path)

    def describe(self, status: int) -> str:
        """A status in the library's own words, with its number."""
        return f"status {status}"


def _refuse_truncated(title: str, path: str) -> None:
    """Raise LibraryError for a file that ends before what it says is to be loaded.

    The loader maps such a file without complaint, and the process dies of a bus error on the first access to the rest.
    """
    try:
        with Elf(path) as elf:
            size, loaded = elf.size, [part.offset + part.size for part in elf.segments if part.type == PT_LOAD]
    except ElfError:
        return  # the loader has its own words for it
    end = max(loaded, default=0)
    if end > size:
        raise LibraryError(f"{title} cannot be loaded: {path} is truncated: {size:,} of {end:,} bytes", path)
