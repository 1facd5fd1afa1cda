"""What takes more than one call of NVML: firmware, page retirement, MIG instances, processes."""

from __future__ import annotations

import ctypes
from typing import Any

from ._nvml_ask import NOT_FOUND, SUCCESS, Device
from ._nvml_convert import count, text
from ._nvml_fields import place


def gsp_firmware(device: Device, record: dict[str, Any]) -> None:
    # The caller's buffer is the one form of this call that every release of the binding has.
    buffer = ctypes.create_string_buffer(64)
    if device.ask("gsp_firmware", ("nvmlDeviceGetGspFirmwareVersion", buffer)) is not None:
        version = text(device.nvml, buffer.value)
        if version:
            record["gsp_firmware"] = version


def retired_pages(device: Device, record: dict[str, Any]) -> None:
    causes = ("MULTIPLE_SINGLE_BIT_ECC_ERRORS", "DOUBLE_BIT_ECC_ERROR")
    lists = [
        device.ask("ecc.retired_pages", ("nvmlDeviceGetRetiredPages", f"NVML_PAGE_RETIREMENT_CAUSE_{cause}"))
        for cause in causes
    ]
    if None not in lists:
        place(record, "ecc.retired_pages", sum(len(pages) for pages in lists))


def mig_instances(device: Device, record: dict[str, Any]) -> None:
    if not record.get("mig", {}).get("enabled"):
        return
    most = device.ask("mig.instances", ("nvmlDeviceGetMaxMigDeviceCount",))
    if most is None:
        return
    found, unclear = [], False
    for index in range(most):
        code, handle = device.attempt(("nvmlDeviceGetMigDeviceHandleByIndex", index))
        if code == SUCCESS:
            found.append(_mig_instance(Device(device.nvml, handle)))
        elif code != NOT_FOUND:
            device.note("mig.instances", "nvmlDeviceGetMigDeviceHandleByIndex", code)
            unclear = True
    # An empty list says that there are none, which only answers for every index can tell.
    if found or not unclear:
        place(record, "mig.instances", found)


def _mig_instance(instance: Device) -> dict[str, Any]:
    attributes = instance.ask("", ("nvmlDeviceGetAttributes_v2",), ("nvmlDeviceGetAttributes",))
    memory = instance.ask("", ("nvmlDeviceGetMemoryInfo",))
    name, uuid = (instance.ask("", (call,)) for call in ("nvmlDeviceGetName", "nvmlDeviceGetUUID"))
    values = {
        "uuid": None if uuid is None else text(instance.nvml, uuid),
        "name": None if name is None else text(instance.nvml, name),
        "memory": None if memory is None else count(instance.nvml, memory.total),
        "sm_count": None if attributes is None else count(instance.nvml, attributes.multiprocessorCount),
    }
    return {"source": "nvml", **{key: value for key, value in values.items() if value is not None}}


def processes(device: Device, record: dict[str, Any]) -> None:
    """The processes with a context on the GPU, each once: one that computes and draws counts as computing."""
    lists: dict[str, list[Any]] = {}
    for kind in ("Compute", "Graphics"):
        refusals = len(device.refused)
        items = _process_list(device, kind)
        if items is not None:
            lists[kind] = items
        elif len(device.refused) == refusals:
            return  # not known, and the other kind alone would look like all of them
    by_pid: dict[int, dict[str, Any]] = {}
    for kind, items in lists.items():
        for item in items:
            by_pid.setdefault(item.pid, {"kind": kind.lower(), **_process(item)})
    if lists:
        record["processes"] = list(by_pid.values())


def _process_list(device: Device, kind: str) -> list[Any] | None:
    calls = [(f"nvmlDeviceGet{kind}RunningProcesses{version}",) for version in ("_v3", "_v2", "")]
    items = device.ask("processes", *calls)
    # One release of the binding lays the records out as no driver but a few does; its numbers would be noise.
    if items is None or any(hasattr(item, "usedGpuCcProtectedMemory") for item in items):
        return None
    return list(items)


def _process(item: Any) -> dict[str, Any]:
    memory = {} if item.usedGpuMemory is None else {"memory": item.usedGpuMemory}
    return {"source": "nvml", "pid": item.pid, **memory}
