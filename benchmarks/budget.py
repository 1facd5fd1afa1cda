"""The performance budget: whole-process times as a ratio to a bare interpreter's.

    python benchmarks/budget.py [--runs 9] [--summary FILE]

The commands run in turn (A B C A B C …), so that load from outside meets all alike, and in an empty folder: what is
installed is measured, with its compiled matrix, and not the checkout. The medians are printed, and no figure fails the
run: compare the ratios of two commits on one machine. A command that breaks ends the run.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PYTHON = [sys.executable]
ENVCHECK = [sys.executable, "-m", "envcheck"]
ASSUMED = "gpu==H100,driver==550.54.14,os==linux"
HERE = ["--python", sys.executable, "--format", "json"]
COMMANDS = {
    "bare interpreter": [*PYTHON, "-c", "pass"],
    "import msgspec": [*PYTHON, "-c", "import msgspec"],
    "import envcheck.cli.main": [*PYTHON, "-c", "import envcheck.cli.main"],
    "envcheck --version": [*ENVCHECK, "--version"],
    "envcheck rule gpu-lost": [*ENVCHECK, "rule", "gpu-lost"],
    "envcheck matrix check": [*ENVCHECK, "matrix", "check", "cuda==12.4", "driver==550.54.14"],
    "envcheck check --scope env": [*ENVCHECK, "check", "--scope", "env", *HERE],
    "envcheck check --assume": [*ENVCHECK, "check", "--assume", ASSUMED, *HERE],
    "envcheck check": [*ENVCHECK, "check", *HERE],
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=9)
    parser.add_argument("--summary", type=Path, help="append the table to this file too")
    options = parser.parse_args()
    times: dict[str, list[float]] = {name: [] for name in COMMANDS}
    with tempfile.TemporaryDirectory() as elsewhere:
        for command in COMMANDS.values():
            seconds(command, elsewhere)  # fills caches of bytecode and of the file system
        for _ in range(options.runs):
            for name, command in COMMANDS.items():
                times[name].append(seconds(command, elsewhere))
    page = table(times, options.runs)
    print(page, end="")
    if options.summary:
        with options.summary.open("a", encoding="utf-8") as file:
            file.write(page)


def seconds(command: list[str], folder: str) -> float:
    # Compiled modules are part of any installation that is used twice.
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    start = time.perf_counter()
    result = subprocess.run(command, capture_output=True, text=True, check=False, env=variables, cwd=folder)
    took = time.perf_counter() - start
    if result.returncode not in (0, 1, 3):
        sys.exit(f"{' '.join(command)} ended with {result.returncode}: {result.stderr.strip()[-500:]}")
    return took


def table(times: dict[str, list[float]], runs: int) -> str:
    bare = statistics.median(times["bare interpreter"])
    machine = f"Python {platform.python_version()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}"
    lines = [
        f"Medians of {runs} runs in turn, {machine}",
        "",
        "| command | median | least | x bare Python |",
        "|---|---:|---:|---:|",
    ]
    for name, samples in times.items():
        median = statistics.median(samples)
        lines.append(f"| {name} | {median * 1000:.0f} ms | {min(samples) * 1000:.0f} ms | {median / bare:.1f} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
