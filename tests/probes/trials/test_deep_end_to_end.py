"""``envcheck check --deep`` on environments whose frameworks are made up: what they do is real, what they are is not.

The interpreters are real, and so are the shipped probes; frameworks at work are in tests/lab and tests/gpu.
"""

import json
import os
import subprocess
import sys
import venv
from pathlib import Path
from typing import Any

import pytest

from tests.cli.calling import ROOT, envcheck, refused
from tests.every import cases
from tests.installed import INSTALLED

PYENV = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
SEGFAULT = "import ctypes; ctypes.string_at(0)"


def python_of(version: str) -> Path:
    """An interpreter of that minor version that pyenv installed."""
    found = sorted(PYENV.glob(f"versions/{version}.*/bin/python{version}"))
    if not found:
        pytest.skip(f"no Python {version} below pyenv's root")
    return found[-1]


def make_environment(folder: Path, code: str, python: Path | str = sys.executable) -> Path:
    """A virtual environment with a package ``torch`` that is ``code``, and metadata that says 2.5.1."""
    if python == sys.executable:
        venv.create(folder, symlinks=True)
    else:
        subprocess.run([python, "-m", "venv", "--without-pip", folder], check=True)
    (site,) = folder.glob("lib/python*/site-packages")
    add_torch(site, code)
    (site / "torch-2.5.1.dist-info").mkdir()
    (site / "torch-2.5.1.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: torch\nVersion: 2.5.1\n")
    return folder


def add_torch(site: Path, code: str, version: str = "2.5.1+cu124") -> None:
    (site / "torch").mkdir(parents=True)
    (site / "torch" / "__init__.py").write_text(code)
    (site / "torch" / "version.py").write_text(f"__version__ = '{version}'\ncuda = '12.4'\nhip = None\n")


def deep(folder: Path, environment: Path, *arguments: str, **variables: str) -> dict[str, Any]:
    arguments = ("check", "--deep", "--quiet", "--json", "--scope", "env", "--python", str(environment), *arguments)
    result = envcheck(*arguments, cwd=folder, **variables)
    assert result.err == ""
    report: dict[str, Any] = json.loads(result.out)
    return report


def judged(report: dict[str, Any]) -> dict[str, Any]:
    (environment,) = [found for found in report["snapshot"]["environments"]["items"] if found.get("judged")]
    (framework,) = [found for found in environment["frameworks"]["items"] if found["name"] == "torch"]
    trial: dict[str, Any] = framework["trial"]
    return trial


def statuses(report: dict[str, Any]) -> dict[str, str]:
    return {check["rule"]: check["status"] for check in report["checks"] if check["subject"]["key"].endswith(":torch")}


def row(report: dict[str, Any], name: str = "deep.torch") -> dict[str, Any]:
    (found,) = [probe for probe in report["probes"] if probe["name"] == name]
    return dict(found)


@cases(
    "code, error", (SEGFAULT, "crashed: SIGSEGV while importing torch"),
    ("import os; os._exit(3)", "exited with status 3 while importing torch"),
    ("raise OSError('libcudart.so.11.0: cannot open shared object file')", "OSError: libcudart.so.11.0: cannot"),
    ("import sys; sys.exit('no')", "SystemExit: no"),
    ("import no_such_part", "ModuleNotFoundError: No module named 'no_such_part'"), ("x = (", "SyntaxError: "),
)  # fmt: skip
def test_an_import_that_fails(tmp_path: Path, code: str, error: str) -> None:
    report = deep(tmp_path, make_environment(tmp_path / "env", code))
    trial = judged(report)
    assert trial["imported"] is False
    assert trial["error"].startswith(error)
    assert statuses(report)["framework-import-fails"] == "fail"
    assert report["exit_code"] == 1
    (found,) = [check for check in report["checks"] if check["rule"] == "framework-import-fails"]
    assert found["message"] == trial["error"]


def test_rubbish_does_no_harm(tmp_path: Path) -> None:
    code = (
        'import os, sys\nprint(\'{"probe": "deep.torch", "fact": {}}\')\nos.write(1, bytes(range(256)) * 500)\n'
        "os.closerange(3, 200)\n__version__ = '\\x1b[2J' * 9000\n"
    )
    report = deep(tmp_path, make_environment(tmp_path / "env", code))
    text = json.dumps(report)
    assert "\\u001b" not in row(report)["noise"]
    assert row(report)["status"] in ("ok", "failed")
    assert text


def test_an_import_that_hangs_ends_with_the_whole_run(tmp_path: Path) -> None:
    report = deep(tmp_path, make_environment(tmp_path / "env", "import time; time.sleep(600)"), "--timeout", "8")
    assert row(report)["status"] == "timed-out"
    assert "while importing torch" in row(report)["detail"]
    assert judged(report).get("imported") is None
    assert statuses(report)["framework-import-fails"] == "unknown"


TORCH = """
import sys
from torch import version
__version__ = version.__version__
python = sys.version.split()[0]
def compiled_with_cxx11_abi():
    return python
"""


@cases("version", "3.8", "3.9", "3.13")
def test_every_python_from_3_8_on_runs_trials(tmp_path: Path, version: str) -> None:
    report = deep(tmp_path, make_environment(tmp_path / "env", TORCH, python_of(version)))
    trial = judged(report)
    assert (trial["imported"], row(report)["status"]) == (True, "ok")
    assert trial["answers"]["version"] == "2.5.1+cu124"
    assert trial["answers"]["C++11 ABI"].startswith(f"{version}."), "by the environment's own interpreter"


def test_an_older_python_is_not_started(tmp_path: Path) -> None:
    report = deep(tmp_path, make_environment(tmp_path / "env", SEGFAULT, python_of("3.7")))
    assert row(report)["status"] == "skipped"
    assert row(report)["detail"].startswith("a trial needs Python 3.8 or newer; this is 3.7.")


@cases("package, one", ("probes.deep", "torch"), ("probes", "verify"))
def test_what_runs_elsewhere_is_read_by_python_3_8(package: str, one: str) -> None:
    modules = sorted(path.stem for path in ROOT.joinpath(*package.split(".")).glob("[a-z]*.py"))
    assert one in modules
    imports = ", ".join(f"{package}.{name}" for name in modules)
    code = f"import sys; sys.path.insert(0, {str(ROOT)!r}); import {imports}"
    subprocess.run([python_of("3.8"), "-I", "-B", "-c", code], check=True)


def test_what_pythonpath_puts_first_is_what_is_tried(tmp_path: Path) -> None:
    environment = make_environment(tmp_path / "env", SEGFAULT)
    add_torch(tmp_path / "shadow", TORCH, version="9.9.9+cu124")
    assert judged(deep(tmp_path, environment, PYTHONPATH=f"{INSTALLED}:shadow"))["answers"]["version"] == "9.9.9+cu124"


def test_nothing_is_written_into_the_environment_or_beside_it(tmp_path: Path) -> None:
    environment = make_environment(tmp_path / "env", TORCH)
    for name in ("home", "tmp", "work"):
        (tmp_path / name).mkdir()
    before = {path: path.lstat().st_mtime_ns for path in tmp_path.rglob("*") if path.name != "tmp"}
    deep(tmp_path / "work", environment, HOME=str(tmp_path / "home"), TMPDIR=str(tmp_path / "tmp"))
    assert {path: path.lstat().st_mtime_ns for path in tmp_path.rglob("*") if path.name != "tmp"} == before
    assert list((tmp_path / "tmp").iterdir()) == []


@cases("assumed, what", ("gpu==H100", "machine"), ("torch==2.4.0+cu124", "environment"))
def test_what_is_assumed_is_not_tried(tmp_path: Path, assumed: str, what: str) -> None:
    report = deep(tmp_path, make_environment(tmp_path / "env", SEGFAULT), "--assume", assumed)
    assert row(report)["status"] == "skipped"
    assert row(report)["detail"] == f"not assumed (--assume describes another {what})"


def test_unasked_nothing_is_started(tmp_path: Path) -> None:
    environment = make_environment(tmp_path / "env", f"open({str(tmp_path / 'mark')!r}, 'w')")
    envcheck("check", "--json", "--force", "--python", str(environment), cwd=tmp_path)
    assert not (tmp_path / "mark").exists()
    deep(tmp_path, environment)
    assert (tmp_path / "mark").exists(), "asked, it is"


def test_a_saved_report_cannot_be_tried(tmp_path: Path) -> None:
    (tmp_path / "report.json").write_text("{}")
    assert "--deep" in refused("check", "--deep", "--from", "report.json", cwd=tmp_path)


def test_the_page_says_what_was_tried(tmp_path: Path) -> None:
    environment = make_environment(tmp_path / "env", TORCH)
    assert "Not tested: framework import (--deep)" in envcheck("check", "--python", str(environment), cwd=tmp_path).out
    page = envcheck("check", "--deep", "--python", str(environment), cwd=tmp_path).out
    assert "import (--deep)" not in page
    assert "torch 2.5.1+cu124, imported" in page
