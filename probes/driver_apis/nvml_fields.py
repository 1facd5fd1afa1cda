"""The table of NVML readings that take one call, and the functions for reasons that limit clocks, which take more."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from .nvml_calls import (
    UNSIGNED_LONG_LONG,
    Convert,
    NvmlDevice,
    bus_id,
    capability,
    choice,
    constant,
    count,
    degrees,
    flag,
    mega,
    milli,
    pci_id,
    percent,
    performance_state,
    text,
)

if TYPE_CHECKING:
    from typing import TypeAlias

COMPUTE_MODES = {0: "default", 1: "exclusive_thread", 2: "prohibited", 3: "exclusive_process"}
VIRTUALIZATION_MODES = {0: "none", 1: "passthrough", 2: "vgpu", 3: "host_vgpu", 4: "host_vsga"}
ADDRESSING_MODES = {0: "none", 1: "hmm", 2: "ats"}
RECOVERY_ACTIONS = {
    0: "none", 1: "gpu_reset", 2: "node_reboot", 3: "drain_p2p", 4: "drain_and_reset", 5: "recover_imex_domain",
    6: "bus_reset", 7: "system_reboot",
}  # fmt: skip


class NvmlReading(NamedTuple):
    fields: str  # Dotted paths below the GPU, separated by blanks; several if the call returns several values
    calls: str
    """A function of the binding and the constants it takes after the handle; ``|`` before one for older drivers. A
    number is that of one of NVML's fields (``NVML_FI_…``), whose names older bindings lack."""
    convert: Convert | tuple[Convert, ...]
    members: tuple[str, ...] = ()  # Where the call returns a structure: its members, in the order of ``fields``


_ECC_ERRORS = "nvmlDeviceGetTotalEccErrors NVML_MEMORY_ERROR_TYPE_"
READINGS = (
    # The identity comes first, so that a GPU that is lost meanwhile still has a name.
    NvmlReading(
        "pci_bus_id pci_device_id pci_subsystem_id",
        "nvmlDeviceGetPciInfo",
        (bus_id, pci_id, pci_id),
        ("busId", "pciDeviceId", "pciSubSystemId"),
    ),
    NvmlReading("uuid", "nvmlDeviceGetUUID", text),
    NvmlReading("name", "nvmlDeviceGetName", text),
    NvmlReading("minor", "nvmlDeviceGetMinorNumber", count),
    NvmlReading("brand", "nvmlDeviceGetBrand", constant("NVML_BRAND_")),
    NvmlReading("architecture", "nvmlDeviceGetArchitecture", constant("NVML_DEVICE_ARCH_")),
    NvmlReading("compute_capability", "nvmlDeviceGetCudaComputeCapability", capability),
    NvmlReading("cores", "nvmlDeviceGetNumGpuCores", count),
    NvmlReading("serial", "nvmlDeviceGetSerial", text),
    NvmlReading("vbios", "nvmlDeviceGetVbiosVersion", text),
    NvmlReading("part_number", "nvmlDeviceGetBoardPartNumber", text),
    NvmlReading("performance_state", "nvmlDeviceGetPerformanceState", performance_state),
    NvmlReading("compute_mode", "nvmlDeviceGetComputeMode", choice(COMPUTE_MODES, closed=True)),
    NvmlReading("persistence_mode", "nvmlDeviceGetPersistenceMode", flag),
    NvmlReading("virtualization", "nvmlDeviceGetVirtualizationMode", choice(VIRTUALIZATION_MODES)),
    NvmlReading("addressing_mode", "nvmlDeviceGetAddressingMode", choice(ADDRESSING_MODES)),
    NvmlReading(
        "memory.total memory.reserved memory.used memory.free",
        "nvmlDeviceGetMemoryInfo nvmlMemory_v2 | nvmlDeviceGetMemoryInfo",
        count,
        ("total", "reserved", "used", "free"),
    ),
    NvmlReading("memory.bus_width", "nvmlDeviceGetMemoryBusWidth", count),
    NvmlReading(
        "bar1.total bar1.used bar1.free", "nvmlDeviceGetBAR1MemoryInfo", count, ("bar1Total", "bar1Used", "bar1Free")
    ),
    NvmlReading("ecc.enabled ecc.pending", "nvmlDeviceGetEccMode", flag),
    *(
        NvmlReading(f"ecc.{since}_{kind}", f"{_ECC_ERRORS}{kind.upper()} NVML_{since.upper()}_ECC", count)
        for since in ("volatile", "aggregate")
        for kind in ("corrected", "uncorrected")
    ),
    NvmlReading("ecc.retirement_pending", "nvmlDeviceGetRetiredPagesPendingStatus", flag),
    NvmlReading(
        "row_remap.corrected row_remap.uncorrected row_remap.pending row_remap.failed",
        "nvmlDeviceGetRemappedRows",
        (count, count, flag, flag),
    ),
    NvmlReading("mig.enabled mig.pending", "nvmlDeviceGetMigMode", flag),
    NvmlReading("clocks.sm", "nvmlDeviceGetClockInfo NVML_CLOCK_SM", mega),
    NvmlReading("clocks.sm_max", "nvmlDeviceGetMaxClockInfo NVML_CLOCK_SM", mega),
    NvmlReading("clocks.memory", "nvmlDeviceGetClockInfo NVML_CLOCK_MEM", mega),
    NvmlReading("clocks.memory_max", "nvmlDeviceGetMaxClockInfo NVML_CLOCK_MEM", mega),
    NvmlReading("clocks.sm_application", "nvmlDeviceGetApplicationsClock NVML_CLOCK_GRAPHICS", mega),
    NvmlReading("clocks.sm_application_default", "nvmlDeviceGetDefaultApplicationsClock NVML_CLOCK_GRAPHICS", mega),
    NvmlReading("power.draw", "nvmlDeviceGetPowerUsage", milli),
    NvmlReading("power.limit", "nvmlDeviceGetEnforcedPowerLimit", milli),
    NvmlReading("power.limit_default", "nvmlDeviceGetPowerManagementDefaultLimit", milli),
    NvmlReading("power.limit_min power.limit_max", "nvmlDeviceGetPowerManagementLimitConstraints", milli),
    NvmlReading(
        "temperature.gpu",
        "nvmlDeviceGetTemperatureV NVML_TEMPERATURE_GPU | nvmlDeviceGetTemperature NVML_TEMPERATURE_GPU",
        degrees,
    ),
    NvmlReading(
        "temperature.slowdown", "nvmlDeviceGetTemperatureThreshold NVML_TEMPERATURE_THRESHOLD_SLOWDOWN", degrees
    ),
    NvmlReading(
        "temperature.shutdown", "nvmlDeviceGetTemperatureThreshold NVML_TEMPERATURE_THRESHOLD_SHUTDOWN", degrees
    ),
    NvmlReading("temperature.gpu_max", "nvmlDeviceGetTemperatureThreshold NVML_TEMPERATURE_THRESHOLD_GPU_MAX", degrees),
    NvmlReading("fan", "nvmlDeviceGetFanSpeed", percent),
    NvmlReading("pcie.generation", "nvmlDeviceGetCurrPcieLinkGeneration", count),
    NvmlReading("pcie.generation_max", "nvmlDeviceGetMaxPcieLinkGeneration", count),
    NvmlReading("pcie.generation_device_max", "nvmlDeviceGetGpuMaxPcieLinkGeneration", count),
    NvmlReading("pcie.width", "nvmlDeviceGetCurrPcieLinkWidth", count),
    NvmlReading("pcie.width_max", "nvmlDeviceGetMaxPcieLinkWidth", count),
    NvmlReading("pcie.replays", "nvmlDeviceGetPcieReplayCounter", count),
    NvmlReading("utilisation memory_utilisation", "nvmlDeviceGetUtilizationRates", percent, ("gpu", "memory")),
    NvmlReading("temperature.memory", "82", degrees),
    NvmlReading("recovery_action", "230", constant("NVML_GPU_RECOVERY_ACTION_", RECOVERY_ACTIONS)),
)

Reader: TypeAlias = "Callable[[NvmlDevice, dict[str, Any]], None]"  # Reads facts of a device into its record


def read_field(reading: NvmlReading, device: NvmlDevice, record: dict[str, Any]) -> None:
    """Ask NVML for a reading and store the converted results."""
    answer: Any
    if reading.calls.isdigit():
        answer = device.ask_field(reading.fields, int(reading.calls))
    else:
        answer = device.ask(reading.fields, *(tuple(call.split()) for call in reading.calls.split("|")))
    if answer is None:
        return
    fields = reading.fields.split()
    if reading.members:
        values = [getattr(answer, member, None) for member in reading.members]
    else:
        values = [answer] if len(fields) == 1 else list(answer)
    if len(values) != len(fields):
        raise ValueError(f"{len(values)} values for {reading.fields}")
    converts = reading.convert if isinstance(reading.convert, tuple) else (reading.convert,) * len(fields)
    for field, convert, value in zip(fields, converts, values):
        converted = None if value is None else convert(device.nvml, value)
        if converted is not None:
            place(record, field, converted)


def place(record: dict[str, Any], field: str, value: Any) -> None:
    """Store ``value`` at the dotted ``field``; a new group gets NVML as its source."""
    *groups, name = field.split(".")
    for group in groups:
        record = record.setdefault(group, {"source": "nvml"})
    record[name] = value


REASONS = {
    0x1: "gpu_idle", 0x2: "applications_clocks_setting", 0x4: "sw_power_cap", 0x8: "hw_slowdown", 0x10: "sync_boost",
    0x20: "sw_thermal_slowdown", 0x40: "hw_thermal_slowdown", 0x80: "hw_power_brake_slowdown",
    0x100: "display_clock_setting",
}  # fmt: skip

STEADY_COUNTERS = {"sw_power_cap": 74, "sw_thermal_slowdown": 75, "sync_boost": 76}
"""NVML's performance policy counters, the only throttle counters whose numbers never changed."""
MOVED_COUNTERS = ("sw_thermal_slowdown", "hw_thermal_slowdown", "hw_power_brake_slowdown")
COUNTER_PLACES = ((269, 270, 271), (251, 252, 253))
"""Numbers of ``MOVED_COUNTERS``: those of most drivers, then those of some releases."""


def throttle(device: NvmlDevice, record: dict[str, Any]) -> None:
    mask = device.ask(
        "throttle.reasons", ("nvmlDeviceGetCurrentClocksEventReasons",), ("nvmlDeviceGetCurrentClocksThrottleReasons",)
    )
    if mask is not None:
        place(record, "throttle.reasons", reasons_in(mask))
    answers = {name: device.ask_field("throttle.seconds", number) for name, number in STEADY_COUNTERS.items()}
    seconds = {name: value / 1e9 for name, value in answers.items() if value is not None}
    # Of the counters whose numbers differ between driver releases none counts where it is unclear which apply: the
    # numbers that are not the counters' belong to power smoothing settings, which are no 64-bit counters.
    for numbers in COUNTER_PLACES:
        moved = [device.ask_typed_field("", number) for number in numbers]
        if all(answer and answer[0] == UNSIGNED_LONG_LONG for answer in moved):
            seconds.update({name: answer[1] / 1e9 for name, answer in zip(MOVED_COUNTERS, moved) if answer})
            break
    if seconds:
        place(record, "throttle.seconds", seconds)


def reasons_in(mask: int) -> list[str]:
    """The names of the bits of NVML's clocks event reasons."""
    bits = [1 << place for place in range(64) if mask >> place & 1]
    return [REASONS.get(bit, hex(bit)) for bit in bits]
