"""``bench --fleet`` with NCCL: processes of this host, with a GPU each, stand for nodes.

With NCCL_HOSTID they are different hosts to NCCL, which then uses its network, here the loopback.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.every import cases
from tests.gpu.test_nccl_on_gpu import VARIABLES, asked

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
    path = os.pathsep.join([str(folder / "bin"), os.environ["PATH"]])
    variables = {**VARIABLES, "PATH": path}
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
