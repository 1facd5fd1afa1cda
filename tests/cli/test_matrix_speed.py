"""What a question to the installed matrix costs beside an interpreter that does nothing, on the same machine."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.installed import INSTALLED

ALLOWED = 14
"""Times the process time of an interpreter that does nothing: a machine's speed does not matter."""
RUNS = 5

QUESTIONS = [
    ["torch==2.5.1", "gpu==H100", "driver==550.54.14"],
    ["torch==2.5.1", "gpu==RTX 5090"],
    ["tensorflow==2.15", "python==3.12", "--json"],
]


def seconds(*arguments: str) -> float:
    """The least process time (user and system) of some runs: what the machine does besides only ever adds."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    return min(_once([sys.executable, *arguments], {**kept, "PYTHONPATH": str(INSTALLED)}) for _ in range(RUNS))


def _once(argv: list[str], variables: dict[str, str]) -> float:
    with subprocess.Popen(argv, cwd=INSTALLED, env=variables, stdout=subprocess.DEVNULL) as child:
        _, _, usage = os.wait4(child.pid, 0)
        child.returncode = 0
    return usage.ru_utime + usage.ru_stime


@pytest.fixture(scope="module")
def bare() -> float:
    return seconds("-c", "pass")


@pytest.mark.parametrize("question", QUESTIONS, ids=" ".join)
def test_a_question_is_answered_at_once(bare: float, question: list[str]) -> None:
    assert seconds("-m", "envcheck", "matrix", "check", *question) <= ALLOWED * bare


def test_a_question_loads_only_what_it_needs() -> None:
    script = (
        "import sys; from envcheck.cli.main import main; main(['matrix', 'check', 'torch==2.5.1', 'driver==550']);"
        "print(*sorted(sys.modules), sep=chr(10))"
    )
    run = subprocess.run(
        [sys.executable, "-c", script],
        cwd=INSTALLED,
        env={"PYTHONPATH": str(INSTALLED), "PATH": os.environ.get("PATH", "")},
        capture_output=True,
        text=True,
        check=True,
    )
    loaded = set(run.stdout.splitlines())
    assert "envcheck.compat.question" in loaded
    for unneeded in ("packaging", "tomllib", "textual", "pynvml"):
        assert unneeded not in loaded
    assert not {name for name in loaded if name.startswith(("envcheck.rules", "envcheck.collect", "envcheck.snapshot"))}
