"""Nothing of an environment runs while it is examined, and nothing in it is changed or followed without end."""

import os
import sys
import time
from pathlib import Path

import pytest

from probes.common import tasks
from tests.every import cases
from tests.known import known
from tests.probes.conftest import RunProbe
from tests.probes.environment_trees import DATA


@pytest.fixture
def mark(tmp_path: Path) -> Path:
    return tmp_path / "mark"


@pytest.fixture
def project(tmp_path: Path, mark: Path) -> Path:
    """A project whose ``.venv`` would leave a mark in every way a file of it can be run; each way is tried below."""
    site = tmp_path / "project" / ".venv" / "lib" / "python3.11" / "site-packages"
    programs = tmp_path / "project" / ".venv" / "bin"
    for folder in (site / "torch", site / "torch-2.5.1.dist-info", programs):
        folder.mkdir(parents=True)
    (tmp_path / "project" / ".venv" / "pyvenv.cfg").write_text("home = /usr/bin\nversion = 3.11.2\n")
    code = f"open({str(mark)!r}, 'a').write(__name__)\n"
    (site / "evil.pth").write_text(f"import sys; {code}")
    for name in ("sitecustomize.py", "usercustomize.py", "torch/__init__.py", "json.py"):
        (site / name).write_text(code)
    (site / "torch" / "version.py").write_text((DATA / "torch-2.5.1.version.txt").read_text() + code)
    (site / "torch-2.5.1.dist-info" / "METADATA").write_text("Name: torch\nVersion: 2.5.1\n")
    for name in ("python", "python3", "python3.11", "pip", "activate"):
        (programs / name).write_text(f"#!/bin/sh\necho run >> '{mark}'\n")
        (programs / name).chmod(0o755)
    return tmp_path / "project"


def state(folder: Path) -> dict[str, tuple[int, int, int]]:
    """Every file's size, mode and time of change."""
    found = {str(path): path.lstat() for path in folder.rglob("*")}
    return {path: (stat.st_size, stat.st_mode, stat.st_mtime_ns) for path, stat in found.items()}


def test_the_mark_would_be_left(project: Path, mark: Path) -> None:
    """Without this the next test could not fail."""
    os.spawnv(os.P_WAIT, project / ".venv" / "bin" / "python", ["python"])
    assert mark.read_text() == "run\n"
    site = project / ".venv" / "lib" / "python3.11" / "site-packages"
    code = f"import site; site.addsitedir({str(site)!r}); import sitecustomize, torch, torch.version"
    os.spawnve(os.P_WAIT, sys.executable, [sys.executable, "-S", "-B", "-c", code], {})
    assert mark.read_text() == "run\n__main__sitecustomizetorchtorch.version".replace("__main__", "site")


@cases("way", "cwd", "--python", "VIRTUAL_ENV", "PATH", "PYTHONPATH")
def test_no_mark_is_left(project: Path, mark: Path, run_probe: RunProbe, way: str) -> None:
    venv = project / ".venv"
    elsewhere = {"root": "/", "cwd": "/", "own_prefix": sys.prefix}
    request = {
        "cwd": {**elsewhere, "cwd": str(project)},
        "--python": {**elsewhere, "python": [str(venv / "bin" / "python")]},
        "VIRTUAL_ENV": {**elsewhere, "variables": {"VIRTUAL_ENV": str(venv)}},
        "PATH": {**elsewhere, "variables": {"PATH": str(venv / "bin")}},
        "PYTHONPATH": {**elsewhere, "variables": {"PYTHONPATH": str(venv / "lib/python3.11/site-packages")}},
    }[way]
    before = state(project)
    snapshot, _ = run_probe("environments", request)
    assert not mark.exists()
    assert state(project) == before
    judged = next(item for item in known(snapshot.environments).items if item.judged)
    assert [item.version for item in known(judged.frameworks).items] == ["2.5.1+cu124"]
    if way != "PYTHONPATH":
        assert known(judged.problem).endswith("is a script, which is never run here; name the interpreter itself")


def test_no_program_is_started(project: Path, run_probe: RunProbe, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks, "_other_cores", lambda: 0)  # the only forks are those of run_tasks, which start nothing
    seen: list[str] = []
    armed = True

    def watch(event: str, _arguments: object) -> None:
        if armed and event in {
            "subprocess.Popen",
            "os.exec",
            "os.fork",
            "os.posix_spawn",
            "os.system",
            "ctypes.dlopen",
        }:
            seen.append(event)

    sys.addaudithook(watch)
    run_probe("environments", {"cwd": str(project), "variables": dict(os.environ)})
    armed = False
    assert seen == []


def test_two_thousand_distributions_are_read_in_time(tmp_path: Path, run_probe: RunProbe) -> None:
    """Far above what is measured, so that a slow machine passes and a second look at every file does not."""
    site = tmp_path / ".venv" / "lib" / "python3.11" / "site-packages"
    site.mkdir(parents=True)
    (tmp_path / ".venv" / "pyvenv.cfg").write_text("home = /usr/bin\ninclude-system-site-packages = false\n")
    for number in range(2000):
        folder = site / f"package_{number}-1.{number}.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(f"Name: package-{number}\nVersion: 1.{number}\n")
        (folder / "INSTALLER").write_text("uv")
    start = time.perf_counter()
    snapshot, _ = run_probe("environments", {"python": [str(tmp_path / ".venv")]}, sourced=False)
    assert time.perf_counter() - start < 25
    first = known(snapshot.environments).items[0]
    assert first.distributions_complete
    assert len(first.distributions or ()) == 2000
