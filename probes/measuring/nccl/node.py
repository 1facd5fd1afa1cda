"""A node among several that do collectives together: orders come on stdin, a line of JSON each, answers go to the line
of facts.

Down: ``{"run": 3, "ranks": 16, "first": 8, "size": bytes, "seconds": 30}`` starts a process for each GPU of this node,
as ranks ``first`` and the following ones; ``{"run": 3, "agree": value}`` is the greatest value of all nodes;
``{"run": 3, "stop": true}`` ends it. Up, as facts: ``ready`` once, with the GPUs; ``{"run": 3, "agree": value}``; and
at the end of each run ``{"run": 3, "over": {...}}`` with its result or its faults. The end of stdin ends everything.
Nothing listens on the network but NCCL: rank 0's identity goes the same way as any value on which the ranks agree.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from ...common.out import Out, clean
from ...common.tree import Tree
from ..measurement import before
from ..runtime import Fields
from .library import connections, last_words, log_variables, read_logs
from .supervisor import Fault, Limits, Line, Talk, supervise
from .worker import NcclRank, NcclStep, Order, run_worker

_STDIN = 0

Work = Callable[[Order, "tuple[NcclRank, ...]", Talk], None]  # What each process of this node does


def collect(tree: Tree, out: Out) -> None:
    """Serve until stdin ends."""
    serve(tree.request["bench"], out, run_worker)


def serve(asked: Fields, out: Out, work: Work) -> None:
    """Tell which GPUs are here, then do what is ordered, one run after the other."""
    gpus = [{"uuid": gpu["uuid"], "title": f"GPU {gpu['index']}"} for gpu in asked["gpus"]]
    out.fact({"ready": {"host": os.uname().nodename, "gpus": gpus, "refused": asked.get("refused") or {}}})
    orders = Orders()
    while True:
        wanted = orders.next_run()
        if wanted is None:
            return
        out.fact({"run": wanted["run"], "over": _run(wanted, asked, orders, out, work)})


class Orders:
    def __init__(self) -> None:
        self.lines: list[Line] = []
        self.at_end = False
        self._unread = b""

    def read(self) -> None:
        """Take in what has arrived; wait if nothing has."""
        data = os.read(_STDIN, 1 << 16)
        self.at_end = not data
        *lines, self._unread = (self._unread + data).split(b"\n")
        self.lines += [json.loads(line) for line in lines if line.strip()]

    def next_run(self) -> Line | None:
        """The next order for a run; None at the end. What is left of earlier runs is passed over."""
        while True:
            while self.lines:
                line = self.lines.pop(0)
                if "ranks" in line:
                    return line
            if self.at_end:
                return None
            self.read()


class RunUplink:
    def __init__(self, run: int, orders: Orders, out: Out) -> None:
        self.ended = False
        self._run, self._orders, self._out = run, orders, out
        self._answer: tuple[Any] | None = None

    def fileno(self) -> int:
        return _STDIN

    def listen(self) -> None:
        self._orders.read()
        for line in self._orders.lines:
            if line.get("run") == self._run and "agree" in line:
                self._answer = (line["agree"],)
            self.ended = self.ended or (line.get("run") == self._run and "stop" in line)
        self._orders.lines.clear()
        self.ended = self.ended or self._orders.at_end

    def ask(self, value: Any) -> None:
        self._out.fact({"run": self._run, "agree": value})

    def answer(self) -> tuple[Any] | None:
        answer, self._answer = self._answer, None
        return answer


def _run(wanted: Line, asked: Fields, orders: Orders, out: Out, work: Work) -> Fields:
    first = wanted["first"]
    ranks = [
        NcclRank(first + number, gpu["uuid"], f"GPU {gpu['index']}", before(asked, gpu["uuid"]))
        for number, gpu in enumerate(asked["gpus"])
    ]
    heard: list[Line] = []
    with tempfile.TemporaryDirectory(prefix="envcheck-nccl-", ignore_cleanup_errors=True) as folder:
        step = NcclStep("all-reduce", wanted["size"], samples=3, least=1, seconds=0.02)
        variables = log_variables(os.environ, folder, choices=False)
        order = Order(wanted["ranks"], (step,), asked["libraries"], variables, wanted["seconds"])
        works = [partial(work, order, (rank,)) for rank in ranks]
        uplink = RunUplink(wanted["run"], orders, out)
        try:
            faults = supervise(works, lambda _, line: heard.append(line), Limits(), uplink)
            return _outcome(heard, faults, ranks, folder)
        except OSError as error:  # no process or no pipe could be had
            return {"faults": [{"kind": "exited", "text": f"no processes could be started: {error}"}]}


def _outcome(heard: Sequence[Line], faults: Sequence[Fault], ranks: Sequence[NcclRank], folder: str) -> Fields:
    """The result of a run, of this node's slowest rank, or its faults with the end of NCCL's log."""
    lines = read_logs(folder)
    results = [line["result"] for line in heard if "result" in line]
    outcome: Fields = {"nccl": next((line["version"] for line in heard if "version" in line), "")}
    outcome["transports"] = connections(lines)["transports"]
    if faults:
        outcome["faults"] = []
        for fault in faults:
            rank = ranks[fault.worker]
            text = f"rank {rank.number} ({rank.title}): {fault.text}, during: {fault.step}"
            outcome["faults"].append({"kind": fault.kind, "text": clean(text), "error": fault.line.get("kind", "")})
        outcome["log"] = [clean(line) for line in last_words(lines)[-12:]]
        return outcome
    missing = next((result["missing"] for result in results if "missing" in result), None)
    if missing or len(results) < len(ranks):
        return {**outcome, "missing": missing or "it was not measured"}
    outcome["seconds"] = [max(each) for each in zip(*(result["seconds"] for result in results))]
    outcome["wrong"] = sum(result["wrong"] for result in results)
    outcome["checked"] = sum(result["checked"] for result in results)
    return outcome
