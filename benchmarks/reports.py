"""Size and time of the report of a machine with 8 GPUs and 300 distributions, and of comparing 1,000 such reports.

The machine is the recorded one that was tried and measured (``tests/machines/h100-tried-and-measured.json``), with its
GPU and that GPU's figures eight times, and with more distributions. Times are of the process alone, so that other work
on the machine counts little.

    python benchmarks/reports.py [--reports 1000]
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import msgspec

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from envcheck.model.checks import Report  # noqa: E402 - of the checkout that this file belongs to
from envcheck.model.snapshot import Distribution, Snapshot  # noqa: E402
from envcheck.pipeline.session import Request, judge  # noqa: E402
from envcheck.report import FORMATS, render  # noqa: E402

RECORDED = ROOT / "tests" / "machines" / "h100-tried-and-measured.json"
GPUS, DISTRIBUTIONS = 8, 300
replace = msgspec.structs.replace


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--reports", type=int, default=1000, help="how many reports to compare")
    options = parser.parse_args()
    report = large_report()
    content = render(report, "json")
    print(f"report: {len(content.encode()) / 1e6:.2f} MB as JSON; {len(report.checks)} checks")
    for form in FORMATS:
        first, later = times(report, form)
        print(f"{form:<22} {first:.3f} s the first time, {later:.3f} s later")
    seconds, processor = compare(report, options.reports)
    print(f"diff of {options.reports} reports: {seconds:.2f} s, {processor:.2f} s of processor time")


def large_report() -> Report:
    """The report of the large machine."""
    snapshot = msgspec.json.decode(RECORDED.read_bytes(), type=Recorded).snapshot
    (gpu,) = snapshot.gpus.items if snapshot.gpus else ()
    (environment, *others) = snapshot.environments.items if snapshot.environments else ()
    gpus = [
        replace(gpu, index=n, uuid=f"GPU-{n:08x}-0000-0000-0000-000000000000", pci_bus_id=f"0000:{0x18 + n:02x}:00.0")
        for n in range(GPUS)
    ]
    figures = [replace(each, gpu=own.uuid) for own in gpus for each in snapshot.measurements if each.gpu == gpu.uuid]
    known = environment.distributions or ()
    more = [
        Distribution(source="wheel metadata", name=f"example-package-{n}", version=f"1.{n}.0", installer="pip")
        for n in range(DISTRIBUTIONS - len(known))
    ]
    filled = replace(environment, distributions=(*known, *more))
    assert snapshot.gpus is not None
    assert snapshot.environments is not None
    return judge(
        replace(
            snapshot,
            gpus=replace(snapshot.gpus, items=tuple(gpus)),
            environments=replace(snapshot.environments, items=(filled, *others)),
            measurements=tuple(figures),
        ),
        Request(),
    )


class Recorded(msgspec.Struct):
    """A recorded machine."""

    snapshot: Snapshot


def times(report: Report, form: str) -> tuple[float, float]:
    """Seconds of processor time: the first rendering, with what it imports, and the median of five more."""
    needed = []
    for _ in range(6):
        start = time.process_time()
        render(report, form)
        needed.append(time.process_time() - start)
    return needed[0], statistics.median(needed[1:])


def compare(report: Report, number: int) -> tuple[float, float]:
    """Seconds and processor seconds of ``envcheck diff`` over reports that differ in one figure of the environment."""
    with tempfile.TemporaryDirectory() as place:
        names = []
        for n in range(number):
            host = replace(report, host=f"node{n}")
            name = Path(place) / f"{n}.json"
            name.write_text(render(host, "json"))
            names.append(name.name)
        before, start = os.times(), time.monotonic()
        subprocess.run(
            [sys.executable, "-m", "envcheck", "diff", *names],
            cwd=place,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdout=subprocess.DEVNULL,
            check=False,
        )
        seconds, after = time.monotonic() - start, os.times()
    return seconds, after.children_user + after.children_system - before.children_user - before.children_system


if __name__ == "__main__":
    main()
