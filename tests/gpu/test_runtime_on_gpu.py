"""What programs need when they run, broken for real on a machine with a GPU: a program fails, envcheck names why, and
with the fix both are well again. Mounts are made in a private namespace.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.every import cases

ROOT = Path(__file__).resolve().parents[2]
COMPILES = "import torch; print(torch.compile(lambda x: x * 2 + 1)(torch.ones(4096, device='cuda')).sum().item())"
COMPUTES = "import torch; print(torch.ones(4096, device='cuda').sum().item())"
MEETS = """
import torch, torch.distributed as d
d.init_process_group("{}", init_method="tcp://127.0.0.1:29{}", rank=0, world_size=1)
x = torch.ones(8{}); d.all_reduce(x); print(x.sum().item())
"""
LOADS = """
import torch
data = torch.utils.data.DataLoader([torch.zeros(1 << 22)] * 4, num_workers=1)
print(sum(each.sum().item() for each in data))
"""


class Case(NamedTuple):
    """What breaks it, in words of bash; ``{tmp}`` is a folder of the test."""

    rule: str
    breaks: str
    mends: str = ""
    """What is said besides, as the fix says; ``-``: nothing is broken then."""
    program: str = ""
    """What fails; empty: programs are only slow."""
    least: str = "warn"


BROKEN = {
    "the cache is read-only":
     Case("cache-not-writable", "mount -t tmpfs -o ro none {tmp}; export TRITON_CACHE_DIR={tmp}",
     "export TRITON_CACHE_DIR=$OTHER", COMPILES),
    "a file in the place of the cache":
     Case("cache-not-writable", "export TRITON_CACHE_DIR=/dev/null/cache", "export TRITON_CACHE_DIR=$OTHER", COMPILES),
    "code cannot be loaded from the cache":
     Case("cache-not-writable", "mount -t tmpfs -o noexec none {tmp}; export TRITON_CACHE_DIR={tmp}",
     "export TRITON_CACHE_DIR=$OTHER", COMPILES),
    "the cache is full":
     Case("cache-not-writable", "mount -t tmpfs -o size=16k none {tmp}; export TRITON_CACHE_DIR={tmp}",
     "export TRITON_CACHE_DIR=$OTHER", COMPILES),
    "home is read-only":
     Case("cache-not-writable", "mount -t tmpfs -o ro none {tmp}; export HOME={tmp}", "export HOME=$OTHER", COMPILES),
    "torch.compile has no folder": Case(
        "cache-not-writable", "export TORCHINDUCTOR_CACHE_DIR=/dev/null/x", "unset TORCHINDUCTOR_CACHE_DIR", COMPILES
    ),
    "few addresses": Case("limit-too-low", "ulimit -v 8388608", "-", COMPUTES, "fail"),
    "few files": Case("limit-too-low", "ulimit -n 32", "-", COMPUTES),
    "one processor": Case("process-confined", "taskset -p -c 0 $$ > /dev/null", "-"),
    "OpenMP on one processor": Case("variable-costs-speed", "export OMP_PLACES='{0}'", "unset OMP_PLACES"),
    "Intel's OpenMP on one processor":
     Case("variable-costs-speed", "export KMP_AFFINITY=proclist=[0],explicit", "unset KMP_AFFINITY"),
    "NCCL's interface":
     Case("network-name-unknown", "export NCCL_SOCKET_IFNAME==nope0", "unset NCCL_SOCKET_IFNAME",
     MEETS.format("nccl", "501", ", device='cuda'")),
    "Gloo's interface":
     Case("network-name-unknown", "export GLOO_SOCKET_IFNAME=nope0", "unset GLOO_SOCKET_IFNAME",
     MEETS.format("gloo", "502", "")),
    "little shared memory": Case(
        "shared-memory-too-small", "mount -t tmpfs -o size=1m none /dev/shm", "mount -o remount,size=1g /dev/shm", LOADS
    ),
    "a compiler that is not there": Case("variable-stops-framework", "export CC=/nowhere/gcc", "unset CC", COMPILES),
    "no compiler on PATH":
     Case("jit-compiler-missing", "mkdir -p {tmp}/bin; ln -sf $(which env) {tmp}/bin; export PATH={tmp}/bin; unset CC",
     "-", COMPILES, "note"),
}  # fmt: skip
WORST = ("fail", "warn", "note")


@pytest.fixture(scope="module")
def interpreter() -> str:
    for candidate in filter(None, (sys.executable, shutil.which("python3"))):
        if subprocess.run([candidate, "-c", "import torch, triton"], check=False, capture_output=True).returncode == 0:
            return candidate
    pytest.skip("no PyTorch with Triton here")


def shell(script: str, tmp_path: Path) -> subprocess.CompletedProcess[str]:
    for name in ("TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR"):
        (tmp_path / "fresh" / name).mkdir(parents=True, exist_ok=True)
    fresh = {name: str(tmp_path / "fresh" / name) for name in ("TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR")}
    kept = {name: value for name, value in os.environ.items() if name not in ("HOME", *fresh)}
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    (tmp_path / "other").mkdir(exist_ok=True)
    variables = {**kept, "HOME": str(tmp_path / "other"), "OTHER": str(tmp_path / "other"), "PYTHONPATH": path}
    if "HOME=" not in script:
        variables["TORCHINDUCTOR_CACHE_DIR"] = fresh["TORCHINDUCTOR_CACHE_DIR"]
    return subprocess.run(
        ["unshare", "-m", "bash", "-c", script], cwd="/", env=variables, capture_output=True, text=True, check=False
    )


def statuses(report: dict[str, Any], rule: str) -> list[str]:
    return [check["status"] for check in report["checks"] if check["rule"] == rule]


@cases("name", *BROKEN)
def test_it_is_broken_named_and_mended(interpreter: str, tmp_path: Path, name: str) -> None:
    if shell("true", tmp_path).returncode:
        pytest.skip("no private mount namespace can be made here")
    case = BROKEN[name]
    (tmp_path / "mounted").mkdir()
    breaks = case.breaks.replace("{tmp}", str(tmp_path / "mounted"))
    check = f"{sys.executable} -m envcheck check --json --python {interpreter}"
    program = tmp_path / "program.py"
    program.write_text(case.program)
    before = json.loads(shell(check, tmp_path).stdout)
    assert not set(statuses(before, case.rule)) & {"fail", "warn"}, "it is no false alarm"
    if case.program:
        assert shell(f"{breaks}; {interpreter} {program}", tmp_path).returncode, "it is really broken"
    done = shell(f"{breaks}; {check}", tmp_path)
    found = statuses(json.loads(done.stdout), case.rule)
    assert set(found) & set(WORST[: WORST.index(case.least) + 1]), (found, done.stderr[-500:])
    mended = "true" if case.mends == "-" else f"{breaks}; {case.mends}"
    after = statuses(json.loads(shell(f"{mended}; {check}", tmp_path).stdout), case.rule)
    assert not set(after) & {"fail", "warn"}, "the fix ends it"
    if case.program:
        ran = shell(f"{mended}; {interpreter} {program}", tmp_path)
        assert ran.returncode == 0, ran.stderr[-800:]


def test_what_cannot_be_reached_is_the_cause(interpreter: str, tmp_path: Path) -> None:
    """Under a limit of addresses cuInit says 'out of memory': the limit is the headline, and no memory is short."""
    done = shell(f"ulimit -v 8388608; {sys.executable} -m envcheck check --json --python {interpreter}", tmp_path)
    report = json.loads(done.stdout)
    assert report["verdict"] == "fail"
    open_failures = {each["rule"] for each in report["checks"] if each["status"] == "fail" and not each["explained_by"]}
    assert open_failures == {"limit-too-low"}, report["headline"]
