"""Ray itself: a cluster of several nodes on this machine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from envcheck.fleet import saved
from envcheck.fleet.record import Fleet
from tests.fleet.made import healthy

pytestmark = [pytest.mark.lab, pytest.mark.filterwarnings("ignore")]

ray = pytest.importorskip("ray", reason="needs the package ray")
ENVCHECK = Path(sys.executable).parent / "envcheck"
NODES = 5

CLUSTER = """
import sys
from ray.cluster_utils import Cluster
cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "object_store_memory": 80 << 20})
nodes = [cluster.add_node(num_cpus=0, object_store_memory=80 << 20) for _ in range(4)]
cluster.wait_for_nodes()
print(cluster.address, flush=True)
for line in sys.stdin:
    if line.startswith("kill"):
        cluster.remove_node(nodes.pop(), allow_graceful=False)
        print("killed", flush=True)
cluster.shutdown()
"""


class Running:
    """A cluster in a process of its own, since Ray keeps state in the process that starts one."""

    def __init__(self, folder: str) -> None:
        variables = {**os.environ, "RAY_TMPDIR": folder, "RAY_USAGE_STATS_ENABLED": "0"}
        self.process = subprocess.Popen(
            [sys.executable, "-c", CLUSTER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=variables,
        )
        self.address = self._line()

    def _line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def kill_a_node(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write("kill\n")
        self.process.stdin.flush()
        assert self._line() == "killed"

    def stop(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(timeout=60)

    def fleet(self, *arguments: str) -> Fleet:
        command = [str(ENVCHECK), "fleet", "--ray", self.address, "--format", "jsonl", *arguments]
        done = subprocess.run(command, capture_output=True, timeout=300, check=False)
        assert done.stdout, done.stderr
        return saved.read(done.stdout)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Running]:
    with tempfile.TemporaryDirectory(prefix="ray-", dir="/tmp", ignore_cleanup_errors=True) as folder:
        running = Running(folder)
        try:
            yield running
        finally:
            running.stop()


def test_the_collector_runs_on_every_node(cluster: Running) -> None:
    found = cluster.fleet("--timeout", "120")
    assert [node.problem for node in found.nodes] == [""] * NODES
    assert len({node.name for node in found.nodes}) == NODES
    assert not found.differences


ANSWER = """
import json, os, sys, time
place = {place!r}
# Which node this is: each takes a number that no other has.
for number in range(9):
    try:
        os.mkdir(place + "/" + str(number))
        break
    except FileExistsError:
        pass
if number == 1:
    time.sleep(600)
if number == 2:
    print("rubbish")
    sys.exit(0)
print(open(place + "/report-" + str(number)).read())
"""


def test_each_of_the_different_nodes_is_named(cluster: Running, tmp_path: Path) -> None:
    """One node hangs, one prints rubbish, one has another driver; later one is dead."""

    reports: list[dict[str, Any]] = healthy(NODES)
    reports[3]["snapshot"]["driver"]["release"] = "570.1"
    for number, report in enumerate(reports):
        (tmp_path / f"report-{number}").write_text(json.dumps(report))
    (tmp_path / "answer.py").write_text(ANSWER.format(place=str(tmp_path)))
    started = time.monotonic()
    found = cluster.fleet("--command", f"{sys.executable} {tmp_path}/answer.py", "--timeout", "30")
    assert time.monotonic() - started < 120
    assert sorted(node.problem for node in found.nodes) == [
        "",
        "",
        "",
        "it printed no report",
        "no answer within 30 s",
    ]
    assert [(each.what, each.value, len(each.places)) for each in found.differences] == [("release", "570.1", 1)]


PROGRAM = """
import sys
import envcheck, ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

ray.init(address=sys.argv[1], log_to_driver=False)
check = ray.remote(num_cpus=0)(envcheck.require)
alive = [node["NodeID"] for node in ray.nodes() if node["Alive"]]
on = [NodeAffinitySchedulingStrategy(node, soft=False) for node in alive]
ray.get([check.options(scheduling_strategy=each).remote(sys.argv[2]) for each in on])
print("checked", len(alive), "nodes")
"""


@pytest.mark.parametrize(("needed", "runs"), [("msgspec>=0.18", True), ("msgspec>=99", False)])
def test_each_node_checks_what_the_program_needs(cluster: Running, needed: str, *, runs: bool) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, cluster.address, needed],
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert (f"checked {NODES} nodes" in done.stdout) is runs, done.stderr[-2000:]
    assert runs or "msgspec>=99 is required" in done.stderr + done.stdout


def test_a_dead_node_is_named(cluster: Running) -> None:
    cluster.kill_a_node()
    until = time.monotonic() + 150
    while True:
        found = cluster.fleet("--timeout", "40")
        dead = [node.problem for node in found.nodes if node.problem]
        if dead and all(problem.startswith("Ray says it is dead") for problem in dead):
            break
        assert time.monotonic() < until, dead
    assert len(found.nodes) == NODES
    assert len(dead) == 1


def test_a_cluster_that_is_not_there_is_one_sentence() -> None:
    done = subprocess.run(
        [str(ENVCHECK), "fleet", "--ray", "127.0.0.1:1"], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 2
    assert done.stderr.startswith("envcheck: --ray 127.0.0.1:1: ")
    assert "Traceback" not in done.stderr
