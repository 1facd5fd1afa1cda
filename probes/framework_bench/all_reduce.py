"""One rank of an all-reduce through torch.distributed; a program of its own, started once for each GPU.

    python all_reduce.py STORE RANK RANKS ORDINAL SEED BYTES

Rank 0 prints one line of JSON: the seconds of large and of small reductions, and how many elements are wrong.
"""

from __future__ import annotations

import importlib
import json
import sys
import time
from datetime import timedelta
from typing import Any

SAMPLES, RUNS, SMALL_RUNS = 7, 5, 200
SMALL = 2  # Elements of a small reduction: 8 bytes
_PATIENCE = timedelta(seconds=40)
_MODULUS = 251  # Numbers below it stay exact in FP32 when thousands of them are summed
_STEP = 2654435761
_ROOM = 12  # Times its size that a reduction needs of the memory, since its numbers are made as 64-bit integers


def main(store: str, rank: int, ranks: int, ordinal: int, seed: int, size: int) -> None:
    """Join the group, reduce, and tell what was seen."""
    torch = importlib.import_module("torch")
    distributed = importlib.import_module("torch.distributed")
    if not torch.cuda.is_available():
        _tell({"absent": "PyTorch finds no GPU"})
        return
    if not distributed.is_available() or not distributed.is_nccl_available():
        _tell({"absent": f"PyTorch {torch.__version__} was built without NCCL"})
        return
    torch.cuda.set_device(ordinal)
    distributed.init_process_group(
        "nccl", init_method=f"file://{store}", rank=rank, world_size=ranks, timeout=_PATIENCE
    )
    free = torch.tensor([torch.cuda.mem_get_info()[0]], device="cuda")
    distributed.all_reduce(free, op=distributed.ReduceOp.MIN)
    count = min(size, int(free.item()) // _ROOM) // 4
    data = _numbers(torch, count, seed, rank)
    distributed.all_reduce(data)
    expected = sum(_numbers(torch, count, seed, each) for each in range(ranks))
    wrong = (data != expected).sum()
    del expected
    distributed.all_reduce(wrong)
    data.zero_()
    large = _timed(torch, distributed, data, RUNS)
    small = _timed(torch, distributed, data[:SMALL], SMALL_RUNS)
    if rank == 0:
        version = torch.cuda.nccl.version()
        nccl = ".".join(map(str, version)) if isinstance(version, tuple) else str(version)
        results = {"torch": str(torch.__version__), "nccl": nccl, "large": large, "small": small, "bytes": count * 4}
        _tell({**results, "checked": count * ranks, "wrong": int(wrong.item())})
    distributed.destroy_process_group()


def _tell(results: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(results) + "\n")
    sys.stdout.flush()


def _numbers(torch: Any, count: int, seed: int, rank: int) -> Any:
    """What a rank contributes: whole numbers that every rank can compute."""
    places = torch.arange(count, dtype=torch.int64, device="cuda")
    return ((places * (_STEP + 2 * rank) + seed * (rank + 1)) % _MODULUS).float()


def _timed(torch: Any, distributed: Any, data: Any, runs: int) -> list[float]:
    """Seconds of one reduction, by the slowest rank, once for each sample."""
    for _ in range(runs):
        distributed.all_reduce(data)
    found = []
    for _ in range(SAMPLES):
        torch.cuda.synchronize()
        distributed.barrier(device_ids=[torch.cuda.current_device()])
        torch.cuda.synchronize()
        began = time.perf_counter()
        for _ in range(runs):
            distributed.all_reduce(data)
        torch.cuda.synchronize()
        seconds = torch.tensor([(time.perf_counter() - began) / runs], dtype=torch.float64, device="cuda")
        distributed.all_reduce(seconds, op=distributed.ReduceOp.MAX)
        found.append(float(seconds.item()))
    return found


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
