"""A pattern in device memory that is written, and later compared word by word, on the GPU itself."""

from __future__ import annotations

import ctypes

from .kernels import Compiler, Module, number, pointer
from .measurement import Bench

SEED = 0x2545F4914F6CDD1D
OTHER = 0x9FB21C651E98DF25
"""A second pattern: where copies cross, none may be taken for the other."""
POISON = 0xEE
BLOCK = 256


def pattern_code(compiler: Compiler) -> bytes:
    """The compiled kernels."""
    return compiler.module("memory", ("-DUNROLL=1",))


class Pattern:
    """Patterns of ``kernels/memory.cu`` over ``size`` bytes, each known by its seed."""

    def __init__(self, bench: Bench, size: int) -> None:
        self._device, self._size = bench.device, size
        module = Module(bench.device, pattern_code(bench.compiler))
        self._fill, self._check = module.kernel("fill"), module.kernel("check_fill")
        self._pairs = size // 16
        self.words = 2 * self._pairs
        self._grid = -(-self._pairs // BLOCK)
        self._wrong = bench.device.allocate(8)

    def close(self) -> None:
        self._device.free(self._wrong)

    def write(self, address: int, seed: int = SEED) -> None:
        self._fill.launch(self._grid, BLOCK, pointer(address), number(self._pairs), (seed, ctypes.c_ulonglong))

    def poison(self, address: int) -> None:
        self._device.fill(address, self._size, POISON)

    def wrong(self, address: int, seed: int = SEED) -> int:
        """How many of ``words`` words there are not the pattern's."""
        self._device.fill(self._wrong, 8, 0)
        given = (seed, ctypes.c_ulonglong)
        self._check.launch(self._grid, BLOCK, pointer(address), number(self._pairs), given, pointer(self._wrong))
        return int.from_bytes(self._device.read(self._wrong, 8), "little")
