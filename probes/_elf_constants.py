"""The constants that a compiler put into a library or a program: its section ``.rodata``, and no more of it.

Of a library of 30 MB one megabyte is read.
"""

from __future__ import annotations

from ._elf import ElfError, open_elf
from ._env_paths import is_file
from ._kit import Request, below

_SECTION = ".rodata"


def constants(request: Request, path: str) -> bytes | None:
    """The bytes of ``.rodata``, at most ``_elf_file.READ_LIMIT``, or None when the file has none that can be read."""
    if not is_file(request, path):
        return None
    try:
        with open_elf(below(request, path)) as elf:
            place = elf.sections.get(_SECTION)
            return None if place is None else elf.read(*place)
    except ElfError:
        return None
