"""The CUDA driver API called directly, for drivers that cuda.bindings does not speak to, or without it."""

from __future__ import annotations

import ctypes
from typing import Any

from ._cuda_api import Answer, uuid_call

FUNCTION_NOT_FOUND = 500
"""``CUDA_ERROR_NOT_FOUND``: a named symbol was not found."""


class DirectDriver:
    """``DriverApi`` through ctypes; raises OSError when ``soname`` cannot be loaded."""

    def __init__(self, soname: str) -> None:
        self._library = ctypes.CDLL(soname)

    def _call(self, name: str, *arguments: Any) -> int:
        try:
            function = getattr(self._library, name)
        except AttributeError:
            return FUNCTION_NOT_FOUND
        return int(function(*arguments))

    def _read(self, name: str, output: Any, *inputs: Any) -> Answer[Any]:
        code = self._call(name, ctypes.byref(output), *inputs)
        return code, output.value if code == 0 else None

    def driver_version(self) -> Answer[int]:
        return self._read("cuDriverGetVersion", ctypes.c_int())

    def init(self) -> Answer[None]:
        return self._call("cuInit", ctypes.c_uint(0)), None

    def device_count(self) -> Answer[int]:
        return self._read("cuDeviceGetCount", ctypes.c_int())

    def device(self, ordinal: int) -> Answer[object]:
        code, number = self._read("cuDeviceGet", ctypes.c_int(), ordinal)
        return code, None if number is None else ctypes.c_int(number)

    def pci_bus_id(self, device: object) -> Answer[str]:
        return self._text("cuDeviceGetPCIBusId", device)

    def name(self, device: object) -> Answer[str]:
        return self._text("cuDeviceGetName", device)

    def _text(self, name: str, device: object) -> Answer[str]:
        buffer = ctypes.create_string_buffer(256)
        code = self._call(name, buffer, len(buffer), device)
        return code, buffer.value.decode("utf-8", "replace") if code == 0 else None

    def uuid(self, device: object) -> Answer[bytes]:
        raw = (ctypes.c_ubyte * 16)()
        code = self._call(uuid_call(self._library), ctypes.byref(raw), device)
        return code, bytes(raw) if code == 0 else None

    def total_memory(self, device: object) -> Answer[int]:
        return self._read("cuDeviceTotalMem_v2", ctypes.c_size_t(), device)

    def attribute(self, device: object, number: int) -> Answer[int]:
        return self._read("cuDeviceGetAttribute", ctypes.c_int(), number, device)

    def can_access_peer(self, device: object, other: object) -> Answer[int]:
        return self._read("cuDeviceCanAccessPeer", ctypes.c_int(), device, other)

    def error(self, code: int) -> tuple[str, str]:
        return self._error_text("cuGetErrorName", code), self._error_text("cuGetErrorString", code)

    def _error_text(self, name: str, code: int) -> str:
        text = ctypes.c_char_p()
        known = self._call(name, code, ctypes.byref(text)) == 0 and text.value
        return known.decode("utf-8", "replace") if known else ""
