"""The few calls of the CUDA driver API that need no context, through whatever can speak to this libcuda.

Each returns the status number and the value (None unless the status is 0). ``cuda.bindings`` goes first. Its newer
releases refuse a libcuda that lacks an entry point of theirs, while the calls needed here are as old as the driver
API; there they are called directly.
"""

from __future__ import annotations

import uuid
from typing import Protocol, TypeVar

SONAME = "libcuda.so.1"

Value = TypeVar("Value")
Answer = tuple[int, Value | None]

SM_COUNT = 16
BUS_WIDTH = 37
CAPABILITY_MAJOR = 75
CAPABILITY_MINOR = 76
"""Members of ``CUdevice_attribute``."""


def uuid_text(raw: bytes) -> str:
    """The 16 bytes of a GPU's UUID as NVML writes them."""
    return f"GPU-{uuid.UUID(bytes=raw)}"


def uuid_call(library: object) -> str:
    """The name under which a binding or libcuda itself has ``cuDeviceGetUuid_v2``.

    The newer call took over the plain name in a later major release of the bindings.
    """
    return "cuDeviceGetUuid_v2" if hasattr(library, "cuDeviceGetUuid_v2") else "cuDeviceGetUuid"


class UnusableError(Exception):
    """What was to speak to libcuda cannot."""


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
        """1 where the first may reach the memory of the second."""

    def error(self, code: int) -> tuple[str, str]:
        """Name and text of a status; empty for one that is not known."""


def open_api() -> DriverApi:
    """Something that can call this process's libcuda; OSError with the loader's words when it cannot be loaded."""
    from ._cuda_bindings import BoundDriver
    from ._cuda_ctypes import DirectDriver

    try:
        bound = BoundDriver()
        bound.driver_version()
    except UnusableError:
        return DirectDriver(SONAME)
    return bound
