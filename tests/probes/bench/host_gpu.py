"""A GPU that is host memory, and libraries that are Python functions: what probes do around a library, without one."""

import ctypes
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from probes.measuring import library
from probes.measuring.arrays import ELEMENTS, Array
from probes.measuring.measurement import Bench
from probes.measuring.verify import encoded


class HostDevice:
    """Takes the place of ``Device``; its addresses are the process's own."""

    stream = 1
    capability = (9, 0)
    sms = 1

    def __init__(self, free: int = 1 << 33) -> None:
        self.free = free

    def free_memory(self) -> int:
        return self.free

    @contextmanager
    def buffer(self, size: int) -> Iterator[int]:
        memory = (ctypes.c_char * size)()
        yield ctypes.addressof(memory)

    def fill(self, address: int, size: int, byte: int) -> None:
        ctypes.memset(address, byte, size)

    def read(self, address: int, size: int) -> bytearray:
        return bytearray(ctypes.string_at(address, size))

    def read_strided(self, address: int, size: int, stride: int, count: int) -> bytearray:
        return bytearray(b"".join(ctypes.string_at(address + place * stride, size) for place in range(count)))

    def write(self, address: int, data: bytes) -> None:
        ctypes.memmove(address, bytes(data), len(data))

    def write_strided(self, address: int, data: bytes, size: int, stride: int) -> None:
        for place in range(len(data) // size):
            self.write(address + place * stride, data[place * size : (place + 1) * size])

    def synchronize(self) -> None:
        pass

    def array(self, kind: str, values: list[float]) -> Array:
        """An array that lives as long as the device."""
        element = ELEMENTS[kind]
        memory = (ctypes.c_char * max(1, len(values) * element.size))()
        self.__dict__.setdefault("kept", []).append(memory)
        made = Array(self, kind, len(values), ctypes.addressof(memory))  # type: ignore[arg-type]
        self.write(made.address, encoded(values, element.code))
        return made


def bench_on(device: HostDevice, libraries: dict[str, list[str]]) -> Bench:
    """A deep check's bench."""
    gpu: Any = device
    nothing: Any = None
    return Bench("GPU-1", gpu, nothing, nothing, full=False, only=frozenset(), libraries=libraries, timing=False)


class Function:
    """A function of a library, as ctypes has it."""

    restype: Any = None

    def __init__(self, does: Callable[..., int]) -> None:
        self._does = does

    def __call__(self, *arguments: Any) -> int:
        return self._does(*arguments)


class PythonLibrary:
    """Takes the place of a ``CDLL``: functions that are not given do nothing and succeed; ``lacking`` do not exist."""

    def __init__(self, lacking: tuple[str, ...] = (), **functions: Callable[..., int]) -> None:
        self._lacking, self._functions = lacking, functions

    def __getattr__(self, name: str) -> Function:
        if name in self._lacking:
            raise AttributeError(name)
        return Function(self._functions.get(name, lambda *_: 0))


def load_instead(monkeypatch: pytest.MonkeyPatch, found: PythonLibrary) -> None:
    """Have probes load ``found`` from any path."""
    monkeypatch.setattr(library, "opened", lambda _: found)


def stored(reference: Any) -> Any:
    """What ``byref`` refers to."""
    return reference._obj


def floats(address: Any, count: int) -> Any:
    """FP32 numbers at an address, to read and to write."""
    return (ctypes.c_float * count).from_address(address.value)


def numbers(count: int) -> list[float]:
    """Random numbers in [-1, 1)."""
    draw = random.Random()
    return [draw.uniform(-1, 1) for _ in range(count)]
