"""Let nodes do a collective together: the other end of ``probes/measuring/nccl/node.py``.

What nodes say is untrusted.
"""

from __future__ import annotations

import json
import math
import statistics
import time
from collections.abc import Iterable, Sequence
from typing import Annotated, Any, TypeAlias

import msgspec

from envcheck.fleet.collective.search import GroupOutcome, MeasuredNode
from envcheck.fleet.engines.launch import Crew, no_answer
from envcheck.text.clean import brief

SIZE = 256 << 20  # Bytes that are summed: enough for bandwidth, and a matter of seconds through a slow network too
LIMIT = 60.0  # Seconds of one measurement
_STOPPING = 5.0  # Seconds in which a node ends its processes on request
_GRACE = 1.0  # Seconds in which other nodes may say what they met, once one has failed
_MOST_GPUS = 256
_TICK = 0.5


class OutOfTimeError(Exception):
    """The whole time is over."""


class _Gpu(msgspec.Struct, frozen=True):
    uuid: str
    title: str


class _Ready(msgspec.Struct, frozen=True):
    host: str
    gpus: tuple[_Gpu, ...]
    refused: dict[str, str] = {}


class _Fault(msgspec.Struct, frozen=True):
    kind: str
    text: str
    error: str = ""


class _Over(msgspec.Struct, frozen=True):
    """How a run ended on a node."""

    seconds: tuple[float, ...] = ()
    wrong: int = 0
    checked: int = 0
    missing: str = ""
    faults: tuple[_Fault, ...] = ()
    nccl: str = ""
    transports: tuple[str, ...] = ()


Agreed: TypeAlias = int | float | Annotated[str, msgspec.Meta(max_length=4096)] | None
"""What the processes of all nodes agree on: the greatest."""


class _Fact(msgspec.Struct, frozen=True):
    ready: _Ready | None = None
    run: int | None = None
    agree: Agreed | msgspec.UnsetType = msgspec.UNSET
    over: _Over | None = None


class _Done(msgspec.Struct, frozen=True):
    status: str
    detail: str = ""


class _Up(msgspec.Struct, frozen=True):
    fact: _Fact | None = None
    done: _Done | None = None


class Together:
    """The nodes of a running crew."""

    def __init__(self, crew: Crew, nodes: Iterable[str], timeout: float, limit: float = LIMIT) -> None:
        self.members: dict[str, MeasuredNode] = {}  # Nodes that can measure, or could
        self.problems: dict[str, str] = {}  # Nodes that never could, or no longer can, and why
        self._crew, self._waiting = crew, dict.fromkeys(nodes)
        self._deadline = time.monotonic() + timeout
        self._limit, self._run = limit, 0

    def gather(self, seconds: float) -> None:
        """Wait until every node has said what it has; one that takes longer than ``seconds`` is left out."""
        until = min(time.monotonic() + seconds, self._deadline)
        while self._waiting and time.monotonic() < until:
            for node, fact in self._messages(until):
                if (ready := fact.ready) is None or node not in self._waiting:
                    continue
                del self._waiting[node]
                if len(ready.gpus) > _MOST_GPUS:
                    self.problems[node] = f"it names {len(ready.gpus):,} GPUs; at most {_MOST_GPUS} are measured"
                elif ready.gpus:
                    self.members[node] = MeasuredNode(name=node, host=ready.host, gpus=len(ready.gpus))
                else:
                    why = next(iter(ready.refused.values()), "")
                    self.problems[node] = brief(
                        f"no GPU can be measured: {why}" if why else "no matching CUDA GPU found"
                    )
        for node in self._waiting:
            self.problems.setdefault(node, no_answer(seconds, self._crew.stderr_of(node)))
        self._waiting.clear()

    def measure(self, group: Sequence[str]) -> GroupOutcome:
        """An all-reduce over every GPU of ``group``; raise OutOfTimeError where the whole time is over."""
        if time.monotonic() >= self._deadline:
            raise OutOfTimeError
        gone = {node: self.problems[node] for node in group if node in self.problems}
        if gone:
            return GroupOutcome(problem="a node is gone", at_fault=gone)
        self._run += 1
        run = _GroupRun(self._run, group)
        until = min(time.monotonic() + self._limit, self._deadline)
        seconds = until - time.monotonic()
        ranks = sum(self.members[node].gpus for node in run.nodes)
        first = 0
        for node in run.nodes:
            self._say(node, run=run.number, ranks=ranks, first=first, size=SIZE, seconds=seconds)
            first += self.members[node].gpus
        while not run.is_over and time.monotonic() < until:
            self._advance(run, until)
            if run.faults:
                until = min(until, time.monotonic() + _GRACE)
        ended, late = bool(run.faults) or run.is_over, run.waited_for()
        self._stop(run)
        if not ended and time.monotonic() >= self._deadline:
            raise OutOfTimeError
        if not ended and not late:
            return GroupOutcome(problem=f"no result within {self._limit:g} s")
        return self._outcome(run, () if ended else late)

    def _stop(self, run: _GroupRun) -> None:
        """End the run where it goes on; a node that does not end it is measured no more."""
        until = time.monotonic() + _STOPPING
        for node in run.nodes:
            if node not in run.over and node not in self.problems:
                self._say(node, run=run.number, stop=True)
        while not run.is_over and time.monotonic() < until:
            self._advance(run, until)
        for node in run.nodes:
            if node not in run.over:
                self.problems.setdefault(node, f"it did not end a measurement within {_STOPPING:g} s")

    def _advance(self, run: _GroupRun, until: float) -> None:
        for node, fact in self._messages(until):
            if fact.run != run.number or node not in run.nodes:
                continue
            if fact.over is not None:
                run.over[node] = fact.over
            elif fact.agree is not msgspec.UNSET:
                run.asked[node] = fact.agree
        for node in run.nodes:
            if node in self.problems:
                run.over.setdefault(node, _Over(faults=(_Fault("gone", self.problems[node]),)))
        agreed = run.agreed()
        if agreed is not None:
            for node in run.nodes:
                self._say(node, run=run.number, agree=agreed[0])

    def _outcome(self, run: _GroupRun, late: Sequence[str]) -> GroupOutcome:
        guilty = {node: self.problems[node] for node in run.nodes if node in self.problems}
        guilty |= dict.fromkeys(late, f"it did not answer within {self._limit:g} s")
        guilty |= {node: text for node in run.nodes if (text := run.own_fault(node))}
        if guilty:
            self.problems.update(guilty)
            return GroupOutcome(problem="a node failed", at_fault=guilty)
        if run.faults:
            node, fault = run.faults[0]
            return GroupOutcome(problem=brief(f"{node}: {fault.text}"))
        for node, over in run.over.items():
            said = {"nccl": over.nccl[:40], "transports": over.transports[:8]}
            self.members[node] = msgspec.structs.replace(self.members[node], **said)
        missing = next((f"{node}: {over.missing}" for node, over in run.over.items() if over.missing), None)
        if missing:
            return GroupOutcome(problem=brief(missing))
        wrong = sum(over.wrong for over in run.over.values())
        if wrong:
            return GroupOutcome(
                problem=f"{wrong:,} of {sum(over.checked for over in run.over.values()):,} sums are wrong"
            )
        samples = [max(each) for each in zip(*(over.seconds for over in run.over.values()), strict=False)]
        ranks = sum(self.members[node].gpus for node in run.nodes)
        middle = statistics.median(samples) if samples else 0.0
        if not (math.isfinite(middle) and middle > 0):
            return GroupOutcome(problem="the nodes reported no usable time")
        return GroupOutcome(SIZE / middle * 2 * (ranks - 1) / ranks)

    def _say(self, node: str, **line: Any) -> None:
        self._crew.send(node, json.dumps(line).encode() + b"\n")

    def _messages(self, until: float) -> list[tuple[str, _Fact]]:
        """What nodes said; what is not a line of the protocol, as what a login shell prints, is passed over."""
        found = []
        for received in self._crew.receive(max(0.0, min(_TICK, until - time.monotonic()))):
            if received.ended is not None:
                self._lose(received.node, received.ended)
            elif received.line[:1] == b"{":
                try:
                    up = msgspec.json.decode(received.line, type=_Up)
                except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
                    self._lose(
                        received.node, "it sent a line that cannot be read; does it run the same version of envcheck?"
                    )
                    continue
                if up.done is not None:
                    self._lose(received.node, brief(up.done.detail or f"its program ended: {up.done.status}"))
                if up.fact is not None:
                    found.append((received.node, up.fact))
        return found

    def _lose(self, node: str, why: str) -> None:
        self._waiting.pop(node, None)
        self.problems.setdefault(node, brief(why))


class _GroupRun:
    def __init__(self, number: int, nodes: Sequence[str]) -> None:
        self.number, self.nodes = number, tuple(nodes)
        self.over: dict[str, _Over] = {}
        self.asked: dict[str, Agreed] = {}

    @property
    def is_over(self) -> bool:
        return len(self.over) == len(self.nodes)

    @property
    def faults(self) -> list[tuple[str, _Fault]]:
        return [(node, fault) for node, over in self.over.items() for fault in over.faults]

    def agreed(self) -> tuple[Agreed] | None:
        """The greatest value, once every node has asked; None before."""
        if self.faults or len(self.asked) < len(self.nodes):
            return None
        values = [value for value in self.asked.values() if value is not None]
        self.asked.clear()
        texts = [value for value in values if isinstance(value, str)]
        numbers = [value for value in values if not isinstance(value, str)]
        return (max(texts),) if texts else (max(numbers, default=None),)

    def waited_for(self) -> list[str]:
        """The nodes that all others wait for, where some do wait."""
        late = [node for node in self.nodes if node not in self.asked and node not in self.over]
        return late if len(late) < len(self.nodes) else []

    def own_fault(self, node: str) -> str:
        """What went wrong on a node itself; not what NCCL says, which also fails where another node is at fault."""
        faults = self.over[node].faults if node in self.over else ()
        own = [fault for fault in faults if fault.kind != "stuck" and fault.error != "LibraryError"]
        return brief(own[0].text) if own else ""
