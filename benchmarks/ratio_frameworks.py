"""envcheck's figures of a framework beside the framework's own benchmark utility: same work, same process, in turns.

    python benchmarks/ratio_frameworks.py torch|jax|cupy [--seconds 60] [--only TEXT] [--json FILE]

Run it with an interpreter that has the framework for CUDA. PyTorch times with ``torch.utils.benchmark.Timer``, CuPy
with ``cupyx.profiler.benchmark`` (the GPU's time), JAX, which has no utility, with a loop of ``timeit`` that ends in
``block_until_ready``, as its documentation advises. A sample is as many runs, queued one after the other, after as long
a rest as envcheck takes, and two before that are not counted. One sample of each makes a pair, and who comes first
changes with each pair.

The ratio is the median of the pairs' ratios, the utility's time over envcheck's: work that waits for the processor
moves by tens of percent, in steps that last longer than a pair. Pairs are added until its 95 % interval (bootstrap) is
within 1 % on either side, or ``--seconds`` have passed.
"""

from __future__ import annotations

import argparse
import importlib
import json
import random
import statistics
import sys
import time
import timeit
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from probes.framework_bench import framework as measuring  # noqa: E402
from probes.framework_bench import workloads  # noqa: E402
from probes.measuring.runtime import LibraryError, Unavailable  # noqa: E402

ADAPTERS = {"torch": "PyTorch", "jax": "Jax", "cupy": "CuPy"}
LEAST_PAIRS, RESAMPLED, WITHIN = 20, 1000, 0.01
Run = Callable[[], Any]
Utility = Callable[[Run, int], float]  # Seconds of one of so many runs, by the framework's own means
Pair = tuple[float, float]  # Seconds of a run by envcheck, and by the utility


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("framework", choices=ADAPTERS)
    options.add_argument("--seconds", type=float, default=60, help="longest time that the pairs of a figure take")
    options.add_argument("--only", default="", help="figures that contain this text")
    options.add_argument("--json", type=Path)
    given = options.parse_args()
    probe = importlib.import_module(f"probes.bench.{given.framework}")
    module = importlib.import_module(given.framework)
    pairs: list[Pair] = []
    measuring.timed = in_turns(UTILITIES[given.framework](module), given.seconds, pairs)
    print(f"{given.framework} {module.__version__}\n")
    print("| figure | envcheck | its own utility | ratio | 95 % interval | pairs |\n|---|---|---|---|---|---|")
    rows = []
    framework = getattr(probe, ADAPTERS[given.framework])(module)
    for figure, measure in framework.measures().items():
        if given.only not in str(figure):
            continue
        pairs.clear()
        framework.release()
        try:
            measure()
        except (Unavailable, LibraryError) as reason:
            print(f"| {figure} | {str(reason)[:80]} | | | | |")
            continue
        ours, theirs = (1e3 * statistics.median(side) for side in zip(*pairs, strict=True))
        ratio, (low, high) = ratio_of(pairs), interval(pairs)
        told = f"{ours:.4f} ms | {theirs:.4f} ms | {ratio:.3f} | {low:.3f} to {high:.3f} | {len(pairs)}"
        print(f"| {figure} | {told} |", flush=True)
        rows.append({"figure": str(figure), "ratio": ratio, "interval": (low, high), "pairs": [*pairs]})
        if given.json:
            given.json.write_text(json.dumps(rows, indent=1))


def in_turns(utility: Utility, limit: float, pairs: list[Pair]) -> Any:
    """What takes the place of envcheck's ``timed``: both time the same ``run``, one after the other."""
    own = measuring.timed

    def timed(run: Run, wait: Callable[[Any], None]) -> tuple[list[float], Any]:
        seconds, result = own(run, wait)
        one = statistics.median(seconds)
        runs = max(workloads.LEAST_RUNS, min(measuring.MOST_RUNS, round(workloads.SAMPLE_SECONDS / one)))
        began = time.perf_counter()
        while not (precise(pairs) or time.perf_counter() - began > limit):
            first = _rested(utility, run, runs) if len(pairs) % 2 else None
            ours, result = measuring.rested_sample(run, wait, runs)
            pairs.append((ours, first or _rested(utility, run, runs)))
        return seconds, result

    return timed


def _rested(utility: Utility, run: Run, runs: int) -> float:
    time.sleep(workloads.PAUSE)
    return utility(run, runs)


def precise(pairs: list[Pair]) -> bool:
    """Whether the pairs, of which there must be an even number, tell the ratio within 1 %."""
    if len(pairs) < LEAST_PAIRS or len(pairs) % LEAST_PAIRS:
        return False
    low, high = interval(pairs)
    return high - low <= 2 * WITHIN


def ratio_of(pairs: list[Pair]) -> float:
    return statistics.median(theirs / ours for ours, theirs in pairs)


def interval(pairs: list[Pair]) -> tuple[float, float]:
    """The middle 95 % of the ratios that pairs drawn from these, as many and with repetition, have."""
    drawn = random.Random(0)
    cuts = statistics.quantiles((ratio_of(drawn.choices(pairs, k=len(pairs))) for _ in range(RESAMPLED)), n=40)
    return cuts[0], cuts[-1]


def _of_torch(torch: Any) -> Utility:
    benchmark: Any = importlib.import_module("torch.utils.benchmark")
    mode = torch.inference_mode

    def utility(run: Run, runs: int) -> float:
        timer = benchmark.Timer("run()", globals={"run": run})
        with mode(mode=torch.is_inference_mode_enabled()):
            return float(timer.timeit(runs).mean)

    return utility


def _of_jax(_jax: Any) -> Utility:
    def utility(run: Run, runs: int) -> float:
        def queued(number: int) -> None:
            for _ in range(number):
                result = run()
            result.block_until_ready()

        queued(measuring.UNCOUNTED)
        return timeit.timeit(partial(queued, runs), number=1) / runs

    return utility


def _of_cupy(_cupy: Any) -> Utility:
    profiler: Any = importlib.import_module("cupyx.profiler")

    def utility(run: Run, runs: int) -> float:
        def queued() -> None:  # of a run alone its time would be that of its launch too
            for _ in range(runs):
                run()

        for _ in range(measuring.UNCOUNTED):
            run()
        return float(profiler.benchmark(queued, n_repeat=1, n_warmup=0).gpu_times.item()) / runs

    return utility


UTILITIES = {"torch": _of_torch, "jax": _of_jax, "cupy": _of_cupy}

if __name__ == "__main__":
    main()
