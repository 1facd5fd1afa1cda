"""Facts that take several NVML calls: fabric, NVLinks, firmware, page retirement, MIG instances, processes."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterable
from itertools import combinations
from typing import TYPE_CHECKING, Any

from .nvml_calls import (
    INVALID_ARGUMENT,
    NOT_FOUND,
    REFUSED,
    SUCCESS,
    UNKNOWN_HERE,
    NvmlDevice,
    api_result,
    bus_id,
    count,
    text,
)
from .nvml_fields import place, throttle

if TYPE_CHECKING:
    from typing import TypeAlias


_FIRST_NAMESPACE = "pid:[4026531836]"  # PROC_PID_INIT_INO of include/linux/proc_ns.h: that of the machine itself
_SERVER = "nvidia-cuda-mps"  # ``nvidia-cuda-mps-server``, cut by the kernel to 15 characters


class FabricInfo(ctypes.Structure):
    """``nvmlGpuFabricInfo_t``; own structures: older bindings reserve more space for the UUID than the driver."""

    _fields_ = [
        ("cluster_uuid", ctypes.c_ubyte * 16),
        ("status", ctypes.c_uint),
        ("clique", ctypes.c_uint32),
        ("state", ctypes.c_uint),
    ]


class FabricInfoV2(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint), *FabricInfo._fields_, ("health", ctypes.c_uint32)]


FABRIC_STATES = {0: "not_supported", 1: "not_started", 2: "in_progress", 3: "completed"}

_CONFIGURATIONS = {
    2: "incorrect_sysguid", 3: "incorrect_chassis_serial", 4: "no_partition", 5: "insufficient_nvlinks",
    6: "incompatible_gpu_firmware", 7: "invalid_location", 8: "gpu_state_invalid",
}  # fmt: skip
HEALTH_CONDITIONS = (
    (0, 0x3, {1: "degraded_bandwidth"}), (2, 0x3, {1: "route_recovery"}), (4, 0x3, {1: "route_unhealthy"}),
    (6, 0x3, {1: "access_timeout_recovery"}), (8, 0xF, _CONFIGURATIONS), (12, 0x3, {2: "partition_not_assigned"}),
    (14, 0x3, {2: "fabric_manager_disconnected"}),
)  # fmt: skip
"""Shift, width and fault values of ``NVML_GPU_FABRIC_HEALTH_MASK_…``."""


def fabric(device: NvmlDevice, record: dict[str, Any]) -> None:
    plain = FabricInfo()
    versioned = FabricInfoV2(version=ctypes.sizeof(FabricInfoV2) | 2 << 24)
    code, _ = device.attempt(("nvmlDeviceGetGpuFabricInfoV", ctypes.byref(versioned)))
    info: FabricInfo | FabricInfoV2 = versioned
    device.asked.append("fabric")
    if code != SUCCESS and device.ask("fabric", ("nvmlDeviceGetGpuFabricInfo", ctypes.byref(plain))) is None:
        return
    if code != SUCCESS:
        info = plain
    part: dict[str, Any] = {"source": "nvml", "status": info.status}
    part["status_name"] = api_result(device.nvml, "", info.status)["name"]
    if info.state in FABRIC_STATES:
        part["state"] = FABRIC_STATES[info.state]
    conditions = [names.get(getattr(info, "health", 0) >> shift & width) for shift, width, names in HEALTH_CONDITIONS]
    part["health"] = [condition for condition in conditions if condition]
    record["fabric"] = part


LINK_COUNT, LINK_SPEED = 91, 164  # NVML's fields: links of the GPU, one's speed in MB/s (its number is the scope)

REMOTE_KINDS = {0: "gpu", 1: "cpu", 2: "switch"}  # Kinds of remote ends; of processors NVML knows IBM Power's

PATHS = {0: "internal", 10: "single", 20: "multiple", 30: "hostbridge", 40: "node", 50: "system"}
P2P_READ, P2P_NVLINK, P2P_OK = 0, 2, 0
P2P_STATUSES = {
    0: "ok", 1: "chipset_not_supported", 2: "gpu_not_supported", 3: "ioh_topology_not_supported",
    4: "disabled_by_regkey", 5: "not_supported", 6: "unknown",
}  # fmt: skip
"""``nvmlGpuP2PStatus_t``."""

Pair: TypeAlias = "tuple[dict[str, Any], NvmlDevice]"  # A GPU's record and its device


def nvlinks(device: NvmlDevice, record: dict[str, Any]) -> None:
    device.asked.append("nvlinks")
    links = []
    refusals = []
    present = device.ask_field("", LINK_COUNT)
    for number in range(int(present) if present else int(getattr(device.nvml, "NVML_NVLINK_MAX_LINKS", 18))):
        code, active = device.attempt(("nvmlDeviceGetNvLinkState", number))
        if code == SUCCESS:
            link: dict[str, Any] = {"source": "nvml", "link": number, "active": bool(active)}
            _, version = device.attempt(("nvmlDeviceGetNvLinkVersion", number))
            if version:
                link["version"] = version
            code, remote = device.attempt(("nvmlDeviceGetNvLinkRemotePciInfo", number))
            address = bus_id(device.nvml, remote.busId) if code == SUCCESS else None
            if address:
                link["remote_pci_bus_id"] = address
            _, kind = device.attempt(("nvmlDeviceGetNvLinkRemoteDeviceType", number))
            if kind in REMOTE_KINDS:
                link["remote_kind"] = REMOTE_KINDS[kind]
            speed = device.ask_field("", LINK_SPEED, number)
            if speed:
                link["bandwidth"] = speed * 1e6
            links.append(link)
        elif code in REFUSED:
            refusals.append(code)
        elif code not in UNKNOWN_HERE | {INVALID_ARGUMENT}:
            device.note("nvlinks", "nvmlDeviceGetNvLinkState", code)
    if links:
        record["nvlinks"] = links
    elif refusals:
        device.note("nvlinks", "nvmlDeviceGetNvLinkState", refusals[0])


def gpu_links(gpus: Iterable[Pair]) -> list[dict[str, Any]]:
    """The connection of each pair of GPUs with a PCI bus id."""
    known = [pair for pair in gpus if "pci_bus_id" in pair[0]]
    links = []
    for first, second in combinations(known, 2):
        link: dict[str, Any] = {"source": "nvml", "first": first[0]["pci_bus_id"], "second": second[0]["pci_bus_id"]}
        code, level = first[1].attempt(("nvmlDeviceGetTopologyCommonAncestor", second[1].handle))
        if code == SUCCESS:
            link["path"] = PATHS.get(level, str(level))
        joined = _nvlinks_between(first, second)
        if joined is not None:
            link["nvlinks"] = joined
        code, status = first[1].attempt(("nvmlDeviceGetP2PStatus", second[1].handle, P2P_READ))
        if code == SUCCESS:
            link["peer_read"] = P2P_STATUSES.get(status, str(status))
        links.append(link)
    return links


def _nvlinks_between(first: Pair, second: Pair) -> int | None:
    """The number of NVLinks between two GPUs, direct or through switches; None if unknown.

    Links into switches count only if the driver reports that the GPUs reach each other over NVLink.
    """
    if any("nvlinks" not in record and "nvlinks" not in device.refused for record, device in (first, second)):
        return None
    ours, theirs = ([link for link in pair[0].get("nvlinks", ()) if link["active"]] for pair in (first, second))
    direct: int = sum(link.get("remote_pci_bus_id") == second[0]["pci_bus_id"] for link in ours)
    if direct:
        return direct
    switched = min(sum(link.get("remote_kind") == "switch" for link in links) for links in (ours, theirs))
    if not switched:
        return 0
    code, status = first[1].attempt(("nvmlDeviceGetP2PStatus", second[1].handle, P2P_NVLINK))
    if code != SUCCESS:
        return None
    return switched if status == P2P_OK else 0


def gsp_firmware(device: NvmlDevice, record: dict[str, Any]) -> None:
    # Only the form with the caller's buffer exists in every release of the binding.
    buffer = ctypes.create_string_buffer(64)
    if device.ask("gsp_firmware", ("nvmlDeviceGetGspFirmwareVersion", buffer)) is not None:
        version = text(device.nvml, buffer.value)
        if version:
            record["gsp_firmware"] = version


def retired_pages(device: NvmlDevice, record: dict[str, Any]) -> None:
    causes = ("MULTIPLE_SINGLE_BIT_ECC_ERRORS", "DOUBLE_BIT_ECC_ERROR")
    calls = (("nvmlDeviceGetRetiredPages", f"NVML_PAGE_RETIREMENT_CAUSE_{cause}") for cause in causes)
    lists = [device.ask("ecc.retired_pages", call) for call in calls]
    if None not in lists:
        place(record, "ecc.retired_pages", sum(len(pages) for pages in lists))


def mig_instances(device: NvmlDevice, record: dict[str, Any]) -> None:
    if not record.get("mig", {}).get("enabled"):
        return
    most = device.ask("mig.instances", ("nvmlDeviceGetMaxMigDeviceCount",))
    if most is None:
        return
    found, unclear = [], False
    for index in range(most):
        code, handle = device.attempt(("nvmlDeviceGetMigDeviceHandleByIndex", index))
        if code == SUCCESS:
            instance = NvmlDevice(device.nvml, handle)
            attributes = instance.ask("", ("nvmlDeviceGetAttributes_v2",), ("nvmlDeviceGetAttributes",))
            memory = instance.ask("", ("nvmlDeviceGetMemoryInfo",))
            name, uuid = (instance.ask("", (call,)) for call in ("nvmlDeviceGetName", "nvmlDeviceGetUUID"))
            values = {
                "uuid": None if uuid is None else text(instance.nvml, uuid),
                "name": None if name is None else text(instance.nvml, name),
                "memory": None if memory is None else count(instance.nvml, memory.total),
                "sm_count": None if attributes is None else count(instance.nvml, attributes.multiprocessorCount),
            }
            found.append({"source": "nvml", **{key: value for key, value in values.items() if value is not None}})
        elif code != NOT_FOUND:
            device.note("mig.instances", "nvmlDeviceGetMigDeviceHandleByIndex", code)
            unclear = True
    # An empty list means that there are none, which only results for all indices can prove.
    if found or not unclear:
        place(record, "mig.instances", found)


def processes(device: NvmlDevice, record: dict[str, Any]) -> None:
    """The processes with a context on the GPU, each once; one with compute and graphics counts as compute."""
    lists: dict[str, list[Any]] = {}
    for kind in ("Compute", "Graphics"):
        refusals = len(device.refused)
        calls = [(f"nvmlDeviceGet{kind}RunningProcesses{version}",) for version in ("_v3", "_v2", "")]
        items = device.ask("processes", *calls)
        # One release of the binding has a record layout that few drivers use; its numbers would be wrong.
        if items is not None and not any(hasattr(item, "usedGpuCcProtectedMemory") for item in items):
            lists[kind] = list(items)
        elif len(device.refused) == refusals:
            return  # unknown, and the other kind alone would look complete
    by_pid: dict[int, dict[str, Any]] = {}
    for kind, items in lists.items():
        for item in items:
            memory = {} if item.usedGpuMemory is None else {"memory": item.usedGpuMemory}
            by_pid.setdefault(item.pid, {"kind": kind.lower(), "source": "nvml", "pid": item.pid, **memory})
    if lists:
        record["processes"] = [{**process, **_served(pid)} for pid, process in by_pid.items()]


def _served(pid: int) -> dict[str, bool]:
    """``mps_server``, where the process ids of this namespace are the driver's; of the name nothing else is kept."""
    try:
        if os.readlink("/proc/self/ns/pid") != _FIRST_NAMESPACE:
            return {}
        with open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as file:
            return {"mps_server": file.read(64).strip() == _SERVER}
    except OSError:
        return {}


PARTS = (gsp_firmware, retired_pages, throttle, fabric, mig_instances, processes, nvlinks)
