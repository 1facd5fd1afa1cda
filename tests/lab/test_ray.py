"""Ray itself: a cluster of several nodes on this machine."""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from envcheck.fleet import record
from envcheck.fleet.collective.report import FleetBench
from envcheck.fleet.record import Fleet
from tests.every import cases
from tests.fleet.collective.stand_in import BANDWIDTH
from tests.fleet.made import healthy
from tests.known import known

pytestmark = [pytest.mark.lab, pytest.mark.filterwarnings("ignore")]

ray = pytest.importorskip("ray", reason="needs the package ray")
ROOT = Path(__file__).resolve().parents[2]
STAND_IN = ROOT / "tests/fleet/collective/stand_in.py"
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
        variables["RAY_raylet_start_wait_time_s"] = "240"  # a raylet starts slowly beside other tests
        self.process = subprocess.Popen(
            [sys.executable, "-c", CLUSTER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            text=True, env=variables,
        )  # fmt: skip
        self.address = self._line()

    def _line(self) -> str:
        return known(self.process.stdout).readline().strip()

    def kill_a_node(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write("kill\n")
        self.process.stdin.flush()
        assert self._line() == "killed"

    def stop(self) -> None:
        known(self.process.stdin).close()
        self.process.wait(timeout=60)

    def fleet(self, *arguments: str) -> Fleet:
        command = [str(ENVCHECK), "fleet", "--ray", self.address, "--format", "jsonl", *arguments]
        done = subprocess.run(command, capture_output=True, timeout=300, check=False)
        assert done.stdout, done.stderr
        return record.read(done.stdout)


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
    """One node hangs, one prints rubbish, one has another driver, one a slow GPU; later one is dead."""
    reports: list[dict[str, Any]] = healthy(NODES)
    reports[3]["snapshot"]["driver"]["release"] = "570.1"
    reports[4]["measurements"][0]["value"] *= 0.7
    for number, report in enumerate(reports):
        (tmp_path / f"report-{number}").write_text(json.dumps(report))
    (tmp_path / "answer.py").write_text(ANSWER.format(place=str(tmp_path)))
    started = time.monotonic()
    found = cluster.fleet("--command", f"{sys.executable} {tmp_path}/answer.py", "--timeout", "30")
    assert time.monotonic() - started < 120
    assert sorted(node.problem for node in found.nodes) == ["", "", "", "it printed no report", "no answer within 30 s"]
    host = {node.name: node.host for node in found.nodes}
    told = [(each.what, each.value, [host[place.node] for place in each.places]) for each in found.differences]
    assert told == [("release", "570.1", ["node00003"])]
    assert [(host[slow.node], slow.subject, slow.status) for slow in found.slow] == [("node00004", "GPU 0", "fail")]


def program(number: int, address: str, needed: str) -> str:
    """A program of the documentation, for this cluster."""
    page = (ROOT / "docs/fleet/ray.md").read_text()
    blocks = re.findall(r"(?:^ {4}.*\n(?:\n(?= {4}))?)+", page, re.MULTILINE)
    found = [textwrap.dedent(block) for block in blocks if block.lstrip().startswith("import")][number]
    assert '"auto"' in found
    assert '"torch>=2.4"' in found
    return found.replace('"auto"', repr(address)).replace('"torch>=2.4"', repr(needed))


def ran(text: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=300, check=False)


@cases("needed, runs", ("msgspec>=0.18", True), ("msgspec>=99", False))
def test_each_node_checks_what_the_program_needs(cluster: Running, needed: str, *, runs: bool) -> None:
    done = ran(f"{program(0, cluster.address, needed)}\nprint('checked', len(alive), 'nodes')")
    assert (f"checked {NODES} nodes" in done.stdout) is runs, done.stderr[-2000:]
    assert runs or "msgspec>=99 is required" in done.stderr + done.stdout


ON_EVERY_NODE = """
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy
task = ray.remote(num_cpus=0, max_retries=0)(lambda: 1)
alive = [node["NodeID"] for node in ray.nodes() if node["Alive"]]
on = [NodeAffinitySchedulingStrategy(node, soft=False) for node in alive]
print("ran on", sum(ray.get([task.options(scheduling_strategy=each).remote() for each in on], timeout=200)))
"""


@cases("needed, runs", ("msgspec>=0.18", True), ("msgspec>=99", False))
def test_each_worker_checks_before_its_first_task(cluster: Running, needed: str, *, runs: bool) -> None:
    done = ran(program(1, cluster.address, needed) + ON_EVERY_NODE)
    assert (f"ran on {NODES}" in done.stdout) is runs, done.stderr[-2000:]
    if not runs:
        assert "WorkerCrashedError" in done.stderr
        assert "msgspec>=99 is required" in done.stderr + done.stdout


NODE = """
import os, sys
for number in range(9):
    try:
        os.mkdir(sys.argv[1] + "/" + str(number))
        break
    except FileExistsError:
        pass
os.environ["FLEET_NODE"] = "n" + str(number)
os.execv(sys.executable, [sys.executable, sys.argv[2], sys.argv[3]])
"""


@cases("behaviour, slow, problem", ({"speed": 0.5}, 1, ""), ({"killed": 1}, 0, "killed by SIGKILL"))
def test_the_node_that_slows_the_others_down_is_found(
    cluster: Running, tmp_path: Path, behaviour: dict[str, float], slow: int, problem: str
) -> None:
    """Which node that is, is drawn at its start: each takes a number that no other has."""
    (tmp_path / "node.py").write_text(NODE)
    (tmp_path / "plan").write_text(json.dumps({"n3": behaviour}))
    (tmp_path / "taken").mkdir()
    node = shlex.join([sys.executable, f"{tmp_path}/node.py", f"{tmp_path}/taken", str(STAND_IN), f"{tmp_path}/plan"])
    command = [str(ENVCHECK), "bench", "--fleet", "--ray", cluster.address, "--json", "--command", node]
    done = subprocess.run([*command, "--timeout", "250"], capture_output=True, timeout=300, check=False)
    assert done.stdout, done.stderr
    found = msgspec.json.decode(done.stdout, type=FleetBench)
    assert (len(found.nodes), found.engine, found.verdict) == (NODES, "ray", "fail")
    assert [each.bandwidth for each in found.slow] == [pytest.approx(0.5 * BANDWIDTH)] * slow
    problems = [node.problem for node in found.nodes if node.problem]
    assert len(problems) == (not slow)
    assert all(problem in each for each in problems)


def test_ctrl_c_keeps_what_came(cluster: Running, tmp_path: Path) -> None:
    """One node, whichever is the first, hangs."""
    (tmp_path / "report").write_text(json.dumps(healthy(1)[0]))
    program = f"mkdir {tmp_path}/hanging 2>/dev/null && exec sleep 611; cat {tmp_path}/report"
    command = [str(ENVCHECK), "fleet", "--ray", cluster.address, "--command", shlex.join(["sh", "-c", program])]
    save = ["--save", str(tmp_path / "kept"), "--format", "jsonl", "--timeout", "300"]
    with subprocess.Popen([*command, *save], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        until = time.monotonic() + 200
        while len(list((tmp_path / "kept").glob("*.json"))) < NODES - 1:
            assert time.monotonic() < until
            time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        printed, _ = process.communicate(timeout=100)
    assert process.returncode == 130
    problems = sorted(node.problem for node in record.read(printed).nodes)
    assert problems == [*[""] * (NODES - 1), "interrupted before it answered"]
    until = time.monotonic() + 30
    while left := subprocess.run(["pgrep", "-fx", "sleep 611"], capture_output=True, check=False).stdout:
        assert time.monotonic() < until, left
        time.sleep(0.5)


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
