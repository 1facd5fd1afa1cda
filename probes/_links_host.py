"""Copies between host and GPU by the copy engines: pinned and pageable, each way and both at once."""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Callable
from typing import Any

from ._gpu_call import call
from ._gpu_device import Device
from ._gpu_measurement import Bench, Fields, measurement
from ._gpu_time import Plan, timed
from ._links_pattern import Pattern

SIZE = 256 << 20
PLAN = Plan(samples=7, sample_seconds=0.02, warmup_seconds=0.01)
SMALL = 16
"""Bytes of the copies whose latency is measured."""
BATCH = 64
WAYS = ("host-to-device", "device-to-host")


class HostCopies:
    """Buffers for copies between one GPU and the host memory of one NUMA node."""

    def __init__(self, bench: Bench, *, pageable: bool = False) -> None:
        self._bench = bench
        device = bench.device
        self._pageable = mmap.mmap(-1, SIZE) if pageable else None
        if self._pageable is None:
            self.host = [device.allocate_pinned(SIZE) for _ in range(2)]
        else:
            self.host = [ctypes.addressof(ctypes.c_char.from_buffer(self._pageable))] * 2
        self.gpu = [device.allocate(SIZE) for _ in range(2)]
        self.pattern = Pattern(bench, SIZE)

    def close(self) -> None:
        device = self._bench.device
        for address in self.gpu:
            device.free(address)
        self.pattern.close()
        if self._pageable is None:
            for address in self.host:
                device.free_pinned(address)

    def one_way(self, name: str, **facts: Any) -> Fields:
        """``host-to-device`` or ``device-to-host``."""
        copy = self._copy(name, self._bench.device.stream)
        found = self._bench.rate(name, SIZE, copy, PLAN, **_described(facts))
        found["verification"] = self._verified(name)
        return found

    def both_ways(self, **facts: Any) -> Fields:
        """Copies both ways at once, on a stream each; the bytes of both count."""
        device = self._bench.device
        other = Side(device)
        down = self._copy("host-to-device", device.stream)
        up = self._copy("device-to-host", other.stream, second=True)

        def both() -> None:
            other.after()
            down()
            up()
            other.join()

        return self._bench.rate("both-directions", 2 * SIZE, both, PLAN, **_described(facts))

    def latency(self, **facts: Any) -> Fields:
        """Seconds from one small copy to the next on a stream."""
        device = self._bench.device

        def batch() -> None:
            for _ in range(BATCH):
                call("cuMemcpyHtoDAsync", self.gpu[0], self.host[0], SMALL, device.stream)

        with self._bench.sampler.watch() as conditions:
            seconds = timed(device, batch, Plan(samples=9, sample_seconds=0.002, most_runs=8))
        each = [one / BATCH for one in seconds]
        more = {"unit": "s", "method": "copy engine", "detail": "cuMemcpyHtoDAsync in a row", "size": SMALL}
        return measurement("copy-latency", self._bench.uuid, each, conditions=conditions, **more, **facts)

    def _copy(self, name: str, stream: Any, *, second: bool = False) -> Callable[[], None]:
        gpu, host = self.gpu[second], self.host[second]
        if name == "host-to-device":
            return lambda: call("cuMemcpyHtoDAsync", gpu, host, SIZE, stream)
        return lambda: call("cuMemcpyDtoHAsync", host, gpu, SIZE, stream)

    def _verified(self, name: str) -> Fields:
        """Send the pattern the way that was timed, and back or forth the other way, into poisoned memory."""
        first, second = self.gpu
        self.pattern.write(first)
        self.pattern.poison(second)
        ctypes.memset(self.host[0], 0x5A, SIZE)
        stream = self._bench.device.stream
        call("cuMemcpyDtoHAsync", self.host[0], first, SIZE, stream)
        call("cuMemcpyHtoDAsync", second, self.host[0], SIZE, stream)
        return self.pattern.verified(second, f"every word after {name} and the way back")


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
