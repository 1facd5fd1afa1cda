"""From the tree of nvidia-smi's full report to the driver and the GPUs.

Each field names the elements it may stand in, those of the newest format first: power readings and clock reasons were
renamed, the uncorrectable SRAM errors split in two, and the reset status gave way to a recovery action.
"""

from __future__ import annotations

import re
from typing import Any, TypeVar

import msgspec

from envcheck.importers.formats.nvidia_smi.fields import (
    MOST_GPUS,
    Fields,
    among,
    bus_id,
    device_id,
    flag,
    label,
    quantity,
    whole,
    word,
)
from envcheck.importers.formats.nvidia_smi.tree import Element
from envcheck.importers.paste import SOURCE
from envcheck.model.snapshot import (
    Clocks,
    Driver,
    Ecc,
    Gpu,
    GpuFabric,
    Listing,
    Memory,
    Mig,
    MigInstance,
    Pcie,
    Power,
    Process,
    Record,
    RowRemap,
    Snapshot,
    Temperature,
    Throttle,
)

R = TypeVar("R", bound=Record)

REASONS = {
    "gpu_idle": "gpu_idle",
    "applications_clocks_setting": "applications_clocks_setting",
    "sw_power_cap": "sw_power_cap",
    "hw_slowdown": "hw_slowdown",
    "sync_boost": "sync_boost",
    "sw_thermal_slowdown": "sw_thermal_slowdown",
    "hw_thermal_slowdown": "hw_thermal_slowdown",
    "hw_power_brake_slowdown": "hw_power_brake_slowdown",
    "display_clocks_setting": "display_clock_setting",
    "sw_therm_slowdown": "sw_thermal_slowdown",
    "hw_therm_slowdown": "hw_thermal_slowdown",
    "hw_power_brake": "hw_power_brake_slowdown",
}
"""Endings of nvidia-smi's element names (flags, then time counters), and their names in the Snapshot."""
_PROCESS_KINDS = {"c": "compute", "g": "graphics"}
_MOST_PROCESSES = 4096

_ECC_ELEMENTS = {
    "corrected": (("sram_correctable",), ("dram_correctable",)),
    "uncorrected": (
        ("sram_uncorrectable",),
        ("sram_uncorrectable_parity",),
        ("sram_uncorrectable_secded",),
        ("dram_uncorrectable",),
    ),
}
_ECC_TOTALS = {"corrected": "single_bit/total", "uncorrected": "double_bit/total"}
"""The elements for totals in the oldest formats."""
_FABRIC_STATES = {
    "n/a": "not_supported",
    "not supported": "not_supported",
    "not started": "not_started",
    "in progress": "in_progress",
    "completed": "completed",
}
_HEALTH = {
    ("bandwidth", "degraded"): "degraded_bandwidth",
    ("route_recovery_in_progress", "true"): "route_recovery",
    ("route_unhealthy", "true"): "route_unhealthy",
    ("access_timeout_recovery", "true"): "access_timeout_recovery",
    ("partition_assigned", "false"): "partition_not_assigned",
}


def _unless_empty(record: R) -> R | None:
    """The record, or None if none of its fields was read."""
    return None if record == type(record)(source=SOURCE) else record


def _memory(fields: Fields, field: str, path: str) -> Memory | None:
    read_bytes: dict[str, Any] = {
        name: fields.value(f"{field}.{name}", whole, f"{path}/{name}") for name in ("total", "reserved", "used", "free")
    }
    return _unless_empty(Memory(source=SOURCE, **read_bytes))


def _ecc(fields: Fields) -> Ecc | None:
    value = fields.value
    retired = _sum(
        value("ecc.retired_pages", whole, "retired_pages/multiple_single_bit_retirement/retired_count"),
        value("ecc.retired_pages", whole, "retired_pages/double_bit_retirement/retired_count"),
    )
    ecc = Ecc(
        source=SOURCE,
        enabled=value("ecc.enabled", flag, "ecc_mode/current_ecc"),
        pending=value("ecc.pending", flag, "ecc_mode/pending_ecc"),
        volatile_corrected=_ecc_errors(fields, "volatile", "corrected"),
        volatile_uncorrected=_ecc_errors(fields, "volatile", "uncorrected"),
        aggregate_corrected=_ecc_errors(fields, "aggregate", "corrected"),
        aggregate_uncorrected=_ecc_errors(fields, "aggregate", "uncorrected"),
        retired_pages=retired,
        retirement_pending=value(
            "ecc.retirement_pending", flag, "retired_pages/pending_retirement", "retired_pages/pending_blacklist"
        ),
    )
    return _unless_empty(ecc)


def _ecc_errors(fields: Fields, counted: str, kind: str) -> int | None:
    field, base = f"ecc.{counted}_{kind}", f"ecc_errors/{counted}"
    total = fields.value(field, whole, f"{base}/{_ECC_TOTALS[kind]}")
    if total is not None:
        return total
    parts = [fields.value(field, whole, *(f"{base}/{name}" for name in names)) for names in _ECC_ELEMENTS[kind]]
    return _sum(*parts)


def _sum(*counts: int | None) -> int | None:
    """The sum of the known counts; None if there are none."""
    known = [count for count in counts if count is not None]
    return sum(known) if known else None


def _row_remap(fields: Fields) -> RowRemap | None:
    if fields.group("row_remap", "remapped_rows") is None:
        return None
    base = "remapped_rows/remapped_row"
    remap = RowRemap(
        source=SOURCE,
        corrected=fields.value("row_remap.corrected", whole, f"{base}_corr"),
        uncorrected=fields.value("row_remap.uncorrected", whole, f"{base}_unc"),
        pending=fields.value("row_remap.pending", flag, f"{base}_pending"),
        failed=fields.value("row_remap.failed", flag, f"{base}_failure"),
    )
    return _unless_empty(remap)


def _mig(fields: Fields) -> Mig | None:
    enabled = fields.value("mig.enabled", flag, "mig_mode/current_mig")
    pending = fields.value("mig.pending", flag, "mig_mode/pending_mig")
    listed = fields.group("mig", "mig_devices")
    if enabled is None:
        return None
    instances = tuple(_instance(element) for element in listed.all("mig_device")) if listed else None
    return Mig(source=SOURCE, enabled=enabled, pending=pending, instances=instances)


def _instance(element: Element) -> MigInstance:
    fields = Fields(element)
    return MigInstance(
        source=SOURCE,
        uuid=fields.value("uuid", word, "uuid"),
        memory=fields.value("memory", whole, "fb_memory_usage/total"),
        sm_count=fields.value("sm_count", whole, "device_attributes/shared/multiprocessor_count"),
    )


def _clocks(fields: Fields) -> Clocks | None:
    value = fields.value
    clocks = Clocks(
        source=SOURCE,
        sm=value("clocks.sm", quantity, "clocks/sm_clock"),
        sm_max=value("clocks.sm_max", quantity, "max_clocks/sm_clock"),
        memory=value("clocks.memory", quantity, "clocks/mem_clock"),
        memory_max=value("clocks.memory_max", quantity, "max_clocks/mem_clock"),
        sm_application=value("clocks.sm_application", quantity, "applications_clocks/graphics_clock"),
        sm_application_default=value(
            "clocks.sm_application_default", quantity, "default_applications_clocks/graphics_clock"
        ),
    )
    return _unless_empty(clocks)


def _power(fields: Fields) -> Power | None:
    def watts(field: str, *names: str) -> float | None:
        paths = [f"{section}/{name}" for section in ("gpu_power_readings", "power_readings") for name in names]
        paths += names  # of lines that are quoted without their heading
        return fields.value(f"power.{field}", quantity, *paths)

    power = Power(
        source=SOURCE,
        draw=watts("draw", "power_draw", "average_power_draw", "instant_power_draw"),
        limit=watts("limit", "enforced_power_limit", "current_power_limit", "power_limit"),
        limit_default=watts("limit_default", "default_power_limit"),
        limit_min=watts("limit_min", "min_power_limit"),
        limit_max=watts("limit_max", "max_power_limit"),
    )
    return _unless_empty(power)


def _temperature(fields: Fields) -> Temperature | None:
    """Temperatures; the ``tlimit`` elements of newer GPUs are distances to a limit and are not read."""
    value, base = fields.value, "temperature/"
    temperature = Temperature(
        source=SOURCE,
        gpu=value("temperature.gpu", quantity, f"{base}gpu_temp"),
        memory=value("temperature.memory", quantity, f"{base}memory_temp"),
        slowdown=value("temperature.slowdown", quantity, f"{base}gpu_temp_slow_threshold"),
        shutdown=value("temperature.shutdown", quantity, f"{base}gpu_temp_max_threshold"),
        gpu_max=value("temperature.gpu_max", quantity, f"{base}gpu_temp_max_gpu_threshold"),
    )
    return _unless_empty(temperature)


def _throttle(fields: Fields) -> Throttle | None:
    element = fields.group("throttle", "clocks_event_reasons") or fields.group("throttle", "clocks_throttle_reasons")
    counters = fields.group("throttle.seconds", "clocks_event_reasons_counters")
    if element is None:
        return None
    stated = [(_reason(child.name), flag(child.text)) for child in element.children]
    known = any(active is not None for _, active in stated)
    times = {
        reason: seconds
        for child in (counters.children if counters else ())
        if (reason := _reason(child.name)) and (seconds := quantity(child.text)) is not None
    }
    return Throttle(
        source=SOURCE,
        reasons=tuple(reason for reason, active in stated if reason and active) if known else None,
        seconds=times or None,
    )


def _reason(name: str) -> str | None:
    for start in ("clocks_event_reasons_counters_", "clocks_event_reason_", "clocks_throttle_reason_"):
        if name.startswith(start):
            return REASONS.get(name.removeprefix(start))
    return None


def _pcie(fields: Fields) -> Pcie | None:
    def number(field: str, *paths: str) -> int | None:
        return fields.value(f"pcie.{field}", whole, *(f"pci/{path}" for path in paths))

    generation, width = "pci_gpu_link_info/pcie_gen", "pci_gpu_link_info/link_widths"
    pcie = Pcie(
        source=SOURCE,
        generation=number("generation", f"{generation}/current_link_gen"),
        generation_max=number("generation_max", f"{generation}/max_link_gen"),
        generation_device_max=number("generation_device_max", f"{generation}/max_device_link_gen"),
        width=number("width", f"{width}/current_link_width"),
        width_max=number("width_max", f"{width}/max_link_width"),
        replays=number("replays", "replay_counter"),
        upstream_generation_max=number("upstream_generation_max", f"{generation}/max_host_link_gen"),
    )
    return _unless_empty(pcie)


def _fabric(fields: Fields) -> GpuFabric | None:
    """The fabric state; "N/A" means that the GPU has none, or that a guest cannot see it."""
    element = fields.group("fabric", "fabric")
    state = fields.value("fabric.state", among(_FABRIC_STATES), "fabric/state")
    if element is None or state is None:
        return None
    status = fields.value("fabric.status_name", word, "fabric/status") if state != "not_supported" else None
    return GpuFabric(
        source=SOURCE,
        state=state,  # type: ignore[arg-type]  # a value of _FABRIC_STATES
        status=0 if status and status.lower() == "success" else None,
        status_name=status,
        health=_fabric_health(element),
    )


def _fabric_health(element: Element) -> tuple[str, ...]:
    """The conditions that indicate a fault."""
    health = element.at("health")
    if health is None:
        return ()
    found = [_HEALTH.get((child.name, child.text.lower())) for child in health.children]
    wrong = health.at("incorrect_configuration")
    configuration = word(wrong.text) if wrong else None
    if configuration and configuration.lower() not in ("none", "false"):
        found.append(configuration.lower().replace(" ", "_"))
    return tuple(condition for condition in found if condition)


def _processes(fields: Fields) -> tuple[Process, ...] | None:
    element = fields.group("processes", "processes")
    if element is None:
        return None
    found = []
    for entry in element.all("process_info")[:_MOST_PROCESSES]:
        inner = Fields(entry)
        pid = inner.value("pid", whole, "pid")
        if pid is not None:
            kind: Any = inner.value("kind", among(_PROCESS_KINDS), "type")
            found.append(Process(source=SOURCE, pid=pid, kind=kind, memory=inner.value("memory", whole, "used_memory")))
    return tuple(found)


_COMPUTE_MODES = {name: name for name in ("default", "exclusive_thread", "prohibited", "exclusive_process")}
_ADDRESSING_MODES = {name: name for name in ("hmm", "ats", "none")}
_VIRTUALIZATION = {
    "none": "none",
    "pass-through": "passthrough",
    "vgpu": "vgpu",
    "host vgpu": "host_vgpu",
    "host vsga": "host_vsga",
}
_RECOVERY = {
    "none": "none",
    "reset": "gpu_reset",
    "gpu reset": "gpu_reset",
    "reboot": "node_reboot",
    "node reboot": "node_reboot",
    "drain p2p": "drain_p2p",
    "drain and reset": "drain_and_reset",
}
_ARCHITECTURES = {"ada lovelace": "ada"}

_RELEASE = re.compile(r"[0-9]{2,4}(?:\.[0-9]{1,4}){1,2}")
_CUDA = re.compile(r"[0-9]{1,2}\.[0-9]{1,2}")


def _gpu(element: Element) -> Gpu:
    """The GPU of one ``<gpu>`` element."""
    fields = Fields(element)
    gpu = Gpu(
        source=SOURCE,
        pci_bus_id=fields.value("pci_bus_id", bus_id, "pci/pci_bus_id") or bus_id(element.attributes.get("id", "")),
        **_identity(fields),
        **_state(fields),
        memory=_memory(fields, "memory", "fb_memory_usage"),
        bar1=_memory(fields, "bar1", "bar1_memory_usage"),
        ecc=_ecc(fields),
        row_remap=_row_remap(fields),
        mig=_mig(fields),
        clocks=_clocks(fields),
        power=_power(fields),
        temperature=_temperature(fields),
        throttle=_throttle(fields),
        pcie=_pcie(fields),
        fabric=_fabric(fields),
        processes=_processes(fields),
    )
    return msgspec.structs.replace(gpu, errors=tuple(fields.errors.values()), not_supported=fields.not_supported())


def _identity(fields: Fields) -> dict[str, Any]:
    value = fields.value
    brand = value("brand", word, "product_brand")
    architecture = value("architecture", word, "product_architecture")
    return {
        "uuid": value("uuid", word, "uuid"),
        "minor": value("minor", whole, "minor_number"),
        "name": value("name", word, "product_name"),
        "brand": brand.lower().replace(" ", "_") if brand else None,  # as NVML names it: quadro_rtx
        "architecture": _ARCHITECTURES.get(architecture.lower(), architecture.lower()) if architecture else None,
        "pci_device_id": value("pci_device_id", device_id, "pci/pci_device_id"),
        "pci_subsystem_id": value("pci_subsystem_id", device_id, "pci/pci_sub_system_id"),
        "serial": value("serial", word, "serial"),
        "vbios": value("vbios", word, "vbios_version"),
        "part_number": value("part_number", word, "board_part_number", "gpu_part_number"),
        "gsp_firmware": value("gsp_firmware", word, "gsp_firmware_version"),
    }


def _state(fields: Fields) -> dict[str, Any]:
    value = fields.value
    return {
        "performance_state": value("performance_state", word, "performance_state"),
        "compute_mode": value("compute_mode", among(_COMPUTE_MODES), "compute_mode"),
        "persistence_mode": value("persistence_mode", flag, "persistence_mode"),
        "virtualization": value(
            "virtualization", among(_VIRTUALIZATION), "gpu_virtualization_mode/virtualization_mode"
        ),
        "recovery_action": value("recovery_action", among(_RECOVERY), "gpu_recovery_action") or _reset_status(fields),
        "addressing_mode": value("addressing_mode", among(_ADDRESSING_MODES), "addressing_mode"),
        "fan": value("fan", quantity, "fan_speed"),
        "utilisation": value("utilisation", quantity, "utilization/gpu_util"),
        "memory_utilisation": value("memory_utilisation", quantity, "utilization/memory_util"),
    }


def _reset_status(fields: Fields) -> str | None:
    """The recovery action from the two flags of older drivers."""
    reset = fields.value("recovery_action", flag, "gpu_reset_status/reset_required")
    drain = fields.value("recovery_action", flag, "gpu_reset_status/drain_and_reset_recommended")
    if reset is None:
        return None
    return "gpu_reset" if reset else "drain_and_reset" if drain else "none"


def snapshot_of(root: Element) -> Snapshot:
    """The driver and the GPUs of the report."""
    release = _matching(root, _RELEASE, "driver_version", "kmd_version")
    cuda = _matching(root, _CUDA, "cuda_version", "cuda_umd_version")
    # The driver's libraries are there, since nvidia-smi printed this.
    driver = Driver(source=SOURCE, installed=True, release=release, cuda=cuda) if release or cuda else None
    return Snapshot(driver=driver, gpus=_gpus(root))


def _matching(root: Element, pattern: re.Pattern[str], *names: str) -> str | None:
    texts = [found.text for name in names if (found := root.at(name))]
    return next((text for text in texts if pattern.fullmatch(text)), None)


def _gpus(root: Element) -> Listing[Gpu] | None:
    """The GPUs with a complete element. They are in index order unless ``-i`` selected some."""
    elements = [element for element in root.all("gpu") if element.whole][:MOST_GPUS]
    attached = root.at("attached_gpus")
    count = whole(attached.text) if attached else None
    if not elements and count != 0:
        return None
    every = count == len(elements)
    gpus = [_gpu(element) for element in elements]
    for place, gpu in enumerate(gpus):
        if every:
            gpus[place] = msgspec.structs.replace(gpu, index=place, label=label(place))
        elif not gpu.identities():  # its position has to do
            gpus[place] = msgspec.structs.replace(gpu, label=f"{SOURCE} {place}")
    return Listing(items=tuple(gpus), complete=every)
