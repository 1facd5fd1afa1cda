"""cuDNN's handles, made and destroyed on several threads, each on a stream of its own, and on several GPUs at once."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from ctypes import byref, c_float, c_void_p
from dataclasses import dataclass, field

from ..common.out import Out
from ..common.tree import Tree
from ..measuring.arrays import Array, Arrays
from ..measuring.cudnn.library import TYPES, Cudnn
from ..measuring.device import Device, call
from ..measuring.measurement import Bench, bench_of, measurement, visible
from ..measuring.runtime import Fields, FigureKey, Measures, compared, run_all

PROBE = {
    "title": "cuDNN on several GPUs",
    "seconds": 30.0,
    "per": "machine",
    "seconds_per_gpu": 5.0,
    "scopes": ["node"],
}

NAME = "cudnn-handles"
THREADS = 4  # On each GPU
ROUNDS = 3
COUNT = 1 << 16  # Elements that each round fills


def collect(tree: Tree, out: Out) -> None:
    """Make handles on every GPU that is measured, where these are two or more."""
    asked = tree.request["bench"]
    only = asked.get("only", ())
    if NAME not in only if only else not asked.get("full"):
        out.absent("measured with --full" if not only else "not asked for")
        return
    known = visible(out)
    if known is None:
        return
    uuids = [gpu["uuid"] for gpu in asked["gpus"] if gpu["uuid"] in known]
    if len(uuids) < 2:
        out.absent("one GPU is measured")
        return
    benches = [bench_of(asked, uuid, Device(known[uuid])) for uuid in uuids]
    first = benches[0]
    first.device.enter()
    figure = FigureKey(NAME, variant=f"{len(benches)} GPUs")
    measures: Measures = {figure: lambda: {**handles(benches, Cudnn(first)), **figure.facts}}
    run_all(out, measures, first.uuid, first.only)


@dataclass
class _ThreadWorker:
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
                stream = call("cuStreamCreate", 1)
                self.array.poison()
                self.bench.device.synchronize()
                begin = time.perf_counter()
                handle = self.library.new_handle(int(stream))
                made = time.perf_counter() - begin
                described, value = c_void_p(), c_float(self.value)
                self.library.ask("cudnnCreateTensorDescriptor", byref(described))
                shape = (1, 1, 1, self.array.count)
                self.library.ask("cudnnSetTensor4dDescriptor", described, 0, TYPES["fp32"], *shape)
                self.library.ask("cudnnSetTensor", handle, described, c_void_p(self.array.address), byref(value))
                self.library.ask("cudnnDestroyTensorDescriptor", described)
                call("cuStreamSynchronize", stream)
                begin = time.perf_counter()
                self.library.ask("cudnnDestroy", handle)
                taken = made + time.perf_counter() - begin
                call("cuStreamDestroy", stream)
                self.seconds.append(taken)
        except Exception as error:
            self.error = error


def handles(benches: Sequence[Bench], library: Cudnn) -> Fields:
    """Seconds to make and destroy a handle while other threads do so too; each fills an array through its handle.

    Each GPU has as many threads. The figure is the first GPU's; its context is the current one afterwards.
    """
    first = benches[0]
    with ExitStack() as stack:
        parts = [(bench, part) for bench in benches for part in stack.enter_context(_parts(bench))]
        workers = [_ThreadWorker(bench, library, part, each + 0.5) for each, (bench, part) in enumerate(parts)]
        threads = [threading.Thread(target=worker.run) for worker in workers]
        with first.sampler.watch() as conditions:
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        found = []
        for worker in workers:
            if worker.error:
                raise worker.error
            worker.bench.device.enter()
            found += [(value, worker.value, 1.0) for value in worker.array.values()]
    first.device.enter()
    many = f" on each of {len(benches)} GPUs" if len(benches) > 1 else ""
    seconds = [each for worker in workers for each in worker.seconds]
    facts = library.facts("s", f"{THREADS} threads{many}")
    described = measurement(NAME, first.uuid, seconds, conditions=conditions, **facts)
    described["verification"] = compared(found, 0.0, f"what each of {len(workers)} handles wrote on its stream")
    return described


@contextmanager
def _parts(bench: Bench) -> Iterator[list[Array]]:
    """An array for each thread, in the memory of a GPU."""
    bench.device.enter()
    with Arrays(bench).empty("fp32", THREADS * COUNT) as whole:
        yield [Array(bench.device, "fp32", COUNT, whole.address + 4 * COUNT * each) for each in range(THREADS)]
        bench.device.enter()
