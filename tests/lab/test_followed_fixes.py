"""Fixes that are followed word by word in real environments, until the check passes: none goes round in circles."""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.calling import envcheck

pytestmark = pytest.mark.lab

H100 = "gpu==H100,driver==580.65.06,os==linux"
ROUNDS = 3
SECONDS = 1200


@pytest.fixture
def prefix(tmp_path: Path) -> Iterator[Path]:
    """A virtual environment with pip, which goes afterwards."""
    place = tmp_path / ".venv"
    subprocess.run([sys.executable, "-m", "venv", place], check=True)
    yield place
    shutil.rmtree(tmp_path, ignore_errors=True)


def put(prefix: Path, *wheels: str) -> None:
    """One after the other, as an environment grows, and without what they require."""
    for wheel in wheels:
        run(str(prefix / "bin" / "python"), "-m", "pip", "install", "-q", "--no-deps", "--only-binary=:all:", wheel)


def run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=SECONDS)
    if done.returncode:
        pytest.skip(f"{' '.join(command[-3:])}: {(done.stderr.strip().splitlines() or ['no reason given'])[-1]}")


def findings(prefix: Path) -> list[dict[str, Any]]:
    """What fails or warns, the primary one first."""
    words = ("check", "--json", "--scope", "env", "--python", str(prefix), "--assume", H100)
    report = json.loads(envcheck(*words, cwd=prefix.parent).out)
    bad = [check for check in report["checks"] if check["status"] in ("fail", "warn")]
    return sorted(bad, key=lambda check: check["id"] != report["primary_check"])


def first_way(check: dict[str, Any]) -> list[list[str]]:
    """The commands of the first way, step by step."""
    steps: list[dict[str, Any]] = []
    for fix in check["fixes"]:
        if steps and not fix["continues"]:
            break
        steps.append(fix)
    return [fix["command"] for fix in steps if fix["command"]]


def follow(prefix: Path) -> list[str]:
    """The rules of the primary findings on the way to a check that passes."""
    met: list[str] = []
    for _ in range(ROUNDS):
        bad = findings(prefix)
        if not bad:
            return met
        assert bad[0]["id"] not in met, f"round in circles: {met}"
        commands = first_way(bad[0])
        assert commands, f"no command for {bad[0]['id']}"
        for command in commands:
            run(*command)
        met.append(bad[0]["id"])
    assert not findings(prefix), f"still broken after {met}"
    return met


def rules(met: list[str]) -> list[str]:
    return [identity.partition("@")[0] for identity in met]


def test_a_numpy_that_is_too_new_for_numba(prefix: Path) -> None:
    put(prefix, "numba==0.60.0", "llvmlite==0.43.0", "numpy==2.3.0")
    assert rules(follow(prefix)) == ["numpy-abi-mismatch"]


def test_a_jax_plugin_of_another_release(prefix: Path) -> None:
    put(prefix, "jax==0.5.0", "jaxlib==0.5.0", "jax-cuda12-plugin==0.4.35", "numpy==1.26.4")
    put(prefix, "scipy", "opt-einsum", "ml-dtypes")
    assert rules(follow(prefix)) == ["jax-plugin-mismatch"]


def test_nccl_of_two_majors_of_cuda(prefix: Path) -> None:
    put(prefix, "nvidia-nccl-cu12==2.18.1", "nvidia-nccl-cu13==2.27.7")
    assert rules(follow(prefix)) == ["nvidia-wheel-conflict"]


def test_a_python_that_is_gone(prefix: Path) -> None:
    put(prefix, "numba==0.60.0", "llvmlite==0.43.0", "numpy==1.26.4")
    minor = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    if shutil.which(minor) is None:
        pytest.skip(f"no {minor} on PATH")
    settings = prefix / "pyvenv.cfg"
    lines = [line for line in settings.read_text().splitlines() if not line.startswith(("home", "executable"))]
    settings.write_text("\n".join(["home = /gone/bin", *lines]))
    link = prefix / "bin" / minor
    for name in ("python", "python3", minor):
        (prefix / "bin" / name).unlink()
        (prefix / "bin" / name).symlink_to(minor if name != minor else f"/gone/bin/{minor}")
    assert not link.exists()
    assert rules(follow(prefix)) == ["environment-broken"]
