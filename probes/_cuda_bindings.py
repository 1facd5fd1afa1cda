"""The CUDA driver API through cuda.bindings."""

from __future__ import annotations

import re
from typing import Any

from ._cuda_api import Answer, UnusableError, uuid_call
from ._find_library import find_no_library


class BoundDriver:
    """``DriverApi`` through cuda.bindings; raises UnusableError where the binding cannot make a call."""

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
    """The number in the binding's complaint that it is not in its list of statuses."""
    number = re.search(r"\d+", str(error))
    if number is None:
        raise UnusableError(str(error)) from error
    return int(number[0])
