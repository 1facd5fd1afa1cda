"""envcheck's figures of a framework beside the framework's own benchmark utility: same work, same process, in turns.

    python benchmarks/ratio_frameworks.py torch|jax|cupy [--rounds 3] [--only TEXT] [--json FILE]

Run it with an interpreter that has the framework for CUDA. PyTorch times with ``torch.utils.benchmark.Timer``, CuPy
with ``cupyx.profiler.benchmark`` (the GPU's times), JAX, which has no utility, with a loop of ``timeit`` that ends in
``block_until_ready``, as its documentation advises. Each takes as many runs after as long a rest as envcheck does, and
two before that are not counted. The ratio is that of the medians, the framework's time over envcheck's.
"""

from __future__ import annotations

import argparse
import importlib
import json
import statistics
import sys
import time
import timeit
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from probes.inside import framework as measuring  # noqa: E402
from probes.inside import works  # noqa: E402
from probes.inside.figures import Absent, Refused  # noqa: E402

ADAPTERS = {"torch": "PyTorch", "jax": "Jax", "cupy": "CuPy"}
Run = Callable[[], Any]
Utility = Callable[[Run, int], float]
"""Seconds of one of so many runs, by the framework's own means."""


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("framework", choices=ADAPTERS)
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--only", default="", help="figures that contain this text")
    options.add_argument("--json", type=Path)
    given = options.parse_args()
    probe = importlib.import_module(f"probes.bench.{given.framework}")
    module = importlib.import_module(given.framework)
    turns: list[tuple[float, float]] = []
    measuring.timed = in_turns(UTILITIES[given.framework](module), given.rounds, turns)
    print(
        f"{given.framework} {module.__version__}\n\n| figure | envcheck | its own utility | ratio |\n|---|---|---|---|"
    )
    rows = []
    for figure, measure in probe.measures(getattr(probe, ADAPTERS[given.framework])(module)).items():
        if given.only not in str(figure):
            continue
        turns.clear()
        try:
            measure()
        except (Absent, Refused) as reason:
            print(f"| {figure} | {str(reason)[:80]} | | |")
            continue
        ours, theirs = (statistics.median(turn[side] for turn in turns) for side in (0, 1))
        rows.append({"figure": str(figure), "ours": ours, "theirs": theirs, "ratio": theirs / ours, "turns": [*turns]})
        print(f"| {figure} | {1e3 * ours:.4f} ms | {1e3 * theirs:.4f} ms | {theirs / ours:.3f} |")
        sys.stdout.flush()
        if given.json:
            given.json.write_text(json.dumps(rows, indent=1))


def in_turns(utility: Utility, rounds: int, turns: list[tuple[float, float]]) -> Any:
    """What takes the place of envcheck's ``timed``: both time the same ``run``, one after the other."""
    own = measuring.timed

    def timed(run: Run, wait: Callable[[Any], None]) -> tuple[list[float], Any]:
        seconds, result = own(run, wait)
        one = statistics.median(seconds)
        runs = max(works.LEAST_RUNS, min(measuring.MOST_RUNS, round(works.SAMPLE_SECONDS / one)))
        for number in range(rounds):
            theirs = [] if number % 2 else _samples(utility, run, runs)  # who comes first changes with each round
            seconds, result = own(run, wait)
            turns.append((statistics.median(seconds), statistics.median(theirs or _samples(utility, run, runs))))
        return seconds, result

    return timed


def _samples(utility: Utility, run: Run, runs: int) -> list[float]:
    found = []
    for _ in range(works.SAMPLES):
        time.sleep(works.PAUSE)
        found.append(utility(run, runs))
    return found


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
        last: list[Any] = [None]

        def keep() -> None:
            last[0] = run()

        timeit.timeit(keep, number=measuring.UNCOUNTED)
        last[0].block_until_ready()

        def loop() -> None:
            timeit.timeit(keep, number=runs)
            last[0].block_until_ready()

        return timeit.timeit(loop, number=1) / runs

    return utility


def _of_cupy(_cupy: Any) -> Utility:
    profiler: Any = importlib.import_module("cupyx.profiler")

    def utility(run: Run, runs: int) -> float:
        return float(
            statistics.median(
                profiler.benchmark(run, n_repeat=runs, n_warmup=measuring.UNCOUNTED).gpu_times.ravel().tolist()
            )
        )

    return utility


UTILITIES = {"torch": _of_torch, "jax": _of_jax, "cupy": _of_cupy}

if __name__ == "__main__":
    main()
