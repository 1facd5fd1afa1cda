"""Handles of cuDNN made and destroyed on several threads, each working on a stream of its own."""

from __future__ import annotations

import threading
import time
from ctypes import byref, c_float, c_void_p
from dataclasses import dataclass, field

from ...kit.figures import Fields, compared
from ..arrays import Array, Arrays
from ..device import call
from ..measurement import Bench, measurement
from .library import TYPES, Cudnn

THREADS = 4
ROUNDS = 3
COUNT = 1 << 16
"""Elements that each round fills."""


@dataclass
class _Worker:
    """What one thread does, and what came of it."""

    bench: Bench
    library: Cudnn
    array: Array
    value: float
    seconds: list[float] = field(default_factory=list)
    error: Exception | None = None

    def run(self) -> None:
        try:
            self.bench.device.enter()
            for _ in range(ROUNDS):
                self.seconds.append(self._round())
        except Exception as error:
            self.error = error

    def _round(self) -> float:
        stream = call("cuStreamCreate", 1)
        self.array.poison()
        self.bench.device.synchronize()
        begin = time.perf_counter()
        handle = self.library.new_handle(int(stream))
        made = time.perf_counter() - begin
        self._fill(handle)
        call("cuStreamSynchronize", stream)
        begin = time.perf_counter()
        self.library.ask("cudnnDestroy", handle)
        taken = made + time.perf_counter() - begin
        call("cuStreamDestroy", stream)
        return taken

    def _fill(self, handle: c_void_p) -> None:
        described, value = c_void_p(), c_float(self.value)
        self.library.ask("cudnnCreateTensorDescriptor", byref(described))
        shape = (1, 1, 1, self.array.count)
        self.library.ask("cudnnSetTensor4dDescriptor", described, 0, TYPES["fp32"], *shape)
        self.library.ask("cudnnSetTensor", handle, described, c_void_p(self.array.address), byref(value))
        self.library.ask("cudnnDestroyTensorDescriptor", described)


def handles(bench: Bench, library: Cudnn) -> Fields:
    """Seconds to make and destroy a handle while other threads do so too; each fills an array through its handle."""
    arrays = Arrays(bench)
    with arrays.empty("fp32", THREADS * COUNT) as whole, bench.sampler.watch() as conditions:
        parts = [Array(bench.device, "fp32", COUNT, whole.address + 4 * COUNT * each) for each in range(THREADS)]
        workers = [_Worker(bench, library, part, each + 0.5) for each, part in enumerate(parts)]
        threads = [threading.Thread(target=worker.run) for worker in workers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for worker in workers:
            if worker.error:
                raise worker.error
        found = [(value, worker.value, 1.0) for worker in workers for value in worker.array.values()]
    described = measurement(
        "cudnn-handles",
        bench.uuid,
        [seconds for worker in workers for seconds in worker.seconds],
        conditions=conditions,
        unit="s",
        method="cudnn",
        detail=f"cuDNN {library.version}, {THREADS} threads",
        library=library.path,
    )
    described["verification"] = compared(found, 0.0, f"what each of {THREADS} handles wrote on its stream")
    return described
