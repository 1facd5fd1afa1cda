"""Several GPUs at once: their facts, every pair, and nodes of one GPU each, one of which is slow."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from functools import cache
from itertools import combinations, permutations
from pathlib import Path
from typing import Any

import pytest

from envcheck.fleet import record
from tests.every import cases
from tests.gpu.test_nccl_on_gpu import VARIABLES, asked

APART = 'export NCCL_HOSTID="$HOST_OF_NODE" NCCL_SOCKET_IFNAME=lo NCCL_IB_DISABLE=1; '
"""To NCCL each node is a host of its own, reached through the loopback."""
COUNTS = pytest.mark.parametrize("count", [4, 8])
HALF = (
    "(while kill -0 $$; do pkill -STOP -P $$ 'nccl worker'; sleep 0.05; pkill -CONT -P $$ 'nccl worker'; sleep 0.05;"
    " done) >/dev/null 2>&1 & "
)
"""In the shell that becomes a node: its workers stand still half of the time."""


def shown(count: int) -> dict[str, str]:
    """The variables with which CUDA shows ``count`` GPUs."""
    need(count)
    return {**VARIABLES, "CUDA_VISIBLE_DEVICES": ",".join(gpu["uuid"] for gpu in asked()["gpus"][:count])}


@cache
def report(count: int, verb: str, *options: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "envcheck", verb, "--json", *options]
    done = subprocess.run(command, cwd="/", env=shown(count), capture_output=True, text=True, check=False)
    assert done.stdout, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@COUNTS
def test_every_gpu_and_how_each_pair_is_joined_is_found(count: int) -> None:
    """NVML's GPUs are all of the machine's, CUDA's those that it shows."""
    snapshot = report(count, "check")["snapshot"]
    gpus = snapshot["gpus"]["items"]
    assert len({gpu["uuid"] for gpu in gpus}) == len({gpu["pci_bus_id"] for gpu in gpus}) == len(gpus) >= count
    assert snapshot["driver"]["cuda_devices"] == count
    places = {gpu["pci_bus_id"] for gpu in gpus}
    pairs = [frozenset((link["first"], link["second"])) for link in snapshot["fabric"]["links"]]
    assert {*pairs} == {frozenset(pair) for pair in combinations(places, 2)}
    assert len(pairs) == len({*pairs})
    assert snapshot["disagreements"] == []


@COUNTS
def test_every_pair_is_measured_in_both_directions_and_right(count: int) -> None:
    measured = report(count, "bench", "--full", "--only", "peer-to-peer", "--force")["measurements"]
    found = [each for each in measured if each.get("peer")]
    uuids = [gpu["uuid"] for gpu in asked()["gpus"][:count]]
    one_way = {(each["gpu"], each["peer"]) for each in found if each["name"] == "peer-to-peer"}
    assert one_way == {*permutations(uuids, 2)}
    assert [each for each in found if not each["value"] or not each["verification"]["right"]] == []


def test_every_pair_is_judged_by_its_own_links() -> None:
    found = report(4, "bench", "--only", "peer-to-peer", "--force")
    checks = [check for check in found["checks"] if check["rule"] == "slow-peer-link"]
    assert len(checks) == 6
    over_nvlink = [check for check in checks if "NVLink" in check["title"]]
    assert {check["status"] for check in over_nvlink} <= {"pass"}
    assert all(re.match(r"NVLink \d, \d+ links", check["evidence"][1]["source"]) for check in over_nvlink)
    assert all(check["message"].startswith("Measured, not judged: ") for check in checks if check not in over_nvlink)


def test_three_gpus_move_whole_elements() -> None:
    measured = report(3, "bench", "--full", "--only", "nccl-all-gather")["measurements"]
    (swept,) = [each for each in measured if each["variant"] == "3 GPUs" and each["unit"] == "B/s"]
    sizes = [point["size"] for point in swept["collective"]["points"]]
    assert sizes[:3] == [12, 24, 120]
    assert all(size % 12 == 0 for size in sizes)
    assert swept["verification"]["right"]


def test_gpus_of_one_model_do_their_products_alike() -> None:
    """One of 143 figures made a healthy GPU a straggler, since cuBLASLt had picked another algorithm on it."""
    found = report(4, "bench", "--full", "--only", "gemm", "--force")
    assert {check["status"] for check in found["checks"] if check["rule"] == "gpu-straggler"} <= {"pass", "note"}
    products = [each for each in found["measurements"] if each["value"]]
    assert all(each["algorithm"] for each in products)


@COUNTS
def test_nodes_of_one_gpu_each_sum_right(tmp_path: Path, count: int) -> None:
    need(count)
    _, found = bench(tmp_path, count, before=APART, timeout=240)
    assert {node["problem"] for node in found["nodes"]} == {""}
    assert [group["problem"] for group in found["groups"]] == [""] * len(found["groups"])
    assert len(found["groups"]) > 1
    assert found["reference"] > 0


@COUNTS
def test_the_node_whose_processes_stand_still_half_of_the_time_is_slow(tmp_path: Path, count: int) -> None:
    need(count)
    if not shutil.which("pkill"):
        pytest.skip("no pkill here")
    slow = f'if [ "$HOST_OF_NODE" = gpu2 ]; then {HALF} fi; '
    status, found = bench(tmp_path, count, before=APART + slow, timeout=240)
    slowest = found["slow"][0]  # they come in the order of their figures
    assert (slowest["node"], slowest["status"], status) == ("gpu2", "fail", 1)
    assert {node["problem"] for node in found["nodes"]} == {""}


@COUNTS
def test_a_node_that_dies_in_a_run_is_named_and_the_others_go_on(tmp_path: Path, count: int) -> None:
    need(count)
    if not shutil.which("pkill"):
        pytest.skip("no pkill here")
    killer = "for _ in $(seq 400); do pkill -KILL -P $$ 'nccl worker' && break; sleep 0.1; done"
    dies = f'if [ "$HOST_OF_NODE" = gpu1 ]; then ({killer}) & fi; '
    status, found = bench(tmp_path, count, before=APART + dies, timeout=240)
    problems = {node["name"]: node["problem"] for node in found["nodes"] if node["problem"]}
    assert list(problems) == ["gpu1"]
    assert "killed by SIGKILL" in problems["gpu1"]
    assert len(found["groups"][1]["nodes"]) == count - 1
    assert found["groups"][1]["bandwidth"] > 0
    assert status == 1


@COUNTS
def test_processes_that_see_a_gpu_each_are_nodes_that_differ_in_that_alone(tmp_path: Path, count: int) -> None:
    need(count)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/ssh").write_text(SSH)
    (tmp_path / "bin/ssh").chmod(0o755)
    (tmp_path / "hosts").write_text("".join(f"gpu{number}\n" for number in range(count)))
    check = shlex.join([sys.executable, "-m", "envcheck", "check", "--json"])
    command = [sys.executable, "-m", "envcheck", "fleet", "--hosts", "hosts", "--command", check, "--format", "jsonl"]
    path = os.pathsep.join([str(tmp_path / "bin"), os.environ["PATH"]])
    done = subprocess.run(command, cwd=tmp_path, env={**VARIABLES, "PATH": path}, capture_output=True, check=False)
    fleet = record.read(done.stdout)
    assert [node.problem for node in fleet.nodes] == [""] * count
    assert {len(node.gpus) for node in fleet.nodes} == {len(asked()["gpus"])}
    told = {each.what for each in fleet.differences} | {each.what for each in fleet.splits}
    assert told <= {"CUDA_VISIBLE_DEVICES", "HOST_OF_NODE"}
    assert "CUDA_VISIBLE_DEVICES" in told


# --- ``bench --fleet`` with NCCL ------------------------------------------------------------------------------------
SSH = """#!/bin/sh
for host; do before=$line; line=$host; done
CUDA_VISIBLE_DEVICES=${before#gpu} HOST_OF_NODE=$before exec /bin/sh -c "$line"
"""


def bench(folder: Path, count: int, *, before: str = "", timeout: int = 50) -> tuple[int, dict[str, Any]]:
    """All-reduce between ``count`` nodes of one GPU each; ``before`` is what their shell does first."""
    (folder / "bin").mkdir()
    (folder / "bin/ssh").write_text(SSH)
    (folder / "bin/ssh").chmod(0o755)
    (folder / "hosts").write_text("".join(f"gpu{number}\n" for number in range(count)))
    node = shlex.join([sys.executable, "-m", "envcheck", "bench", "--fleet-node", "--force"])
    command = [sys.executable, "-m", "envcheck", "bench", "--fleet", "--hosts", "hosts", "--json"]
    command += ["--command", f"sh -c {shlex.quote(f'{before}exec {node}')}", "--timeout", str(timeout)]
    variables = {**VARIABLES, "PATH": os.pathsep.join([str(folder / "bin"), os.environ["PATH"]])}
    done = subprocess.run(
        command, cwd=folder, env=variables, capture_output=True, text=True, timeout=timeout + 40, check=False
    )
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


def need(gpus: int) -> None:
    found = asked()
    if len(found["gpus"]) < gpus:
        pytest.skip(f"it takes {gpus} GPUs")
    if not found["libraries"].get("nccl"):
        pytest.skip("no NCCL here")


@cases("apart", False, True)
def test_two_nodes_of_one_host_sum_right(tmp_path: Path, *, apart: bool) -> None:
    need(2)
    names = 'export NCCL_HOSTID="$HOST_OF_NODE" NCCL_SOCKET_IFNAME=lo NCCL_IB_DISABLE=1; '
    status, found = bench(tmp_path, 2, before=names if apart else "")
    assert [node["problem"] for node in found["nodes"]] == ["", ""]
    (group,) = found["groups"]
    assert (group["problem"], group["bandwidth"] > 0) == ("", True)
    assert (found["verdict"], status) == ("unknown", 3), "of two nodes neither is slower than others"
    transports = {way for node in found["nodes"] for way in node["transports"]}
    assert any(way.startswith("NET") for way in transports) is apart, transports


def test_a_node_that_is_killed_in_a_run_is_named(tmp_path: Path) -> None:
    """The second node's only worker is killed as soon as it starts."""
    need(2)
    if not shutil.which("pkill"):
        pytest.skip("no pkill here")
    # The shell's process becomes the node's, so its children are the workers.
    killer = "for _ in $(seq 400); do pkill -KILL -P $$ 'nccl worker' && break; sleep 0.1; done"
    status, found = bench(tmp_path, 2, before=f'if [ "$HOST_OF_NODE" = gpu1 ]; then ({killer}) & fi; ')
    problems = {node["name"]: node["problem"] for node in found["nodes"]}
    assert problems["gpu0"] == ""
    assert "killed by SIGKILL" in problems["gpu1"]
    assert (found["verdict"], status) == ("fail", 1)


def test_one_node_alone_is_one_sentence(tmp_path: Path) -> None:
    need(1)
    began = time.monotonic()
    status, found = bench(tmp_path, 1)
    assert found["headline"] == "an all-reduce between nodes takes two of them"
    assert (status, found["groups"]) == (3, [])
    assert [(node["gpus"], node["problem"]) for node in found["nodes"]] == [(1, "")]
    assert time.monotonic() - began < 40
