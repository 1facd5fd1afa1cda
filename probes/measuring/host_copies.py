"""Copies between host and GPU by the copy engines: pinned and pageable, each way and both at once.

What is verified is what the timed copies left: every word of it, in memory that held something else before. Host
memory lies on the GPU's own NUMA node, and on the one farthest from it, as sysfs tells.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from ..common.tree import Tree
from ..machine.hardware import NODES, listed_numbers, numa_nodes, processors_of
from .device import Device, call
from .measurement import Bench, Plan, measurement, timed
from .runtime import CudaError, Fields, Unavailable, verification
from .verify import OTHER, POISON, SEED, Pattern

SIZE = 256 << 20
PLAN = Plan(samples=7, sample_seconds=0.01, warmup_seconds=0.01)
WAKE_SECONDS = 0.2
SMALL = 16  # Bytes of the copies whose latency is measured
BATCH = 64
WAYS = ("host-to-device", "device-to-host")


class HostMemory:
    """Two buffers of host memory, which every GPU's context can use; taken where the calling thread runs."""

    def __init__(self, device: Device, *, pageable: bool = False) -> None:
        self._device = device
        self._taken: list[int] = []
        self._pageable = [mmap.mmap(-1, SIZE) for _ in range(2)] if pageable else []
        self.awake = False  # Whether copies were made before

    def __getitem__(self, place: int) -> int:
        """The address of the first or second buffer; to page-lock one takes a tenth of a second, so each when asked."""
        if self._pageable:
            return ctypes.addressof(ctypes.c_char.from_buffer(self._pageable[place]))
        try:
            while len(self._taken) <= place:
                self._taken.append(self._device.allocate_pinned(SIZE))
        except CudaError as error:
            raise Unavailable(f"{SIZE >> 20} MiB of page-locked host memory cannot be allocated: {error}") from error
        return self._taken[place]

    def close(self) -> None:
        for address in self._taken:
            self._device.free_pinned(address)


class HostCopies:
    """Buffers on one GPU for copies to and from ``host``."""

    def __init__(self, bench: Bench, host: HostMemory) -> None:
        self._bench, self._host = bench, host
        self._gpu = [bench.device.allocate(SIZE) for _ in range(2)]
        self._pattern = Pattern(bench, SIZE)

    def close(self) -> None:
        for address in self._gpu:
            self._bench.device.free(address)
        self._pattern.close()

    def one_way(self, name: str, **facts: Any) -> Fields:
        """``host-to-device`` or ``device-to-host``."""
        # Copy for a while: the first copies after a rest of the host are up to 8 % slower.
        until = time.monotonic() + WAKE_SECONDS
        while not self._host.awake and time.monotonic() < until:
            self._load(self._host[0])
            self._to_gpu(self._gpu[0], self._host[0])
        self._bench.device.synchronize()
        self._host.awake = True
        if name == "device-to-host":
            (source, other), host = self._gpu, self._host[0]
            self._pattern.write(source)
            self._pattern.poison(other)
            ctypes.memset(host, POISON, SIZE)
            work, poison = (lambda: self._to_host(host, source)), (lambda: self._to_host(host, other))
            found = self._bench.rate("device-to-host", SIZE, work, PLAN, poison=poison, **_described(facts))
            wrong = self._wrong_on_host(host, other, SEED)
            found["verification"] = verification(
                self._pattern.words, wrong, "every word, on the GPU after the way back"
            )
            return found
        target, host = self._gpu[0], self._host[0]
        self._load(host)
        work, poison = (lambda: self._to_gpu(target, host)), (lambda: self._pattern.poison(target))
        found = self._bench.rate("host-to-device", SIZE, work, PLAN, poison=poison, **_described(facts))
        found["verification"] = verification(self._pattern.words, self._pattern.wrong(target), "every word, on the GPU")
        return found

    def both_ways(self, **facts: Any) -> Fields:
        """Copies both ways at once, on a stream each; the bytes of both count."""
        side = Side(self._bench.device)
        (target, source), (sent, received) = self._gpu, (self._host[0], self._host[1])
        self._load(sent)
        self._pattern.write(source, OTHER)
        ctypes.memset(received, POISON, SIZE)

        def both() -> None:
            side.after()
            self._to_gpu(target, sent)
            self._to_host(received, source, side.stream)
            side.join()

        def poison() -> None:
            self._pattern.poison(target)
            self._to_host(received, target)

        found = self._bench.rate("both-directions", 2 * SIZE, both, PLAN, poison=poison, **_described(facts))
        wrong = self._pattern.wrong(target, SEED) + self._wrong_on_host(received, target, OTHER)
        found["verification"] = verification(2 * self._pattern.words, wrong, "every word of both directions")
        return found

    def latency(self, **facts: Any) -> Fields:
        """Seconds from one small copy to the next on a stream."""
        device, target, host = self._bench.device, self._gpu[0], self._host[0]
        self._load(host)
        self._pattern.poison(target)

        def batch() -> None:
            for _ in range(BATCH):
                call("cuMemcpyHtoDAsync", target, host, SMALL, device.stream)

        with self._bench.sampler.watch() as conditions:
            seconds = timed(device, batch, Plan(samples=9, sample_seconds=0.002, most_runs=8))
        each = [one / BATCH for one in seconds]
        more = {"unit": "s", "method": "copy engine", "detail": "cuMemcpyHtoDAsync in a row", "size": SMALL}
        found = measurement("copy-latency", self._bench.uuid, each, conditions=conditions, **{**facts, **more})
        pairs = zip(device.read(target, SMALL), ctypes.string_at(host, SMALL), strict=True)
        found["verification"] = verification(SMALL, sum(here != there for here, there in pairs), "every byte")
        return found

    def _load(self, host: int) -> None:
        """Put the pattern into host memory; whatever goes wrong on its way is seen when it is compared on the GPU."""
        self._pattern.write(self._gpu[1])
        self._to_host(host, self._gpu[1])
        self._bench.device.synchronize()

    def _wrong_on_host(self, host: int, free: int, seed: int) -> int:
        """Words in host memory that are not the pattern's, found on the GPU; ``free`` is device memory for them."""
        self._pattern.poison(free)
        self._to_gpu(free, host)
        return self._pattern.wrong(free, seed)

    def _to_gpu(self, gpu: int, host: int) -> None:
        call("cuMemcpyHtoDAsync", gpu, host, SIZE, self._bench.device.stream)

    def _to_host(self, host: int, gpu: int, stream: Any = None) -> None:
        call("cuMemcpyDtoHAsync", host, gpu, SIZE, stream or self._bench.device.stream)


class Side:
    """A second stream that starts with the device's stream and that it waits for."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self.stream = call("cuStreamCreate", 1)
        self._begin, self._end = call("cuEventCreate", 2), call("cuEventCreate", 2)  # CU_EVENT_DISABLE_TIMING

    def after(self) -> None:
        """Let it wait for what the device's stream holds now."""
        call("cuEventRecord", self._begin, self._device.stream)
        call("cuStreamWaitEvent", self.stream, self._begin, 0)

    def join(self) -> None:
        """Let the device's stream wait for it."""
        call("cuEventRecord", self._end, self.stream)
        call("cuStreamWaitEvent", self._device.stream, self._end, 0)


def _described(facts: Fields) -> Fields:
    return {"unit": "B/s", "method": "copy engine", "detail": "cuMemcpyAsync", "size": SIZE, **facts}


@dataclass(frozen=True)
class CopyPlace:
    """Where host memory is taken."""

    node: int | None  # None: wherever the kernel takes it
    words: str = ""  # ``near`` or ``far``; empty where sysfs does not say


@dataclass(frozen=True)
class Places:
    """The places of one GPU; without a far one, ``why_not_far`` says why."""

    near: CopyPlace
    far: CopyPlace | None = None
    why_not_far: str = ""


def places(tree: Tree, own: int | None) -> Places:
    """For a GPU on the NUMA node ``own``; None where sysfs does not say which that is."""
    present = numa_nodes(tree)
    # The nodes that the process's cpuset gives it memory of.
    status = tree.read_text("/proc/self/status") or ""
    allowed = [line.partition(":")[2].strip() for line in status.splitlines() if line.startswith("Mems_allowed_list:")]
    usable = {node for node in present if processors_of(tree, node) & os.sched_getaffinity(0)} & (
        listed_numbers(allowed[0]) if allowed else set(present)
    )
    if len(present) < 2:
        return Places(CopyPlace(None), why_not_far="sysfs shows no second NUMA node")
    if own is None:
        return Places(CopyPlace(None), why_not_far="sysfs does not say which NUMA node the GPU is on")
    if own not in usable:
        return Places(CopyPlace(None), why_not_far=f"this process may not use NUMA node {own}, which the GPU is on")
    lines = (tree.read_text("/proc/self/numa_maps") or "").splitlines()
    policies = {words[1] for words in map(str.split, lines) if len(words) > 1}
    if policies and "default" not in policies:
        return Places(CopyPlace(None), why_not_far="a memory policy (numactl) holds this process's memory in place")
    near = CopyPlace(own, "near")
    others = usable - {own}
    if not others:
        return Places(near, why_not_far=f"this process may use NUMA node {own} alone")
    # How far each node is, in the firmware's units: 10 is the node itself.
    words = (tree.read_line(f"{NODES}/node{own}/distance") or "").split()
    away = [int(word) for word in words if word.isdecimal()]
    known = dict(zip(present, away, strict=True)) if len(away) == len(present) else {}
    farthest = max(sorted(others), key=lambda node: known.get(node, 0))
    return Places(near, CopyPlace(farthest, "far"))


@contextmanager
def on_node(tree: Tree, place: CopyPlace) -> Iterator[None]:
    """Run this thread on the CPUs of the place's node, so that host memory is taken there (Linux's default policy)."""
    before = os.sched_getaffinity(0)
    if place.node is not None:
        os.sched_setaffinity(0, processors_of(tree, place.node) & before)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
