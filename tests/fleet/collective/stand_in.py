"""A node without GPUs: the real program of a node, whose processes only say how fast they would have been.

``stand_in.py PLAN`` reads from PLAN how the node behaves that FLEET_NODE (or Slurm) names: ``speed``, or one of
``dies``, ``hangs``, ``rubbish`` (at the start), ``killed``, ``fails``, ``breaks``, ``stops`` (in a run). Of all nodes,
``*`` says which two are slow together: ``link``, their names, with ``speed``.
"""

import json
import os
import signal
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from probes.common.out import Out
from probes.measuring.nccl.node import serve
from probes.measuring.nccl.supervisor import Talk
from probes.measuring.nccl.worker import NcclRank, Order
from probes.measuring.runtime import LibraryError

BANDWIDTH = 50e9
"""Bytes per second of a healthy node."""
GPUS = 2


def work(name: str, plan: dict[str, Any], order: Order, share: tuple[NcclRank, ...], talk: Talk) -> None:
    """Agree as often as NCCL's worker does before and in a step, and tell a time."""
    (rank,) = share
    talk.say(step="connecting the ranks", version="0.0.0", path="stand-in")
    identity = talk.agree("the identity" if rank.number == 0 else None)
    if identity != "the identity":
        raise AssertionError(identity)
    talk.say(ready=True)
    if plan.get("killed"):
        os.kill(os.getpid(), signal.SIGKILL)
    if plan.get("fails"):
        raise AssertionError("the GPU fell off")
    if plan.get("breaks"):
        error = LibraryError("NCCL: remote error (6)", "stand-in")
        talk.say(error=str(error), kind="LibraryError", ranks=[rank.number], library="stand-in")
        time.sleep(60)
    if plan.get("stops"):
        os.kill(os.getppid(), signal.SIGSTOP)  # the node's program: its lines stay open
    link = plan.get("link")
    joined = link is None or all(talk.agree(name if name == each else None) == each for each in link)
    speed = plan.get("speed", 1.0) if joined else 1.0
    slowest = talk.agree(order.steps[0].size * 2 * (order.ranks - 1) / order.ranks / (BANDWIDTH * speed))
    talk.say(result={"step": 0, "seconds": [slowest] * 3, "checked": 10, "wrong": plan.get("wrong", 0), "worst": 0.0})


def main() -> None:
    name = os.environ.get("FLEET_NODE") or os.environ["SLURMD_NODENAME"]
    plans = json.loads(Path(sys.argv[1]).read_text())
    plan = plans.get(name, plans.get("*", {}))
    if plan.get("dies"):
        sys.exit("envcheck: command not found")
    if plan.get("hangs"):
        time.sleep(600)
    if plan.get("rubbish"):
        os.write(1, b'{"fact": "of another kind"}\n')
        time.sleep(600)
    os.write(1, b"Last login: today\n")
    gpus = [{"uuid": f"GPU-{name}-{number}", "index": number} for number in range(plan.get("gpus", GPUS))]
    out = Out("measuring.nccl.node", partial(os.write, 1))  # type: ignore[arg-type]
    serve({"gpus": gpus, "libraries": {}}, out, partial(work, name, plan))


if __name__ == "__main__":
    main()
