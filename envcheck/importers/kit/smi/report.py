"""Read a full report of nvidia-smi, a tree with the element names of its XML, into a Snapshot."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from envcheck.importers.kit.gpu_lines import MOST_GPUS, label
from envcheck.importers.kit.paste import SOURCE
from envcheck.importers.kit.smi import records
from envcheck.importers.kit.smi.fields import Fields, among, bus_id, device_id, flag, quantity, whole, word
from envcheck.importers.kit.smi.xml import Element
from envcheck.snapshot import Driver, Gpu, Listing, Snapshot

# A ``<gpu>`` element of nvidia-smi's XML to a Gpu.
#
# Each field names the elements it may stand in, those of the newest format first: power readings and clock reasons were
# renamed, the uncorrectable SRAM errors split in two, and the reset status gave way to a recovery action.

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


def read(element: Element) -> Gpu:
    """The GPU of one ``<gpu>`` element."""
    fields = Fields(element)
    gpu = Gpu(
        source=SOURCE,
        pci_bus_id=fields.value("pci_bus_id", bus_id, "pci/pci_bus_id") or bus_id(element.attributes.get("id", "")),
        **_identity(fields),
        **_state(fields),
        memory=records.memory(fields, "memory", "fb_memory_usage"),
        bar1=records.memory(fields, "bar1", "bar1_memory_usage"),
        ecc=records.ecc(fields),
        row_remap=records.row_remap(fields),
        mig=records.mig(fields),
        clocks=records.clocks(fields),
        power=records.power(fields),
        temperature=records.temperature(fields),
        throttle=records.throttle(fields),
        pcie=records.pcie(fields),
        fabric=records.fabric(fields),
        processes=records.processes(fields),
    )
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
    """The recovery action from the two flags of older drivers."""
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


def snapshot_of(root: Element) -> Snapshot:
    """The driver and the GPUs of the report."""
    return Snapshot(driver=_driver(root), gpus=_gpus(root))


def _driver(root: Element) -> Driver | None:
    """The driver; its libraries are there, since nvidia-smi printed this."""
    release = _matching(root, _RELEASE, "driver_version", "kmd_version")
    cuda = _matching(root, _CUDA, "cuda_version", "cuda_umd_version")
    if release is None and cuda is None:
        return None
    return Driver(source=SOURCE, installed=True, release=release, cuda=cuda)


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
    gpus = [read(element) for element in elements]
    numbered = [_numbered(gpu, place, every=every) for place, gpu in enumerate(gpus)]
    return Listing(items=tuple(numbered), complete=every)


def _numbered(gpu: Gpu, place: int, *, every: bool) -> Gpu:
    """The GPU with its index if that is known; a GPU without an identity gets a label by its position."""
    if every:
        return msgspec.structs.replace(gpu, index=place, label=label(place))
    return gpu if gpu.identities() else msgspec.structs.replace(gpu, label=f"{SOURCE} {place}")
