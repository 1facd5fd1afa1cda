"""Memory of the GPU through the driver that this process has loaded, for frameworks that bring no arrays."""

from __future__ import annotations

import array
import ctypes
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

FLOAT_BYTES = 4


class DriverError(Exception):
    """A call of the driver failed."""


class Floats:
    """Single-precision numbers in the GPU's memory."""

    def __init__(self, count: int) -> None:
        self._driver = _with_context()
        self._count = count
        self._address = ctypes.c_uint64(0)
        size = ctypes.c_size_t(count * FLOAT_BYTES)
        _check("cuMemAlloc", self._driver.cuMemAlloc_v2(ctypes.byref(self._address), size))

    @property
    def address(self) -> int:
        return int(self._address.value)

    def write(self, numbers: Sequence[float]) -> None:
        data = array.array("f", numbers).tobytes()
        _check("cuMemcpyHtoD", self._driver.cuMemcpyHtoD_v2(self._address, data, ctypes.c_size_t(len(data))))

    def read(self) -> list[float]:
        """What is there once all that was started has ended."""
        _check("cuCtxSynchronize", self._driver.cuCtxSynchronize())
        data = ctypes.create_string_buffer(self._count * FLOAT_BYTES)
        _check("cuMemcpyDtoH", self._driver.cuMemcpyDtoH_v2(data, self._address, ctypes.c_size_t(len(data))))
        return array.array("f", data.raw).tolist()


def _with_context() -> Any:
    """The driver's library, with a context current on this thread: the framework's own, else the primary one."""
    driver = ctypes.CDLL("libcuda.so.1")
    context, device = ctypes.c_void_p(), ctypes.c_int()
    _check("cuInit", driver.cuInit(0))
    _check("cuCtxGetCurrent", driver.cuCtxGetCurrent(ctypes.byref(context)))
    if not context.value:
        _check("cuDeviceGet", driver.cuDeviceGet(ctypes.byref(device), 0))
        _check("cuDevicePrimaryCtxRetain", driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), device))
        _check("cuCtxSetCurrent", driver.cuCtxSetCurrent(context))
    return driver


def _check(call: str, status: int) -> None:
    if status != 0:
        raise DriverError(f"{call} returned {status}")
