"""The state of a GPU on an NVSwitch fabric."""

from __future__ import annotations

import ctypes
from typing import Any

from ._nvml_ask import SUCCESS, Device, api_result


class FabricInfo(ctypes.Structure):
    """``nvmlGpuFabricInfo_t``; own structures, because older bindings give the UUID more room than the driver does."""

    _fields_ = [
        ("cluster_uuid", ctypes.c_ubyte * 16),
        ("status", ctypes.c_uint),
        ("clique", ctypes.c_uint32),
        ("state", ctypes.c_uint),
    ]


class FabricInfoV2(ctypes.Structure):
    """``nvmlGpuFabricInfo_v2_t``."""

    _fields_ = [
        ("version", ctypes.c_uint),
        ("cluster_uuid", ctypes.c_ubyte * 16),
        ("status", ctypes.c_uint),
        ("clique", ctypes.c_uint32),
        ("state", ctypes.c_uint),
        ("health", ctypes.c_uint32),
    ]


FABRIC_STATES = {0: "not_supported", 1: "not_started", 2: "in_progress", 3: "completed"}

HEALTH_CONDITIONS = (
    (0, 0x3, {1: "degraded_bandwidth"}),
    (2, 0x3, {1: "route_recovery"}),
    (4, 0x3, {1: "route_unhealthy"}),
    (6, 0x3, {1: "access_timeout_recovery"}),
    (
        8,
        0xF,
        {
            2: "incorrect_sysguid",
            3: "incorrect_chassis_serial",
            4: "no_partition",
            5: "insufficient_nvlinks",
            6: "incompatible_gpu_firmware",
            7: "invalid_location",
            8: "gpu_state_invalid",
        },
    ),
    (12, 0x3, {2: "partition_not_assigned"}),
    (14, 0x3, {2: "fabric_manager_disconnected"}),
)
"""Shift, width and the values that stand for a fault, of ``NVML_GPU_FABRIC_HEALTH_MASK_…``."""


def fabric(device: Device, record: dict[str, Any]) -> None:
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
