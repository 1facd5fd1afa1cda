"""Bandwidth of a GPU's device memory: read, write, copy and triad."""

from __future__ import annotations

import ctypes
from contextlib import ExitStack
from functools import cache, partial
from typing import Any

from ..measuring.arrays import RESERVE
from ..measuring.device import Device
from ..measuring.kernels import Module, number, pointer
from ..measuring.measurement import Bench, Plan, Task, Work, late, on_gpu, tasks
from ..measuring.runtime import Fields, FigureKey, Measures, Unavailable, verification

PROBE = {"title": "Device-memory bandwidth", "seconds": 30.0, "scopes": ["node"]}

SEED = 0x5DEECE66D
STEP = 0x9E3779B97F4A7C15  # The pattern of ``kernels/memory.cu``: ``word(i) = i * STEP + SEED``
POISON = 0xEE
LARGEST = 4 << 30
L2_MULTIPLE = 16  # A buffer of fewer times the size of the L2 cache measures the cache too
PLAN = Plan(samples=9, sample_seconds=0.02, warmup_seconds=0.02)
COLUMNS = {"write": 1, "read": 1, "copy": 2, "triad": 3}
"""How many times the buffer's size each moves, read and written bytes together."""


def measures(bench: Bench) -> Measures:
    """The measures, by figure; a quick run makes two."""
    kinds = COLUMNS if bench.full else {"copy": 2, "read": 1}
    traffic = cache(lambda: Traffic(bench, Buffers(bench.device, max(kinds.values()))))
    return tasks(bench, {FigureKey(f"device-memory-{kind}"): late(traffic, Traffic.made, kind) for kind in kinds})


collect = partial(on_gpu, measures=measures)


class Buffers:
    """Buffers of one size: as large as is useful, and as there is room for."""

    def __init__(self, device: Device, count: int) -> None:
        room = (device.free_memory() - RESERVE) // count
        self.size = min(LARGEST, room) >> 20 << 20
        least = L2_MULTIPLE * device.l2_bytes
        if self.size < least:
            needed = count * least + RESERVE
            raise Unavailable(
                f"{needed >> 20} MiB of device memory are needed, {device.free_memory() >> 20} MiB are free"
            )
        self.addresses = [device.allocate(self.size) for _ in range(count)]
        self.pairs = self.size // 16


class Traffic:
    """The kernels of ``memory.cu`` over the buffers.

    Reads keep several loads of a thread under way and as many blocks as fit; what writes does best with one load and
    one store a thread and a block for every piece: so tried on an H200, beside other choices.
    """

    def __init__(self, bench: Bench, buffers: Buffers) -> None:
        self.bench, self.buffers = bench, buffers
        bench.compiler.ahead(("memory", "-DUNROLL=4"))
        self.streaming = Module(bench.device, bench.compiler.module("memory", ("-DUNROLL=1",)))
        self.unrolled = Module(bench.device, bench.compiler.module("memory", ("-DUNROLL=4",)))
        self.total = bench.device.allocate(8)

    def made(self, kind: str, _held: ExitStack) -> Task:
        """One kind of traffic over buffers that are filled."""
        device, size, words = self.bench.device, self.buffers.size, 2 * self.buffers.pairs
        first, second, *third = map(pointer, self.buffers.addresses)
        pairs, seed = number(self.buffers.pairs), (SEED, ctypes.c_ulonglong)
        left, right = (1, ctypes.c_int), (2, ctypes.c_int)
        if kind == "triad":
            self._run(256, "fill_double", second, pairs, left)
            self._run(256, "fill_double", *third, pairs, right)
        else:
            self._run(256, "fill", first, pairs, seed)
        device.synchronize()
        amount, compiler = COLUMNS[kind] * size, self.bench.compiler.words
        facts = {"unit": "B/s", "method": "kernel", "detail": compiler, "size": size, "burst": True}
        if kind == "read":
            kernel = self.unrolled.kernel("read")
            grid = device.sms * kernel.blocks_per_sm(512)
            work = partial(kernel.launch, grid, 512, first, pairs, pointer(self.total))
            return Task(work, amount, partial(self._summed, work), facts, plan=PLAN)
        block, launched, check = {
            "write": (256, ("write", first, pairs, seed), ("check_write", first, pairs, seed)),
            "copy": (128, ("copy", second, first, pairs), ("check_fill", second, pairs, seed)),
            "triad": (128, ("triad", first, second, *third, pairs), ("check_triad", first, pairs, left, right)),
        }[kind]

        def verified() -> Fields:
            """By a kernel that counts wrong words."""
            wrong = device.counted(self.total, partial(self._run, 256, *check, pointer(self.total)))
            return verification(words, wrong, "every word, exactly")

        poison = partial(device.fill, self.buffers.addresses[int(kind == "copy")], size, POISON)
        return Task(partial(self._run, block, *launched), amount, verified, facts, poison, PLAN)

    def _run(self, block: int, name: Any, *arguments: Any) -> None:
        self.streaming.kernel(name).launch(-(-self.buffers.pairs // block), block, *arguments)

    def _summed(self, read: Work) -> Fields:
        """The sum of all words is known: STEP * n (n - 1) / 2 + SEED * n, modulo 2^64."""
        total, words = self.bench.device.counted(self.total, read), 2 * self.buffers.pairs
        due = (STEP * (words * (words - 1) // 2) + SEED * words) % (1 << 64)
        return verification(words, int(total != due), "the sum of all words, exactly")
