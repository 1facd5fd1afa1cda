"""The few calls of the CUDA driver API that need no context, and the facts that they give about a device.

They go through whatever interface works with this libcuda, and return the status number and the value (None unless the
status is 0). ``cuda.bindings`` goes first. Its newer releases reject a libcuda without one of their entry points. The
calls needed here are as old as the driver API, so they are then made directly.
"""

from __future__ import annotations

import ctypes
import re
from itertools import combinations
from typing import TYPE_CHECKING, Any, TypeVar

from ..common.harmless import find_no_library
from ..common.record import canonical_bus_id
from ..common.system import mapped

if TYPE_CHECKING:
    from typing import TypeAlias

SONAME = "libcuda.so.1"

Value = TypeVar("Value")
Answer: TypeAlias = "tuple[int, Value | None]"
DriverApi: TypeAlias = "BoundDriver | DirectDriver"
"""Calls without a context, under their names in CUDA; a device is what ``cuDeviceGet`` returned."""

SM_COUNT = 16
BUS_WIDTH = 37
CAPABILITY_MAJOR = 75
CAPABILITY_MINOR = 76  # Members of ``CUdevice_attribute``


def uuid_text(raw: bytes) -> str:
    """A GPU's UUID of 16 bytes, in NVML's notation."""
    import uuid  # it brings modules that take longer than to find no driver

    return f"GPU-{uuid.UUID(bytes=raw)}"


def uuid_call(library: object) -> str:
    """The name under which a binding or libcuda itself has ``cuDeviceGetUuid_v2``.

    The newer call took over the plain name in a later major release of the bindings.
    """
    return "cuDeviceGetUuid_v2" if hasattr(library, "cuDeviceGetUuid_v2") else "cuDeviceGetUuid"


class UnusableError(Exception):
    """The interface to libcuda is unusable."""


def open_api() -> DriverApi:
    """A working interface to this process's libcuda; raises OSError with the loader's message if it cannot load."""
    ctypes.CDLL(SONAME)  # the binding takes long to import, and is of no use without it
    try:
        bound = BoundDriver()
        bound.call("cuDriverGetVersion")
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

    def call(self, name: str, *arguments: Any) -> Answer[Any]:
        """The status of a call, and its value: text and UUIDs decoded, numbers as they are."""
        if name in _TEXTS:
            arguments = (_TEXT_LIMIT, *arguments)
        elif name == "cuDeviceGetAttribute":
            arguments = (self._driver.CUdevice_attribute(arguments[0]), *arguments[1:])
        try:
            function = getattr(self._driver, uuid_call(self._driver) if name == "cuDeviceGetUuid" else name)
            status, *values = function(*arguments)
        except (ValueError, KeyError) as error:
            # A status that is newer than the binding is no member of its enumeration: the error names the number.
            number = re.search(r"\d+", str(error))
            if number is None:
                raise UnusableError(str(error)) from error
            return int(number[0]), None
        except (AttributeError, RuntimeError) as error:
            raise UnusableError(str(error)) from error
        if not values or int(status) != 0:
            return int(status), None
        (value,) = values
        if name in _TEXTS:
            value = _text(value)
        return 0, bytes(value.bytes) if name == "cuDeviceGetUuid" else value

    def error(self, code: int) -> tuple[str, str]:
        """Name and text of a status; empty for an unknown one."""
        try:
            status = self._driver.CUresult(code)
        except ValueError:
            return "", ""
        try:
            _, text = self.call("cuGetErrorString", status)
        except UnusableError:
            text = None
        return str(status.name), _text(text or b"")


_TEXTS = frozenset({"cuDeviceGetPCIBusId", "cuDeviceGetName"})
_TEXT_LIMIT = 256
_OUTPUTS: dict[str, Any] = {
    "cuDriverGetVersion": ctypes.c_int, "cuDeviceGetCount": ctypes.c_int, "cuDeviceGet": ctypes.c_int,
    "cuDeviceGetAttribute": ctypes.c_int, "cuDeviceCanAccessPeer": ctypes.c_int,
    "cuDeviceTotalMem": ctypes.c_size_t, "cuDeviceGetUuid": ctypes.c_ubyte * 16,
}  # fmt: skip
"""What each call stores its answer in, by its first argument."""


def _text(raw: Any) -> str:
    return bytes(raw).split(b"\0")[0].decode("utf-8", "replace")


CUDA_ERROR_NOT_FOUND = 500


class DirectDriver:
    """Through ctypes; raises OSError if ``soname`` cannot be loaded."""

    def __init__(self, soname: str) -> None:
        self._library = ctypes.CDLL(soname)
        self._symbols = {"cuDeviceTotalMem": "cuDeviceTotalMem_v2", "cuDeviceGetUuid": uuid_call(self._library)}

    def _call(self, name: str, *arguments: Any) -> int:
        try:
            function = getattr(self._library, name)
        except AttributeError:
            return CUDA_ERROR_NOT_FOUND
        return int(function(*arguments))

    def call(self, name: str, *arguments: Any) -> Answer[Any]:
        """As ``BoundDriver.call``."""
        if name == "cuInit":
            return self._call(name, *arguments), None
        output = ctypes.create_string_buffer(_TEXT_LIMIT) if name in _TEXTS else _OUTPUTS[name]()
        given = (output, _TEXT_LIMIT) if name in _TEXTS else (ctypes.byref(output),)
        code = self._call(self._symbols.get(name, name), *given, *arguments)
        if code != 0:
            return code, None
        return 0, _text(output) if name in _TEXTS else bytes(output) if name == "cuDeviceGetUuid" else output.value

    def error(self, code: int) -> tuple[str, str]:
        """Name and text of a status; empty for an unknown one."""
        texts = []
        for name in ("cuGetErrorName", "cuGetErrorString"):
            text = ctypes.c_char_p()
            known = self._call(name, code, ctypes.byref(text)) == 0 and text.value
            texts.append(known.decode("utf-8", "replace") if known else "")
        return texts[0], texts[1]


MIG_MARK = " MIG "  # Part of the name of a device that is a MIG instance


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
        self._handle = self._keep("cuDeviceGet", "cuDeviceGet", ordinal)

    def _keep(self, shown: str, call: str, *arguments: Any) -> Any:
        try:
            code, value = self._api.call(call, *arguments)
        except UnusableError:
            return None
        if code != 0:
            self.failures.append(api_result(self._api, shown, code))
        return value

    def ask(self, call: str) -> Any:
        """The result of a call about the device; a failure is recorded."""
        return None if self._handle is None else self._keep(call, call, self._handle)

    def attribute(self, number: int) -> int | None:
        if self._handle is None:
            return None
        found: int | None = self._keep(f"cuDeviceGetAttribute({number})", "cuDeviceGetAttribute", number, self._handle)
        return found

    def reaches(self, other: CudaDevice) -> bool | None:
        """Whether this device can access the memory of the other; None if CUDA does not say."""
        if self._handle is None or other._handle is None:
            return None
        try:
            code, allowed = self._api.call("cuDeviceCanAccessPeer", self._handle, other._handle)
        except UnusableError:
            return None
        return bool(allowed) if code == 0 else None

    def record(self, *, with_memory: bool) -> dict[str, Any]:
        """A partial ``Gpu``.

        Of a MIG instance it has only what the instance shares with its GPU. ``with_memory`` adds the total of device
        memory, which leaves out what the driver reserves.
        """
        address = self.ask("cuDeviceGetPCIBusId")
        name = self.ask("cuDeviceGetName")
        major, minor = self.attribute(CAPABILITY_MAJOR), self.attribute(CAPABILITY_MINOR)
        facts: dict[str, Any] = {
            "pci_bus_id": canonical_bus_id(address) if address else None,
            "compute_capability": None if major is None or minor is None else f"{major}.{minor}",
        }
        if MIG_MARK not in (name or ""):
            raw = self.ask("cuDeviceGetUuid")
            uuid = None if raw is None else uuid_text(raw)
            facts.update(name=name or None, uuid=uuid, sm_count=self.attribute(SM_COUNT))
            total = self.ask("cuDeviceTotalMem") if with_memory else None
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
