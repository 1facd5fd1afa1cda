"""Bandwidth and latency on the chip: L2 cache, shared memory, the texture path, atomic operations, pointer chases."""

from __future__ import annotations

import ctypes
from array import array
from functools import partial
from typing import Any

from ..common.figures import Fields, verification
from .device import Unavailable, call, driver
from .kernels import CompiledKernel, Module, pointer
from .measurement import Bench, Plan, measurement, timed

BLOCK = 512
PLAN = Plan(samples=7, sample_seconds=0.01, warmup_seconds=0.01)
L2_SHARE = 3
"""A third of the L2 cache is read: on GPUs whose cache has two halves, lines of the far half are held in both."""
VECTOR = 16
SHARED_WORDS = 4096
LCG_A, LCG_C = 1664525, 1013904223
"""The chain of ``kernels/caches.cu``: line i leads to (A * i + C) mod lines."""
LINE_WORDS = 32
STEPS = 20_000


class Caches:
    """The kernels of ``caches.cu`` on one GPU."""

    def __init__(self, bench: Bench) -> None:
        self._module = Module(bench.device, bench.compiler.module("caches"))
        self._total = bench.device.allocate(8)

    def kernel(self, name: str) -> CompiledKernel:
        return self._module.kernel(name)

    def l2_read(self, bench: Bench) -> Fields:
        """All blocks read the same part of the L2 cache, past L1."""
        size = bench.device.l2_bytes // L2_SHARE >> 12 << 12
        if not size:
            raise Unavailable("the driver does not say how large the L2 cache is")
        count, rounds = size // VECTOR, 2
        kernel = self.kernel("l2_read")
        grid = bench.device.sms * kernel.blocks_per_sm(BLOCK)
        with bench.device.buffer(size) as buffer:
            self._count_up(buffer, size // 4, bench)
            arguments = (pointer(buffer), _int(count), _int(rounds), pointer(self._total))
            launch = lambda: kernel.launch(grid, BLOCK, *arguments)  # noqa: E731
            moved = float(size) * rounds * grid
            found = bench.rate("l2-read", moved, launch, PLAN, size=size, **_facts(bench))
            words = size // 4
            due = words * (words - 1) // 2 * rounds * grid
            found["verification"] = self._sum_is(due, launch, words * rounds * grid, bench)
        return found

    def shared_read(self, bench: Bench) -> Fields:
        """Every thread reads 16 bytes of shared memory at a time, without bank conflicts."""
        rounds = 4096
        kernel = self.kernel("shared_read")
        grid = bench.device.sms * kernel.blocks_per_sm(BLOCK)
        launch = lambda: kernel.launch(grid, BLOCK, _int(rounds), pointer(self._total))  # noqa: E731
        moved = float(VECTOR) * BLOCK * rounds * grid
        found = bench.rate("shared-memory-read", moved, launch, PLAN, **_facts(bench))
        vectors = SHARED_WORDS // 4
        each = [
            sum(_folded((thread + step * BLOCK) % vectors) for step in range(vectors // BLOCK))
            for thread in range(BLOCK)
        ]
        due = sum(one * (rounds * BLOCK // vectors) % (1 << 32) for one in each) * grid
        found["verification"] = self._sum_is(due, launch, BLOCK * rounds * grid, bench)
        return found

    def texture(self, bench: Bench) -> Fields:
        """Fetches of 16 bytes from linear memory through a texture object, from the nearest cache."""
        texels, rounds = 2048, 4096
        kernel = self.kernel("texture_fetch")
        grid = bench.device.sms * kernel.blocks_per_sm(BLOCK)
        with bench.device.buffer(texels * VECTOR) as buffer:
            self._count_up(buffer, texels * 4, bench)
            binding = driver()
            resource = binding.CUDA_RESOURCE_DESC()
            resource.resType = binding.CUresourcetype.CU_RESOURCE_TYPE_LINEAR
            resource.res.linear.devPtr = buffer
            resource.res.linear.format = binding.CUarray_format.CU_AD_FORMAT_UNSIGNED_INT32
            resource.res.linear.numChannels = 4
            resource.res.linear.sizeInBytes = texels * VECTOR
            texture: Any = call("cuTexObjectCreate", resource, binding.CUDA_TEXTURE_DESC(), None)
            arguments = ((int(texture), ctypes.c_ulonglong), _int(texels), _int(rounds), pointer(self._total))
            launch = lambda: kernel.launch(grid, BLOCK, *arguments)  # noqa: E731
            moved = float(VECTOR) * BLOCK * rounds * grid
            found = bench.rate("texture-fetch", moved, launch, PLAN, size=texels * VECTOR, **_facts(bench))
            due = _texture_sum(grid, texels, rounds)
            found["verification"] = self._sum_is(due, launch, BLOCK * rounds * grid, bench)
            call("cuTexObjectDestroy", texture)
        return found

    def atomics(self, bench: Bench) -> Fields:
        """Additions to counters in the L2 cache, each warp to 32 neighbours."""
        counters, rounds = 1 << 20, 64
        kernel = self.kernel("atomics")
        grid = bench.device.sms * kernel.blocks_per_sm(BLOCK)
        with bench.device.buffer(counters * 4) as buffer:
            launch = partial(kernel.launch, grid, BLOCK, pointer(buffer), _int(counters), _int(rounds))
            facts = {**_facts(bench), "unit": "OP/s", "size": counters * 4}
            found = bench.rate("atomics", float(BLOCK) * rounds * grid, launch, PLAN, **facts)
            bench.device.fill(buffer, counters * 4, 0)
            launch()
            total = sum(_numbers(bench.device.read(buffer, counters * 4)))
        done = BLOCK * rounds * grid
        found["verification"] = verification(done, int(total != done), "the sum of all counters, exactly")
        return found

    def latency(self, name: str, bench: Bench) -> Fields:
        """One thread follows a chain through memory: seconds from one load to the next that depends on it."""
        size = {"latency-l1": 16 << 10, "latency-l2": 4 << 20, "latency-device-memory": 512 << 20}[name]
        lines = size // (4 * LINE_WORDS)
        through_l1 = int(name == "latency-l1")
        with bench.device.buffer(size) as buffer:
            make, kernel = self.kernel("make_chain"), self.kernel("chase")
            stride = LINE_WORDS
            make.launch(bench.device.sms * 4, 256, pointer(buffer), _unsigned(lines), _unsigned(stride))
            arguments = (pointer(buffer), _int(STEPS), _int(through_l1), pointer(self._total))
            bench.device.fill(self._total, 8, 0)
            with bench.sampler.watch() as conditions:
                plan = Plan(samples=7, sample_seconds=0.005, warmup_seconds=0.01)
                seconds = timed(bench.device, lambda: kernel.launch(1, 1, *arguments), plan)
            bench.device.fill(self._total, 8, 0)
            kernel.launch(1, 1, *arguments)
            end = int.from_bytes(bench.device.read(self._total, 4), "little")
        place = 0
        for _ in range(STEPS):
            place = (LCG_A * place + LCG_C) % lines
        each = [one / STEPS for one in seconds]
        facts = {**_facts(bench), "unit": "s", "size": size}
        found = measurement(name, bench.uuid, each, conditions=conditions, **facts)
        found["verification"] = verification(1, int(end != place * stride), "the end of the chain, exactly")
        return found

    def _count_up(self, buffer: int, words: int, bench: Bench) -> None:
        self.kernel("count_up").launch(bench.device.sms * 4, 256, pointer(buffer), _int(words))

    def _sum_is(self, due: int, launch: Any, checked: int, bench: Bench) -> Fields:
        """Run once more with the total at 0, and compare it."""
        bench.device.fill(self._total, 8, 0)
        launch()
        total = int.from_bytes(bench.device.read(self._total, 8), "little")
        return verification(checked, int(total != due % (1 << 64)), "the sum of all that was read, exactly")


def _facts(bench: Bench) -> Fields:
    return {"unit": "B/s", "method": "kernel", "detail": bench.compiler.words, "burst": True}


def _numbers(data: bytearray) -> array[int]:
    """32-bit words."""
    found = array("I")
    found.frombytes(data)
    return found


def _int(value: int) -> tuple[int, Any]:
    return value, ctypes.c_int


def _unsigned(value: int) -> tuple[int, Any]:
    return value, ctypes.c_uint


def _folded(vector: int) -> int:
    """What a thread adds for one vector of words that count up from 4 * vector."""
    first = 4 * vector
    return first ^ (first + 1) ^ (first + 2) ^ (first + 3)


def _texture_sum(grid: int, texels: int, rounds: int) -> int:
    """The total of ``texture_fetch``, thread by thread in 32 bits."""
    total = 0
    period = texels // BLOCK
    for thread in range(texels):
        once = sum(_folded((thread + step * BLOCK) % texels) for step in range(period))
        total += once * (rounds // period) % (1 << 32)
    return total * (grid * BLOCK // texels) + _texture_rest(grid, texels, rounds)


def _texture_rest(grid: int, texels: int, rounds: int) -> int:
    period = texels // BLOCK
    rest = grid * BLOCK % texels
    return sum(
        sum(_folded((thread + step * BLOCK) % texels) for step in range(period)) * (rounds // period) % (1 << 32)
        for thread in range(rest)
    )
