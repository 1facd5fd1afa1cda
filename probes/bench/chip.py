"""What the chip does by itself: caches, latencies, the texture path, atomic operations, launches, multiply-adds."""

from __future__ import annotations

import ctypes
import statistics
import time
from array import array
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

from ..measuring.device import call, driver, instantiated
from ..measuring.kernels import CompiledKernel, Module, pointer
from ..measuring.measurement import Bench, Plan, Task, Work, late, measurement, tasks, timed, with_full
from ..measuring.runtime import Fields, FigureKey, Measures, Unavailable, verification

PROBE = {"title": "Caches, latencies and instructions", "seconds": 60.0, "scopes": ["node"]}

BLOCK = 512
PLAN = Plan(samples=7, sample_seconds=0.01, warmup_seconds=0.01)
L2_SHARE = 3  # A third of the L2 cache is read: where the cache has two halves, lines of the far half are held in both
VECTOR_BYTES = 16
SHARED_WORDS = 4096
LCG_A, LCG_C = 1664525, 1013904223  # The chain of ``kernels/caches.cu``: line i leads to (A * i + C) mod lines
LINE_WORDS = 32
STEPS = 20_000
SIZES = {"latency-l1": 16 << 10, "latency-l2": 4 << 20, "latency-device-memory": 512 << 20}

CHAINS = 8  # Independent chains of each thread, as in ``kernels/compute.cu``
FMA_BLOCK = 256
WARP = 32
FMA_PLAN = Plan(samples=7, sample_seconds=0.02, warmup_seconds=0.01, pause=0.05)
ROUNDS = 4096

NODES = 1000
CALLS = 300


@dataclass(frozen=True)
class InstructionKind:
    """An instruction of ``kernels/compute.cu``."""

    code: int
    operations: int  # Operations of one instruction: of a thread, or of a warp for ``mma.sync``
    least: tuple[int, int]  # First compute capability that has it


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


def measures(bench: Bench) -> Measures:
    caches, able = cache(partial(Caches, bench)), bench.device.capability
    bandwidths = {
        FigureKey("l2-read"): late(caches, Caches.l2_read),
        FigureKey("shared-memory-read"): late(caches, Caches.shared_read),
        FigureKey("texture-fetch"): late(caches, Caches.texture),
        FigureKey("atomics"): late(caches, Caches.atomics),
    }
    latencies: Measures = {FigureKey(name): late(caches, Caches.latency, name) for name in SIZES}
    launches = {
        FigureKey("kernel-launch"): partial(in_graph, bench),
        FigureKey("launch-and-sync"): partial(and_wait, bench),
    }
    instructions = {
        FigureKey(name, precision): partial(multiply_adds, bench, name, kind)
        for name, table in (("fma", VECTOR), ("mma", TENSOR))
        for precision, kind in table.items()
        if able >= kind.least
    }
    return tasks(bench, bandwidths) | latencies | launches | tasks(bench, instructions)


collect = partial(with_full, measures=measures)


class Caches:
    """The kernels of ``caches.cu`` on one GPU."""

    def __init__(self, bench: Bench) -> None:
        self._bench, self._device = bench, bench.device
        self._module = Module(bench.device, bench.compiler.module("caches"))
        self._total = bench.device.allocate(8)

    def l2_read(self, stack: ExitStack) -> Task:
        """All blocks read the same part of the L2 cache, past L1."""
        size = self._device.l2_bytes // L2_SHARE >> 12 << 12
        if not size:
            raise Unavailable("the driver does not say how large the L2 cache is")
        words, rounds = size // 4, 2
        buffer = self._counting_up(words, stack)
        grid, launch = self._filling("l2_read", pointer(buffer), _int(size // VECTOR_BYTES), _int(rounds))
        due = words * (words - 1) // 2 * rounds * grid
        return self._summing(launch, size * rounds * grid, due, words * rounds * grid, size=size)

    def shared_read(self, _: ExitStack) -> Task:
        """Every thread reads 16 bytes of shared memory at a time, without bank conflicts."""
        rounds, vectors = 4096, SHARED_WORDS // 4
        grid, launch = self._filling("shared_read", _int(rounds))
        each = [
            sum(_folded((thread + step * BLOCK) % vectors) for step in range(vectors // BLOCK))
            for thread in range(BLOCK)
        ]
        due = sum(one * (rounds * BLOCK // vectors) % (1 << 32) for one in each) * grid
        return self._summing(launch, VECTOR_BYTES * BLOCK * rounds * grid, due, BLOCK * rounds * grid)

    def texture(self, stack: ExitStack) -> Task:
        """Fetches of 16 bytes from linear memory through a texture object, from the nearest cache."""
        texels, rounds = 2048, 4096
        buffer, size, binding = self._counting_up(texels * 4, stack), texels * VECTOR_BYTES, driver()
        resource = binding.CUDA_RESOURCE_DESC()
        resource.resType = binding.CUresourcetype.CU_RESOURCE_TYPE_LINEAR
        resource.res.linear.devPtr = buffer
        resource.res.linear.format = binding.CUarray_format.CU_AD_FORMAT_UNSIGNED_INT32
        resource.res.linear.numChannels = 4
        resource.res.linear.sizeInBytes = size
        texture: Any = call("cuTexObjectCreate", resource, binding.CUDA_TEXTURE_DESC(), None)
        stack.callback(call, "cuTexObjectDestroy", texture)
        object_ = (int(texture), ctypes.c_ulonglong)
        grid, launch = self._filling("texture_fetch", object_, _int(texels), _int(rounds))
        due = _texture_sum(grid, texels, rounds)
        return self._summing(launch, VECTOR_BYTES * BLOCK * rounds * grid, due, BLOCK * rounds * grid, size=size)

    def atomics(self, stack: ExitStack) -> Task:
        """Additions to counters in the L2 cache, each warp to 32 neighbours."""
        counters, rounds = 1 << 20, 64
        size, kernel = counters * 4, self._module.kernel("atomics")
        grid = self._device.sms * kernel.blocks_per_sm(BLOCK)
        buffer, done = stack.enter_context(self._device.buffer(size)), BLOCK * rounds * grid
        launch = partial(kernel.launch, grid, BLOCK, pointer(buffer), _int(counters), _int(rounds))

        def verified() -> Fields:
            self._device.fill(buffer, size, 0)
            launch()
            found = array("I")
            found.frombytes(self._device.read(buffer, size))
            return verification(done, int(sum(found) != done), "the sum of all counters, exactly")

        return Task(launch, float(done), verified, {**_facts(self._bench), "unit": "OP/s", "size": size}, plan=PLAN)

    def latency(self, name: str) -> Fields:
        """One thread follows a chain through memory: seconds from one load to the next that depends on it."""
        bench, device, size = self._bench, self._device, SIZES[name]
        lines = size // (4 * LINE_WORDS)
        with device.buffer(size) as buffer:
            shape = ((lines, ctypes.c_uint), (LINE_WORDS, ctypes.c_uint))
            self._module.kernel("make_chain").launch(device.sms * 4, 256, pointer(buffer), *shape)
            arguments = (pointer(buffer), _int(STEPS), _int(int(name == "latency-l1")), pointer(self._total))
            chase = partial(self._module.kernel("chase").launch, 1, 1, *arguments)
            device.fill(self._total, 8, 0)
            with bench.sampler.watch() as conditions:
                seconds = timed(device, chase, Plan(samples=7, sample_seconds=0.005, warmup_seconds=0.01))
            device.fill(self._total, 8, 0)
            chase()
            end = int.from_bytes(device.read(self._total, 4), "little")
        place = 0
        for _ in range(STEPS):
            place = (LCG_A * place + LCG_C) % lines
        each = [one / STEPS for one in seconds]
        facts = {**_facts(bench), "unit": "s", "size": size}
        found = measurement(name, bench.uuid, each, conditions=conditions, **facts)
        found["verification"] = verification(1, int(end != place * LINE_WORDS), "the end of the chain, exactly")
        return found

    def _counting_up(self, words: int, stack: ExitStack) -> int:
        """Memory whose words count up from 0."""
        buffer = stack.enter_context(self._device.buffer(words * 4))
        self._module.kernel("count_up").launch(self._device.sms * 4, 256, pointer(buffer), _int(words))
        return buffer

    def _filling(self, name: str, *arguments: Any) -> tuple[int, Work]:
        """As many blocks as the GPU holds, and what launches them; the kernel's last argument is the total."""
        kernel = self._module.kernel(name)
        grid = self._device.sms * kernel.blocks_per_sm(BLOCK)
        return grid, partial(kernel.launch, grid, BLOCK, *arguments, pointer(self._total))

    def _summing(self, launch: Work, moved: int, due: int, checked: int, **facts: Any) -> Task:
        """A task that is verified by a run with the total at 0."""

        def verified() -> Fields:
            total = self._device.counted(self._total, launch)
            return verification(checked, int(total != due % (1 << 64)), "the sum of all that was read, exactly")

        return Task(launch, float(moved), verified, {**facts, **_facts(self._bench)}, plan=PLAN)


def _facts(bench: Bench) -> Fields:
    return {"unit": "B/s", "method": "kernel", "detail": bench.compiler.words, "burst": True}


def _int(value: int) -> tuple[int, Any]:
    return value, ctypes.c_int


def _folded(vector: int) -> int:
    """What a thread adds for one vector of words that count up from 4 * vector."""
    first = 4 * vector
    return first ^ (first + 1) ^ (first + 2) ^ (first + 3)


def _texture_sum(grid: int, texels: int, rounds: int) -> int:
    """The total of ``texture_fetch``, thread by thread in 32 bits."""
    period = texels // BLOCK
    totals = [
        sum(_folded((thread + step * BLOCK) % texels) for step in range(period)) * (rounds // period) % (1 << 32)
        for thread in range(texels)
    ]
    turns, rest = divmod(grid * BLOCK, texels)
    return sum(totals) * turns + sum(totals[:rest])


def multiply_adds(bench: Bench, name: str, kind: InstructionKind, stack: ExitStack) -> Task:
    """Blocks that do nothing else: FMA of the vector units (dp4a for INT8), or products by ``mma.sync``."""
    mma = name == "mma"
    code = bench.compiler.module("compute", (*(("-DMMA",) if mma else ()), f"-DKIND={kind.code}"))
    kernel = Module(bench.device, code).kernel("throughput")
    grid = bench.device.sms * kernel.blocks_per_sm(FMA_BLOCK) * 2
    wrong = stack.enter_context(bench.device.buffer(8))
    bench.device.fill(wrong, 8, 0)

    def verified() -> Fields:
        count = int.from_bytes(bench.device.read(wrong, 8), "little")
        return verification(grid * FMA_BLOCK * CHAINS, count, "every thread's results, exactly, in every run")

    in_a_block = kind.operations * FMA_BLOCK // (WARP if mma else 1)
    facts = {**_facts(bench), "unit": "OP/s" if kind is VECTOR["int8"] or kind is TENSOR["int8"] else "FLOP/s"}
    facts |= {"method": "mma.sync"} if mma else {}
    work = partial(kernel.launch, grid, FMA_BLOCK, _int(ROUNDS), pointer(wrong))
    return Task(work, float(in_a_block) * CHAINS * ROUNDS * grid, verified, facts, plan=FMA_PLAN)


def in_graph(bench: Bench) -> Fields:
    """Seconds from one empty kernel to the next in a graph of 1,000."""
    kernel = _nothing(bench)
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
