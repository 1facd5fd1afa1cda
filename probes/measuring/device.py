"""One GPU with a context, through cuda.bindings: calls, memory, streams, events and copies."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import TracebackType
from typing import Any

from ..common.harmless import find_no_library
from ..driver_apis.cuda import CAPABILITY_MAJOR, CAPABILITY_MINOR, SM_COUNT, uuid_call, uuid_text
from .runtime import CudaError, Unavailable

# Calls of the CUDA driver API through cuda.bindings, with failures as exceptions that say what was called.


def driver() -> Any:
    """The binding; raise Unavailable where it cannot be imported."""
    find_no_library()
    try:
        from cuda.bindings import driver as binding
    except Exception as error:
        raise Unavailable(f"cuda-bindings cannot be used: {error}") from error
    return binding


def binding_name() -> str:
    """``cuda-bindings 13.0.3``, as far as known."""
    try:
        from cuda import bindings
    except Exception:
        return "cuda-bindings"
    return f"cuda-bindings {getattr(bindings, '__version__', '')}".rstrip()


def call(name: str, *arguments: Any) -> Any:
    """What ``name`` returned: nothing, a value, or a tuple of values; raise CudaError for any status but success."""
    try:
        status, *values = getattr(driver(), name)(*arguments)
    except RuntimeError as error:  # the binding found no such function in libcuda, or no libcuda
        raise Unavailable(str(error)) from error
    if int(status) != 0:
        raise CudaError(name, int(status), str(getattr(status, "name", "")))
    if not values:
        return None
    return values[0] if len(values) == 1 else tuple(values)


L2_BYTES = 38  # Member of ``CUdevice_attribute``


def ordinals() -> dict[str, int]:
    """UUID → CUDA ordinal of every GPU that this process may use; raise CudaError when CUDA does not start.

    Raises Unavailable where the binding cannot work with this driver: newer ones ask for entry points of newer drivers.
    """
    binding = driver()
    try:
        call("cuInit", 0)
    except Unavailable as error:
        raise Unavailable(f"{binding_name()} cannot work with this driver: {error}") from error
    by_name = uuid_call(binding)
    count = range(call("cuDeviceGetCount"))
    return {uuid_text(bytes(call(by_name, call("cuDeviceGet", ordinal)).bytes)): ordinal for ordinal in count}


def host_address(data: bytearray) -> int:
    """Where the bytes lie."""
    return ctypes.addressof(ctypes.c_char.from_buffer(data))


def attribute(handle: Any, number: int) -> int:
    return int(call("cuDeviceGetAttribute", driver().CUdevice_attribute(number), handle))


def capability(handle: Any) -> tuple[int, int]:
    """Compute capability of a GPU that ``cuDeviceGet`` gave; it needs no context."""
    return attribute(handle, CAPABILITY_MAJOR), attribute(handle, CAPABILITY_MINOR)


class Device:
    """A GPU and its primary context, current on the calling thread. Everything allocated is freed at the end.

    The context stays until the process ends: to make one takes a tenth of a second, and longer where several processes
    do so at a time, and the next probe of the same child takes it up.
    """

    def __init__(self, ordinal: int = 0) -> None:
        call("cuInit", 0)
        self.handle = call("cuDeviceGet", ordinal)
        self.context = call("cuDevicePrimaryCtxRetain", self.handle)
        self._memory: dict[int, Any] = {}
        self._host: dict[int, Any] = {}  # What is allocated, by its address
        self.enter()
        self.stream = call("cuStreamCreate", 1)  # CU_STREAM_NON_BLOCKING

    def __enter__(self) -> Device:  # noqa: PYI034  nothing derives from it
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, CudaError):
            return  # the context is broken; the end of the process frees what it holds
        self.enter()
        for pointer in self._memory.values():
            call("cuMemFree", pointer)
        for pointer in self._host.values():
            call("cuMemFreeHost", pointer)

    def enter(self) -> None:
        """Make its context the current one of this thread."""
        call("cuCtxSetCurrent", self.context)

    @property
    def capability(self) -> tuple[int, int]:
        return capability(self.handle)

    @property
    def sms(self) -> int:
        return attribute(self.handle, SM_COUNT)

    @property
    def l2_bytes(self) -> int:
        return attribute(self.handle, L2_BYTES)

    def free_memory(self) -> int:
        """Bytes that can still be allocated, about."""
        return int(call("cuMemGetInfo")[0])

    def allocate(self, size: int) -> int:
        """``size`` bytes of device memory, as an address; raise Unavailable when there is not as much."""
        try:
            pointer = call("cuMemAlloc", size)
        except CudaError as error:
            if error.code == 2:
                free = self.free_memory()
                raise Unavailable(
                    f"{size >> 20} MiB of device memory cannot be allocated, {free >> 20} MiB are free"
                ) from error
            raise
        self._memory[int(pointer)] = pointer
        return int(pointer)

    def free(self, address: int) -> None:
        """Give back what ``allocate`` gave."""
        call("cuMemFree", self._memory.pop(address))

    @contextmanager
    def buffer(self, size: int) -> Iterator[int]:
        """Device memory for as long as the block lasts."""
        address = self.allocate(size)
        try:
            yield address
        except CudaError:
            raise  # the context is broken; the end of the process frees what it holds
        except BaseException:
            with suppress(CudaError):  # it must not hide what went wrong
                self.free(address)
            raise
        self.free(address)

    def allocate_pinned(self, size: int) -> int:
        pointer = call("cuMemAllocHost", size)
        self._host[int(pointer)] = pointer
        return int(pointer)

    def free_pinned(self, address: int) -> None:
        call("cuMemFreeHost", self._host.pop(address))

    def fill(self, address: int, size: int, byte: int) -> None:
        call("cuMemsetD8Async", address, byte, size, self.stream)

    def read(self, address: int, size: int) -> bytearray:
        data = bytearray(size)
        self.synchronize()
        call("cuMemcpyDtoH", data, address, size)
        return data

    def counted(self, address: int, work: Callable[[], None]) -> int:
        """What ``work`` adds to a number of 64 bits, which is 0 before."""
        self.fill(address, 8, 0)
        work()
        return int.from_bytes(self.read(address, 8), "little")

    def read_strided(self, address: int, size: int, stride: int, count: int) -> bytearray:
        """``count`` pieces of ``size`` bytes, each ``stride`` bytes behind the last."""
        data = bytearray(size * count)
        kinds, copy = driver().CUmemorytype, driver().CUDA_MEMCPY2D()
        copy.srcMemoryType, copy.srcDevice, copy.srcPitch = kinds.CU_MEMORYTYPE_DEVICE, address, stride
        copy.dstMemoryType, copy.dstHost, copy.dstPitch = kinds.CU_MEMORYTYPE_HOST, host_address(data), size
        self._copy_rows(copy, size, count)
        return data

    def write(self, address: int, data: bytes | bytearray) -> None:
        self.synchronize()
        call("cuMemcpyHtoD", address, bytes(data), len(data))

    def write_strided(self, address: int, data: bytes, size: int, stride: int) -> None:
        """Copy pieces of ``size`` bytes to places that are each ``stride`` bytes behind the last."""
        kinds, copied, copy = driver().CUmemorytype, bytearray(data), driver().CUDA_MEMCPY2D()
        copy.srcMemoryType, copy.srcHost, copy.srcPitch = kinds.CU_MEMORYTYPE_HOST, host_address(copied), size
        copy.dstMemoryType, copy.dstDevice, copy.dstPitch = kinds.CU_MEMORYTYPE_DEVICE, address, stride
        self._copy_rows(copy, size, len(data) // size)

    def _copy_rows(self, copy: Any, size: int, count: int) -> None:
        copy.WidthInBytes, copy.Height = size, count
        self.synchronize()
        call("cuMemcpy2DUnaligned", copy)

    def synchronize(self) -> None:
        call("cuStreamSynchronize", self.stream)

    def begin_capture(self) -> None:
        """From now on, what this thread queues on the stream is recorded instead of done."""
        call("cuStreamBeginCapture", self.stream, driver().CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL)

    def end_capture(self) -> Any:
        """What was recorded; ``instantiated`` makes it ready, once no stream of this thread records any more."""
        return call("cuStreamEndCapture", self.stream)


def instantiated(graph: Any) -> Any:
    """A recorded graph, ready to be launched; the caller destroys it."""
    try:
        return call("cuGraphInstantiate", graph, 0)
    finally:
        call("cuGraphDestroy", graph)


class Stopwatch:
    """Two events on a stream."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._begin, self._end = call("cuEventCreate", 0), call("cuEventCreate", 0)

    def start(self) -> None:
        call("cuEventRecord", self._begin, self._device.stream)

    def stop(self) -> None:
        call("cuEventRecord", self._end, self._device.stream)

    def seconds(self) -> float:
        """Time between the two on the GPU; waits for the second."""
        call("cuEventSynchronize", self._end)
        return float(call("cuEventElapsedTime", self._begin, self._end)) / 1e3
