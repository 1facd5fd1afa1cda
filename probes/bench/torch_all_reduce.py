"""An all-reduce through PyTorch, as DistributedDataParallel does it: one process for each GPU, over NCCL."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, List

from ..common.out import Out
from ..common.tree import Tree
from ..framework_bench import all_reduce
from ..framework_bench.workloads import rate
from ..measuring.runtime import Fields, FigureKey, LibraryError, Measure, Unavailable, run_all, verification

PROBE = {"title": "PyTorch's all-reduce", "seconds": 90.0, "per": "machine", "tries": ["torch"], "asked": "frameworks"}

NAME, LATENCY = "torch-all-reduce", "torch-all-reduce-latency"
SIZE = 1 << 30  # Bytes that each rank reduces, or less where the memory of a GPU is taken
_LIMIT = 75.0  # Seconds after which the ranks are ended
_GRACE = 2.0  # Seconds that the other ranks get to say something after one has failed


def collect(tree: Tree, out: Out) -> None:
    """Reduce over all GPUs that are measured."""
    asked = tree.request["bench"]
    gpus = asked["gpus"]
    if len(gpus) < 2:
        out.absent("one GPU is measured: there is nothing to reduce with")
        return
    ordinals = [int(gpu["ordinal"]) for gpu in gpus]
    outcomes: List[Any] = []  # noqa: UP006  read by Python 3.8 too

    def told() -> Fields:
        """What one run told, or why there is nothing."""
        if not outcomes:
            try:
                outcomes.append(reduced(ordinals, SIZE))
            except (Unavailable, LibraryError) as reason:
                outcomes.append(reason)
        if isinstance(outcomes[0], Exception):
            raise outcomes[0]
        return dict(outcomes[0])

    run_all(out, measures(told, len(gpus)), gpus[0]["uuid"], asked.get("only") or (), inside=True)


def measures(run: Any, count: int) -> dict[FigureKey, Measure]:
    """Both figures, of one run that ``told`` returns."""
    variant = f"{count} GPUs, torch.distributed"
    return {
        FigureKey(NAME, "fp32", variant=variant): lambda: bandwidth(run(), count),
        FigureKey(LATENCY, "fp32", variant=variant): lambda: latency(run()),
    }


def bandwidth(run: Fields, count: int) -> Fields:
    """Bus bandwidth, by the definition of nccl-tests: 2 (n - 1) / n times the bytes of a rank, a second."""
    amount = 2 * (count - 1) / count * run["bytes"]
    checked = verification(run["checked"], run["wrong"], "every element, computed by each rank itself")
    return {**rate(amount, run["large"], "B/s"), **_facts(run), "size": run["bytes"], "verification": checked}


def latency(run: Fields) -> Fields:
    """Seconds of a reduction of 8 bytes, of many that are queued."""
    samples = run["small"]
    value = statistics.median(samples)
    return {"value": value, "samples": samples, "unit": "s", **_facts(run), "size": 4 * all_reduce.SMALL}


def _facts(run: Fields) -> Fields:
    return {"method": "torch", "detail": f"PyTorch {run['torch']}, NCCL {run['nccl']}, one process per GPU"}


def reduced(ordinals: list[int], size: int) -> Fields:
    """What rank 0 told; raise LibraryError with the words of the first rank that fails, Unavailable without PyTorch."""
    store = Path(f"store-{os.getpid()}").absolute()
    seed = int.from_bytes(os.urandom(3), "little")
    ranks: List[subprocess.Popen[bytes]] = []  # noqa: UP006  read by Python 3.8 too
    try:
        for rank, ordinal in enumerate(ordinals):
            numbers = map(str, (rank, len(ordinals), ordinal, seed, size))
            command = [sys.executable, all_reduce.__file__, str(store), *numbers]
            with open(f"rank-{rank}.out", "wb") as out, open(f"rank-{rank}.err", "wb") as err:
                ranks.append(subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=err))
        failed = _waited_for(ranks)
        if failed is not None:
            raise LibraryError(_why(failed, ranks[failed].poll()))
        run = dict(json.loads(Path("rank-0.out").read_text(encoding="utf-8").splitlines()[-1]))
        if "absent" in run:
            raise Unavailable(run["absent"])
        return run
    finally:
        for process in ranks:
            if process.poll() is None:
                process.kill()
                process.wait()


def _waited_for(ranks: list[Any]) -> int | None:
    """Wait until all have ended well; return the rank that did not."""
    until = time.monotonic() + _LIMIT
    while time.monotonic() < until:
        states = [process.poll() for process in ranks]
        bad = [rank for rank, state in enumerate(states) if state]
        if bad:
            time.sleep(_GRACE)
            return bad[0]
        if all(state == 0 for state in states):
            return None
        time.sleep(0.05)
    return next(rank for rank, process in enumerate(ranks) if process.poll() is None)


def _why(rank: int, status: int | None) -> str:
    lines = Path(f"rank-{rank}.err").read_text(encoding="utf-8", errors="replace").splitlines()
    last_line = next((line.strip() for line in reversed(lines) if "Error" in line), lines[-1].strip() if lines else "")
    if status is None:
        return f"rank {rank} did not end within {_LIMIT:.0f} s. {last_line}".strip()
    how = f"was ended by signal {-status}" if status < 0 else f"ended with status {status}"
    return f"rank {rank} {how}: {last_line}" if last_line else f"rank {rank} {how}"
