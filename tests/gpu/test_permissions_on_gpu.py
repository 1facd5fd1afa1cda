"""Who may read a GPU's counters, and who holds it: what envcheck says against what happens."""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.known import known

COMPUTES = "import torch; torch.ones(64, device='cuda').sum().item()"
STAYS = f"{COMPUTES}; print('there', flush=True); import time; time.sleep(120)"
PARAMETERS = Path("/proc/driver/nvidia/params")
FIRST_NAMESPACE = "pid:[4026531836]"


def report(**variables: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", "envcheck", "check", "--json"],
        cwd="/", env={**os.environ, **variables}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stdout, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def statuses(found: dict[str, Any], rule: str) -> set[str]:
    return {check["status"] for check in found["checks"] if check["rule"] == rule}


@pytest.fixture(scope="module", autouse=True)
def _torch() -> None:
    if subprocess.run([sys.executable, "-c", COMPUTES], capture_output=True, check=False).returncode:
        pytest.skip("PyTorch computes on no GPU here")


@contextmanager
def program(**variables: str) -> Iterator[subprocess.Popen[str]]:
    """A program that has a context on the GPU."""
    command = [sys.executable, "-c", STAYS]
    with subprocess.Popen(command, env={**os.environ, **variables}, stdout=subprocess.PIPE, text=True) as running:
        try:
            assert known(running.stdout).readline() == "there\n"
            yield running
        finally:
            running.kill()


def test_who_may_read_the_counters_is_what_the_driver_says() -> None:
    stated = re.search(r"^RmProfilingAdminOnly: (\d)$", PARAMETERS.read_text(), re.MULTILINE)
    module = report()["snapshot"]["kernel"]["nvidia"]
    assert module.get("counters_for_admins") == (stated[1] != "0" if stated else None)


def test_a_profiler_is_refused_where_the_rule_says_so() -> None:
    profiler = shutil.which("ncu") or next(map(str, Path("/usr/local").glob("cuda*/bin/ncu")), None)
    if profiler is None:
        pytest.skip("no Nsight Compute here")
    done = subprocess.run(
        [profiler, "--metrics", "sm__cycles_elapsed.max", sys.executable, "-c", COMPUTES],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    found = report()
    assert any(path.endswith("ncu") for path in found["snapshot"]["platform"]["programs"])
    refused = "ERR_NVGPUCTRPERM" in done.stdout + done.stderr
    assert ("note" in statuses(found, "profiler-not-permitted")) is refused, done.stdout[-400:]


def test_a_gpu_in_default_mode_takes_a_second_program() -> None:
    """Its mode is read and not changed: others may use it."""
    with program():
        found = report()
    modes = {gpu["compute_mode"] for gpu in found["snapshot"]["gpus"]["items"]}
    assert statuses(found, "gpu-held-exclusively") == ({"pass"} if modes == {"default"} else {"warn"})


def test_the_server_of_mps_is_told_from_its_clients(tmp_path: Path) -> None:
    control = shutil.which("nvidia-cuda-mps-control")
    if control is None:
        pytest.skip("no MPS here")
    folders = {"CUDA_MPS_PIPE_DIRECTORY": str(tmp_path / "pipe"), "CUDA_MPS_LOG_DIRECTORY": str(tmp_path / "log")}
    variables = {**os.environ, **folders}
    for folder in folders.values():
        Path(folder).mkdir()
    if subprocess.run([control, "-d"], env=variables, capture_output=True, check=False).returncode:
        pytest.skip("MPS does not start here")
    try:
        with program(**folders):
            time.sleep(1)
            found = report(**folders)
    finally:
        subprocess.run([control], input="quit\n", env=variables, capture_output=True, text=True, check=False)
    processes = [each for gpu in found["snapshot"]["gpus"]["items"] for each in gpu.get("processes") or ()]
    if str(Path("/proc/self/ns/pid").readlink()) != FIRST_NAMESPACE:
        assert not [each for each in processes if "mps_server" in each], "nobody knows whose numbers these are"
        return
    assert [each["mps_server"] for each in processes].count(True) == 1
    shared = [check for check in found["checks"] if check["rule"] == "gpu-held-exclusively"]
    assert any("server of MPS" in check["title"] for check in shared)
