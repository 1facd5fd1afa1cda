"""Small reads of one file, most of them near each other, at the cost of few system calls."""

from __future__ import annotations

from ._elf import Elf, open_elf
from ._elf_file import File

_BLOCK = 1 << 13
_SMALL = 1 << 10
_BLOCKS = 256


class Near(File):
    """The same file, read a block at a time; what is asked for at once in larger pieces is read as before."""

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
    """Open an ELF file to read much of its dynamic section; raises ElfError where it is none or cannot be read."""
    elf = open_elf(path)
    elf.file = Near(elf.file)
    return elf
