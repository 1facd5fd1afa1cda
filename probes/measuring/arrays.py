"""Arrays in a GPU's memory: fresh random numbers for a library to work on, and its results as Python numbers."""

from __future__ import annotations

import ctypes
import os
import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from .device import Device
from .kernels import Module, number, pointer
from .measurement import Bench, Work
from .runtime import Unavailable
from .verify import INT32, decoded, encoded

POISON = 0xFF  # NaN in every floating-point type
RESERVE = 256 << 20  # Bytes of device memory left to others


@dataclass(frozen=True)
class ElementType:
    code: int  # ``KIND`` of ``kernels/gemm.cu``; integers of 32 bits are not drawn there
    size: int  # Bytes
    epsilon: float  # Unit roundoff, relative to one; 0 for integers


ELEMENTS = {
    "fp64": ElementType(0, 8, 2**-53),
    "fp32": ElementType(1, 4, 2**-24),
    "fp16": ElementType(2, 2, 2**-11),
    "bf16": ElementType(3, 2, 2**-8),
    "int8": ElementType(5, 1, 0.0),
    "int32": ElementType(INT32, 4, 0.0),
}


@dataclass(frozen=True)
class Array:
    """``count`` elements of a type at an address."""

    device: Device
    kind: str
    count: int
    address: int

    @property
    def element(self) -> ElementType:
        return ELEMENTS[self.kind]

    @property
    def bytes(self) -> int:
        return self.count * self.element.size

    def values(self, start: int = 0, count: int | None = None) -> list[float]:
        """``count`` elements from ``start`` on (all that follow), as Python numbers."""
        size = self.element.size
        length = self.count - start if count is None else count
        found: list[float] = decoded(self.device.read(self.address + start * size, length * size), self.element.code)
        return list(found)

    def strided(self, start: int, stride: int, count: int) -> list[float]:
        """``count`` elements from ``start`` on, each ``stride`` elements behind the last."""
        size = self.element.size
        data = self.device.read_strided(self.address + start * size, size, stride * size, count)
        return list(decoded(data, self.element.code))

    def poison(self) -> None:
        """Queue the overwriting of every byte: NaN, -1 in integers."""
        self.device.fill(self.address, self.bytes, POISON)


def poisoning(*arrays: Array) -> Work:
    """What queues the overwriting of all of them."""

    def poison() -> None:
        for array in arrays:
            array.poison()

    return poison


class Arrays:
    """Makes arrays on the GPU of a bench, within the memory that is free."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.draw = random.Random(os.urandom(16))  # noqa: S311  no secret
        self._modules: dict[int, Module] = {}

    @contextmanager
    def empty(self, kind: str, count: int) -> Iterator[Array]:
        """Poisoned memory for as long as the block lasts; raise Unavailable where there is not as much."""
        device, size = self.bench.device, count * ELEMENTS[kind].size
        free = device.free_memory()
        if size + RESERVE > free:
            raise Unavailable(f"{size + RESERVE >> 20} MiB of device memory are needed, {free >> 20} MiB are free")
        with device.buffer(max(size, 1)) as address:
            array = Array(device, kind, count, address)
            array.poison()
            yield array

    @contextmanager
    def workspace(self, size: int) -> Iterator[int]:
        """The address of ``size`` bytes; 0 for none."""
        if size == 0:
            yield 0
            return
        with self.empty("int8", size) as array:
            yield array.address

    @contextmanager
    def random(self, kind: str, count: int) -> Iterator[Array]:
        """Numbers that no run had before: uniform in [-1, 1), integers over their whole range.

        They are drawn on the host where nothing is timed: that needs no compiler.
        """
        device = self.bench.device
        with self.empty(kind, count) as array:
            code = array.element.code
            if self.bench.timing:
                if code not in self._modules:
                    options = (f"-DKIND={code}", f"-DRESULT={code}")
                    self._modules[code] = Module(device, self.bench.compiler.module("gemm", options))
                seed = int.from_bytes(os.urandom(8), "little")
                arguments = (pointer(array.address), number(count), (seed, ctypes.c_ulonglong))
                self._modules[code].kernel("fill_random").launch(device.sms * 8, 256, *arguments)
                device.synchronize()
            else:
                device.write(array.address, encoded([self.draw.uniform(-1, 1) for _ in range(count)], code))
            yield array
