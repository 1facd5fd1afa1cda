"""Nothing of an inspected environment runs, and nothing is written, whatever the account and the machine lack."""

import json
import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from tests.cli.calling import ROOT, envcheck
from tests.every import cases
from tests.installed import INSTALLED


def tree(folder: Path) -> dict[str, tuple[int, int]]:
    return {
        str(path.relative_to(folder)): (path.lstat().st_mtime_ns, path.lstat().st_size) for path in folder.rglob("*")
    }


def sources(folder: Path) -> dict[str, tuple[int, int]]:
    """Without the bytecode of envcheck's own modules, which is kept as any program's."""
    return {name: seen for name, seen in tree(folder).items() if "__pycache__" not in Path(name).parts}


def plant(environment: Path, mark: Path) -> None:
    """An environment in which every way to run code on the way to PyTorch would leave a mark."""
    code = f"open({str(mark)!r}, 'a').write(__name__)\n"
    site = environment / "lib" / f"python{sysconfig.get_python_version()}" / "site-packages"
    (site / "torch").mkdir(parents=True)
    (site / "planted.pth").write_text(f"import os; exec({code!r})\n")
    (site / "sitecustomize.py").write_text(code)
    (site / "usercustomize.py").write_text(code)
    (site / "torch" / "__init__.py").write_text(code)
    (site / "torch" / "version.py").write_text(f"__version__ = '2.5.1+cpu'\ncuda = None\nhip = None\n{code}")
    (site / "torch-2.5.1+cpu.dist-info").mkdir()
    (site / "torch-2.5.1+cpu.dist-info" / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: torch\nVersion: 2.5.1+cpu\n"
    )
    (environment / "bin").mkdir()
    (environment / "pyvenv.cfg").write_text(
        f"home = {Path(sys.base_prefix) / 'bin'}\nversion = {sys.version.split()[0]}\n"
    )
    for name in ("python", "python3", "nvcc", "nvidia-smi", "conda", "uv"):
        program = environment / "bin" / name
        program.write_text(f"#!/bin/sh\necho {name} >> {mark}\n")
        program.chmod(0o755)


@cases("found_by", "./.venv", "VIRTUAL_ENV", "--python", "PATH", "CONDA_PREFIX")
def test_nothing_of_the_environment_runs(found_by: str, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    environment = tmp_path / ".venv" if found_by == "./.venv" else tmp_path / "environment"
    plant(environment, mark)
    arguments, variables = [], {}
    if found_by == "--python":
        arguments = ["--python", str(environment / "bin" / "python")]
    elif found_by == "PATH":
        variables["PATH"] = f"{environment / 'bin'}:{os.environ['PATH']}"
    elif found_by != "./.venv":
        variables[found_by] = str(environment)
    result = envcheck("check", "--json", *arguments, cwd=tmp_path, **variables)
    assert not mark.exists(), mark.read_text()
    (judged,) = [env for env in json.loads(result.out)["snapshot"]["environments"]["items"] if env.get("judged")]
    assert judged["why"] == found_by
    (framework,) = judged["frameworks"]["items"]
    assert (framework["version"], framework["cpu_only"]) == ("2.5.1+cpu", True)


def test_nothing_is_written(tmp_path: Path) -> None:
    home, cwd, temporary = (tmp_path / name for name in ("home", "cwd", "tmp"))
    for folder in (home, cwd, temporary):
        folder.mkdir()
    before = tree(tmp_path), sources(ROOT / "probes"), tree(ROOT / "matrix")
    envcheck("check", cwd=cwd, HOME=str(home), TMPDIR=str(temporary))
    assert (tree(tmp_path), sources(ROOT / "probes"), tree(ROOT / "matrix")) == before


def run_bare(*command: str, cwd: Path, user: int | None = None, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run with no variable but PATH and those given."""
    environment = {
        "PATH": os.environ["PATH"], "PYTHONPATH": str(INSTALLED), "PYTHONDONTWRITEBYTECODE": "1", **variables,
    }  # fmt: skip
    return subprocess.run(command, cwd=cwd, env=environment, user=user, capture_output=True, text=True, check=False)


def test_without_home(tmp_path: Path) -> None:
    result = run_bare(sys.executable, "-m", "envcheck", "check", cwd=tmp_path)
    assert result.returncode in (0, 1, 3)
    assert result.stderr == ""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_as_a_user_without_a_passwd_entry(tmp_path: Path) -> None:
    nobody = 4_000_000
    try:
        allowed = run_bare(sys.executable, "-c", "import msgspec, envcheck", cwd=Path("/"), user=nobody).returncode == 0
    except OSError:
        allowed = False
    if not allowed:
        pytest.skip("another user may not read this interpreter or checkout")
    result = run_bare(
        sys.executable, "-m", "envcheck", "check", "--json", cwd=Path("/"), user=nobody, HOME="/nonexistent"
    )
    assert result.returncode in (0, 1, 3), result.stderr
    assert json.loads(result.stdout)["snapshot"]["platform"]["uid"] == nobody


@pytest.mark.skipif(sys.version_info < (3, 11), reason="Python before 3.11 cannot start a module from a missing folder")
def test_in_a_folder_that_is_gone(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    result = run_bare("sh", "-c", f"rmdir {gone}; exec {sys.executable} -P -m envcheck check --json", cwd=gone)
    assert result.returncode in (0, 1, 3), result.stderr


@cases("what", "a folder", "a text file", "a broken link", "a loop")
def test_a_python_that_is_none(what: str, tmp_path: Path) -> None:
    place = tmp_path / "thing"
    if what == "a folder":
        place.mkdir()
    elif what == "a text file":
        place.write_text("hello")
    elif what == "a broken link":
        place.symlink_to(tmp_path / "nowhere")
    elif what == "a loop":
        place.symlink_to(place)
    result = envcheck("check", "--json", "--python", str(place), cwd=tmp_path)
    report = json.loads(result.out)
    assert result.status == 1
    (judged,) = [env for env in report["snapshot"]["environments"]["items"] if env.get("judged")]
    assert judged["problem"]
    assert "environment-broken" in {check["rule"] for check in report["checks"] if check["status"] == "fail"}
