"""NCCL on two real GPUs or more: right results, and faults that are really caused and named.

No time is asserted but that of an end; figures are compared in benchmarks/.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

import pytest

from envcheck.collect.plan import BenchRequest as Wish
from envcheck.collect.plan import choose, request_of
from envcheck.pipeline.session import Request, gather_here
from probes.measuring.nccl.supervisor import Fault, Limits, Talk, supervise
from probes.measuring.nccl.values import OPERATIONS
from probes.measuring.nccl.worker import NcclRank, NcclStep, Order, Worker
from tests.every import cases
from tests.probes.bench.nccl.test_worker import IN_PLACE

ROOT = Path(__file__).resolve().parents[2]
VARIABLES = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}


@cache
def asked() -> dict[str, Any]:
    facts = gather_here(Request(variables=dict(os.environ)))
    wish = Wish(force=True)
    return request_of(wish, choose(facts, wish), facts)


@pytest.fixture(autouse=True)
def _two_gpus() -> None:
    if len(asked()["gpus"]) < 2:
        pytest.skip("it takes two GPUs")
    if not asked()["libraries"].get("nccl"):
        pytest.skip("no NCCL here")


def ranks() -> tuple[NcclRank, ...]:
    return tuple(NcclRank(number, gpu["uuid"], f"GPU {gpu['index']}", {}) for number, gpu in enumerate(asked()["gpus"]))


def _work(order: Order, share: tuple[NcclRank, ...], variables: dict[str, str], talk: Talk) -> None:
    os.environ.update(variables)
    Worker(order, share, talk).run()


def run(
    *steps: NcclStep, apart: bool = True, libraries: dict[str, list[str]] | None = None, **last: str
) -> tuple[list[Fault], list[list[dict[str, Any]]]]:
    """Do the steps; ``last`` are variables of the last process alone. Results are those of each step, by process."""
    everybody = ranks()
    order = Order(len(everybody), steps, libraries or asked()["libraries"], {}, 60.0)
    shares = [(rank,) for rank in everybody] if apart else [everybody]
    heard: dict[int, list[dict[str, Any]]] = defaultdict(list)

    def take(_worker: int, line: dict[str, Any]) -> None:
        if "result" in line:
            heard[line["result"]["step"]].append(line["result"])

    works = [partial(_work, order, share, last if share is shares[-1] else {}) for share in shares]
    return supervise(works, take, Limits()), [heard[number] for number in range(len(steps))]


@cases("apart", True, False)
@cases("kind", "fp32", "fp16", "bf16", "int32")
def test_every_operation_is_right_in_every_type(*, apart: bool, kind: str) -> None:
    sizes = (96 * len(ranks()), 12 << 20)
    steps = [
        NcclStep(name, size, kind, in_place=in_place, samples=1, least=1, most=2)
        for name, in_place in IN_PLACE
        for size in sizes
    ]
    faults, results = run(*steps, apart=apart)
    assert faults == []
    for step, parts in zip(steps, results, strict=True):
        assert len(parts) == (len(ranks()) if apart else 1)
        assert sum(part["wrong"] for part in parts) == 0, step
        assert sum(part["checked"] for part in parts) > 0


def test_a_gpu_that_is_hidden_from_one_rank_is_named() -> None:
    first = asked()["gpus"][0]["uuid"]
    faults, _ = run(NcclStep("all-reduce", 1 << 20), CUDA_VISIBLE_DEVICES=first)
    last = ranks()[-1]
    assert f"CUDA does not show {last.title} to rank {last.number}: CUDA_VISIBLE_DEVICES={first}" in faults[0].text


# Through the command.


def bench(*options: str, before: tuple[str, ...] = (), **variables: str) -> tuple[int, dict[str, Any]]:
    command = [*before, sys.executable, "-m", "envcheck", "bench", "--json", *options]
    done = subprocess.run(command, cwd="/", env={**VARIABLES, **variables}, capture_output=True, text=True, check=False)
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


def finding(report: dict[str, Any], rule: str) -> dict[str, Any]:
    found: dict[str, Any] = next(check for check in report["checks"] if check["rule"] == rule)
    return found


def test_all_operations_are_measured_and_right() -> None:
    _, report = bench("--only", "nccl", "--full")
    found = [measured for measured in report["measurements"] if measured["name"].startswith("nccl-")]
    assert {measured["name"] for measured in found} == {f"nccl-{name}" for name in OPERATIONS}
    assert [measured for measured in found if measured["value"] is None] == []
    checks = [measured["verification"] for measured in found if measured["unit"] == "B/s"]
    assert all(check["right"] and check["checked"] > 0 for check in checks)
    assert finding(report, "collective-fails")["status"] == "pass"


def test_a_hidden_gpu_leaves_nothing_to_measure_and_says_so() -> None:
    _, report = bench("--only", "nccl", CUDA_VISIBLE_DEVICES=asked()["gpus"][0]["uuid"])
    run = next(run for run in report["probes"] if run["name"].endswith("nccl"))
    assert (run["status"], run["detail"]) == ("absent", "it takes two GPUs")


def _worker_pids(number: int) -> Iterator[int]:
    for folder in Path("/proc").iterdir():
        try:
            if folder.name.isdigit() and (folder / "comm").read_text().strip() == f"nccl worker {number}":
                yield int(folder.name)
        except OSError:
            continue


@cases("number, words", (signal.SIGKILL, "killed by SIGKILL"), (signal.SIGSTOP, "no sign of life"))
def test_a_rank_that_is_ended_or_stopped_in_mid_collective_is_named(number: int, words: str, tmp_path: Path) -> None:
    file = tmp_path / "report.json"
    command = [sys.executable, "-m", "envcheck", "bench", "--only", "nccl", "--full", "-q", "-o", f"json:{file}"]
    with subprocess.Popen(command, cwd="/", env=VARIABLES, stdout=subprocess.DEVNULL) as process:
        until = time.monotonic() + 60
        pids: list[int] = []
        while not pids and time.monotonic() < until:
            pids = list(_worker_pids(1))
            time.sleep(0.05)
        time.sleep(4)  # in the midst of the sizes
        began = time.monotonic()
        os.kill(pids[0], number)
        process.wait(timeout=60)
        seconds = time.monotonic() - began
    found = finding(json.loads(file.read_text()), "collective-fails")
    assert "rank 1 (GPU " in found["title"]
    assert words in found["title"]
    assert list(_worker_pids(0)) == list(_worker_pids(1)) == []
    assert seconds < 10


def test_a_small_dev_shm_is_the_cause() -> None:
    """A private mount namespace with 1 MiB there; NCCL is told not to do without shared memory."""
    if os.geteuid() or not shutil.which("unshare"):
        pytest.skip("only root can mount")
    script = 'mount -t tmpfs -o size=1m tmpfs /dev/shm && exec "$@"'
    tried = subprocess.run(["unshare", "-m", "sh", "-c", script, "sh", "true"], capture_output=True, check=False)
    if tried.returncode:
        pytest.skip(f"no tmpfs can be mounted: {tried.stderr.decode(errors='replace')[:200]}")
    before = ("unshare", "-m", "sh", "-c", script, "sh")
    status, report = bench(
        "--only", "all-reduce", before=before, NCCL_P2P_DISABLE="1", NCCL_CUMEM_HOST_ENABLE="0", NCCL_CUMEM_ENABLE="0"
    )
    assert status == 1
    found = finding(report, "collective-fails")
    assert found["status"] == "fail"
    shared = finding(report, "shared-memory-too-small")
    assert shared["status"] == "fail"
    assert "/dev/shm" in json.dumps(found["evidence"])


def test_two_versions_in_one_job_are_named() -> None:
    """The last rank loads another NCCL; the file comes from ENVCHECK_OTHER_NCCL."""
    other = os.environ.get("ENVCHECK_OTHER_NCCL")
    if not other:
        pytest.skip("ENVCHECK_OTHER_NCCL names no second libnccl.so.2")
    everybody = ranks()
    libraries = asked()["libraries"]
    orders = [Order(len(everybody), (NcclStep("all-reduce", 1 << 20),), libraries, {}, 60.0) for _ in everybody]
    orders[-1] = Order(len(everybody), orders[0].steps, {**libraries, "nccl": [other]}, {}, 60.0)
    works = [partial(_work, order, (rank,), {}) for order, rank in zip(orders, everybody, strict=True)]
    faults = supervise(works, lambda *_: None, Limits(start=15.0))
    assert faults
    for fault in faults:
        assert "on another rank: all ranks need one release" in fault.text


def test_host_memory_instead_of_direct_access_is_slow_and_its_variable_named() -> None:
    _, report = bench("--only", "all-reduce", NCCL_P2P_DISABLE="1")
    found = next(check for check in report["checks"] if check["rule"] == "slow-collective" and "only" in check["title"])
    (figure,) = (each for each in report["measurements"] if each["unit"] == "B/s")
    assert any(way.startswith("SHM") for way in figure["collective"]["transports"])
    assert found["status"] in ("warn", "fail")
    assert "NCCL_P2P_DISABLE=1" in found["message"]
