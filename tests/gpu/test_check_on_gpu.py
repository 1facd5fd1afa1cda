"""``envcheck check`` on a real machine: the facts are those of PyTorch's own collector, the verdict no false alarm."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from envcheck.importers import read_text
from tests.every import cases
from tests.known import known

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def interpreter() -> str:
    """The interpreter whose environment holds PyTorch."""
    for candidate in (sys.executable, shutil.which("python3")):
        if (
            candidate
            and subprocess.run([candidate, "-c", "import torch"], check=False, capture_output=True).returncode == 0
        ):
            return candidate
    pytest.skip("no PyTorch here")


def _imports_torch(interpreter: str) -> bool:
    return subprocess.run([interpreter, "-c", "import torch"], check=False, capture_output=True).returncode == 0


@pytest.fixture(scope="module")
def report(interpreter: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "envcheck", "check", "--json", "--python", interpreter]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def test_the_verdict_is_pass_or_warnings_alone(report: dict[str, Any]) -> None:
    assert report["verdict"] in ("pass", "warn"), report["headline"]
    statuses = {check["rule"]: check["status"] for check in report["checks"]}
    for required in ("gpu-init-failed", "no-nvidia-gpu", "driver-too-old", "gpu-code-missing"):
        assert statuses[required] == "pass"


@cases("node, other",
    ("/dev/nvidia-uvm", ""), ("/dev/nvidia-uvm", "c 240 0"), ("/dev/nvidiactl", "c 1 3"), ("/dev/nvidia{minor}", ""),
    ("/dev/nvidia{minor}", "c 195 77"),
)  # fmt: skip
def test_a_node_that_leads_elsewhere_is_the_cause(
    report: dict[str, Any], tmp_path: Path, node: str, other: str
) -> None:
    """In a private mount namespace an empty file, or another device, lies over the node."""
    gpus = report["snapshot"]["gpus"]["items"]
    if os.geteuid() or not shutil.which("unshare") or len(gpus) != 1:
        pytest.skip("only root can mount, and only a single GPU stops CUDA by its node")
    path, place = node.format(minor=gpus[0]["minor"]), tmp_path / "other"
    made = f"mknod {place} {other}" if other else f": > {place}"
    script = f'{made} && mount --bind {place} {path} && exec "$@"'
    command = ["unshare", "-m", "sh", "-c", script, "sh", sys.executable, "-m", "envcheck", "check", "--json"]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if not result.stdout:
        pytest.skip(f"nothing can be mounted: {result.stderr[:200]}")
    checks = {check["rule"]: check for check in json.loads(result.stdout)["checks"]}
    cause = checks["device-node-wrong"]
    assert (cause["status"], cause["evidence"][0]["what"]) == ("fail", path)
    assert checks["gpu-init-failed"]["explained_by"] == cause["id"]


def test_no_two_sources_disagree(report: dict[str, Any]) -> None:
    assert report["snapshot"]["disagreements"] == []


def test_the_facts_are_those_of_collect_env(report: dict[str, Any], interpreter: str) -> None:
    command = [interpreter, "-m", "torch.utils.collect_env"]
    pasted = read_text(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    snapshot = report["snapshot"]
    (judged,) = [env for env in snapshot["environments"]["items"] if env.get("judged")]
    (torch,) = [framework for framework in judged["frameworks"]["items"] if framework["name"] == "torch"]
    theirs = known(pasted.environments).items[0]
    framework = known(theirs.frameworks).items[0]
    assert (torch["version"], torch["cuda"]) == (framework.version, framework.cuda)
    assert judged["python"] == theirs.python
    assert snapshot["driver"]["release"] == known(pasted.driver).release
    assert [gpu["name"] for gpu in snapshot["gpus"]["items"]] == [gpu.name for gpu in known(pasted.gpus).items]
    assert snapshot["platform"]["libc"].split()[1] == (known(pasted.platform).libc or "").replace("-", " ").split()[1]
    installed = {found["name"]: found["version"] for found in judged["distributions"]}
    for found in theirs.distributions or ():
        assert installed.get(found.name) == found.version, found.name
