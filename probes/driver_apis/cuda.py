"""The few calls of the CUDA driver API that need no context, and the facts that they give about a device.

They go through whatever interface works with this libcuda, and return the status number and the value (None unless the
status is 0). ``cuda.bindings`` goes first. Its newer releases reject a libcuda without one of their entry points. The
calls needed here are as old as the driver API, so they are then made directly.
"""

from __future__ import annotations

import ctypes
import re
import uuid
from collections.abc import Callable
from itertools import combinations
from typing import TYPE_CHECKING, Any, TypeVar

from ..common.bus_id import canonical_bus_id
from ..common.harmless import find_no_library
from . import mapped

if TYPE_CHECKING:
    from typing import TypeAlias

SONAME = "libcuda.so.1"

Value = TypeVar("Value")
Answer: TypeAlias = "tuple[int, Value | None]"
DriverApi: TypeAlias = "BoundDriver | DirectDriver"
"""Calls without a context. Both name them alike; a device is what ``device`` returned."""

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


class BoundDriver:
    """Through cuda.bindings; raises UnusableError if the binding cannot make a call."""

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
            number = re.search(r"\d+", str(error))
            if number is None:
                raise UnusableError(str(error)) from error
            return int(number[0]), None
        except (AttributeError, RuntimeError) as error:
            raise UnusableError(str(error)) from error
        return int(status), values[0] if values and int(status) == 0 else None

    def driver_version(self) -> Answer[int]:
        """1000 times the major version plus 10 times the minor one."""
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
        """1 if the first can access the memory of the second."""
        return self._call("cuDeviceCanAccessPeer", device, other)

    def error(self, code: int) -> tuple[str, str]:
        """Name and text of a status; empty for an unknown one."""
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


FUNCTION_NOT_FOUND = 500
"""``CUDA_ERROR_NOT_FOUND``: a named symbol was not found."""


class DirectDriver:
    """Through ctypes; raises OSError if ``soname`` cannot be loaded."""

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


MIG_MARK = " MIG "
"""Part of the name of a device that is a MIG instance."""


def api_result(api: DriverApi, call: str, code: int, **more: Any) -> dict[str, Any]:
    """An ``ApiResult`` of CUDA, with the name and text of the code and the path of libcuda."""
    name, text = api.error(code)
    library = mapped("libcuda.so")
    place = {"library": library} if library else {}
    shown = "" if code == 0 else text
    return {"source": "cuda", "call": call, "code": code, "name": name, "text": shown, **place, **more}


class CudaDevice:
    """A device by its ordinal, and the calls about it that failed."""

    def __init__(self, api: DriverApi, ordinal: int) -> None:
        self._api = api
        self.ordinal = ordinal
        self.failures: list[dict[str, Any]] = []
        self._handle = self._keep("cuDeviceGet", lambda: api.device(ordinal))

    def _keep(self, call: str, make: Callable[[], Answer[Value]]) -> Value | None:
        try:
            code, value = make()
        except UnusableError:
            return None
        if code != 0:
            self.failures.append(api_result(self._api, call, code))
        return value

    def ask(self, call: str, method: Callable[..., Answer[Value]], *arguments: Any) -> Value | None:
        """The result of ``method`` of the API for the device; a failure is recorded under the name ``call``."""
        if self._handle is None:
            return None
        return self._keep(call, lambda: method(self._handle, *arguments))

    def attribute(self, number: int) -> int | None:
        return self.ask(f"cuDeviceGetAttribute({number})", self._api.attribute, number)

    def reaches(self, other: CudaDevice) -> bool | None:
        """Whether this device can access the memory of the other; None if CUDA does not say."""
        if self._handle is None or other._handle is None:
            return None
        try:
            code, allowed = self._api.can_access_peer(self._handle, other._handle)
        except UnusableError:
            return None
        return bool(allowed) if code == 0 else None

    def record(self, *, with_memory: bool) -> dict[str, Any]:
        """A partial ``Gpu``.

        Of a MIG instance it has only what the instance shares with its GPU. ``with_memory`` adds the total of device
        memory, which leaves out what the driver reserves.
        """
        address = self.ask("cuDeviceGetPCIBusId", self._api.pci_bus_id)
        name = self.ask("cuDeviceGetName", self._api.name)
        major, minor = self.attribute(CAPABILITY_MAJOR), self.attribute(CAPABILITY_MINOR)
        facts: dict[str, Any] = {
            "pci_bus_id": canonical_bus_id(address) if address else None,
            "compute_capability": None if major is None or minor is None else f"{major}.{minor}",
        }
        if MIG_MARK not in (name or ""):
            raw = self.ask("cuDeviceGetUuid", self._api.uuid)
            uuid = None if raw is None else uuid_text(raw)
            facts.update(name=name or None, uuid=uuid, sm_count=self.attribute(SM_COUNT))
            total = self.ask("cuDeviceTotalMem", self._api.total_memory) if with_memory else None
            width = self.attribute(BUS_WIDTH) if with_memory else None
            memory = {field: value for field, value in (("total", total), ("bus_width", width)) if value}
            facts["memory"] = {"source": "cuda", **memory} if memory else None
        if not (facts["pci_bus_id"] or facts.get("uuid")):
            facts["label"] = f"cuda-{self.ordinal}"
        facts["errors"] = self.failures or None
        known = {field: value for field, value in facts.items() if value is not None}
        return {"source": "cuda", "cuda_ordinal": self.ordinal, **known}


def peer_access(devices: dict[str, CudaDevice]) -> list[dict[str, Any]]:
    """A ``PeerAccess`` for every two of the devices, which are given by PCI bus id; both ways must be allowed."""
    found = []
    for (first, one), (second, other) in combinations(devices.items(), 2):
        ways = (one.reaches(other), other.reaches(one))
        if None not in ways:
            found.append({"source": "cuda", "first": first, "second": second, "allowed": all(ways)})
    return found
