"""The whole command on machines without a GPU: real driver libraries with nothing behind them, real environments."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.calling import envcheck
from tests.every import cases
from tests.lab.debian_driver import driver_libraries

pytestmark = pytest.mark.lab

ASSUMED = "gpu==H100,driver==550.54.14,os==linux"


def judged(*arguments: str, cwd: Path, **variables: str) -> dict[str, Any]:
    result = envcheck("check", "--json", *arguments, cwd=cwd, **variables)
    assert result.err == ""
    report: dict[str, Any] = json.loads(result.out)
    assert report["exit_code"] == result.status
    assert {probe["status"] for probe in report["probes"]} <= {"ok", "absent", "skipped"}
    return report


def pyenv(version: str) -> Path:
    found = sorted((Path.home() / ".pyenv" / "versions").glob(f"{version}.*/bin/python"))
    if not found:
        pytest.skip(f"there is no Python {version} of pyenv here")
    return found[-1]


@cases("release", "535", "470")
def test_driver_libraries_with_no_gpu_behind_them(release: str, tmp_path: Path) -> None:
    report = judged(cwd=tmp_path, LD_LIBRARY_PATH=str(driver_libraries(release, tmp_path / "driver")))
    assert (report["verdict"], report["primary"]) == ("fail", "no-nvidia-gpu")
    driver = report["snapshot"]["driver"]
    assert driver["installed"] is True
    assert (driver["nvml"]["name"], driver["cuda_init"]["name"]) == ("DRIVER_NOT_LOADED", "CUDA_ERROR_NO_DEVICE")
    assert {
        library["version"].partition(".")[0] for library in driver["libraries"]["items"] if library.get("version")
    } >= {release}
    fails = [check for check in report["checks"] if check["status"] == "fail" and not check["explained_by"]]
    assert [check["rule"] for check in fails] == ["no-nvidia-gpu"]


def test_the_cpu_build_of_pytorch(tmp_path: Path) -> None:
    environment = tmp_path / ".venv"
    uv = str(Path(sys.executable).parent / "uv")
    subprocess.run([uv, "venv", "-q", "--python", sys.executable, str(environment)], check=True)
    install = [sys.executable, "-m", "pip", "--python", str(environment), "install", "-q", "--no-deps", "torch==2.13.0"]
    if subprocess.run(install, check=False, capture_output=True).returncode:
        pytest.skip("the CPU build of torch 2.13.0 cannot be installed here")
    report = judged("--assume", ASSUMED, cwd=tmp_path)
    assert (report["verdict"], report["primary"]) == ("fail", "cpu-only-build")
    (check,) = [check for check in report["checks"] if check["id"] == report["primary_check"]]
    command = check["fixes"][0]["command"]
    assert command[:3] == ["uv", "pip", "install"]
    assert str(environment) in command
    assert judged(cwd=tmp_path)["primary"] == "no-nvidia-gpu"


@cases("version", "2.7", "3.7")
def test_a_python_that_envcheck_itself_cannot_run_on(version: str, tmp_path: Path) -> None:
    report = judged("--python", str(pyenv(version)), "--assume", ASSUMED, cwd=tmp_path)
    (environment,) = [env for env in report["snapshot"]["environments"]["items"] if env.get("judged")]
    assert environment["python"].startswith(version)
    assert environment["problem"] is None
    assert report["verdict"] == "pass"
    assert {check["rule"]: check["status"] for check in report["checks"]}["no-framework"] == "note"


def test_an_environment_whose_base_is_gone(tmp_path: Path) -> None:
    environment = tmp_path / ".venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(environment)], check=True)
    settings = environment / "pyvenv.cfg"
    home = next(line for line in settings.read_text().splitlines() if line.startswith("home = "))
    settings.write_text(settings.read_text().replace(home, f"home = {tmp_path / 'gone'}"))
    for name in ("python", "python3", Path(sys.executable).name):
        link = environment / "bin" / name
        if link.is_symlink():
            link.unlink()
            link.symlink_to(tmp_path / "gone" / "python3")
    report = judged("--assume", ASSUMED, cwd=tmp_path)
    assert (report["verdict"], report["primary"]) == ("fail", "environment-broken")
    (environment_found,) = [env for env in report["snapshot"]["environments"]["items"] if env.get("judged")]
    assert "gone" in environment_found["problem"]
