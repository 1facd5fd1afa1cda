"""GPUs and an NCCL that are this process's memory: what a worker asks of NCCL is done by Python, rank by rank."""

import ctypes
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from probes.measuring.nccl import worker
from probes.measuring.nccl.values import ComparedValues, Due, operand, tolerance
from probes.measuring.nccl.worker import NcclRank, NcclStep, Order, Worker
from tests.probes.bench.host_gpu import HostDevice

TYPES: dict[str, Any] = {"int32": ctypes.c_int32, "fp32": ctypes.c_float}
NAMES = {2: "int32", 7: "fp32"}


def cells(address: int, kind: str, count: int) -> Any:
    return (TYPES[kind] * count).from_address(address)


class FakeNccl:
    """Does what is asked at the end of a group. ``spoil`` may change what a rank received."""

    path = "libnccl.so.2"
    version = "2.28.9"
    number = 22809
    captures = False

    def __init__(self, ranks: int, spoil: Callable[[int, Any], None] = lambda rank, received: None) -> None:
        self.ranks, self.spoil = ranks, spoil
        self.queue: list[tuple[str, tuple[Any, ...]]] = []
        self.done: list[str] = []
        self.counts: list[int] = []
        """What each call was given; of sends, the elements that a rank gets from all others together."""

    def unique_id(self) -> bytes:
        return bytes(128)

    def group(self) -> Any:
        return SimpleNamespace(__enter__=lambda: None, __exit__=lambda *_: None)

    def join(self, ranks: int, identity: bytes, rank: int) -> ctypes.c_void_p:
        assert (ranks, len(identity)) == (self.ranks, 128)
        return ctypes.c_void_p(rank + 1)

    def split(self, communicators: list[ctypes.c_void_p], colors: list[int]) -> list[ctypes.c_void_p]:
        """Numbers of the new ones begin at 100 for the first color, 200 for the second."""
        assert len(communicators) == len(colors) == self.ranks
        seen: dict[int, int] = {}
        made = []
        for color in colors:
            seen[color] = seen.get(color, 0) + 1
            made.append(ctypes.c_void_p(100 * (color + 1) + seen[color] if color >= 0 else None))
        return made

    def check(self, communicator: ctypes.c_void_p) -> None: ...

    def function(self, name: str) -> Callable[..., int]:
        if name == "ncclGroupStart":
            return lambda: 0
        if name == "ncclGroupEnd":
            return self.run
        return lambda *arguments: self._asked(name, arguments)

    def _asked(self, name: str, arguments: tuple[Any, ...]) -> int:
        self.queue.append((name, arguments))
        return 0

    def run(self) -> int:
        queue, self.queue = self.queue, []
        (name,) = {name for name, _ in queue if name != "ncclRecv"}
        self.done.append(name)
        plain = [tuple(each.value for each in arguments) for _, arguments in queue]
        if name == "ncclSend":
            self._exchange([(call, arguments) for (call, _), arguments in zip(queue, plain, strict=True)])
            got = [(each[4] % 100, each[1]) for (call, _), each in zip(queue, plain, strict=True) if call == "ncclRecv"
                   and each[3] != each[4] % 100 - 1]  # fmt: skip
            self.counts.append(sum(count for rank, count in got if rank == 1))
        else:
            ordered = sorted(plain, key=lambda arguments: arguments[-2])
            ranks = 2 if ordered[0][-2] > 100 else self.ranks
            assert [arguments[-2] % 100 for arguments in ordered] == list(range(1, ranks + 1))
            self._together(name, ordered, ranks)
        return 0

    def _together(self, name: str, calls: list[tuple[Any, ...]], ranks: int) -> None:
        count, kind = calls[0][2], NAMES[calls[0][3]]
        self.counts.append(count)
        given = {"ncclReduceScatter": count * ranks}.get(name, count)
        sent = [list(cells(arguments[0], kind, given)) for arguments in calls]
        if "Reduce" in name:
            total = [sum(each) for each in zip(*sent, strict=True)]
            held = {
                "ncclAllReduce": [total] * ranks,
                "ncclReduce": [total, *[[]] * (ranks - 1)],
                "ncclReduceScatter": [total[rank * count : (rank + 1) * count] for rank in range(ranks)],
            }[name]
        else:
            joined = [value for each in sent for value in each]
            held = {"ncclAllGather": [joined] * ranks, "ncclBroadcast": [sent[0]] * ranks}[name]
        for rank, (arguments, values) in enumerate(zip(calls, held, strict=True)):
            received = cells(arguments[1], kind, len(values))
            received[:] = [ctypes.c_int32(value).value for value in values] if kind == "int32" else values
            self.spoil(rank, received)

    def _exchange(self, calls: list[tuple[str, tuple[Any, ...]]]) -> None:
        waiting: dict[tuple[int, int], list[float]] = {}
        for call, (address, count, kind, peer, communicator, _) in calls:
            if call == "ncclSend":
                assert (communicator % 100 - 1, peer) not in waiting
                waiting[communicator % 100 - 1, peer] = list(cells(address, NAMES[kind], count))
        for call, (address, count, kind, peer, communicator, _) in calls:
            if call == "ncclRecv":
                received = cells(address, NAMES[kind], count)
                received[:] = waiting.pop((peer, communicator % 100 - 1))
                self.spoil(communicator % 100 - 1, received)
        assert not waiting


class HostValues:
    """What ``kernels/collectives.cu`` does."""

    def __init__(self, bench: Any) -> None: ...

    def draw(self, kind: str, address: int, count: int, seed: int, rank: int) -> None:
        cells(address, kind, count)[:] = [_stored(kind, operand(kind, seed, rank, index)) for index in range(count)]

    def compare(self, kind: str, address: int, due: Due, seed: int, ranks: int) -> ComparedValues:
        found = ComparedValues(due.count)
        for place, value in enumerate(cells(address, kind, due.count)):
            parts = [operand(kind, seed, rank, index) for rank, index in _parts(due, place, ranks)]
            exact, size = sum(parts), sum(map(abs, parts))
            if kind == "int32":
                found.wrong += value != ctypes.c_int32(int(exact)).value
            else:
                found.wrong += not abs(value - exact) <= (tolerance(kind, ranks) * size if due.sum else 0)
        return found


def _stored(kind: str, value: float) -> Any:
    return int(value) if kind == "int32" else value


def _parts(due: Due, place: int, ranks: int) -> list[tuple[int, int]]:
    """Rank and index of the operands of an element."""
    if due.sum:
        return [(rank, due.offset + place) for rank in range(ranks)]
    if due.chunk:
        return [(place // due.chunk, due.offset + place % due.chunk)]
    return [(due.source, due.offset + place)]


class HostGpu(HostDevice):
    def __init__(self, ordinal: int) -> None:
        super().__init__()
        self.kept: list[Any] = []

    def enter(self) -> None: ...

    def begin_capture(self) -> None: ...

    def end_capture(self) -> str:
        return "graph"

    def allocate(self, size: int) -> int:
        self.kept.append((ctypes.c_char * size)())
        return ctypes.addressof(self.kept[-1])


class HostTalk:
    """The only worker's talk: it agrees with itself."""

    def __init__(self) -> None:
        self.lines: list[dict[str, Any]] = []

    def say(self, **line: Any) -> None:
        self.lines.append(line)

    def agree(self, value: Any) -> Any:
        return value

    @property
    def results(self) -> list[dict[str, Any]]:
        return [line["result"] for line in self.lines if "result" in line]


class _Group:
    def __enter__(self) -> None: ...
    def __exit__(self, *_: object) -> None: ...


def run_steps(
    monkeypatch: pytest.MonkeyPatch,
    nccl: FakeNccl,
    *steps: NcclStep,
    hidden: tuple[int, ...] = (),
    rounds: tuple[tuple[tuple[int, int], ...], ...] = (),
    pair_steps: tuple[NcclStep, ...] = (),
) -> HostTalk:
    """One process with all ranks does the steps; GPUs that are ``hidden`` are not shown to it."""
    names = [f"GPU-{rank}" for rank in range(nccl.ranks)]
    shown = {name: rank for rank, name in enumerate(names) if rank not in hidden}
    watch = SimpleNamespace(start=lambda: None, stop=lambda: None, seconds=lambda: 1e-5)
    replaced = {
        "ordinals": lambda: shown, "prepared": lambda arguments: arguments, "instantiated": lambda graph: graph,
        "Device": HostGpu, "Compiler": lambda *_: SimpleNamespace(ahead=lambda *_: None), "Sampler": lambda *_: None,
        "Nccl": lambda _: nccl, "Values": HostValues, "Stopwatch": lambda _: watch,
        "driver": lambda: SimpleNamespace(cuStreamQuery=lambda _: (0,)),
    }  # fmt: skip
    for name, value in replaced.items():
        monkeypatch.setattr(worker, name, value)
    monkeypatch.setattr(nccl, "group", _Group)
    monkeypatch.setattr("time.sleep", lambda _: None)
    ranks = tuple(NcclRank(number, name, f"GPU {number}", {}) for number, name in enumerate(names))
    talk: Any = HostTalk()
    Worker(Order(len(ranks), steps, {}, {}, 60.0, rounds, pair_steps), ranks, talk).run()
    return talk  # type: ignore[no-any-return]
