"""One process of a collective: the ranks that it serves, and the steps that all processes take together."""

from __future__ import annotations

import ctypes
import math
import os
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from ...kit.figures import Fields
from ..device import CudaError, Device, LibraryError, Stopwatch, Unavailable, call, driver, ordinals
from ..kernels import Compiler
from ..measurement import Bench
from ..sampler import Sampler
from .library import KINDS, SUM, Nccl
from .operations import OPERATIONS, ROOT, Operation
from .supervisor import Talk
from .values import SIZES, Found, Values, poison

RESERVE = 1 << 30
"""Bytes of device memory left to NCCL's own buffers and to others."""
_PATIENCE = 1000
"""Looks at a stream between two looks at the communicator."""


@dataclass(frozen=True)
class Rank:
    """A rank and its GPU."""

    number: int
    uuid: str
    title: str
    """``GPU 1``."""
    before: Fields
    """What was read of the GPU before, as fields of ``Conditions``."""


@dataclass(frozen=True)
class Step:
    """A collective operation of one size that is timed and verified."""

    operation: str
    size: int
    """Bytes of the larger of a rank's two buffers."""
    kind: str = "fp32"
    in_place: bool = False
    samples: int = 5
    seconds: float = 0.02
    """About how long a sample lasts."""
    least: int = 2
    most: int = 200
    """Runs in a sample."""
    watch: bool = False
    """Whether the first rank's GPU is sampled by NVML meanwhile."""

    def __str__(self) -> str:
        return f"{self.operation} of {binary(self.size)}"


@dataclass(frozen=True)
class Order:
    """What all processes of a communicator do."""

    ranks: int
    steps: tuple[Step, ...]
    libraries: Mapping[str, list[str]]
    variables: Mapping[str, str]
    """Set before NCCL is loaded."""
    seconds: float
    """After which no step begins."""


def binary(size: int) -> str:
    """``512 MiB``."""
    number = float(size)
    for unit in ("B", "KiB", "MiB"):
        if number < 1024:
            return f"{number:g} {unit}"
        number /= 1024
    return f"{number:g} GiB"


class _Place:
    """A rank of this process: its GPU, buffers and kernels."""

    def __init__(self, rank: Rank, bench: Bench, communicator: ctypes.c_void_p, size: int) -> None:
        self.rank, self.bench, self.communicator = rank, bench, communicator
        self.enter()
        self.values = Values(bench)
        self.first, self.second = bench.device.allocate(size), bench.device.allocate(size)
        self.watch = Stopwatch(bench.device)
        self.stream = ctypes.c_void_p(int(bench.device.stream))

    def enter(self) -> None:
        self.bench.device.enter()


class Worker:
    """What a process does: connect, then the steps."""

    def __init__(self, order: Order, ranks: tuple[Rank, ...], talk: Talk) -> None:
        self._order, self._ranks, self._talk = order, ranks, talk

    def run(self) -> None:
        """Everything; what goes wrong is told with the rank that met it."""
        began = time.monotonic()
        try:
            self._connect()
            for number, step in enumerate(self._order.steps):
                if self._talk.agree(time.monotonic() - began) > self._order.seconds:
                    break
                self._talk.say(step=str(step))
                self._talk.say(result={"step": number, **self._done(step)})
        except (LibraryError, CudaError, Unavailable) as error:
            ranks = [rank.number for rank in self._ranks]
            kind = type(error).__name__
            self._talk.say(error=str(error), kind=kind, ranks=ranks, library=getattr(error, "path", None))
            time.sleep(60)  # until the supervisor ends it: the others say meanwhile what they met

    # Everything before the first step.

    def _connect(self) -> None:
        os.environ.update(self._order.variables)
        self._talk.say(step="starting CUDA")
        shown = ordinals()
        benches = [self._bench(rank, shown) for rank in self._ranks]
        self._talk.say(step="loading NCCL")
        self._nccl = nccl = Nccl(benches[0])
        self._talk.say(version=nccl.version, path=nccl.path)
        self._talk.say(step="connecting the ranks")
        first = self._ranks[0].number == 0
        identity = bytes.fromhex(self._talk.agree(nccl.unique_id().hex() if first else None))
        made = []
        with nccl.group():
            for bench, rank in zip(benches, self._ranks, strict=True):
                bench.device.enter()
                made.append(nccl.join(self._order.ranks, identity, rank.number))
        self._talk.say(step="allocating memory")
        wanted = max((step.size for step in self._order.steps), default=0)
        fits = min(_most_that_fits(bench, wanted) for bench in benches)
        self._most = -self._talk.agree(-fits)  # the least of all ranks
        self._places = [_Place(*each, self._most) for each in zip(self._ranks, benches, made, strict=True)]
        self._talk.say(ready=True, most=self._most)

    def _bench(self, rank: Rank, shown: dict[str, int]) -> Bench:
        if rank.uuid not in shown:
            chosen = os.environ.get("CUDA_VISIBLE_DEVICES")
            why = f": CUDA_VISIBLE_DEVICES={chosen}" if chosen is not None else ""
            raise Unavailable(f"CUDA does not show {rank.title} to rank {rank.number}{why}")
        device = Device(shown[rank.uuid])
        compiler = Compiler(self._order.libraries.get("nvrtc", ()), device.capability)
        sampler = Sampler(rank.uuid, rank.before)
        return Bench(rank.uuid, device, sampler, compiler, True, frozenset(), dict(self._order.libraries))

    # One step.

    def _done(self, step: Step) -> Fields:
        """What came of a step: seconds of each sample, of the slowest rank here; and whether results are right."""
        if step.size > self._most:
            return {"missing": f"it needs more than the {binary(self._most)} of memory that every GPU has free"}
        operation = OPERATIONS[step.operation]
        launch = self._launcher(operation, step)
        seed = self._talk.agree(int.from_bytes(os.urandom(8), "little"))
        self._fill(operation, step, seed)
        launch()
        self._wait()
        if step.in_place:
            self._fill(operation, step, seed)
        with ExitStack() as stack:
            conditions = stack.enter_context(self._places[0].bench.sampler.watch()) if step.watch else {}
            seconds = self._timed(step, launch)
        if step.in_place:
            self._fill(operation, step, seed)
            launch()
        self._wait()
        found = self._verified(operation, step, seed)
        return {"seconds": seconds, "checked": found.checked, "wrong": found.wrong, "worst": found.worst} | (
            {"conditions": conditions} if conditions and self._ranks[0].number == 0 else {}
        )

    def _timed(self, step: Step, launch: Callable[[], None]) -> list[float]:
        one = self._talk.agree(self._sample(step, launch, 1))
        runs = max(step.least, min(step.most, math.ceil(step.seconds / max(one, 1e-7))))
        return [self._sample(step, launch, runs) for _ in range(step.samples)]

    def _sample(self, step: Step, launch: Callable[[], None], runs: int) -> float:
        """Seconds of one run. The run before the timed ones brings the ranks together."""
        if not step.in_place:
            self._poison(step)
        launch()
        for place in self._places:
            place.enter()
            place.watch.start()
        for _ in range(runs):
            launch()
        for place in self._places:
            place.enter()
            place.watch.stop()
        self._wait()
        self._talk.say(sampled=True)
        return max(place.watch.seconds() for place in self._places) / runs

    def _launcher(self, operation: Operation, step: Step) -> Callable[[], None]:
        """Queues one run on every rank of this process."""
        calls = [made for place in self._places for made in self._calls(operation, step, place)]
        if len(calls) == 1:
            function, arguments = calls[0]
            return lambda: self._began(function(*arguments))
        start, end = self._nccl.function("ncclGroupStart"), self._nccl.function("ncclGroupEnd")

        def launch() -> None:
            start()
            status = 0
            for function, arguments in calls:
                status = function(*arguments) or status
            self._began(end() or status)

        return launch

    def _began(self, status: int) -> None:
        if status:
            raise LibraryError(f"NCCL: {self._nccl.describe(status)}", self._nccl.path)

    def _calls(self, operation: Operation, step: Step, place: _Place) -> list[tuple[Any, tuple[Any, ...]]]:
        """The calls of one rank, ready to be made."""
        ranks, rank = self._order.ranks, place.rank.number
        count, kind = self._count(step), ctypes.c_int(KINDS[step.kind])
        part = count // ranks
        from_here, to_here = self._addresses(operation, step, place)
        send, receive = ctypes.c_void_p(from_here), ctypes.c_void_p(to_here)
        ending = (place.communicator, place.stream)
        function = self._nccl.function
        if operation.function in ("ncclAllReduce", "ncclReduceScatter"):
            many = ctypes.c_size_t(part if operation.receives == "part" else count)
            return [(function(operation.function), (send, receive, many, kind, ctypes.c_int(SUM), *ending))]
        if operation.function == "ncclAllGather":
            return [(function(operation.function), (send, receive, ctypes.c_size_t(part), kind, *ending))]
        root = ctypes.c_int(ROOT)
        if operation.function == "ncclReduce":
            many = ctypes.c_size_t(count)
            return [(function(operation.function), (send, receive, many, kind, ctypes.c_int(SUM), root, *ending))]
        if operation.function == "ncclBroadcast":
            return [(function(operation.function), (send, receive, ctypes.c_size_t(count), kind, root, *ending))]
        if operation.name == "send-recv":
            many = ctypes.c_size_t(count)
            there, here = ctypes.c_int((rank + 1) % ranks), ctypes.c_int((rank - 1) % ranks)
            return [
                (function("ncclSend"), (send, many, kind, there, *ending)),
                (function("ncclRecv"), (receive, many, kind, here, *ending)),
            ]
        found = []
        for other in range(ranks):
            offset, many = other * part * SIZES[step.kind], ctypes.c_size_t(part)
            peer = ctypes.c_int(other)
            found.append((function("ncclSend"), (ctypes.c_void_p(from_here + offset), many, kind, peer, *ending)))
            found.append((function("ncclRecv"), (ctypes.c_void_p(to_here + offset), many, kind, peer, *ending)))
        return found

    def _count(self, step: Step) -> int:
        """Elements of the larger buffer: what is divided among the ranks, is so without a rest."""
        count = step.size // SIZES[step.kind]
        if "(n-1)" in OPERATIONS[step.operation].factor and step.operation != "all-reduce":
            return max(count // self._order.ranks, 1) * self._order.ranks
        return max(count, 1)

    def _addresses(self, operation: Operation, step: Step, place: _Place) -> tuple[int, int]:
        if not step.in_place:
            return place.first, place.second
        part = self._count(step) // self._order.ranks * SIZES[step.kind] * place.rank.number
        if operation.sends == "part":
            return place.first + part, place.first
        if operation.receives == "part":
            return place.first, place.first + part
        return place.first, place.first

    def _fill(self, operation: Operation, step: Step, seed: int) -> None:
        """Fresh operands in what each rank sends."""
        count = self._count(step)
        many = count // self._order.ranks if operation.sends == "part" else count
        for place in self._places:
            place.enter()
            send, _ = self._addresses(operation, step, place)
            place.values.draw(step.kind, send, many, seed, place.rank.number)

    def _poison(self, step: Step) -> None:
        for place in self._places:
            place.enter()
            poison(place.bench, place.second, min(self._most, self._count(step) * SIZES[step.kind]))

    def _verified(self, operation: Operation, step: Step, seed: int) -> Found:
        found = Found()
        for place in self._places:
            due = operation.due(place.rank.number, self._order.ranks, self._count(step))
            if due is None:
                continue
            place.enter()
            _, receive = self._addresses(operation, step, place)
            found.add(place.values.compare(step.kind, receive, due, seed, self._order.ranks))
        return found

    def _wait(self) -> None:
        """Until every rank of this process is done; raise LibraryError where a communicator met an error."""
        query, ready = driver().cuStreamQuery, 0
        for place in self._places:
            place.enter()
            looks = 0
            while True:
                status = int(query(place.bench.device.stream)[0])
                if status == ready:
                    break
                if status != NOT_READY:
                    call("cuStreamSynchronize", place.bench.device.stream)
                looks += 1
                if looks % _PATIENCE == 0:
                    for each in self._places:
                        self._nccl.check(each.communicator)


NOT_READY = 600
"""``CUDA_ERROR_NOT_READY``."""


def _most_that_fits(bench: Bench, wanted: int) -> int:
    """``wanted`` bytes, or the greatest power of two of which two fit besides ``RESERVE``."""
    bench.device.enter()
    room = max((bench.device.free_memory() - RESERVE) // 2, 4096)
    return wanted if wanted <= room else 1 << (room.bit_length() - 1)
