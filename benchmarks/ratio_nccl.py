"""envcheck's collectives beside nccl-tests on all GPUs: same library, size and number of runs in a sample, in turns.

    PYTHON benchmarks/ratio_nccl.py --tests FOLDER --nccl FILE --cudart FILE --nvrtc FILE [--rounds 3] [--markdown FILE]

Run it with an interpreter that has cuda-bindings and nvidia-ml-py. ``--tests`` holds the programs of nccl-tests, built
for the CUDA of ``--cudart``. One process per GPU stands beside nccl-tests' thread per GPU (-t N -g 1), one process for
all beside its one thread (-g N). The ratio is that of the medians, envcheck's over nccl-tests'.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
from collections import defaultdict
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from probes.measuring.nccl.supervisor import Limits, Talk, supervise  # noqa: E402
from probes.measuring.nccl.values import OPERATIONS  # noqa: E402
from probes.measuring.nccl.worker import NcclRank, NcclStep, Order, Worker, binary  # noqa: E402

PROGRAMS = {
    "all-reduce": "all_reduce",
    "all-gather": "all_gather",
    "reduce-scatter": "reduce_scatter",
    "broadcast": "broadcast",
    "reduce": "reduce",
    "all-to-all": "alltoall",
    "send-recv": "sendrecv",
}
SMALL, LARGE = 8, 512 << 20
RUNS = {SMALL: 2000, LARGE: 50}
"""In a sample, on both sides. A hundred runs of a few microseconds would measure how far apart the ranks begin."""
PER_GRAPH = 50  # With ``--graphs``, of the small ones
WARM = 5
Key = tuple[str, str, int]  # Operation, ``apart`` or ``together``, and size


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    for name in ("tests", "nccl", "cudart", "nvrtc"):
        options.add_argument(f"--{name}", required=True, type=Path)
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--only", default="all-reduce,all-gather,reduce-scatter,broadcast,reduce")
    options.add_argument("--ways", default="apart,together")
    options.add_argument("--graphs", action="store_true", help="queue small messages by CUDA graphs, on both sides")
    options.add_argument("--markdown", type=Path)
    given = options.parse_args()
    names = given.only.split(",")
    listing = subprocess.run(
        ["nvidia-smi", "--query-gpu=uuid", "--format=csv,noheader"], capture_output=True, check=True
    )
    uuids = listing.stdout.decode().split()
    ours: dict[Key, list[float]] = defaultdict(list)
    theirs: dict[Key, list[float]] = defaultdict(list)
    for _ in range(given.rounds):
        for way in given.ways.split(","):
            for key, seconds in _ours(given, names, uuids, way).items():
                ours[key].append(seconds)
            for name in names:
                for key, seconds in _theirs(given, name, len(uuids), way).items():
                    theirs[key].append(seconds)
    lines = list(_table(ours, theirs, len(uuids)))
    print("\n".join(lines))
    if given.markdown:
        given.markdown.write_text("\n".join(lines) + "\n")


def _ours(given: argparse.Namespace, names: list[str], uuids: list[str], way: str) -> dict[Key, float]:
    steps = tuple(
        NcclStep(name, _size(name, size, len(uuids)), samples=3, least=launches, most=launches, per_graph=per_graph)
        for name in names
        for size, launches, per_graph in _asked(graphs=given.graphs)
    )
    order = Order(len(uuids), steps, {"nccl": [str(given.nccl)], "nvrtc": [str(given.nvrtc)]}, {}, 120.0)
    ranks = tuple(NcclRank(number, uuid, f"GPU {number}", {}) for number, uuid in enumerate(uuids))
    shares = [(rank,) for rank in ranks] if way == "apart" else [ranks]
    heard: dict[int, list[list[float]]] = defaultdict(list)

    def take(_worker: int, line: dict[str, Any]) -> None:
        if "result" in line:
            heard[line["result"]["step"]].append(line["result"]["seconds"])
            if line["result"]["wrong"]:
                raise SystemExit(f"wrong result: {line}")

    faults = supervise([partial(_work, order, share) for share in shares], take, Limits())
    if faults:
        raise SystemExit(f"envcheck's side failed: {faults}")
    return {
        (step.operation, way, step.size): statistics.median([max(each) for each in zip(*heard[number], strict=True)])
        for number, step in enumerate(steps)
    }


def _work(order: Order, share: tuple[NcclRank, ...], talk: Talk) -> None:
    Worker(order, share, talk).run()


def _asked(*, graphs: bool) -> list[tuple[int, int, int]]:
    """Sizes, with the launches of a sample and the runs of a graph (0: none)."""
    split = {size: PER_GRAPH if graphs and size == SMALL else 0 for size in RUNS}
    return [(size, runs // (split[size] or 1), split[size]) for size, runs in RUNS.items()]


def _size(name: str, size: int, ranks: int) -> int:
    """What is divided among the ranks has 16 bytes for each: nccl-tests rounds down to that."""
    return max(size, 16 * ranks) if name in ("all-gather", "reduce-scatter", "all-to-all") else size


def _theirs(given: argparse.Namespace, name: str, ranks: int, way: str) -> dict[Key, float]:
    """Seconds by size, out of place, as nccl-tests prints them."""
    path = f"{given.nccl.parent}:{given.cudart.parent}:{os.environ.get('LD_LIBRARY_PATH', '')}"
    variables = {**os.environ, "LD_LIBRARY_PATH": path}
    found: dict[Key, float] = {}
    for asked, launches, per_graph in _asked(graphs=given.graphs):
        size = str(_size(name, asked, ranks))
        program = [str(given.tests / f"{PROGRAMS[name]}_perf"), "-b", size, "-e", size]
        program += ["-n", str(per_graph), "-G", str(launches)] if per_graph else ["-n", str(launches)]
        program += ["-w", str(WARM), "-c", "0", "-a", "3"]  # of the slowest rank, as envcheck's
        program += ["-t", str(ranks), "-g", "1"] if way == "apart" else ["-g", str(ranks)]
        done = subprocess.run(program, capture_output=True, text=True, env=variables, timeout=120, check=False)
        if done.returncode:
            raise SystemExit(f"{' '.join(program)}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
        rows = [line.split() for line in done.stdout.splitlines() if line.strip()[:1].isdigit()]
        found |= {(name, way, int(row[0])): float(row[5]) / 1e6 for row in rows}
    return found


def _table(ours: dict[Key, list[float]], theirs: dict[Key, list[float]], ranks: int) -> Any:
    yield "| operation | size | processes | envcheck | nccl-tests | ratio |"
    yield "|---|---|---|---|---|---|"
    for key in sorted(ours.keys() & theirs.keys()):
        name, way, size = key
        mine, other = statistics.median(ours[key]), statistics.median(theirs[key])
        share = OPERATIONS[name].bus_share(ranks)
        words = "one per GPU" if way == "apart" else "one"
        if size < LARGE:
            figures = f"{mine * 1e6:.2f} us | {other * 1e6:.2f} us | {mine / other:.3f}"
        else:
            figures = (
                f"{size / mine * share / 1e9:.1f} GB/s | {size / other * share / 1e9:.1f} GB/s | {other / mine:.3f}"
            )
        yield f"| {name} | {binary(size)} | {words} | {figures} |"


if __name__ == "__main__":
    main()
