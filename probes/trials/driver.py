"""The driver that a trial has loaded: where a pointer lies, which GPU is first, and memory through it."""

from __future__ import annotations

import array
import ctypes
import os
from typing import TYPE_CHECKING, Any

from ..common.bus_id import canonical_bus_id

if TYPE_CHECKING:
    from collections.abc import Sequence

# What the driver says of this process: where a pointer lies, and which GPU is its first.

_MEMORY_TYPE = 2
"""``CU_POINTER_ATTRIBUTE_MEMORY_TYPE``."""
_DEVICE_MEMORY = 2
"""``CU_MEMORYTYPE_DEVICE``."""
_UNIFIED_MEMORY = 4
_LIBRARY = "libcuda.so.1"

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


# Memory of the GPU through the driver that this process has loaded, for frameworks that bring no arrays.


FLOAT_BYTES = 4


class DriverError(Exception):
    """A call of the driver failed."""


class Floats:
    """Single-precision numbers in the GPU's memory."""

    def __init__(self, count: int) -> None:
        self._driver = with_context()
        self._count = count
        self._address = ctypes.c_uint64(0)
        size = ctypes.c_size_t(count * FLOAT_BYTES)
        check("cuMemAlloc", self._driver.cuMemAlloc_v2(ctypes.byref(self._address), size))

    @property
    def address(self) -> int:
        return int(self._address.value)

    def write(self, numbers: Sequence[float]) -> None:
        data = array.array("f", numbers).tobytes()
        check("cuMemcpyHtoD", self._driver.cuMemcpyHtoD_v2(self._address, data, ctypes.c_size_t(len(data))))

    def read(self) -> list[float]:
        """What is there once all that was started has ended."""
        check("cuCtxSynchronize", self._driver.cuCtxSynchronize())
        data = ctypes.create_string_buffer(self._count * FLOAT_BYTES)
        check("cuMemcpyDtoH", self._driver.cuMemcpyDtoH_v2(data, self._address, ctypes.c_size_t(len(data))))
        return array.array("f", data.raw).tolist()


def with_context() -> Any:
    """The driver's library, with a context current on this thread: the framework's own, else the primary one."""
    driver = ctypes.CDLL("libcuda.so.1")
    context, device = ctypes.c_void_p(), ctypes.c_int()
    check("cuInit", driver.cuInit(0))
    check("cuCtxGetCurrent", driver.cuCtxGetCurrent(ctypes.byref(context)))
    if not context.value:
        check("cuDeviceGet", driver.cuDeviceGet(ctypes.byref(device), 0))
        check("cuDevicePrimaryCtxRetain", driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), device))
        check("cuCtxSetCurrent", driver.cuCtxSetCurrent(context))
    return driver


def check(call: str, status: int) -> None:
    """Raise DriverError unless the status is that of success."""
    if status != 0:
        raise DriverError(f"{call} returned {status}")
