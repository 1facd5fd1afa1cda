"""One process of a collective: the ranks that it serves, and the steps that all processes take together."""

from __future__ import annotations

import ctypes
import math
import os
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import repeat
from typing import Any

from ..arrays import POISON
from ..device import Device, Stopwatch, call, driver, instantiated, ordinals
from ..kernels import Compiler
from ..measurement import Bench
from ..runtime import CudaError, Fields, LibraryError, Unavailable
from ..sampler import Sampler
from .library import KINDS, SUM, Nccl, version_text
from .supervisor import Talk
from .values import OPERATIONS, ROOT, SIZES, ComparedValues, Operation, Values

RESERVE = 1 << 30  # Bytes of device memory left to NCCL's own buffers and to others
_PATIENCE = 1000  # Looks at a stream between two looks at the communicator

Launch = Callable[[int], None]  # Queues as many runs


@dataclass(frozen=True)
class NcclRank:
    number: int
    uuid: str
    title: str  # ``GPU 1``
    before: Fields  # What was read of the GPU before, as fields of ``Conditions``


@dataclass(frozen=True)
class NcclStep:
    """A collective operation of one size that is timed and verified."""

    operation: str
    size: int  # Bytes of the larger of a rank's two buffers
    kind: str = "fp32"
    in_place: bool = False
    samples: int = 5
    seconds: float = 0.02  # About how long a sample lasts
    least: int = 2
    most: int = 200  # Runs in a sample, or launches of a graph
    per_graph: int = 0
    """Runs that a CUDA graph holds, for messages so small that they would wait for this process to queue the next; 0:
    no graph is used."""
    watch: bool = False  # Whether the first rank's GPU is sampled by NVML meanwhile

    def __str__(self) -> str:
        return f"{self.operation} of {binary(self.size)}"


@dataclass(frozen=True)
class Order:
    """What all processes of a communicator do."""

    ranks: int
    steps: tuple[NcclStep, ...]
    libraries: Mapping[str, list[str]]
    variables: Mapping[str, str]  # Set before NCCL is loaded
    seconds: float  # After which no step begins
    rounds: tuple[tuple[tuple[int, int], ...], ...] = ()
    """Pairs of ranks that work together after all have: each rank is in one pair of a round at most."""
    pair_steps: tuple[NcclStep, ...] = ()  # What each pair does, one pair at a time


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

    def __init__(self, rank: NcclRank, bench: Bench, size: int) -> None:
        self.rank, self.bench = rank, bench
        self.enter()
        self.values = Values(bench)
        self.first, self.second = bench.device.allocate(size), bench.device.allocate(size)
        self.watch = Stopwatch(bench.device)
        self.stream = ctypes.c_void_p(int(bench.device.stream))

    def enter(self) -> None:
        self.bench.device.enter()


@dataclass(frozen=True)
class Member:
    """A rank of this process among those of a communicator."""

    place: _Place
    number: int  # Its rank there
    communicator: ctypes.c_void_p


@dataclass(frozen=True)
class Team:
    """A communicator, and which of its ranks are in this process."""

    ranks: int
    members: tuple[Member, ...]


class Worker:
    """What a process does: connect, then the steps."""

    def __init__(self, order: Order, ranks: tuple[NcclRank, ...], talk: Talk) -> None:
        self._order, self._ranks, self._talk = order, ranks, talk

    def run(self) -> None:
        """Connect and take every step; an error is reported with the ranks that met it."""
        began = time.monotonic()
        try:
            everybody = self._connect()
            for number, step in enumerate(self._order.steps):
                if self._is_late(began):
                    return
                self._talk.say(step=str(step))
                self._talk.say(result={"step": number, **self._done(step, everybody)})
            for pairs in self._order.rounds:
                if self._is_late(began):
                    return
                self._in_pairs(pairs, everybody)
        except (LibraryError, CudaError, Unavailable) as error:
            ranks = [rank.number for rank in self._ranks]
            kind = type(error).__name__
            self._talk.say(error=str(error), kind=kind, ranks=ranks, library=getattr(error, "path", None))
            time.sleep(60)  # until the supervisor ends it: the others say meanwhile what they met

    def _is_late(self, began: float) -> bool:
        return bool(self._talk.agree(time.monotonic() - began) > self._order.seconds)

    # Everything before the first step.

    def _connect(self) -> Team:
        os.environ.update(self._order.variables)
        self._talk.say(step="starting CUDA")
        shown = ordinals()
        benches = [self._bench(rank, shown) for rank in self._ranks]
        for bench in benches:
            bench.compiler.ahead(("collectives",))
        self._talk.say(step="loading NCCL")
        self._nccl = nccl = Nccl(benches[0])
        self._talk.say(version=nccl.version, path=nccl.path)
        # Raise LibraryError where ranks have loaded different releases: they would wait for each other, or crash.
        own = nccl.number
        newest, oldest = self._talk.agree(own), -self._talk.agree(-own)
        if newest != oldest:
            other = version_text(oldest if own == newest else newest)
            raise LibraryError(
                f"NCCL {nccl.version} here, {other} on another rank: all ranks need one release", nccl.path
            )
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
        fits = []  # what is wanted, or the greatest power of two of which two fit besides the reserve
        for bench in benches:
            bench.device.enter()
            room = max((bench.device.free_memory() - RESERVE) // 2, 4096)
            fits.append(wanted if wanted <= room else 1 << (room.bit_length() - 1))
        self._most = -self._talk.agree(-min(fits))  # the least of all ranks
        places = [_Place(*each, self._most) for each in zip(self._ranks, benches, strict=True)]
        self._talk.say(ready=True, most=self._most)
        members = (Member(place, place.rank.number, each) for place, each in zip(places, made, strict=True))
        return Team(self._order.ranks, tuple(members))

    def _bench(self, rank: NcclRank, shown: dict[str, int]) -> Bench:
        if rank.uuid not in shown:
            chosen = os.environ.get("CUDA_VISIBLE_DEVICES")
            why = f": CUDA_VISIBLE_DEVICES={chosen}" if chosen is not None else ""
            raise Unavailable(f"CUDA does not show {rank.title} to rank {rank.number}{why}")
        device = Device(shown[rank.uuid])
        compiler = Compiler(self._order.libraries.get("nvrtc", ()), device.capability)
        sampler = Sampler(rank.uuid, rank.before)
        return Bench(rank.uuid, device, sampler, compiler, True, frozenset(), dict(self._order.libraries))

    def _in_pairs(self, pairs: tuple[tuple[int, int], ...], everybody: Team) -> None:
        """Let each pair take its steps in turn, while the others wait."""
        self._talk.say(step="connecting pairs of ranks")
        places = {number: place for place, pair in enumerate(pairs) for number in pair}
        colors = [places.get(member.number, -1) for member in everybody.members]
        made = self._nccl.split([member.communicator for member in everybody.members], colors)
        for color, pair in enumerate(pairs):
            here = zip(everybody.members, colors, made, strict=True)
            team = Team(2, tuple(Member(own.place, pair.index(own.number), new) for own, c, new in here if c == color))
            for number, step in enumerate(self._order.pair_steps):
                self._talk.say(step=f"{step} between ranks {pair[0]} and {pair[1]}")
                if team.members:
                    self._talk.say(result={"pair": pair, "step": number, **self._done(step, team)})
                # Agree as often as those that do a step.
                elif step.size <= self._most:
                    self._talk.agree(None)
                    self._talk.agree(None)

    # One step.

    def _done(self, step: NcclStep, team: Team) -> Fields:
        """What came of a step: seconds of each sample, of the slowest rank here; and whether results are right."""
        if step.size > self._most:
            return {"missing": f"it needs more than the {binary(self._most)} of memory that every GPU has free"}
        operation = OPERATIONS[step.operation]
        launch = self._launcher(operation, step, team)
        seed = self._talk.agree(int.from_bytes(os.urandom(8), "little"))
        self._fill(operation, step, seed, team)
        launch(1)
        self._wait(team)
        if step.in_place:
            self._fill(operation, step, seed, team)
        in_graphs = step.per_graph > 0 and self._nccl.captures
        with ExitStack() as stack:
            conditions = stack.enter_context(team.members[0].place.bench.sampler.watch()) if step.watch else {}
            if in_graphs:
                graphs = self._graphs(step.per_graph, launch, team, stack)
                seconds = [each / step.per_graph for each in self._samples(step, graphs, team)]
            else:
                seconds = self._samples(step, launch, team)
        if step.in_place:
            self._fill(operation, step, seed, team)
            launch(1)
        self._wait(team)
        found = ComparedValues()
        for member in team.members:
            due = operation.due(member.number, team.ranks, _count(step, team.ranks))
            if due is None:
                continue
            member.place.enter()
            _, receive = _addresses(operation, step, member, team.ranks)
            found.add(member.place.values.compare(step.kind, receive, due, seed, team.ranks))
        done: Fields = {"seconds": seconds, "checked": found.checked, "wrong": found.wrong, "worst": found.worst}
        done["in_graphs"] = in_graphs
        if team.members[0].number:  # clocks are told of the first, errors of all
            conditions = {name: conditions[name] for name in ("rose", "xids") if name in conditions}
        return done | ({"conditions": conditions} if conditions else {})

    def _graphs(self, runs: int, launch: Launch, team: Team, stack: ExitStack) -> Launch:
        """Queues graphs of so many runs; they live as long as ``held``."""
        places = [member.place for member in team.members]
        for place in places:
            place.enter()
            place.bench.device.begin_capture()
        launch(runs)
        recorded = [place.bench.device.end_capture() for place in places]
        graphs = []
        for place, graph in zip(places, recorded, strict=True):
            place.enter()
            graphs.append(instantiated(graph))
            stack.callback(call, "cuGraphExecDestroy", graphs[-1])

        def replayed(times: int) -> None:
            for _ in range(times):
                for place, graph in zip(places, graphs, strict=True):
                    place.enter()
                    call("cuGraphLaunch", graph, place.bench.device.stream)

        return replayed

    def _samples(self, step: NcclStep, launch: Launch, team: Team) -> list[float]:
        one = self._talk.agree(self._sample(step, launch, 1, team))
        runs = max(step.least, min(step.most, math.ceil(step.seconds / max(one, 1e-7))))
        return [self._sample(step, launch, runs, team) for _ in range(step.samples)]

    def _sample(self, step: NcclStep, launch: Launch, runs: int, team: Team) -> float:
        """Seconds of one run. The runs before them bring the ranks together, and keep the GPUs at work meanwhile."""
        if not step.in_place:
            for member in team.members:
                member.place.enter()
                size = _count(step, team.ranks) * SIZES[step.kind]
                member.place.bench.device.fill(member.place.second, size, POISON)
        launch(min(5, step.least))
        for member in team.members:
            member.place.enter()
            member.place.watch.start()
        launch(runs)
        for member in team.members:
            member.place.enter()
            member.place.watch.stop()
        self._wait(team)
        self._talk.say(sampled=True)
        return max(member.place.watch.seconds() for member in team.members) / runs

    def _launcher(self, operation: Operation, step: NcclStep, team: Team) -> Launch:
        """Queues runs on every rank of this process. The loop is short: small messages take a few microseconds."""
        members = team.members
        asked = [made for member in members for made in self._calls(operation, step, member, team.ranks)]
        calls = [(function, prepared(arguments)) for function, arguments in asked]
        start, end = self._nccl.function("ncclGroupStart"), self._nccl.function("ncclGroupEnd")

        def began(status: int) -> None:
            if status:
                raise LibraryError(f"NCCL: {self._nccl.describe(status)}", self._nccl.path)

        def alone(runs: int) -> None:
            function, arguments = calls[0]
            status = 0
            for _ in repeat(None, runs):
                status = function(*arguments) or status
            began(status)

        def grouped(runs: int) -> None:
            status = 0
            for _ in repeat(None, runs):
                start()
                for function, arguments in calls:
                    status = function(*arguments) or status
                status = end() or status
            began(status)

        return alone if len(calls) == 1 else grouped

    def _calls(
        self, operation: Operation, step: NcclStep, member: Member, ranks: int
    ) -> list[tuple[Any, tuple[Any, ...]]]:
        """The calls of one rank, ready to be made."""
        count, rank = _count(step, ranks), member.number
        part, kind = count // ranks, ctypes.c_int(KINDS[step.kind])
        send, receive = _addresses(operation, step, member, ranks)
        ending = (member.communicator, member.place.stream)
        function = self._nccl.function
        if operation.function:
            many = part if "part" in (operation.sends, operation.receives) else count
            how = [SUM] if operation.sums else []
            how += [ROOT] if operation.name in ("reduce", "broadcast") else []
            before = (ctypes.c_void_p(send), ctypes.c_void_p(receive), ctypes.c_size_t(many), kind)
            return [(function(operation.function), (*before, *map(ctypes.c_int, how), *ending))]
        if operation.name == "send-recv":
            pairs = [("ncclSend", send, count, (rank + 1) % ranks), ("ncclRecv", receive, count, (rank - 1) % ranks)]
        else:
            size = part * SIZES[step.kind]
            pairs = [
                (name, address + other * size, part, other)
                for other in range(ranks)
                for name, address in (("ncclSend", send), ("ncclRecv", receive))
            ]
        return [
            (function(name), (ctypes.c_void_p(address), ctypes.c_size_t(many), kind, ctypes.c_int(peer), *ending))
            for name, address, many, peer in pairs
        ]

    def _fill(self, operation: Operation, step: NcclStep, seed: int, team: Team) -> None:
        count = _count(step, team.ranks)
        many = count // team.ranks if operation.sends == "part" else count
        for member in team.members:
            member.place.enter()
            send, _ = _addresses(operation, step, member, team.ranks)
            member.place.values.draw(step.kind, send, many, seed, member.number)

    def _wait(self, team: Team) -> None:
        """Until every rank of this process is done; raise LibraryError where a communicator met an error."""
        query, ready = driver().cuStreamQuery, 0
        for member in team.members:
            member.place.enter()
            looks = 0
            while True:
                status = int(query(member.place.bench.device.stream)[0])
                if status == ready:
                    break
                if status != NOT_READY:
                    call("cuStreamSynchronize", member.place.bench.device.stream)
                looks += 1
                if looks % _PATIENCE == 0:
                    for each in team.members:
                        self._nccl.check(each.communicator)


def prepared(arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """Arguments as ctypes passes them on: converting them in every call would take as long as the call."""
    return tuple(type(argument).from_param(argument.value) for argument in arguments)


def _count(step: NcclStep, ranks: int) -> int:
    """Elements of the larger buffer: what is divided among the ranks, is so without a rest."""
    count = step.size // SIZES[step.kind]
    return max(count // ranks, 1) * ranks if OPERATIONS[step.operation].sliced else max(count, 1)


def _addresses(operation: Operation, step: NcclStep, member: Member, ranks: int) -> tuple[int, int]:
    """Where a rank sends from and receives to; in one buffer, as nccl.h says."""
    place = member.place
    if not step.in_place:
        return place.first, place.second
    part = _count(step, ranks) // ranks * SIZES[step.kind] * member.number
    if operation.sends == "part":
        return place.first + part, place.first
    if operation.receives == "part":
        return place.first, place.first + part
    return place.first, place.first


NOT_READY = 600  # ``CUDA_ERROR_NOT_READY``


def run_worker(order: Order, ranks: tuple[NcclRank, ...], talk: Talk) -> None:
    """What a forked process runs."""
    Worker(order, ranks, talk).run()
