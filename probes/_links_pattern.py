"""A pattern in device memory that is written, and later compared word by word, on the GPU itself."""

from __future__ import annotations

import ctypes

from ._gpu_kernels import Module, number, pointer
from ._gpu_measurement import Bench, Fields

SEED = 0x2545F4914F6CDD1D
POISON = 0xEE
BLOCK = 256


class Pattern:
    """The pattern of ``kernels/memory.cu`` over ``size`` bytes."""

    def __init__(self, bench: Bench, size: int) -> None:
        self._device, self._size = bench.device, size
        module = Module(bench.device, bench.compiler.module("memory", ("-DUNROLL=1",)))
        self._fill, self._check = module.kernel("fill"), module.kernel("check_fill")
        self._pairs = size // 16
        self._grid = -(-self._pairs // BLOCK)
        self._wrong = bench.device.allocate(8)

    def close(self) -> None:
        self._device.free(self._wrong)

    def write(self, address: int) -> None:
        self._fill.launch(self._grid, BLOCK, pointer(address), number(self._pairs), (SEED, ctypes.c_ulonglong))

    def poison(self, address: int) -> None:
        self._device.fill(address, self._size, POISON)

    def verified(self, address: int, how: str) -> Fields:
        """A ``Verification`` of what lies there now."""
        self._device.fill(self._wrong, 8, 0)
        seed = (SEED, ctypes.c_ulonglong)
        self._check.launch(self._grid, BLOCK, pointer(address), number(self._pairs), seed, pointer(self._wrong))
        wrong = int.from_bytes(self._device.read(self._wrong, 8), "little")
        return {"source": "bench", "right": wrong == 0, "checked": 2 * self._pairs, "wrong": wrong, "how": how}
