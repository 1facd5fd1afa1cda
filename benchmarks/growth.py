"""How the cost of a check grows with what it looks at: distributions, GPUs, environments, targets and plans.

    python benchmarks/growth.py [--runs 3]

Run it by a Python that has envcheck installed: a checkout reads its rows from TOML. Processor time of envcheck and
its children, the least of the runs. Environments are trees of metadata, the machine is one of tests/machines.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import msgspec

from envcheck.model.snapshot import Snapshot
from envcheck.pipeline.session import Request, judge
from envcheck.report import render

ROOT = Path(__file__).resolve().parent.parent
PYTHON = "3.12"
KNOWN = ("torch==2.9.1", "numpy==2.3.4", "triton==3.5.1", "nvidia-cudnn-cu12==9.10.2.21", "transformers==4.57.1")
"""What the first distributions of an environment, and every plan, are."""


def environment(place: Path, count: int) -> Path:
    """A tree with so many distributions that require each other in turn; its interpreter."""
    site = place / "lib" / f"python{PYTHON}" / "site-packages"
    names = [each.split("==") for each in KNOWN] + [[f"made-up-{number}", "1.0"] for number in range(count)]
    for (name, version), (needed, _) in pairwise(names[: count + 1]):
        module, info = name.replace("-", "_"), site / f"{name.replace('-', '_')}-{version}.dist-info"
        info.mkdir(parents=True)
        (site / module).mkdir()
        (site / module / "__init__.py").write_text("")
        (info / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\nRequires-Dist: {needed}\n"
        )
        files = [f"{module}/__init__.py,,0", *(f"{module}/part_{part}.py,,10" for part in range(40))]
        (info / "RECORD").write_text("\n".join(files) + "\n")
    (place / "bin").mkdir(parents=True)
    (place / "bin" / "python").symlink_to(sys.executable)
    home = Path(sys.executable).resolve().parent
    (place / "pyvenv.cfg").write_text(f"home = {home}\nversion = {PYTHON}.1\ninclude-system-site-packages = false\n")
    return place / "bin" / "python"


def distributions(place: Path, count: int) -> list[str]:
    return ["--scope", "env", "--python", str(environment(place / "env", count))]


def environments(place: Path, count: int) -> list[str]:
    for number in range(count):
        environment(place / "venvs" / f"env{number}", 20)
    return ["--scope", "env", "--all-envs"]


def report(place: Path, gpus: int = 1) -> str:
    """A saved report of the machine with one or four H200, or of one with as many."""
    content = json.loads((ROOT / "tests" / "machines" / "h200x4.json").read_text(encoding="utf-8"))["snapshot"]
    items = content["gpus"]["items"]
    copies = [{**items[number % len(items)], "uuid": f"GPU-{number}", "index": number} for number in range(gpus)]
    content["gpus"]["items"] = [{**each, "pci_bus_id": f"00000000:{each['index']:02X}:00.0"} for each in copies]
    file = place / "saved.json"
    file.write_text(render(judge(msgspec.convert(content, Snapshot), Request()), "json"), encoding="utf-8")
    return str(file)


def gpus(place: Path, count: int) -> list[str]:
    return ["--from", report(place, count)]


def targets(place: Path, count: int) -> list[str]:
    (place / "requirements.txt").write_text("\n".join(KNOWN) + "\n")
    words = ["--plan", "requirements.txt"]
    for number in range(count):
        (place / f"target{number}.toml").write_text(f'gpu = "H100"\ndriver = "550.{number + 10}.14"\n')
        words += ["--target", f"target{number}.toml"]
    return words


def plans(place: Path, count: int) -> list[str]:
    words = ["--assume", "gpu==H100,driver==550.54.14"]
    for number in range(count):
        (place / f"plan{number}.txt").write_text("\n".join(KNOWN) + f"\nmade-up-{number}==1.0\n")
        words += ["--plan", f"plan{number}.txt"]
    return words


GROWTH: dict[str, tuple[Callable[[Path, int], list[str]], tuple[int, ...]]] = {
    "distributions": (distributions, (50, 200, 800)),
    "environments of 20": (environments, (1, 10, 100)),
    "GPUs": (gpus, (1, 4, 8)),
    "targets of a plan": (targets, (1, 4, 16)),
    "plans": (plans, (1, 8, 32)),
}


def processor_time(make: Callable[[Path, int], list[str]], count: int, runs: int) -> float:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        command = [sys.executable, "-m", "envcheck", "check", "--format", "json", *make(place, count)]
        variables = {"PATH": os.defpath, "HOME": folder}
        taken = []
        for _ in range(runs):
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            ended = subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True, check=False)
            if ended.returncode not in (0, 1, 3):
                sys.exit(f"{' '.join(command)} ended with {ended.returncode}: {ended.stderr.strip()[-500:]}")
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            taken.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
        return min(taken)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=3)
    runs = parser.parse_args().runs
    print(f"Python {platform.python_version()}, least of {runs} runs, seconds of processor time\n")
    print("| of | number | seconds | for each one more |\n|---|---:|---:|---:|")
    for name, (make, counts) in GROWTH.items():
        last: tuple[int, float] | None = None
        for count in counts:
            seconds = processor_time(make, count, runs)
            more = f"{(seconds - last[1]) / (count - last[0]) * 1000:.2f} ms" if last else ""
            print(f"| {name} | {count} | {seconds:.2f} | {more} |", flush=True)
            last = (count, seconds)


if __name__ == "__main__":
    main()
