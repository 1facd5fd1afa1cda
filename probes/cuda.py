"""Ask CUDA, through libcuda and without a context, whether it starts and which devices it enumerates.

CUDA_VISIBLE_DEVICES and CUDA_DEVICE_ORDER act here as they act on any program: the answers are those that the judged
software would get.
"""

from __future__ import annotations

import time

from .common.harmless import give_up_making_devices
from .common.out import Out
from .common.system import is_missing, why_not_loadable
from .common.tree import Tree
from .driver_apis.cuda import SONAME, CudaDevice, api_result, open_api, peer_access

PROBE = {
    "title": "CUDA's start and its devices",
    "kind": "driver",
    "seconds": 10.0,
    "seconds_per_gpu": 3.0,
    "uses": "driver",
    "fills": [
        "driver.cuda_init", "driver.cuda_device_count", "driver.cuda_devices", "driver.cuda", "gpus.cuda_ordinal",
        "gpus.compute_capability", "gpus.sm_count", "fabric.peers",
    ],
}  # fmt: skip

NVML_SONAME = "libnvidia-ml.so.1"
NO_DEVICE = 100  # ``CUDA_ERROR_NO_DEVICE``: libcuda started and found nothing to enumerate


def collect(_tree: Tree, out: Out) -> None:
    give_up_making_devices()
    try:
        api = open_api()
    except OSError as error:
        failure = {"call": "cuInit", "code": -1, "name": "LIBRARY_NOT_FOUND", "text": str(error)}
        out.fact({"driver": {"source": "cuda", "cuda_init": {"source": "cuda", **failure}}})
        if is_missing(SONAME, str(error)):
            out.absent(f"{SONAME} is not installed")
        return
    _, version = api.call("cuDriverGetVersion")
    if version is not None:
        out.fact({"driver": {"source": "cuda", "cuda": f"{version // 1000}.{version % 1000 // 10}"}})
    out.progress("cuInit")
    start = time.perf_counter()
    code, _ = api.call("cuInit", 0)
    started = api_result(api, "cuInit", code, seconds=time.perf_counter() - start)
    no_device = {"cuda_devices": 0} if started["code"] == NO_DEVICE else {}
    out.fact({"driver": {"source": "cuda", "cuda_init": started, **no_device}})
    if started["code"] != 0:
        return
    code, total = api.call("cuDeviceGetCount")
    count = {} if total is None else {"cuda_devices": total}
    out.fact({"driver": {"source": "cuda", "cuda_device_count": api_result(api, "cuDeviceGetCount", code), **count}})
    # Where NVML is, its total is the one that is shown and compared; two totals would only look like a contradiction.
    without_nvml = why_not_loadable(NVML_SONAME) is not None
    sent: dict[str, CudaDevice] = {}
    for ordinal in range(total or 0):
        out.progress(f"device {ordinal + 1} of {total}")
        device = CudaDevice(api, ordinal)
        record = device.record(with_memory=without_nvml)
        key = record.get("pci_bus_id", str(ordinal))
        # Several instances of one GPU are one GPU here; its number is that of the first.
        if key not in sent:
            out.fact({"gpus": {"items": [record], "complete": False}})
        sent.setdefault(key, device)
    peers = peer_access({key: device for key, device in sent.items() if ":" in key})
    if peers:
        out.fact({"fabric": {"source": "cuda", "peers": peers}})
