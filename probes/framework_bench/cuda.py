"""The GPU of a child that runs under the environment's interpreter: memory, a stream and events, by the driver."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable
from typing import Any

from ..trials.driver import check, with_context

_POISON = 0xFF
"""NaN in every floating-point type, -1 in integers."""

_CAPABILITY_MAJOR, _CAPABILITY_MINOR = 75, 76
"""Members of ``CUdevice_attribute``."""


class RuntimeMemory:
    """Bytes of device memory, poisoned until something is written."""

    def __init__(self, driver: Any, size: int) -> None:
        self._driver, self.size = driver, size
        self._address = ctypes.c_uint64(0)
        check("cuMemAlloc", driver.cuMemAlloc_v2(ctypes.byref(self._address), ctypes.c_size_t(max(size, 1))))
        self.poison()

    @property
    def address(self) -> int:
        return int(self._address.value)

    def write(self, data: bytes) -> None:
        """Copy host bytes there, from its beginning on."""
        if len(data) > self.size:
            raise ValueError(f"{len(data)} bytes do not fit into {self.size}")
        check("cuMemcpyHtoD", self._driver.cuMemcpyHtoD_v2(self._address, data, ctypes.c_size_t(len(data))))

    def read(self, start: int, size: int) -> bytes:
        """``size`` bytes from ``start`` on, once all that was started has ended."""
        if start < 0 or start + size > self.size:
            raise ValueError(f"{size} bytes from {start} on do not lie in {self.size}")
        check("cuCtxSynchronize", self._driver.cuCtxSynchronize())
        data = ctypes.create_string_buffer(max(size, 1))
        place = ctypes.c_uint64(self.address + start)
        check("cuMemcpyDtoH", self._driver.cuMemcpyDtoH_v2(data, place, ctypes.c_size_t(size)))
        return data.raw[:size]

    def poison(self) -> None:
        """Overwrite every byte, before anything that is started afterwards."""
        size = ctypes.c_size_t(self.size)
        check("cuMemsetD8", self._driver.cuMemsetD8_v2(self._address, ctypes.c_ubyte(_POISON), size))
        check("cuCtxSynchronize", self._driver.cuCtxSynchronize())

    def free(self) -> None:
        check("cuMemFree", self._driver.cuMemFree_v2(self._address))


class RuntimeGpu:
    """The first GPU of this process, in the context that the framework under test uses too."""

    def __init__(self) -> None:
        self._driver = with_context()
        self._stream = ctypes.c_void_p()
        check("cuStreamCreate", self._driver.cuStreamCreate(ctypes.byref(self._stream), ctypes.c_uint(1)))
        self._start, self._end = self._event(), self._event()

    @property
    def stream(self) -> int:
        """A stream that does not wait for the default one."""
        return int(self._stream.value or 0)

    def capability(self) -> tuple[int, int]:
        """Compute capability."""
        device = ctypes.c_int(0)
        check("cuCtxGetDevice", self._driver.cuCtxGetDevice(ctypes.byref(device)))
        return self._attribute(_CAPABILITY_MAJOR, device), self._attribute(_CAPABILITY_MINOR, device)

    def memory(self, size: int) -> RuntimeMemory:
        """``size`` bytes; raise DriverError where there is not as much."""
        return RuntimeMemory(self._driver, size)

    def free_memory(self) -> int:
        """Bytes that can still be allocated, about."""
        free, total = ctypes.c_size_t(0), ctypes.c_size_t(0)
        check("cuMemGetInfo", self._driver.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total)))
        return int(free.value)

    def synchronize(self) -> None:
        """Wait for what was queued on the stream; raise DriverError where it failed."""
        check("cuStreamSynchronize", self._driver.cuStreamSynchronize(self._stream))

    def timed(self, work: Callable[[], None], samples: int = 7, sample_seconds: float = 0.01) -> list[float]:
        """Seconds of one run of what ``work`` queues on the stream, once for each sample of about that length.

        As long again is run before and not counted, so that clocks and caches are up.
        """
        work()
        self.synchronize()
        one = self._sample(work, 1)
        runs = max(1, min(2000, round(sample_seconds / max(one, 1e-7))))
        until = time.monotonic() + sample_seconds
        while time.monotonic() < until:
            self._sample(work, runs)
        return [self._sample(work, runs) for _ in range(samples)]

    def _sample(self, work: Callable[[], None], runs: int) -> float:
        milliseconds = ctypes.c_float(0)
        self._record(self._start)
        for _ in range(runs):
            work()
        self._record(self._end)
        check("cuEventSynchronize", self._driver.cuEventSynchronize(self._end))
        elapsed = self._driver.cuEventElapsedTime(ctypes.byref(milliseconds), self._start, self._end)
        check("cuEventElapsedTime", elapsed)
        return float(milliseconds.value) / 1e3 / runs

    def _attribute(self, number: int, device: ctypes.c_int) -> int:
        value = ctypes.c_int(0)
        call = self._driver.cuDeviceGetAttribute(ctypes.byref(value), ctypes.c_int(number), device)
        check("cuDeviceGetAttribute", call)
        return int(value.value)

    def _event(self) -> ctypes.c_void_p:
        event = ctypes.c_void_p()
        check("cuEventCreate", self._driver.cuEventCreate(ctypes.byref(event), ctypes.c_uint(0)))
        return event

    def _record(self, event: ctypes.c_void_p) -> None:
        check("cuEventRecord", self._driver.cuEventRecord(event, self._stream))
