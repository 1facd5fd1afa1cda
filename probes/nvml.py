"""Ask the driver, through NVML, about itself and about every GPU."""

from __future__ import annotations

import sys
import time
from functools import partial
from types import ModuleType
from typing import Any

from .common.harmless import give_up_making_devices
from .common.out import Out
from .common.system import is_missing, mapped, why_not_loadable
from .common.tree import Tree
from .driver_apis.nvml_calls import SUCCESS, UNKNOWN_HERE, Call, NvmlDevice, api_result, attempt, text
from .driver_apis.nvml_fields import READINGS, Reader, read_field
from .driver_apis.nvml_parts import PARTS, Pair, gpu_links

PROBE = {
    "title": "Driver and GPUs, as NVML reports them",
    "kind": "driver",
    "seconds": 10.0,
    "seconds_per_gpu": 3.0,
    "uses": "driver",
    "fills": ["driver.nvml", "driver.nvml_version", "driver.release", "driver.cuda", "gpus", "fabric.links"],
}

SONAME = "libnvidia-ml.so.1"
CUDA_VERSION_CALLS: tuple[Call, ...] = (("nvmlSystemGetCudaDriverVersion_v2",), ("nvmlSystemGetCudaDriverVersion",))


def prepare(_tree: Tree) -> None:
    """Import the binding, which takes as long as asking a GPU."""
    give_up_making_devices()
    if why_not_loadable(SONAME) is None:
        load_binding()


def collect(tree: Tree, out: Out) -> None:
    """Send the driver's facts, then a fact for every GPU, then how they are joined and that the list is complete."""
    give_up_making_devices()
    complaint = why_not_loadable(SONAME)  # the binding takes long to import, and would say the same
    if complaint is not None:
        failure = {"source": "nvml", "call": "nvmlInit", "code": -1, "name": "LIBRARY_NOT_FOUND", "text": complaint}
        out.fact({"driver": {"source": "nvml", "nvml": failure}})
        if is_missing(SONAME, complaint):
            out.absent(f"{SONAME} is not installed")
        return
    nvml = load_binding()
    out.progress("nvmlInit")
    start, code = time.perf_counter(), SUCCESS
    try:
        nvml.nvmlInit()
    except nvml.NVMLError as error:
        code = error.value
    seconds = time.perf_counter() - start
    library = mapped("libnvidia-ml.so")
    started = api_result(nvml, "nvmlInit", code, seconds=seconds, **({"library": library} if library else {}))
    out.fact({"driver": driver_facts(nvml, started)})
    if code != SUCCESS:
        return
    code, total = attempt(nvml, ("nvmlDeviceGetCount",))
    if code != SUCCESS:
        failure = api_result(nvml, "nvmlDeviceGetCount", code)
        raise RuntimeError("{call} failed: {code} {name} {text}".format(**failure))
    read: list[Pair] = []
    failed: dict[int, dict[str, Any]] = {}
    for index in range(total):
        out.progress(f"GPU {index + 1} of {total}")
        code, handle = attempt(nvml, ("nvmlDeviceGetHandleByIndex", index))
        if code != SUCCESS:
            failed[index] = api_result(nvml, "nvmlDeviceGetHandleByIndex", code)
            continue
        device = NvmlDevice(nvml, handle)
        record = gpu_record(index, device)
        out.fact({"gpus": {"items": [record], "complete": False}})
        read.append((record, device))
    # NVML gives no address without a handle. It numbers GPUs in the order of their addresses, which it does not
    # promise: the kernel module's list counts if it agrees with the GPUs that did answer.
    addresses = sorted(name.lower() for name in tree.list_names("/proc/driver/nvidia/gpus") or []) if failed else []
    named = all(addresses[record["index"] : record["index"] + 1] == [record.get("pci_bus_id")] for record, _ in read)
    for index, failure in failed.items():
        item: dict[str, Any] = {"source": "nvml", "index": index, "errors": [failure]}
        if named and len(addresses) == total:
            item.update(pci_bus_id=addresses[index], read={"pci_bus_id": "procfs"})
        else:
            item["label"] = f"nvml-{index}"
        out.fact({"gpus": {"items": [item], "complete": False}})
    if read:
        out.fact({"fabric": {"source": "nvml", "links": gpu_links(read)}})
    if not failed:
        out.fact({"gpus": {"items": [], "complete": True}})


def load_binding() -> ModuleType:
    """The module ``pynvml`` of nvidia-ml-py; ImportError with the reason when another stands in its place."""
    try:
        import pynvml
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        raise ImportError(f"pynvml (of the distribution nvidia-ml-py) cannot be imported: {reason}") from error
    place = getattr(pynvml, "__file__", None) or "?"
    if hasattr(pynvml, "__path__"):
        raise ImportError(f"the deprecated distribution 'pynvml' hides nvidia-ml-py: {place}; uninstall pynvml")
    if not (hasattr(pynvml, "NVMLError") and hasattr(pynvml, "nvmlInit")):
        raise ImportError(f"{place} is not the pynvml of nvidia-ml-py")
    module: ModuleType = pynvml
    return module


def driver_facts(nvml: ModuleType, started: dict[str, Any]) -> dict[str, Any]:
    calls = {"nvml_version": ("nvmlSystemGetNVMLVersion",), "release": ("nvmlSystemGetDriverVersion",)}
    answers = {name: first_answer(nvml, call) for name, call in calls.items()}
    number = first_answer(nvml, *CUDA_VERSION_CALLS)
    answers["cuda"] = None if number is None else f"{number // 1000}.{number % 1000 // 10}"
    known = {name: text(nvml, value) for name, value in answers.items() if value is not None}
    return {"source": "nvml", "nvml": started, **known}


def first_answer(nvml: ModuleType, *calls: Call) -> Any:
    """What the first of ``calls`` that binding and driver both know returns; None when it fails."""
    for call in calls:
        code, value = attempt(nvml, call)
        if code not in UNKNOWN_HERE:
            return value
    return None


READERS: tuple[Reader, ...] = (*(partial(read_field, reading) for reading in READINGS), *PARTS)


def gpu_record(index: int, device: NvmlDevice) -> dict[str, Any]:
    record: dict[str, Any] = {"source": "nvml", "index": index}
    for reader in READERS:
        try:
            reader(device, record)
        except Exception as error:
            # An answer that is not of the expected shape costs its own field only.
            sys.stderr.write(f"GPU {index}: {type(error).__name__}: {error}\n")
    if not ("pci_bus_id" in record or "uuid" in record):
        record["label"] = f"nvml-{index}"
    record["errors"] = list(device.failures.values())
    record["not_supported"] = device.not_supported(record)
    return record
