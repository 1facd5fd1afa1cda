"""The driver as a process of the environment has it: where a pointer lies; the first GPU, its memory and a stream."""

from __future__ import annotations

import ctypes
import os
import time
from typing import Any, Callable

from ..common.record import canonical_bus_id

_LIBRARY = "libcuda.so.1"
_POISON = 0xFF  # NaN in every floating-point type, -1 in integers

# Members of ``CUdevice_attribute``, of ``CUpointer_attribute``, and of ``CUmemorytype``.
_MULTIPROCESSORS, _CAPABILITY_MAJOR, _CAPABILITY_MINOR = 16, 75, 76
_MEMORY_TYPE = 2
_DEVICE_MEMORY, _UNIFIED_MEMORY = 2, 4

IN_DEVICE_MEMORY = "the driver says that the result lies in device memory"


def is_device_memory(pointer: int) -> bool:
    """Whether the address lies in a GPU's memory, by the driver that this process has loaded."""
    library = _loaded()
    kind = ctypes.c_uint(0)
    if library is None or not pointer:
        return False
    status = library.cuPointerGetAttribute(ctypes.byref(kind), ctypes.c_int(_MEMORY_TYPE), ctypes.c_uint64(pointer))
    return bool(status == 0 and kind.value in (_DEVICE_MEMORY, _UNIFIED_MEMORY))


def first_gpu() -> str | None:
    """PCI bus id of the GPU that is number 0 in this process."""
    library = _loaded()
    device, text = ctypes.c_int(0), ctypes.create_string_buffer(32)
    if library is None or library.cuDeviceGet(ctypes.byref(device), ctypes.c_int(0)) != 0:
        return None
    if library.cuDeviceGetPCIBusId(text, ctypes.c_int(len(text)), device) != 0:
        return None
    return canonical_bus_id(text.value.decode("ascii", "replace"))


def _loaded() -> Any:
    try:
        return ctypes.CDLL(_LIBRARY, mode=getattr(os, "RTLD_NOLOAD", 0) | os.RTLD_NOW)
    except OSError:
        return None


class DriverError(Exception):
    """A call of the driver failed."""


class RuntimeGpu:
    """The first GPU of this process; the framework's own context, else the primary one, is current on this thread."""

    def __init__(self) -> None:
        self._library = ctypes.CDLL(_LIBRARY)
        context, device = ctypes.c_void_p(), ctypes.c_int()
        self.ask("cuInit", 0)
        self.ask("cuCtxGetCurrent", ctypes.byref(context))
        if not context.value:
            self.ask("cuDeviceGet", ctypes.byref(device), 0)
            self.ask("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
            self.ask("cuCtxSetCurrent", context)
        self._stream = ctypes.c_void_p()

    def ask(self, name: str, *arguments: object) -> None:
        """Call a function of the driver; raise DriverError unless its status is that of success."""
        status = getattr(self._library, name)(*arguments)
        if status != 0:
            raise DriverError(f"{name.partition('_')[0]} returned {status}")

    @property
    def stream(self) -> int:
        """A stream that does not wait for the default one."""
        if not self._stream.value:
            self.ask("cuStreamCreate", ctypes.byref(self._stream), ctypes.c_uint(1))
        return int(self._stream.value or 0)

    def capability(self) -> tuple[int, int]:
        return self._attribute(_CAPABILITY_MAJOR), self._attribute(_CAPABILITY_MINOR)

    def multiprocessors(self) -> int:
        return self._attribute(_MULTIPROCESSORS)

    def memory(self, size: int) -> RuntimeMemory:
        """``size`` bytes; raise DriverError where there is not as much."""
        return RuntimeMemory(self, size)

    def free_memory(self) -> int:
        """Bytes that can still be allocated, about."""
        free, total = ctypes.c_size_t(0), ctypes.c_size_t(0)
        self.ask("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
        return int(free.value)

    def synchronize(self) -> None:
        """Wait for what was queued on the stream; raise DriverError where it failed."""
        self.ask("cuStreamSynchronize", ctypes.c_void_p(self.stream))

    def timed(self, work: Callable[[], None], samples: int = 7, sample_seconds: float = 0.01) -> list[float]:
        """Seconds of one run of what ``work`` queues on the stream, once for each sample of about that length.

        As long again is run before and not counted, so that clocks and caches are up.
        """
        start, end, stream = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p(self.stream)
        for event in (start, end):
            self.ask("cuEventCreate", ctypes.byref(event), ctypes.c_uint(0))

        def sample(runs: int) -> float:
            milliseconds = ctypes.c_float(0)
            self.ask("cuEventRecord", start, stream)
            for _ in range(runs):
                work()
            self.ask("cuEventRecord", end, stream)
            self.ask("cuEventSynchronize", end)
            self.ask("cuEventElapsedTime", ctypes.byref(milliseconds), start, end)
            return float(milliseconds.value) / 1e3 / runs

        work()
        self.synchronize()
        one = sample(1)
        runs = max(1, min(2000, round(sample_seconds / max(one, 1e-7))))
        until = time.monotonic() + sample_seconds
        while time.monotonic() < until:
            sample(runs)
        return [sample(runs) for _ in range(samples)]

    def _attribute(self, number: int) -> int:
        device, value = ctypes.c_int(0), ctypes.c_int(0)
        self.ask("cuCtxGetDevice", ctypes.byref(device))
        self.ask("cuDeviceGetAttribute", ctypes.byref(value), ctypes.c_int(number), device)
        return int(value.value)


class RuntimeMemory:
    """Bytes of device memory, poisoned until something is written."""

    def __init__(self, gpu: RuntimeGpu, size: int) -> None:
        self._gpu, self.size = gpu, size
        self._address = ctypes.c_uint64(0)
        gpu.ask("cuMemAlloc_v2", ctypes.byref(self._address), ctypes.c_size_t(max(size, 1)))
        self.poison()

    @property
    def address(self) -> int:
        return int(self._address.value)

    def write(self, data: bytes) -> None:
        """Copy host bytes there, from its beginning on."""
        if len(data) > self.size:
            raise ValueError(f"{len(data)} bytes do not fit into {self.size}")
        self._gpu.ask("cuMemcpyHtoD_v2", self._address, data, ctypes.c_size_t(len(data)))

    def read(self, start: int, size: int) -> bytes:
        """``size`` bytes from ``start`` on, once all that was started has ended."""
        if start < 0 or start + size > self.size:
            raise ValueError(f"{size} bytes from {start} on do not lie in {self.size}")
        self._gpu.ask("cuCtxSynchronize")
        data = ctypes.create_string_buffer(max(size, 1))
        self._gpu.ask("cuMemcpyDtoH_v2", data, ctypes.c_uint64(self.address + start), ctypes.c_size_t(size))
        return data.raw[:size]

    def poison(self) -> None:
        """Overwrite every byte, before anything that is started afterwards."""
        self._gpu.ask("cuMemsetD8_v2", self._address, ctypes.c_ubyte(_POISON), ctypes.c_size_t(self.size))
        self._gpu.ask("cuCtxSynchronize")

    def free(self) -> None:
        self._gpu.ask("cuMemFree_v2", self._address)
