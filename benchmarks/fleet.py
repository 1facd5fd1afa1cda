"""How the time and memory of ``envcheck fleet --reports`` grow with the number of nodes.

    python benchmarks/fleet.py 100 1000 10000 --markdown benchmarks/results/fleet.md
    python benchmarks/fleet.py --hosts 2000

``--hosts`` asks so many stand-ins of ssh, which answer after a second; one in a hundred hangs.

The reports are those of tests/fleet/made.py: recorded machines with planted differences and slow GPUs. A run counts
only if it finds every planted one and invents none. Memory is the sum over all processes (proportional set size).
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import msgspec

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from envcheck.fleet import record
from tests.fleet.made import Planted, healthy, make_fleet

_TICK = 0.1


class Run(NamedTuple):
    """One size of a fleet."""

    nodes: int
    mebibytes: float
    seconds: float
    processor: float
    memory: float
    planted: int


def measure(nodes: int, *, first: bool) -> Run:
    """Make a fleet, compare it, and hold the outcome against what was planted."""
    with tempfile.TemporaryDirectory(prefix="envcheck-fleet-") as place:
        folder, out = Path(place) / "reports", Path(place) / "fleet.jsonl"
        folder.mkdir()
        planted = make_fleet(folder, nodes)
        size = sum(file.stat().st_size for file in folder.iterdir())
        command = [sys.executable, "-m", "envcheck", "fleet", "--reports", str(folder), "-o", f"jsonl:{out}"]
        if first:
            command = ["chrt", "--rr", "5", *command]
        before, started = os.times(), time.monotonic()
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            most = 0
            while process.poll() is None:
                most = max(most, memory(process.pid))
                time.sleep(_TICK)
        seconds, after = time.monotonic() - started, os.times()
        processor = after.children_user + after.children_system - before.children_user - before.children_system
        check(out, planted)
    found = len(planted.differences) + len(planted.slow) + len(planted.unanswered)
    return Run(nodes, size / 2**20, seconds, processor, most / 2**20, found)


def check(out: Path, planted: Planted) -> None:
    """Raise AssertionError unless the fleet report tells what was planted, and nothing else."""
    fleet = record.read(out.read_bytes())
    told = {
        (place.node, subject, difference.what, difference.value)
        for difference in fleet.differences
        for place in difference.places
        for subject in (place.subjects or ("",))
    }
    slow = {(figure.node, figure.subject) for figure in fleet.slow}
    unanswered = {node.name for node in fleet.nodes if node.problem}
    wrong = (told ^ planted.differences, slow ^ planted.slow, unanswered ^ planted.unanswered)
    if any(wrong):
        raise AssertionError(f"missed or invented: {wrong}")


def ask(hosts: int) -> float:
    """Seconds in which so many hosts are asked."""
    with tempfile.TemporaryDirectory(prefix="envcheck-fleet-") as name:
        place = Path(name)
        (place / "report").write_bytes(msgspec.json.encode(healthy(1)[0]))
        ssh = place / "ssh"
        ssh.write_text(
            f"#!/bin/sh\ncase $* in *-slow*) exec sleep 600;; esac\ncat >/dev/null; sleep 1\ncat {place}/report\n"
        )
        ssh.chmod(0o755)
        names = (f"h{number}{'' if number % 100 else '-slow'}" for number in range(hosts))
        (place / "hosts").write_text("\n".join(names))
        command = [
            sys.executable,
            "-m",
            "envcheck",
            "fleet",
            "--hosts",
            str(place / "hosts"),
            "-o",
            f"jsonl:{place}/out",
        ]
        started = time.monotonic()
        variables = {**os.environ, "PATH": f"{place}:{os.environ['PATH']}"}
        subprocess.run(command, env=variables, stdout=subprocess.DEVNULL, check=False)
        seconds = time.monotonic() - started
        missing = sum(bool(node.problem) for node in record.read((place / "out").read_bytes()).nodes)
    if missing != -(-hosts // 100):
        raise AssertionError(f"{missing} of {hosts} hosts did not answer")
    return seconds


def memory(pid: int) -> int:
    """Bytes of the process and its children."""
    total = 0
    for each in (pid, *children(pid)):
        try:
            text = Path(f"/proc/{each}/smaps_rollup").read_text(encoding="ascii")
        except OSError:
            continue
        total += sum(int(line.split()[1]) << 10 for line in text.splitlines() if line.startswith("Pss:"))
    return total


def children(pid: int) -> list[int]:
    try:
        return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()]
    except OSError:
        return []


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("nodes", nargs="*", type=int, default=[100, 1000, 3000, 10000])
    parser.add_argument("--markdown", type=Path)
    parser.add_argument(
        "--first", action="store_true", help="run envcheck before all else, on a machine that others use (as root)"
    )
    parser.add_argument("--hosts", type=int, help="ask so many hosts instead")
    options = parser.parse_args()
    if options.hosts:
        print(f"{options.hosts:,} hosts, one in a hundred of which hangs: {ask(options.hosts):.1f} s")
        return
    lines = [
        "| nodes | reports, MiB | planted and found | seconds | processor seconds | memory, MiB |",
        "|------:|-------------:|------------------:|--------:|------------------:|------------:|",
    ]
    print("\n".join(lines), flush=True)
    for nodes in options.nodes:
        run = measure(nodes, first=options.first)
        lines.append(
            f"| {run.nodes:,} | {run.mebibytes:,.0f} | {run.planted} | {run.seconds:.1f} | {run.processor:.1f} "
            f"| {run.memory:,.0f} |"
        )
        print(lines[-1], flush=True)
    if options.markdown:
        options.markdown.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
