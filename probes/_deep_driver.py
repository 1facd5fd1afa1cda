"""What the driver says of this process: where a pointer lies, and which GPU is its first."""

from __future__ import annotations

import ctypes
import os
from typing import Any

from ._bus_id import canonical_bus_id

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
