"""What it costs to start a kernel: from kernel to kernel inside a graph, and from a program's call to its end."""

from __future__ import annotations

import statistics
import time
from typing import Any

from ._gpu_call import call, driver
from ._gpu_kernels import Kernel, Module
from ._gpu_measurement import Bench, Fields, measurement
from ._gpu_time import Plan, timed

NODES = 1000
CALLS = 300


def in_graph(bench: Bench) -> Fields:
    """Seconds from one empty kernel to the next in a graph of 1,000."""
    kernel = _nothing(bench)
    graph = _graph(bench, kernel)
    with bench.sampler.watch() as conditions:
        plan = Plan(samples=9, sample_seconds=0.004, warmup_seconds=0.005)
        seconds = timed(bench.device, lambda: call("cuGraphLaunch", graph, bench.device.stream), plan)
    each = [one / NODES for one in seconds]
    facts = {"unit": "s", "method": "graph", "detail": f"{NODES:,} empty kernels in a row", "variant": "in a graph"}
    return measurement("kernel-launch", bench.uuid, each, conditions=conditions, **facts)


def and_wait(bench: Bench) -> Fields:
    """Seconds of a launch and the wait for its end, as a Python program has it; the binding's own share beside it."""
    kernel = _nothing(bench)
    with bench.sampler.watch() as conditions:
        waited = [_seconds_of(lambda: _launch_and_wait(bench, kernel)) for _ in range(CALLS)]
        queued = [_seconds_of(lambda: kernel.launch(1, 1)) for _ in range(CALLS)]
        bench.device.synchronize()
    own = statistics.median(queued)
    middle = statistics.median(waited)
    near = sorted(waited)[CALLS // 4 : -CALLS // 4]
    found = measurement("launch-and-sync", bench.uuid, near, conditions=conditions, unit="s", method="cuda-bindings")
    return {
        **found,
        "value": middle,
        "detail": f"of which {own * 1e6:.1f} us are the call itself, before the GPU starts",
    }


def _nothing(bench: Bench) -> Kernel:
    return Module(bench.device, bench.compiler.module("caches")).kernel("nothing")


def _launch_and_wait(bench: Bench, kernel: Kernel) -> None:
    kernel.launch(1, 1)
    bench.device.synchronize()


def _seconds_of(work: Any) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def _graph(bench: Bench, kernel: Kernel) -> Any:
    """A graph of empty kernels, each after the last."""
    binding = driver()
    stream = bench.device.stream
    call("cuStreamBeginCapture", stream, binding.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL)
    for _ in range(NODES):
        kernel.launch(1, 1)
    return call("cuGraphInstantiate", call("cuStreamEndCapture", stream), 0)
