"""A CUDA library by the path of its file, loaded without dying of it and called through ctypes."""

from __future__ import annotations

import ctypes
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from ..files.elf.info import elf_info
from .device import LibraryError, Unavailable

if TYPE_CHECKING:
    from .measurement import Bench  # which compiles kernels, and so needs this module


def check(path: str) -> None:
    """Raise OSError for a file that the loader refuses, or maps and then ends the process (one that is cut off)."""
    found = elf_info(path)
    if found and found.refused:
        raise OSError(f"{path}: {found.refused}")


def opened(name: str) -> ctypes.CDLL:
    """Load a library by its path, or by its name as the loader finds it; raise OSError where that cannot be."""
    check(name)
    return ctypes.CDLL(name)


class CudaLibrary:
    """The library of a family that the examined environment would load.

    A library that is not there raises Unavailable; one that cannot be loaded, or whose call fails, LibraryError.
    ``first`` names the families whose libraries it opens by name while it works: in the environment's process those are
    loaded already.
    """

    def __init__(self, bench: Bench, family: str, title: str, first: tuple[str, ...] = (), path: str = "") -> None:
        paths = [path] if path else bench.libraries.get(family, [])
        if not paths:
            raise Unavailable(f"no {title} was found: neither the examined environment nor a toolkit holds one")
        self.family, self.title, self.path = family, title, paths[0]
        file = self.path
        try:
            for file in (found[0] for each in first if (found := bench.libraries.get(each))):
                check(file)
                with suppress(OSError):  # what the library cannot do without it, its own calls say
                    ctypes.CDLL(file)
            file = self.path
            self._library = opened(file)
        except OSError as error:
            raise LibraryError(f"{title} cannot be loaded: {error}", file) from error

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
