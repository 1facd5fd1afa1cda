"""What may not be read is not known: taking a permission away never makes a verdict better.

The environments probe runs as another user over a small environment, once for each path that it looked at.
"""

import json
import os
import shutil
import sys
from collections.abc import Callable
from importlib.metadata import PathDistribution
from pathlib import Path
from typing import Any

import msgspec
import pytest

from envcheck.model.checks import Report
from envcheck.pipeline.request import Request
from envcheck.pipeline.session import judge
from probes.common.tree import REFUSED
from tests.every import cases
from tests.probes.conftest import RunProbe
from tests.probes.other_user import as_nobody, as_root

RANK = {"pass": 0, "warn": 1, "unknown": 1, "fail": 2}


@pytest.fixture
def venv(tmp_path: Path) -> Path:
    """A virtual environment of the system's Python with a CPU build of PyTorch and two packages."""
    folder = tmp_path / "venv"
    site = folder / "lib" / "python3.11" / "site-packages"
    for name in ("torch/lib", "numpy"):
        (site / name).mkdir(parents=True)
    for name, version, requires in (("torch", "2.5.1+cpu", "numpy"), ("numpy", "2.1.0", ""), ("six", "1.16", "")):
        info = site / f"{name}-{version}.dist-info"
        info.mkdir()
        text = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        (info / "METADATA").write_text(text + (f"Requires-Dist: {requires}\n" if requires else ""))
        (info / "INSTALLER").write_text("pip\n")
        module = "six.py" if name == "six" else f"{name}/__init__.py"
        (info / "RECORD").write_text(f"{module},,\n{name}-{version}.dist-info/METADATA,,\n")
    (site / "torch" / "__init__.py").write_text("x = 1\n")
    (site / "torch" / "version.py").write_text("__version__ = '2.5.1+cpu'\ncuda = None\nhip = None\n")
    (site / "numpy" / "__init__.py").write_text("x = 1\n")
    (site / "six.py").write_text("x = 1\n")
    (site / "more.pth").write_text("numpy\n")
    base = tmp_path / "base"
    (base / "lib" / "python3.11").mkdir(parents=True)
    (base / "lib" / "python3.11" / "os.py").touch()
    (base / "bin").mkdir()
    shutil.copy(os.path.realpath(sys.executable), base / "bin" / "python3.11")
    (folder / "bin").mkdir()
    (folder / "bin" / "python").symlink_to(base / "bin" / "python3.11")
    (folder / "pyvenv.cfg").write_text(f"home = {base}/bin\nversion = 3.11.2\n")
    for place in (tmp_path, *list(tmp_path.parents)[:-2]):
        place.chmod(place.stat().st_mode | 0o055)
    return folder


def examined(run_probe: RunProbe, *, tried: bool = True, **request: object) -> Report:
    """Without fixes, but for those that rules have, unless they are asked for with ``tried=False``."""
    REFUSED.clear()
    snapshot, done = run_probe("environments", {"variables": {}, **request}, sourced=False)
    assert done["status"] in ("ok", "absent")
    return judge(snapshot, Request(scopes=frozenset({"env"}), tried=tried))


def unreadable(report: Report) -> dict[str, str]:
    assert report.snapshot
    assert report.snapshot.environments
    return {part.path: part.problem for part in report.snapshot.environments.items[0].unreadable or ()}


def opened(report: Report) -> list[str]:
    return [check.rule for check in report.checks if check.status in ("warn", "fail")]


def test_a_whole_environment_is_read_whole(venv: Path, run_probe: RunProbe) -> None:
    report = examined(run_probe, python=[str(venv)])
    assert unreadable(report) == {}
    assert "environment-unreadable" not in {check.rule for check in report.checks}
    assert opened(report) == ["cpu-only-build"] or report.verdict in ("pass", "fail", "warn")


def loop(site: Path) -> None:
    shutil.rmtree(site)
    site.symlink_to(site)


def dangling(site: Path) -> None:
    shutil.rmtree(site)
    site.symlink_to("nowhere")


def plain_file(site: Path) -> None:
    shutil.rmtree(site)
    site.touch()


@cases("change, reason",
    (loop, "Too many levels of symbolic links"), (dangling, "it is a dangling link"),
    (plain_file, "it is not a folder"), (shutil.rmtree, "it is gone"),
)  # fmt: skip
def test_packages_that_are_not_where_python_looks(
    change: Callable[[Path], None], reason: str, venv: Path, run_probe: RunProbe
) -> None:
    site = venv / "lib" / "python3.11" / "site-packages"
    change(site)
    report = examined(run_probe, python=[str(venv)])
    assert (report.verdict, report.exit_code) == ("unknown", 3)
    assert unreadable(report)[str(site)] == reason
    assert f"{site}: {reason}" in next(one for one in report.checks if one.rule == "environment-unreadable").message


def test_a_virtual_environment_without_its_configuration(venv: Path, run_probe: RunProbe) -> None:
    (venv / "pyvenv.cfg").unlink()
    report = examined(run_probe, python=[str(venv / "bin" / "python")])
    assert report.verdict == "unknown"
    assert list(unreadable(report)) == [str(venv / "pyvenv.cfg")]


@as_root
@cases("name", "", "lib", "lib/python3.11", "lib/python3.11/site-packages", "bin", "pyvenv.cfg")
@cases("how", "--python", "./.venv", "VIRTUAL_ENV")
def test_a_closed_part_of_an_environment(name: str, how: str, venv: Path, run_probe: RunProbe) -> None:
    asked: dict[str, Any] = {"python": [str(venv)]}
    if how == "./.venv":
        venv = venv.rename(venv.parent / ".venv")
        asked = {"cwd": str(venv.parent), "variables": {"PATH": "/usr/bin:/bin"}}
    elif how == "VIRTUAL_ENV":
        asked = {"variables": {"VIRTUAL_ENV": str(venv), "PATH": "/usr/bin:/bin"}}
    (venv / name).chmod(0)
    with as_nobody():
        report = examined(run_probe, **asked)
    assert report.verdict == "unknown", (opened(report), unreadable(report))
    assert set(unreadable(report).values()) == {"Permission denied"}
    assert any(path.startswith(str(venv / name)) for path in unreadable(report))


@as_root
def test_no_permission_taken_away_makes_the_verdict_better(venv: Path, run_probe: RunProbe) -> None:
    """Every file and folder of it, one after the other; nothing is told to be deleted or installed again either."""
    with as_nobody():
        whole = examined(run_probe, python=[str(venv)])
    for path in sorted(venv.rglob("*")):
        if path.is_symlink():
            continue
        before = path.stat().st_mode
        path.chmod(0)
        with as_nobody():
            report = examined(run_probe, python=[str(venv)], tried=False)
        path.chmod(before)
        looked_at = any(Path(part) == path or path in Path(part).parents for part in unreadable(report))
        if looked_at:
            assert report.verdict == "unknown" or set(opened(report)) <= set(opened(whole)), path
        else:
            assert (report.verdict, opened(report)) == (whole.verdict, opened(whole)), path
        assert RANK[report.verdict] >= RANK[whole.verdict] or report.verdict == "unknown", path
        commands = [part for one in report.checks if one.status != "pass" for fix in one.fixes for part in fix.command]
        assert not {"rm", "--force-reinstall", "uninstall"} & set(commands), path


@as_root
@cases("closed, verdict",
    ("six-1.16.dist-info/METADATA", "fail"), ("six-1.16.dist-info", "fail"), ("six.py", "fail"), ("numpy", "fail"),
    ("torch", "unknown"), ("torch-2.5.1+cpu.dist-info/METADATA", "unknown"),
    ("torch-2.5.1+cpu.dist-info/RECORD", "unknown"), ("more.pth", "unknown"), ("", "unknown"),
)  # fmt: skip
def test_what_is_certain_stays_a_failure(closed: str, verdict: str, venv: Path, run_probe: RunProbe) -> None:
    """A file of PyTorch is gone: only what may tell otherwise leaves that open."""
    site = venv / "lib" / "python3.11" / "site-packages"
    (site / "torch-2.5.1+cpu.dist-info" / "RECORD").write_text("torch/__init__.py,,\ntorch/nn.py,,\n")
    with as_nobody():
        whole = examined(run_probe, python=[str(venv)])
    assert whole.verdict == "fail"
    (site / closed).chmod(0)
    with as_nobody():
        report = examined(run_probe, python=[str(venv)])
    assert report.verdict == verdict, opened(report)
    assert set(opened(report)) <= set(opened(whole))


@pytest.fixture
def conda(venv: Path) -> Path:
    """The same as an environment of conda, one of whose packages requires what is not there."""
    (venv / "pyvenv.cfg").unlink()
    for name, build, depends in (("python", "h1", []), ("numpy", "py311", []), ("pytorch", "cuda12.4_0", ["absent"])):
        record = venv / "conda-meta" / f"{name}-2.5.1-{build}.json"
        record.parent.mkdir(exist_ok=True)
        record.write_text(json.dumps({"name": name, "version": "2.5.1", "depends": depends, "files": []}))
    (venv / "conda-meta" / "history").touch()
    (venv / "bin" / "python").unlink()
    shutil.copy(os.path.realpath(sys.executable), venv / "bin" / "python3.11")
    (venv / "bin" / "python").symlink_to("python3.11")
    (venv / "lib" / "python3.11" / "os.py").touch()
    return venv


@pytest.fixture
def wheel(venv: Path) -> Path:
    """The same with a real package, as it was installed for these tests."""
    site = venv / "lib" / "python3.11" / "site-packages"
    found = PathDistribution(next(Path(msgspec.__file__).parents[1].glob("msgspec-*.dist-info")))
    for file in found.files or ():
        if ".." not in file.parts and "__pycache__" not in file.parts:
            (site / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file.locate(), site / file)
    return venv


@as_root
@cases("kind", "conda", "wheel")
def test_nor_does_it_in_other_environments(kind: str, request: pytest.FixtureRequest, run_probe: RunProbe) -> None:
    folder: Path = request.getfixturevalue(kind)
    with as_nobody():
        whole = examined(run_probe, python=[str(folder)])
    noticed = 0
    for path in sorted(folder.rglob("*")):
        if path.is_symlink():
            continue
        before = path.stat().st_mode
        path.chmod(0)
        with as_nobody():
            report = examined(run_probe, python=[str(folder)])
        path.chmod(before)
        assert set(opened(report)) <= set(opened(whole)), path
        assert report.verdict == "unknown" or RANK[report.verdict] >= RANK[whole.verdict], path
        if any(part.startswith(str(folder)) for part in REFUSED):
            assert report.verdict == "unknown" or opened(report), path
            assert unreadable(report), path
            noticed += 1
    assert noticed > 5
