"""Bandwidth of a GPU's device memory: read, write, copy and triad."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache, partial
from typing import Any

from ..common.figures import Fields, FigureKey, verification
from ..common.out import Out
from ..common.tree import Tree
from ..measuring.device import Device, Unavailable
from ..measuring.kernels import Module, number, pointer
from ..measuring.measurement import Bench, Measure, Plan, on_gpu

PROBE = {
    "title": "Device-memory bandwidth",
    "kind": "bench",
    "seconds": 30.0,
    "uses": "gpu",
    "per": "gpu",
    "scopes": ["node"],
    "fills": ["measurements"],
}

SEED = 0x5DEECE66D
STEP = 0x9E3779B97F4A7C15
"""The pattern of ``kernels/memory.cu``: ``word(i) = i * STEP + SEED``."""
POISON = 0xEE
LARGEST = 4 << 30
L2_MULTIPLE = 16
"""A buffer of fewer times the size of the L2 cache measures the cache too."""
RESERVE = 256 << 20
"""Bytes of device memory left to others."""
PLAN = Plan(samples=9, sample_seconds=0.02, warmup_seconds=0.02)
COLUMNS = {"write": 1, "read": 1, "copy": 2, "triad": 3}
"""How many times the buffer's size each moves, read and written bytes together."""


def collect(tree: Tree, out: Out) -> None:
    """Measure, each result checked word by word."""
    on_gpu(tree, out, _measures)


def _measures(bench: Bench) -> dict[FigureKey, Measure]:
    kinds = COLUMNS if bench.full else {"copy": 2, "read": 1}
    traffic = cache(lambda: Traffic(bench, Buffers(bench.device, max(kinds.values()))))
    return {FigureKey(f"device-memory-{kind}"): _measured(traffic, kind) for kind in kinds}


def _measured(traffic: Callable[[], Traffic], kind: str) -> Measure:
    return lambda bench: traffic().measured(kind, bench)


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

    def measured(self, kind: str, bench: Bench) -> Fields:
        """One kind of traffic, timed and then verified."""
        self._prepare(kind)
        columns = COLUMNS[kind]
        facts: Fields = {
            "unit": "B/s",
            "method": "kernel",
            "detail": bench.compiler.words,
            "size": self.buffers.size,
            "burst": True,
        }
        name = f"device-memory-{kind}"
        work, poison = partial(self._launch, kind), partial(self._poison, kind)
        found = bench.rate(name, columns * self.buffers.size, work, PLAN, poison=poison, **facts)
        found["verification"] = getattr(self, f"_verify_{kind}")()
        return found

    def _prepare(self, kind: str) -> None:
        device, buffers = self.bench.device, self.buffers
        if kind == "triad":
            for seed, address in enumerate(buffers.addresses[1:3], 1):
                self._run("fill_double", pointer(address), number(buffers.pairs), (seed, ctypes.c_int))
        else:
            self._run("fill", pointer(buffers.addresses[0]), number(buffers.pairs), _word(SEED))
        device.synchronize()

    def _poison(self, kind: str) -> None:
        written = {"copy": 1, "triad": 0, "write": 0}.get(kind)
        if written is not None:
            self.bench.device.fill(self.buffers.addresses[written], self.buffers.size, POISON)

    def _launch(self, kind: str) -> None:
        first, *others = self.buffers.addresses
        pairs = number(self.buffers.pairs)
        if kind == "write":
            self._run("write", pointer(first), pairs, _word(SEED))
        elif kind == "copy":
            self._run("copy", pointer(others[0]), pointer(first), pairs, block=128)
        elif kind == "triad":
            self._run("triad", pointer(first), pointer(others[0]), pointer(others[1]), pairs, block=128)
        else:
            kernel, block = self.unrolled.kernel("read"), 512
            grid = self.bench.device.sms * kernel.blocks_per_sm(block)
            kernel.launch(grid, block, pointer(first), pairs, pointer(self.total))

    def _run(self, name: str, *arguments: Any, block: int = 256) -> None:
        self.streaming.kernel(name).launch(-(-self.buffers.pairs // block), block, *arguments)

    def _count(self, check: str, *arguments: Any) -> int:
        """Run a checking kernel, which counts wrong words."""
        self.bench.device.fill(self.total, 8, 0)
        self._run(check, *arguments, pointer(self.total))
        return int.from_bytes(self.bench.device.read(self.total, 8), "little")

    def _verify_copy(self) -> Fields:
        pairs = number(self.buffers.pairs)
        return self._every(self._count("check_fill", pointer(self.buffers.addresses[1]), pairs, _word(SEED)))

    def _verify_write(self) -> Fields:
        pairs = number(self.buffers.pairs)
        return self._every(self._count("check_write", pointer(self.buffers.addresses[0]), pairs, _word(SEED)))

    def _verify_triad(self) -> Fields:
        pairs, left, right = number(self.buffers.pairs), (1, ctypes.c_int), (2, ctypes.c_int)
        return self._every(self._count("check_triad", pointer(self.buffers.addresses[0]), pairs, left, right))

    def _verify_read(self) -> Fields:
        """The sum of all words is known: STEP * n (n - 1) / 2 + SEED * n, modulo 2^64."""
        self.bench.device.fill(self.total, 8, 0)
        self._launch("read")
        words = 2 * self.buffers.pairs
        due = (STEP * (words * (words - 1) // 2) + SEED * words) % (1 << 64)
        wrong = int.from_bytes(self.bench.device.read(self.total, 8), "little") != due
        return verification(words, int(wrong), "the sum of all words, exactly")

    def _every(self, wrong: int) -> Fields:
        return verification(2 * self.buffers.pairs, wrong, "every word, exactly")


def _word(value: int) -> tuple[int, Any]:
    return value, ctypes.c_ulonglong
