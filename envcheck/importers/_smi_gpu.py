"""A ``<gpu>`` element of nvidia-smi's XML to a Gpu.

Each field names the elements it may stand in, those of the newest format first: power readings and clock reasons were
renamed, the uncorrectable SRAM errors split in two, and the reset status gave way to a recovery action.
"""

from __future__ import annotations

from typing import Any

import msgspec

from envcheck.importers import _smi_records
from envcheck.importers._paste import SOURCE
from envcheck.importers._smi_fields import Fields, among
from envcheck.importers._smi_values import bus_id, device_id, flag, quantity, whole, word
from envcheck.importers._xml import Element
from envcheck.snapshot import Gpu

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


def read(element: Element) -> Gpu:
    """The GPU of one ``<gpu>`` element."""
    fields = Fields(element)
    gpu = Gpu(
        source=SOURCE,
        pci_bus_id=fields.value("pci_bus_id", bus_id, "pci/pci_bus_id") or bus_id(element.attributes.get("id", "")),
        **_identity(fields),
        **_state(fields),
        memory=_smi_records.memory(fields, "memory", "fb_memory_usage"),
        bar1=_smi_records.memory(fields, "bar1", "bar1_memory_usage"),
        ecc=_smi_records.ecc(fields),
        row_remap=_smi_records.row_remap(fields),
        mig=_smi_records.mig(fields),
        clocks=_smi_records.clocks(fields),
        power=_smi_records.power(fields),
        temperature=_smi_records.temperature(fields),
        throttle=_smi_records.throttle(fields),
        pcie=_smi_records.pcie(fields),
        fabric=_smi_records.fabric(fields),
        processes=_smi_records.processes(fields),
    )
    return _finished(gpu, fields)


def _finished(gpu: Gpu, fields: Fields) -> Gpu:
    return msgspec.structs.replace(gpu, errors=tuple(fields.errors.values()), not_supported=fields.not_supported())


def _identity(fields: Fields) -> dict[str, Any]:
    value = fields.value
    return {
        "uuid": value("uuid", word, "uuid"),
        "minor": value("minor", whole, "minor_number"),
        "name": value("name", word, "product_name"),
        "brand": value("brand", _brand, "product_brand"),
        "architecture": value("architecture", _architecture, "product_architecture"),
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
    """The recovery action as older drivers put it: two flags."""
    reset = fields.value("recovery_action", flag, "gpu_reset_status/reset_required")
    drain = fields.value("recovery_action", flag, "gpu_reset_status/drain_and_reset_recommended")
    if reset is None:
        return None
    return "gpu_reset" if reset else "drain_and_reset" if drain else "none"


def _brand(text: str) -> str | None:
    """NVML's name of the brand: ``quadro_rtx``."""
    shown = word(text)
    return shown.lower().replace(" ", "_") if shown else None


def _architecture(text: str) -> str | None:
    shown = word(text)
    return _ARCHITECTURES.get(shown.lower(), shown.lower()) if shown else None
