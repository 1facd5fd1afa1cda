"""From the tree of nvidia-smi's full report to the driver and the GPUs.

Each field names the elements it may stand in, those of the newest format first: power readings and clock reasons were
renamed, the uncorrectable SRAM errors split in two, and the reset status gave way to a recovery action.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

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
from envcheck.model.snapshot import Driver, Gpu, GpuFabric, Listing, Mig, MigInstance, Process, Snapshot, Throttle
from envcheck.text.lazy import lazy_pattern

_OWN_REASONS = (
    *("gpu_idle", "applications_clocks_setting", "sw_power_cap", "hw_slowdown", "sync_boost"),
    *("sw_thermal_slowdown", "hw_thermal_slowdown", "hw_power_brake_slowdown"),
)
"""Those that the Snapshot calls as nvidia-smi does."""
REASONS = {
    **{name: name for name in _OWN_REASONS}, "display_clocks_setting": "display_clock_setting",
    "sw_therm_slowdown": "sw_thermal_slowdown", "hw_therm_slowdown": "hw_thermal_slowdown",
    "hw_power_brake": "hw_power_brake_slowdown", "idle": "gpu_idle", "display_clock_setting": "display_clock_setting",
    "sw_power_capping": "sw_power_cap", "hw_power_braking": "hw_power_brake_slowdown",
}  # fmt: skip
"""Endings of nvidia-smi's element names (flags, then time counters), then labels, and their names in the Snapshot."""
_PROCESS_KIND = among(others={"c": "compute", "g": "graphics"})
_OLDER = {"reset": "gpu_reset", "reboot": "node_reboot"}
_RECOVERY = among("none", "gpu reset", "node reboot", "drain p2p", "drain and reset", others=_OLDER)
_FABRIC_STATE = among("not supported", "not started", "in progress", "completed", others={"n/a": "not_supported"})

_ECC_ELEMENTS = {
    "corrected": ("sram_correctable", "dram_correctable"),
    "uncorrected": (
        "sram_uncorrectable", "sram_uncorrectable_parity", "sram_uncorrectable_secded", "dram_uncorrectable",
    ),
}  # fmt: skip
_ECC_TOTALS = {"corrected": "single_bit/total", "uncorrected": "double_bit/total"}  # Totals in the oldest formats
_HEALTH = {
    ("bandwidth", "degraded"): "degraded_bandwidth",
    ("route_recovery_in_progress", "true"): "route_recovery",
    ("route_unhealthy", "true"): "route_unhealthy",
    ("access_timeout_recovery", "true"): "access_timeout_recovery",
    ("partition_assigned", "false"): "partition_not_assigned",
}
_ARCHITECTURES = {"ada lovelace": "ada"}

_RELEASE = lazy_pattern(r"[0-9]{2,4}(?:\.[0-9]{1,4}){1,2}")
_CUDA = lazy_pattern(r"[0-9]{1,2}\.[0-9]{1,2}")


def _watts(*names: str) -> tuple[str, ...]:
    """The places of a power reading; without its heading, of lines that are quoted so."""
    return (*(f"{section}/{name}" for section in ("gpu_power_readings", "power_readings") for name in names), *names)


_LINK, _WIDTH = "pci/pci_gpu_link_info/pcie_gen", "pci/pci_gpu_link_info/link_widths"
_FIELDS: dict[Callable[[str], Any], dict[str, tuple[str, ...]]] = {
    word: {
        "uuid": ("uuid",),
        "name": ("product_name",),
        "serial": ("serial",),
        "vbios": ("vbios_version",),
        "part_number": ("board_part_number", "gpu_part_number"),
        "gsp_firmware": ("gsp_firmware_version",),
        "performance_state": ("performance_state",),
    },
    bus_id: {"pci_bus_id": ("pci/pci_bus_id",)},
    device_id: {"pci_device_id": ("pci/pci_device_id",), "pci_subsystem_id": ("pci/pci_sub_system_id",)},
    # As NVML names them: quadro_rtx.
    lambda text: (word(text) or "").lower().replace(" ", "_") or None: {"brand": ("product_brand",)},
    lambda text: _ARCHITECTURES.get((word(text) or "").lower(), (word(text) or "").lower()) or None: {
        "architecture": ("product_architecture",)
    },
    among("default", "exclusive_thread", "prohibited", "exclusive_process"): {"compute_mode": ("compute_mode",)},
    among("none", "vgpu", "host vgpu", "host vsga", others={"pass-through": "passthrough"}): {
        "virtualization": ("gpu_virtualization_mode/virtualization_mode",)
    },
    _RECOVERY: {"recovery_action": ("gpu_recovery_action",)},
    among("hmm", "ats", "none"): {"addressing_mode": ("addressing_mode",)},
    flag: {
        "persistence_mode": ("persistence_mode",),
        "ecc.enabled": ("ecc_mode/current_ecc",),
        "ecc.pending": ("ecc_mode/pending_ecc",),
        "row_remap.pending": ("remapped_rows/remapped_row_pending",),
        "row_remap.failed": ("remapped_rows/remapped_row_failure",),
        "ecc.retirement_pending": ("retired_pages/pending_retirement", "retired_pages/pending_blacklist"),
    },
    whole: {
        "minor": ("minor_number",),
        **{f"memory.{name}": (f"fb_memory_usage/{name}",) for name in ("total", "reserved", "used", "free")},
        **{f"bar1.{name}": (f"bar1_memory_usage/{name}",) for name in ("total", "reserved", "used", "free")},
        "row_remap.corrected": ("remapped_rows/remapped_row_corr",),
        "row_remap.uncorrected": ("remapped_rows/remapped_row_unc",),
        "pcie.generation": (f"{_LINK}/current_link_gen",),
        "pcie.generation_max": (f"{_LINK}/max_link_gen",),
        "pcie.generation_device_max": (f"{_LINK}/max_device_link_gen",),
        "pcie.width": (f"{_WIDTH}/current_link_width",),
        "pcie.width_max": (f"{_WIDTH}/max_link_width",),
        "pcie.replays": ("pci/replay_counter",),
        "pcie.upstream_generation_max": (f"{_LINK}/max_host_link_gen",),
    },
    quantity: {
        "fan": ("fan_speed",),
        "utilisation": ("utilization/gpu_util",),
        "memory_utilisation": ("utilization/memory_util",),
        "clocks.sm": ("clocks/sm_clock",),
        "clocks.sm_max": ("max_clocks/sm_clock",),
        "clocks.memory": ("clocks/mem_clock",),
        "clocks.memory_max": ("max_clocks/mem_clock",),
        "clocks.sm_application": ("applications_clocks/graphics_clock",),
        "clocks.sm_application_default": ("default_applications_clocks/graphics_clock",),
        "power.draw": _watts("power_draw", "average_power_draw", "instant_power_draw"),
        "power.limit": _watts("enforced_power_limit", "current_power_limit", "power_limit"),
        "power.limit_default": _watts("default_power_limit"),
        "power.limit_min": _watts("min_power_limit"),
        "power.limit_max": _watts("max_power_limit"),
        # The ``tlimit`` elements of newer GPUs are distances to a limit and are not read.
        "temperature.gpu": ("temperature/gpu_temp",),
        "temperature.memory": ("temperature/memory_temp",),
        "temperature.slowdown": ("temperature/gpu_temp_slow_threshold",),
        "temperature.shutdown": ("temperature/gpu_temp_max_threshold",),
        "temperature.gpu_max": ("temperature/gpu_temp_max_gpu_threshold",),
    },
}
"""The elements of each field of a Gpu or of its records, by what reads their text."""


def _gpu(element: Element) -> Gpu:
    fields = Fields(element)
    fields.group("row_remap", "remapped_rows")
    found = {
        field: fields.value(field, decode, *paths)
        for decode, of_kind in _FIELDS.items()
        for field, paths in of_kind.items()
    }
    for counted in ("volatile", "aggregate"):
        for kind, names in _ECC_ELEMENTS.items():
            field, base = f"ecc.{counted}_{kind}", f"ecc_errors/{counted}"
            total = fields.value(field, whole, f"{base}/{_ECC_TOTALS[kind]}")
            parts = [] if total is not None else [fields.value(field, whole, f"{base}/{name}") for name in names]
            found[field] = total if total is not None else _sum(parts)
    retired = ("multiple_single_bit_retirement", "double_bit_retirement")
    pages = [fields.value("ecc.retired_pages", whole, f"retired_pages/{name}/retired_count") for name in retired]
    found["ecc.retired_pages"] = _sum(pages)
    if found["recovery_action"] is None:  # older drivers have two flags
        reset = fields.value("recovery_action", flag, "gpu_reset_status/reset_required")
        drain = fields.value("recovery_action", flag, "gpu_reset_status/drain_and_reset_recommended")
        if reset is not None:
            found["recovery_action"] = "gpu_reset" if reset else "drain_and_reset" if drain else "none"
    if found["pci_bus_id"] is None:
        found["pci_bus_id"] = bus_id(element.attributes.get("id", ""))
    return msgspec.structs.replace(
        made(found),
        mig=_mig(fields),
        throttle=_throttle(fields),
        fabric=_fabric(fields),
        processes=_processes(fields),
        errors=tuple(fields.errors.values()),
        not_supported=fields.not_supported(),
    )


def made(found: Mapping[str, Any]) -> Gpu:
    """The GPU with these fields, of which ``power.draw`` is one of a record; None: it has no value."""
    facts: dict[str, Any] = {"source": SOURCE}
    for field, value in found.items():
        record, _, name = field.rpartition(".")
        if value is not None:
            of_record = facts.setdefault(record, {"source": SOURCE}) if record else facts
            of_record[name] = value
    return msgspec.convert(facts, Gpu)


def _sum(counts: Iterable[int | None]) -> int | None:
    """The sum of the known counts; None if there are none."""
    known = [count for count in counts if count is not None]
    return sum(known) if known else None


def _mig(fields: Fields) -> Mig | None:
    enabled = fields.value("mig.enabled", flag, "mig_mode/current_mig")
    pending = fields.value("mig.pending", flag, "mig_mode/pending_mig")
    listed = fields.group("mig", "mig_devices")
    if enabled is None:
        return None
    instances = [
        MigInstance(
            source=SOURCE,
            uuid=own.value("uuid", word, "uuid"),
            memory=own.value("memory", whole, "fb_memory_usage/total"),
            sm_count=own.value("sm_count", whole, "device_attributes/shared/multiprocessor_count"),
        )
        for own in (map(Fields, listed.all("mig_device")) if listed else ())
    ]
    return Mig(source=SOURCE, enabled=enabled, pending=pending, instances=tuple(instances) if listed else None)


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
        name = name.removeprefix(start)
    return REASONS.get(name)


def _fabric(fields: Fields) -> GpuFabric | None:
    """The fabric state; "N/A" means that the GPU has none, or that a guest cannot see it."""
    element = fields.group("fabric", "fabric")
    state = fields.value("fabric.state", _FABRIC_STATE, "fabric/state")
    if element is None or state is None:
        return None
    status = fields.value("fabric.status_name", word, "fabric/status") if state != "not_supported" else None
    health = element.at("health")  # of its conditions, those that indicate a fault
    found = [_HEALTH.get((child.name, child.text.lower())) for child in (health.children if health else ())]
    wrong = health.at("incorrect_configuration") if health else None
    configuration = (word(wrong.text) or "" if wrong else "").lower()
    found.append(configuration.replace(" ", "_") if configuration != "false" else None)
    return GpuFabric(
        source=SOURCE,
        state=state,  # type: ignore[arg-type]  # one of _FABRIC_STATE
        status=0 if status and status.lower() == "success" else None,
        status_name=status,
        health=tuple(condition for condition in found if condition and condition != "none"),
    )


def _processes(fields: Fields) -> tuple[Process, ...] | None:
    element = fields.group("processes", "processes")
    if element is None:
        return None
    found = []
    for entry in element.all("process_info")[:4096]:
        inner = Fields(entry)
        pid = inner.value("pid", whole, "pid")
        if pid is not None:
            kind: Any = inner.value("kind", _PROCESS_KIND, "type")
            found.append(Process(source=SOURCE, pid=pid, kind=kind, memory=inner.value("memory", whole, "used_memory")))
    return tuple(found)


def snapshot_of(root: Element) -> Snapshot:
    """The driver and the GPUs of the report."""
    release = _matching(root, _RELEASE, "driver_version", "kmd_version")
    cuda = _matching(root, _CUDA, "cuda_version", "cuda_umd_version")
    # The driver's libraries are there, since nvidia-smi printed this.
    driver = Driver(source=SOURCE, installed=True, release=release, cuda=cuda) if release or cuda else None
    # The GPUs with a complete element. They are in index order unless ``-i`` selected some.
    gpus = [_gpu(element) for element in [each for each in root.all("gpu") if each.whole][:MOST_GPUS]]
    attached = root.at("attached_gpus")
    count = whole(attached.text) if attached else None
    every = count == len(gpus)
    for place, gpu in enumerate(gpus):
        if every:
            gpus[place] = msgspec.structs.replace(gpu, index=place, label=label(place))
        elif not gpu.identities():  # its position has to do
            gpus[place] = msgspec.structs.replace(gpu, label=f"{SOURCE} {place}")
    return Snapshot(driver=driver, gpus=Listing(items=tuple(gpus), complete=every) if gpus or count == 0 else None)


def _matching(root: Element, pattern: re.Pattern[str], *names: str) -> str | None:
    texts = [found.text for name in names if (found := root.at(name))]
    return next((text for text in texts if pattern.fullmatch(text)), None)
