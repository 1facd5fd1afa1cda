"""What a question to the installed matrix costs beside an interpreter that does nothing, on the same machine."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from envcheck.compat.compiling import COMPILED, compile_folder, write_compiled
from tests.cli.calling import ROOT

ALLOWED = 14
"""Times the process time of an interpreter that does nothing: a machine's speed does not matter."""
RUNS = 5

QUESTIONS = [
    ["torch==2.5.1", "gpu==H100", "driver==550.54.14"],
    ["torch==2.5.1", "gpu==RTX 5090"],
    ["tensorflow==2.15", "python==3.12", "--json"],
]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package as a wheel installs it: the compiled matrix inside, byte code written."""
    place = tmp_path_factory.mktemp("installed")
    shutil.copytree(ROOT / "envcheck", place / "envcheck", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "matrix", place / "envcheck" / "matrix")
    write_compiled(compile_folder(ROOT / "matrix"), place / "envcheck" / "matrix" / COMPILED)
    return place


def seconds(place: Path, *arguments: str) -> float:
    """The least process time (user and system) of some runs: what the machine does besides only ever adds."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    return min(_once([sys.executable, *arguments], place, {**kept, "PYTHONPATH": str(place)}) for _ in range(RUNS))


def _once(argv: list[str], place: Path, variables: dict[str, str]) -> float:
    with subprocess.Popen(argv, cwd=place, env=variables, stdout=subprocess.DEVNULL) as child:
        _, _, usage = os.wait4(child.pid, 0)
        child.returncode = 0
    return usage.ru_utime + usage.ru_stime


@pytest.fixture(scope="module")
def bare(installed: Path) -> float:
    return seconds(installed, "-c", "pass")


@pytest.mark.parametrize("question", QUESTIONS, ids=" ".join)
def test_a_question_is_answered_at_once(installed: Path, bare: float, question: list[str]) -> None:
    asked = seconds(installed, "-m", "envcheck", "matrix", "check", *question)
    assert asked <= ALLOWED * bare


def test_a_question_loads_only_what_it_needs(installed: Path) -> None:
    script = (
        "import sys; from envcheck.cli.main import main; main(['matrix', 'check', 'torch==2.5.1', 'driver==550']);"
        "print(*sorted(sys.modules), sep=chr(10))"
    )
    run = subprocess.run(
        [sys.executable, "-c", script],
        cwd=installed,
        env={"PYTHONPATH": str(installed), "PATH": os.environ.get("PATH", "")},
        capture_output=True,
        text=True,
        check=True,
    )
    loaded = set(run.stdout.splitlines())
    assert "envcheck.compat.question" in loaded
    for unneeded in ("packaging", "tomllib", "textual", "pynvml"):
        assert unneeded not in loaded
    assert not {name for name in loaded if name.startswith(("envcheck.rules", "envcheck.collect", "envcheck.snapshot"))}
