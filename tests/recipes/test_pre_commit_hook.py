""".pre-commit-hooks.yaml: its entry run as pre-commit runs it, and the whole by ``pre-commit try-repo``."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from envcheck.plans import format_of
from envcheck.text.toml import loads
from tests.every import cases
from tests.recipes.running import ROOT, run

HOOK: dict[str, Any] = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))[0]
PROJECT = loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
FITS, FAILS = ["--assume", "gpu==A100,driver==515.43.04"], ["--assume", "gpu==B200,driver==570.86.10"]


def hook(folder: Path, args: list[str], *files: str) -> subprocess.CompletedProcess[str]:
    """Run the entry with ``args`` and the names of files, in that order, as pre-commit does."""
    command, *words = shlex.split(HOOK["entry"])
    program = str(Path(sys.executable).parent / command)
    return run([program, *words, *HOOK.get("args", []), *args, *files], folder, os.environ)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    here = tmp_path / "repository"
    here.mkdir()
    shutil.copy(ROOT / "tests" / "recipes" / "plans" / "requirements.txt", here / "requirements.txt")
    (here / "requirements-dev.txt").write_text("numpy==1.26.4\n", encoding="utf-8")
    return here


def test_files_that_fit_pass(repository: Path) -> None:
    done = hook(repository, FITS, "requirements-dev.txt", "requirements.txt")
    assert (done.returncode, done.stderr) == (0, "")
    assert "torch 2.0.1" in done.stdout


def test_a_file_that_does_not_fit_is_named_with_its_line(repository: Path) -> None:
    done = hook(repository, FAILS, "requirements-dev.txt", "requirements.txt")
    assert done.returncode == 1
    assert "gpu-code-missing" in done.stdout
    assert "requirements.txt:3" in done.stdout


@cases(
    "args, files, message", (FITS, (), "--plan"), (FITS, ("gone.txt",), "cannot read gone.txt"),
    (["--nope"], ("requirements.txt",), "envcheck check has no option --nope"),
    (["--fail-on", "never"], ("requirements.txt",), "--fail-on"),
    (["requirements.txt", *FITS], ("requirements-dev.txt",), "envcheck check takes no argument 'requirements.txt"),
    (["--target", "nowhere"], ("requirements.txt",), "nowhere"),
)  # fmt: skip
def test_wrong_use_is_one_sentence(repository: Path, args: list[str], files: tuple[str, ...], message: str) -> None:
    done = hook(repository, args, *files)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert message in done.stderr


def test_values_of_options_are_not_taken_for_files(repository: Path) -> None:
    (repository / "machines.toml").write_text('gpu = "A100"\ndriver = "515.43.04"\n', encoding="utf-8")
    assert hook(repository, ["--target", "./machines.toml"], "requirements.txt").returncode == 0


@cases("name", "requirements.txt", "a/requirements-gpu.in", "pylock.toml", "pylock.gpu.toml", "uv.lock", "poetry.lock",
     "environment.yml", "a/environment.yaml")  # fmt: skip
def test_plans_are_selected_and_can_be_read(name: str) -> None:
    assert re.search(HOOK["files"], name)
    assert format_of(name)


@cases("name", "README.txt", "xuv.lock", "package.json", "requirements.txt.bak", "pyproject.toml")
def test_other_files_are_not_selected(name: str) -> None:
    assert not re.search(HOOK["files"], name)


def test_the_entry_is_installed_with_what_it_needs() -> None:
    assert HOOK["entry"] in PROJECT["scripts"]
    assert HOOK["additional_dependencies"] == PROJECT["optional-dependencies"]["plans"]
    assert HOOK["require_serial"]


@pytest.mark.lab
def test_pre_commit_runs_it(repository: Path, tmp_path: Path) -> None:
    """``pre-commit try-repo`` installs this checkout into an environment of its own: it asks the package index."""
    program = shutil.which("pre-commit", path=str(Path(sys.executable).parent))
    if program is None or not (ROOT / ".git").exists():
        pytest.skip("pre-commit is not installed, or this is no git checkout")
    git = ["git", "-c", "user.name=t", "-c", "user.email=t@example.org"]
    subprocess.run([*git, "init", "-q"], cwd=repository, check=True)
    subprocess.run([*git, "add", "."], cwd=repository, check=True)
    command = [program, "try-repo", str(ROOT), "envcheck", "--all-files", "--verbose"]
    variables = {**os.environ, "PRE_COMMIT_HOME": str(tmp_path / "home"), "ENVCHECK_ASSUME": FAILS[1]}
    done = subprocess.run(
        command, cwd=repository, env=variables, capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 1, done.stdout + done.stderr
    assert "gpu-code-missing" in done.stdout
    assert "exit code: 1" in done.stdout
