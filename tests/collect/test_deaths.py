"""Every way to die becomes one row that says how, and costs no other probe its facts."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from envcheck.collect import deaths

HALF = 'out.fact({"variables": {"values": {"half": "sent"}}}); out.progress("importing torch")'

DEATHS: dict[str, tuple[str, str, str]] = {
    # how it dies: (statement, status, detail)
    "segfault": ("import ctypes; ctypes.string_at(0)", "crashed", "crashed: SIGSEGV while importing torch"),
    "abort": ("import os; os.abort()", "crashed", "crashed: SIGABRT while importing torch"),
    "killed": ("import os; os.kill(os.getpid(), 9)", "crashed", "killed by SIGKILL while importing torch"),
    "real-time signal": ("import os; os.kill(os.getpid(), 40)", "crashed", "killed by signal 40 while importing torch"),
    "_exit": ("import os; os._exit(3)", "failed", "exited with status 3 while importing torch"),
    "_exit with success": ("import os; os._exit(0)", "failed", "exited with status 0 while importing torch"),
    "sys.exit": ("import sys; sys.exit(3)", "failed", "SystemExit: 3"),
    "raise": ("raise ValueError('first\\nsecond')", "failed", "ValueError: first second"),
    "raise what cannot be shown": (
        "class Odd(Exception):\n        def __str__(self): raise RuntimeError\n    raise Odd",
        "failed",
        "Odd",
    ),
    "closed line": ("import os; os.closerange(3, 64)", "failed", "exited with status 1 while importing torch"),
}


@pytest.mark.parametrize("how", DEATHS)
@pytest.mark.parametrize("kind", ["file", "driver"])
def test_death_in_collect_is_a_row(probes: Any, kind: str, how: str) -> None:
    statement, status, detail = DEATHS[how]
    probes.add_healthy("before", "later", "zlast")
    probes.add("dies", f"def collect(tree, out):\n    {HALF}\n    {statement}\n", kind=kind)
    run = probes.run()["dies"]
    assert (run.status, run.detail, run.title, run.fills) == (status, detail, "Title of dies", ("variables",))
    assert probes.facts("dies") == {"half": "sent"}
    probes.assert_healthy("before", "later", "zlast")


def test_facts_are_not_written_to_what_took_the_place_of_the_line(probes: Any, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    take_over = f"os.kept = [open({str(victim)!r}, 'ab', 0) for _ in range(80)]"
    probes.add("dies", f"def collect(tree, out):\n    {HALF}\n    import os; os.closerange(3, 64); {take_over}\n")
    run = probes.run()["dies"]
    assert (run.status, run.detail) == ("failed", "exited with status 1 while importing torch")
    assert "OSError: the line to envcheck was closed" in run.noise
    assert victim.read_bytes() == b""


LOAD_FAILURES = {
    "raise at import": ("raise KeyError('cuda')", "KeyError: 'cuda'"),
    "exit at import": ("raise SystemExit", "SystemExit"),
    "missing import": ("from .kit.tree import absent_name", "ImportError: cannot import name 'absent_name'"),
    "syntax": ("def collect(tree, out) return", "SyntaxError: "),
    "no collect": ("", "it has no function collect"),
}


@pytest.mark.parametrize("how", LOAD_FAILURES)
@pytest.mark.parametrize("kind", ["file", "driver"])
def test_probe_that_cannot_be_loaded_is_a_row(probes: Any, kind: str, how: str) -> None:
    body, detail = LOAD_FAILURES[how]
    probes.add_healthy("before", "later")
    probes.add("broken", body, kind=kind)
    run = probes.run()["broken"]
    assert run.status == "failed"
    assert run.detail.startswith(detail)
    probes.assert_healthy("before", "later")


HANGS = {
    "in a loop": "while True: pass",
    "asleep": "import time; time.sleep(600)",
    "ignoring SIGTERM": "import signal, time; signal.signal(15, signal.SIG_IGN)\n    while True: time.sleep(9)",
    "stopped": "import os; os.kill(os.getpid(), 19)",
}


@pytest.mark.parametrize("how", HANGS)
@pytest.mark.parametrize("kind", ["file", "driver"])
def test_hang_is_ended_at_its_own_deadline(probes: Any, kind: str, how: str) -> None:
    probes.add_healthy("before", "later", "zlast")
    probes.add("hangs", f"def collect(tree, out):\n    {HALF}\n    {HANGS[how]}\n", kind=kind, seconds=0.3)
    run = probes.run()["hangs"]
    assert (run.status, run.detail) == ("timed-out", "timed out after 0.3 s while importing torch")
    assert 0.3 <= run.seconds < 3
    assert probes.facts("hangs") == {"half": "sent"}
    probes.assert_healthy("before", "later", "zlast")


def test_traceback_is_kept_as_noise(probes: Any) -> None:
    probes.add("raises", "def collect(tree, out):\n    print('printed'); raise OSError(5, 'no luck', '/x')\n")
    run = probes.run()["raises"]
    assert run.detail == "OSError: [Errno 5] no luck: '/x'"
    assert run.noise.startswith("printed\nTraceback (most recent call last):\n")
    assert run.noise.endswith("OSError: [Errno 5] no luck: '/x'")
    assert re.search(r"raises\.py\", line 4, in collect", run.noise)


def test_crash_says_where_it_happened(probes: Any) -> None:
    probes.add("dies", "def collect(tree, out):\n    import ctypes; ctypes.string_at(0)\n", kind="driver")
    noise = probes.run()["dies"].noise
    assert "Segmentation fault" in noise
    assert re.search(r"dies\.py\", line 4 in collect", noise)


def test_absent_is_said_by_the_probe(probes: Any) -> None:
    probes.add("absent", "def collect(tree, out):\n    out.absent('no NVIDIA device on the PCI bus')\n")
    run = probes.run()["absent"]
    assert (run.status, run.detail) == ("absent", "no NVIDIA device on the PCI bus")


@pytest.mark.parametrize(
    ("returncode", "expected"),
    [
        (3, ("failed", "exited with status 3")),
        (-11, ("crashed", "crashed: SIGSEGV")),
        (-7, ("crashed", "crashed: SIGBUS")),
        (-15, ("crashed", "killed by SIGTERM")),
        (-63, ("crashed", "killed by signal 63")),
    ],
)
def test_words_for_return_codes(returncode: int, expected: tuple[str, str]) -> None:
    assert deaths.describe(returncode) == expected
