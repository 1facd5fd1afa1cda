"""What GPUs answer to NVML, for ``fake_nvml``.

The H200 answers what ``nvidia-smi -q -x`` showed on a real one (in NVML's units, sizes rounded to MiB as shown there).
The others are constructed from NVML's documentation of the cases they stand for.
"""

from typing import Any

from tests.probes.fake_nvml import ByInput, Handle, Status, Typed, addresses, fabric, listed, numbered

MIB = 1 << 20
SYSTEM = {
    "nvmlSystemGetNVMLVersion": "13.580.159.04",
    "nvmlSystemGetDriverVersion": "580.159.04",
    "nvmlSystemGetCudaDriverVersion_v2": 13000,
}

HEALTHY_FABRIC = 0x1AA
"""Every condition answered with "no": bandwidth, the three routes and time-outs, configuration."""

COUNTERS = {number: Typed(3, 0) for number in (74, 75, 76, 269, 270, 271)}


def pci_info(bus: int, device: int = 0, domain: int = 0) -> dict[str, Any]:
    return {
        "busIdLegacy": f"{domain & 0xFFFF:04X}:{bus:02X}:{device:02X}.0",
        "busId": f"{domain:08X}:{bus:02X}:{device:02X}.0", "domain": domain, "bus": bus, "device": device,
        "pciDeviceId": 0x233510DE, "pciSubSystemId": 0x18BF10DE,
    }  # fmt: skip


def h200(bus: int = 0, device: int = 6, **changes: Any) -> dict[str, Any]:
    """A healthy H200; a change names a C function."""
    return {
        "nvmlDeviceGetPciInfo_v3": pci_info(bus, device),
        "nvmlDeviceGetUUID": f"GPU-0e153505-8466-b46e-c83c-8251dbfbca{bus:02x}", "nvmlDeviceGetName": "NVIDIA H200",
        "nvmlDeviceGetMinorNumber": 0, "nvmlDeviceGetBrand": 14, "nvmlDeviceGetArchitecture": 9,
        "nvmlDeviceGetCudaComputeCapability": (9, 0), "nvmlDeviceGetNumGpuCores": 16896,
        "nvmlDeviceGetSerial": "1653724057450", "nvmlDeviceGetVbiosVersion": "96.00.A5.00.1A",
        "nvmlDeviceGetBoardPartNumber": "692-2G520-0282-000", "nvmlDeviceGetGspFirmwareVersion": "580.159.04",
        "nvmlDeviceGetPerformanceState": 0, "nvmlDeviceGetComputeMode": 0, "nvmlDeviceGetPersistenceMode": 1,
        "nvmlDeviceGetVirtualizationMode": 1, "nvmlDeviceGetAddressingMode": {"value": 0},
        "nvmlDeviceGetMemoryInfo_v2": {"total": 143771 * MIB, "reserved": 616 * MIB, "used": 0, "free": 143156 * MIB},
        "nvmlDeviceGetMemoryInfo": {"total": 143771 * MIB, "used": 616 * MIB, "free": 143156 * MIB},
        "nvmlDeviceGetMemoryBusWidth": 6144,
        "nvmlDeviceGetBAR1MemoryInfo": {"bar1Total": 262144 * MIB, "bar1Used": 1 * MIB, "bar1Free": 262143 * MIB},
        "nvmlDeviceGetEccMode": (1, 1), "nvmlDeviceGetTotalEccErrors": 0, "nvmlDeviceGetRemappedRows": (0, 0, 0, 0),
        "nvmlDeviceGetMigMode": (0, 0), "nvmlDeviceGetClockInfo": ByInput({1: 435, 2: 3201}),
        "nvmlDeviceGetMaxClockInfo": ByInput({1: 1980, 2: 3201}), "nvmlDeviceGetApplicationsClock": ByInput({0: 1980}),
        "nvmlDeviceGetDefaultApplicationsClock": ByInput({0: 1980}), "nvmlDeviceGetPowerUsage": 92820,
        "nvmlDeviceGetEnforcedPowerLimit": 700000, "nvmlDeviceGetPowerManagementDefaultLimit": 700000,
        "nvmlDeviceGetPowerManagementLimitConstraints": (200000, 700000),
        "nvmlDeviceGetTemperatureV": {"temperature": 33}, "nvmlDeviceGetTemperature": 33,
        "nvmlDeviceGetTemperatureThreshold": ByInput({0: 95, 1: 89, 3: 87}), "nvmlDeviceGetCurrPcieLinkGeneration": 5,
        "nvmlDeviceGetMaxPcieLinkGeneration": 5, "nvmlDeviceGetGpuMaxPcieLinkGeneration": 5,
        "nvmlDeviceGetCurrPcieLinkWidth": 16, "nvmlDeviceGetMaxPcieLinkWidth": 16, "nvmlDeviceGetPcieReplayCounter": 0,
        "nvmlDeviceGetUtilizationRates": {"gpu": 0, "memory": 0}, "nvmlDeviceGetCurrentClocksEventReasons": 1,
        "nvmlDeviceGetCurrentClocksThrottleReasons": 1, "nvmlDeviceGetFieldValues": fields(),
        "nvmlDeviceGetComputeRunningProcesses_v3": listed([]), "nvmlDeviceGetGraphicsRunningProcesses_v3": listed([]),
        **changes,
    }  # fmt: skip


def fields(**changes: Any) -> Any:
    """The H200's numbered fields: memory temperature, recovery action, throttle counters, no NVLink."""
    values = {82: Typed(1, 33), 230: Typed(1, 0), 91: Typed(1, 0), **COUNTERS}
    return numbered({**values, **{int(name.removeprefix("f")): value for name, value in changes.items()}})


def switched_h200(bus: int, others: int = 8) -> dict[str, Any]:
    """An H200 with 18 NVLinks into switches and a completed fabric registration; constructed."""
    handles = range(1, others + 1)
    nvlinks = {(164, link): Typed(1, 26562) for link in range(18)}
    return h200(
        bus, 0,
        nvmlDeviceGetFieldValues=numbered(
            {82: Typed(1, 33), 230: Typed(1, 0), 91: Typed(1, 18), **COUNTERS, **nvlinks},
        ),
        nvmlDeviceGetNvLinkState=1, nvmlDeviceGetNvLinkVersion=4, nvmlDeviceGetNvLinkRemotePciInfo_v2=pci_info(0xC0),
        nvmlDeviceGetNvLinkRemoteDeviceType=2, nvmlDeviceGetTopologyCommonAncestor=ByInput(dict.fromkeys(handles, 50)),
        nvmlDeviceGetP2PStatus=ByInput({(handle, index): 0 for handle in handles for index in (0, 2)}),
        nvmlDeviceGetGpuFabricInfoV=fabric(0, 3, HEALTHY_FABRIC),
    )  # fmt: skip


def kepler() -> dict[str, Any]:
    """A GPU that has hardly anything to report beyond its identity; constructed."""
    return {
        "nvmlDeviceGetPciInfo_v3": {**pci_info(4), "pciDeviceId": 0x102D10DE, "pciSubSystemId": 0},
        "nvmlDeviceGetName": "Tesla K80",
        "nvmlDeviceGetUUID": "GPU-5e5ba8e6-0000-0000-0000-000000000000",
        "nvmlDeviceGetRetiredPages": addresses([0x1000, 0x2000]),
    }


def mig_h200() -> dict[str, Any]:
    """An H200 in MIG mode with two instances at indices 0 and 2 of 7; constructed."""
    return h200(
        nvmlDeviceGetMigMode=(1, 1), nvmlDeviceGetMaxMigDeviceCount=7,
        nvmlDeviceGetMigDeviceHandleByIndex=ByInput({0: Handle(1000), 2: Handle(1002)}, Status(6)),
        nvmlDeviceGetUtilizationRates=Status(3), nvmlDeviceGetComputeRunningProcesses_v3=Status(4),
    )  # fmt: skip


def mig_instance(number: int) -> dict[str, Any]:
    return {
        "nvmlDeviceGetUUID": f"MIG-41b3a1c9-0000-0000-0000-{number:012d}",
        "nvmlDeviceGetName": "NVIDIA H200 MIG 1g.18gb",
        "nvmlDeviceGetMemoryInfo": {"total": 16384 * MIB, "used": 0, "free": 16384 * MIB},
        "nvmlDeviceGetAttributes_v2": {"multiprocessorCount": 16},
    }
