"""Throughput of multiply-adds on the vector units and tensor cores, and the cost of starting a kernel."""

from __future__ import annotations

import ctypes
import statistics
import time
from dataclasses import dataclass
from typing import Any

from ..common.figures import Fields, verification
from .device import Unavailable, call, instantiated
from .kernels import CompiledKernel, Module, pointer
from .measurement import Bench, Plan, measurement, timed

# Throughput of multiply-adds: on the vector units, and through ``mma.sync`` on the tensor cores.

CHAINS = 8
"""Independent chains of each thread, as in ``kernels/compute.cu``."""
BLOCK = 256
WARP = 32
PLAN = Plan(samples=7, sample_seconds=0.02, warmup_seconds=0.01, pause=0.05)
ROUNDS = 4096


@dataclass(frozen=True)
class InstructionKind:
    """An instruction of ``kernels/compute.cu``."""

    code: int
    operations: int
    """Operations of one instruction: of a thread, or of a warp for ``mma.sync``."""
    least: tuple[int, int]
    """First compute capability that has it."""


VECTOR = {
    "fp64": InstructionKind(0, 2, (5, 0)),
    "fp32": InstructionKind(1, 2, (5, 0)),
    "fp16": InstructionKind(2, 4, (5, 3)),
    "int8": InstructionKind(5, 8, (6, 1)),
}
TENSOR = {
    "fp64": InstructionKind(0, 2 * 8 * 8 * 4, (8, 0)),
    "tf32": InstructionKind(6, 2 * 16 * 8 * 8, (8, 0)),
    "fp16": InstructionKind(2, 2 * 16 * 8 * 16, (8, 0)),
    "bf16": InstructionKind(3, 2 * 16 * 8 * 16, (8, 0)),
    "fp8": InstructionKind(4, 2 * 16 * 8 * 32, (8, 9)),
    "int8": InstructionKind(5, 2 * 16 * 8 * 32, (8, 0)),
}


def fma(precision: str, bench: Bench) -> Fields:
    """FMA instructions of the vector units (dp4a for INT8)."""
    kind = VECTOR[precision]
    return _measured("fma", "kernel", precision, kind, bench, operations=kind.operations * BLOCK)


def mma(precision: str, bench: Bench) -> Fields:
    """Products of small matrices by ``mma.sync``."""
    kind = TENSOR[precision]
    return _measured("mma", "mma.sync", precision, kind, bench, operations=kind.operations * BLOCK // WARP)


def _measured(
    name: str, method: str, precision: str, kind: InstructionKind, bench: Bench, *, operations: int
) -> Fields:
    """Fill the GPU with blocks that do nothing else; ``operations`` is what a block's threads do in one instruction."""
    major, minor = bench.device.capability
    if (major, minor) < kind.least:
        raise Unavailable(f"compute capability {major}.{minor} has no such instruction for {precision}")
    options = ("-DMMA",) if name == "mma" else ()
    code = bench.compiler.module("compute", (*options, f"-DKIND={kind.code}"))
    kernel = Module(bench.device, code).kernel("throughput")
    grid = bench.device.sms * kernel.blocks_per_sm(BLOCK) * 2
    with bench.device.buffer(8) as wrong:
        bench.device.fill(wrong, 8, 0)
        found = bench.rate(
            name,
            float(operations) * CHAINS * ROUNDS * grid,
            lambda: kernel.launch(grid, BLOCK, (ROUNDS, ctypes.c_int), pointer(wrong)),
            PLAN,
            unit="OP/s" if precision == "int8" else "FLOP/s",
            method=method,
            detail=bench.compiler.words,
            precision=precision,
            burst=True,
        )
        count = int.from_bytes(bench.device.read(wrong, 8), "little")
    checked = grid * BLOCK * CHAINS
    found["verification"] = verification(checked, count, "every thread's results, exactly, in every run")
    return found


# What it costs to start a kernel: from kernel to kernel inside a graph, and from a program's call to its end.


NODES = 1000
CALLS = 300


def in_graph(bench: Bench) -> Fields:
    """Seconds from one empty kernel to the next in a graph of 1,000."""
    kernel = _nothing(bench)
    # A graph of empty kernels, each after the last.
    bench.device.begin_capture()
    for _ in range(NODES):
        kernel.launch(1, 1)
    graph = instantiated(bench.device.end_capture())
    with bench.sampler.watch() as conditions:
        plan = Plan(samples=9, sample_seconds=0.004, warmup_seconds=0.005)
        seconds = timed(bench.device, lambda: call("cuGraphLaunch", graph, bench.device.stream), plan)
    each = [one / NODES for one in seconds]
    facts = {"unit": "s", "method": "graph", "detail": f"{NODES:,} empty kernels in a row", "variant": "in a graph"}
    return measurement("kernel-launch", bench.uuid, each, conditions=conditions, **facts)


def and_wait(bench: Bench) -> Fields:
    """Seconds of a launch and the wait for its end, as a Python program has it; the binding's own share beside it."""
    kernel = _nothing(bench)

    def launch_and_wait() -> None:
        kernel.launch(1, 1)
        bench.device.synchronize()

    with bench.sampler.watch() as conditions:
        waited = [_seconds_of(launch_and_wait) for _ in range(CALLS)]
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


def _nothing(bench: Bench) -> CompiledKernel:
    return Module(bench.device, bench.compiler.module("caches")).kernel("nothing")


def _seconds_of(work: Any) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started
