"""The few calls of the CUDA driver API that need no context, through cuda.bindings or ctypes."""

from __future__ import annotations

import ctypes
import re
import uuid
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from ..kit.harmless import find_no_library

if TYPE_CHECKING:
    from typing import TypeAlias

# The few calls of the CUDA driver API that need no context, through whatever interface works with this libcuda.
#
# Each returns the status number and the value (None unless the status is 0). ``cuda.bindings`` goes first. Its newer
# releases reject a libcuda without one of their entry points. The calls needed here are as old as the driver API, so
# they are then made directly.

SONAME = "libcuda.so.1"

Value = TypeVar("Value")
Answer: TypeAlias = "tuple[int, Value | None]"

SM_COUNT = 16
BUS_WIDTH = 37
CAPABILITY_MAJOR = 75
CAPABILITY_MINOR = 76
"""Members of ``CUdevice_attribute``."""


def uuid_text(raw: bytes) -> str:
    """A GPU's UUID of 16 bytes, in NVML's notation."""
    return f"GPU-{uuid.UUID(bytes=raw)}"


def uuid_call(library: object) -> str:
    """The name under which a binding or libcuda itself has ``cuDeviceGetUuid_v2``.

    The newer call took over the plain name in a later major release of the bindings.
    """
    return "cuDeviceGetUuid_v2" if hasattr(library, "cuDeviceGetUuid_v2") else "cuDeviceGetUuid"


class UnusableError(Exception):
    """The interface to libcuda is unusable."""


class DriverApi(Protocol):
    """Calls without a context; ``device`` is what ``device`` returned."""

    def driver_version(self) -> Answer[int]:
        """1000 times the major version plus 10 times the minor one."""

    def init(self) -> Answer[None]: ...

    def device_count(self) -> Answer[int]: ...

    def device(self, ordinal: int) -> Answer[object]: ...

    def pci_bus_id(self, device: object) -> Answer[str]: ...

    def name(self, device: object) -> Answer[str]: ...

    def uuid(self, device: object) -> Answer[bytes]:
        """16 bytes."""

    def total_memory(self, device: object) -> Answer[int]:
        """Bytes."""

    def attribute(self, device: object, number: int) -> Answer[int]: ...

    def can_access_peer(self, device: object, other: object) -> Answer[int]:
        """1 if the first can access the memory of the second."""

    def error(self, code: int) -> tuple[str, str]:
        """Name and text of a status; empty for an unknown one."""


def open_api() -> DriverApi:
    """A working interface to this process's libcuda; raises OSError with the loader's message if it cannot be
    loaded.
    """
    try:
        bound = BoundDriver()
        bound.driver_version()
    except UnusableError:
        return DirectDriver(SONAME)
    return bound


# The CUDA driver API through cuda.bindings.


class BoundDriver:
    """``DriverApi`` through cuda.bindings; raises UnusableError if the binding cannot make a call."""

    def __init__(self) -> None:
        find_no_library()
        try:
            from cuda.bindings import driver
        except Exception as error:
            raise UnusableError(str(error)) from error
        self._driver: Any = driver

    def _call(self, name: str, *arguments: Any) -> Answer[Any]:
        try:
            status, *values = getattr(self._driver, name)(*arguments)
        except (ValueError, KeyError) as error:
            return _unknown_status(error), None
        except (AttributeError, RuntimeError) as error:
            raise UnusableError(str(error)) from error
        return int(status), values[0] if values and int(status) == 0 else None

    def driver_version(self) -> Answer[int]:
        return self._call("cuDriverGetVersion")

    def init(self) -> Answer[None]:
        return self._call("cuInit", 0)

    def device_count(self) -> Answer[int]:
        return self._call("cuDeviceGetCount")

    def device(self, ordinal: int) -> Answer[object]:
        return self._call("cuDeviceGet", ordinal)

    def pci_bus_id(self, device: object) -> Answer[str]:
        return _decoded(self._call("cuDeviceGetPCIBusId", 32, device))

    def name(self, device: object) -> Answer[str]:
        return _decoded(self._call("cuDeviceGetName", 256, device))

    def uuid(self, device: object) -> Answer[bytes]:
        code, value = self._call(uuid_call(self._driver), device)
        return code, None if value is None else bytes(value.bytes)

    def total_memory(self, device: object) -> Answer[int]:
        return self._call("cuDeviceTotalMem", device)

    def attribute(self, device: object, number: int) -> Answer[int]:
        return self._call("cuDeviceGetAttribute", self._driver.CUdevice_attribute(number), device)

    def can_access_peer(self, device: object, other: object) -> Answer[int]:
        return self._call("cuDeviceCanAccessPeer", device, other)

    def error(self, code: int) -> tuple[str, str]:
        try:
            status = self._driver.CUresult(code)
        except ValueError:
            return "", ""
        try:
            _, text = _decoded(self._call("cuGetErrorString", status))
        except UnusableError:
            text = None
        return str(status.name), text or ""


def _decoded(answer: Answer[Any]) -> Answer[str]:
    code, value = answer
    return code, None if value is None else bytes(value).split(b"\0")[0].decode("utf-8", "replace")


def _unknown_status(error: Exception) -> int:
    """The number in the binding's error about an unknown status."""
    number = re.search(r"\d+", str(error))
    if number is None:
        raise UnusableError(str(error)) from error
    return int(number[0])


# The CUDA driver API called directly, without cuda.bindings or for drivers that it rejects.


FUNCTION_NOT_FOUND = 500
"""``CUDA_ERROR_NOT_FOUND``: a named symbol was not found."""


class DirectDriver:
    """``DriverApi`` through ctypes; raises OSError if ``soname`` cannot be loaded."""

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
