"""Loading a library without dying of it."""

from __future__ import annotations

import ctypes

from ..elf.info import elf_info


def check(path: str) -> None:
    """Raise OSError for a file that the loader refuses, or maps and then ends the process (one that is cut off)."""
    found = elf_info(path)
    if found and found.refused:
        raise OSError(f"{path}: {found.refused}")


def opened(name: str) -> ctypes.CDLL:
    """Load a library by its path, or by its name as the loader finds it; raise OSError where that cannot be."""
    check(name)
    return ctypes.CDLL(name)
