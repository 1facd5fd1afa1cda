"""Whole-process time of ``envcheck check --format json`` beside ``python -m torch.utils.collect_env``.

Both look at the same machine and environment, in turn (A B A B …), and the medians are compared.

    python benchmarks/check_time.py --python /path/to/python-with-torch [--runs 7]
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", required=True, help="interpreter whose environment holds PyTorch")
    parser.add_argument("--runs", type=int, default=7)
    options = parser.parse_args()
    commands = {
        "envcheck": [sys.executable, "-m", "envcheck", "check", "--format", "json", "--python", options.python],
        "collect_env": [options.python, "-m", "torch.utils.collect_env"],
        "bare interpreter": [sys.executable, "-c", "pass"],
    }
    for command in commands.values():
        seconds(command)
    times: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(options.runs):
        for name, command in commands.items():
            times[name].append(seconds(command))
    for name, samples in times.items():
        spread = f"{min(samples):.3f} to {max(samples):.3f}"
        print(f"{name:18} median {statistics.median(samples):7.3f} s  ({spread}, {options.runs} runs)")
    ratio = statistics.median(times["envcheck"]) / statistics.median(times["collect_env"])
    print(f"envcheck / collect_env = {ratio:.3f}")


def seconds(command: list[str]) -> float:
    start = time.perf_counter()
    result = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    if result.returncode not in (0, 1, 3):
        sys.exit(f"{' '.join(command)} ended with {result.returncode}")
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
