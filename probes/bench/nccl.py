"""Collective operations of all GPUs through the environment's NCCL: bus bandwidth, latency, right results."""

from __future__ import annotations

import os
import tempfile
from functools import partial

from ..common.out import Out
from ..common.tree import Tree
from ..measuring.measurement import before, missing
from ..measuring.nccl.jobs import Figures, jobs
from ..measuring.nccl.library import log_variables
from ..measuring.nccl.supervisor import Limits, supervise
from ..measuring.nccl.worker import NcclRank, Order, run_worker

PROBE = {
    "title": "NCCL",
    "seconds": 90.0,
    "per": "machine",
    "seconds_per_gpu": 5.0,
    "uses": "all",
    "scopes": ["node"],
    "fills": ["measurements", "observed_errors"],
}


def prepare(tree: Tree) -> None:
    """Import what every worker needs, and have the library read from disk, which starts nothing on a GPU."""
    for path in tree.request["bench"]["libraries"].get("nccl", ())[:1]:
        with open(path, "rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_WILLNEED)
    import cuda.bindings.driver  # noqa: F401


def collect(tree: Tree, out: Out) -> None:
    """Run each job of the plan; this process watches, and never starts CUDA."""
    asked = tree.request["bench"]
    ranks = tuple(
        NcclRank(number, gpu["uuid"], f"GPU {gpu['index']}", before(asked, gpu["uuid"]))
        for number, gpu in enumerate(asked["gpus"])
    )
    if len(ranks) < 2:
        out.absent("it takes two GPUs")
        return
    wanted = jobs(len(ranks), full=bool(asked.get("full")), only=frozenset(asked.get("only", ())))
    if not wanted:
        out.absent("not asked for")
        return
    for job in wanted:
        out.progress(f"{len(ranks)} GPUs, {len(ranks) if job.apart else 1} processes")
        with tempfile.TemporaryDirectory(prefix="envcheck-nccl-", ignore_cleanup_errors=True) as folder:
            variables = log_variables(os.environ, folder, choices=job.choices)
            order = Order(len(ranks), job.steps, asked["libraries"], variables, job.seconds, job.rounds, job.pair_steps)
            shares = [(rank,) for rank in ranks] if job.apart else [ranks]
            figures = Figures(job, ranks, shares, out)
            try:
                faults = supervise([partial(run_worker, order, share) for share in shares], figures.heard, Limits())
                figures.send(faults, folder)
            except OSError as error:  # no process or no pipe could be had
                text = f"no processes could be started: {error}"
                out.fact({"measurements": [missing("nccl-all-reduce", ranks[0].uuid, text)]})
