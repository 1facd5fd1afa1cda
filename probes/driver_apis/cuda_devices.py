"""Facts that CUDA reports about a device without a context."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import Any, TypeVar

from ..kit.bus_id import canonical_bus_id
from .cuda import BUS_WIDTH, CAPABILITY_MAJOR, CAPABILITY_MINOR, SM_COUNT, Answer, DriverApi, UnusableError, uuid_text
from .loaded import mapped

MIG_MARK = " MIG "
"""Part of the name of a device that is a MIG instance."""

Value = TypeVar("Value")


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
        facts: dict[str, Any] = {
            "pci_bus_id": canonical_bus_id(address) if address else None,
            "compute_capability": self._capability(),
        }
        if MIG_MARK not in (name or ""):
            facts.update(name=name or None, uuid=self._uuid(), sm_count=self.attribute(SM_COUNT))
            facts["memory"] = self._memory() if with_memory else None
        if not (facts["pci_bus_id"] or facts.get("uuid")):
            facts["label"] = f"cuda-{self.ordinal}"
        facts["errors"] = self.failures or None
        known = {field: value for field, value in facts.items() if value is not None}
        return {"source": "cuda", "cuda_ordinal": self.ordinal, **known}

    def _capability(self) -> str | None:
        major, minor = self.attribute(CAPABILITY_MAJOR), self.attribute(CAPABILITY_MINOR)
        return None if major is None or minor is None else f"{major}.{minor}"

    def _uuid(self) -> str | None:
        raw = self.ask("cuDeviceGetUuid", self._api.uuid)
        return None if raw is None else uuid_text(raw)

    def _memory(self) -> dict[str, Any] | None:
        values = {
            "total": self.ask("cuDeviceTotalMem", self._api.total_memory),
            "bus_width": self.attribute(BUS_WIDTH),
        }
        known = {field: value for field, value in values.items() if value}
        return {"source": "cuda", **known} if known else None


def peer_access(devices: dict[str, CudaDevice]) -> list[dict[str, Any]]:
    """A ``PeerAccess`` for every two of the devices, which are given by PCI bus id; both ways must be allowed."""
    found = []
    for (first, one), (second, other) in combinations(devices.items(), 2):
        ways = (one.reaches(other), other.reaches(one))
        if None not in ways:
            found.append({"source": "cuda", "first": first, "second": second, "allowed": all(ways)})
    return found
