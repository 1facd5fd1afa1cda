"""Every way to die becomes one row that says how, and costs no other probe or trial its facts."""

import re
import tempfile
from pathlib import Path
from typing import Any

import pytest

from envcheck.collect import child
from tests.collect.trying import LOOK, Machine, environment
from tests.every import cases

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
        "class Odd(Exception):\n        def __str__(self): raise RuntimeError\n    raise Odd", "failed", "Odd"),
    "closed line": ("import os; os.closerange(3, 64)", "failed", "exited with status 1 while importing torch"),
}  # fmt: skip


@pytest.mark.parametrize("how", DEATHS)
@cases("kind", "file", "driver")
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
    "missing import": ("from .common.tree import absent_name", "ImportError: cannot import name 'absent_name'"),
    "syntax": ("def collect(tree, out) return", "SyntaxError: "),
    "no collect": ("", "it has no function collect"),
}


@pytest.mark.parametrize("how", LOAD_FAILURES)
@cases("kind", "file", "driver")
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
@cases("kind", "file", "driver")
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


@cases("returncode, expected",
    (3, ("failed", "exited with status 3")), (-11, ("crashed", "crashed: SIGSEGV")),
    (-7, ("crashed", "crashed: SIGBUS")), (-15, ("crashed", "killed by SIGTERM")),
    (-63, ("crashed", "killed by signal 63")),
)  # fmt: skip
def test_words_for_return_codes(returncode: int, expected: tuple[str, str]) -> None:
    assert child.describe(returncode) == expected


# --- How a trial may end --------------------------------------------------------------------------------------------
def importing(code: str) -> str:
    """A probe that sends as the shipped ones do, and in which ``code`` stands for the import."""
    return (
        "import os, signal, sys, time, warnings\ndef collect(tree, out):\n"
        f"    out.progress('importing torch')\n    {code}\n"
        "    tell(tree, out, imported=True)\n    out.progress('computing a convolution')\n    {AFTER}\n"
    ).replace("{AFTER}", "pass")


def computing(code: str) -> str:
    return importing("pass").replace("computing a convolution')\n    pass", f"computing a convolution')\n    {code}")


SEGFAULT = "import ctypes; ctypes.string_at(0)"


@cases("code, status, detail, imported",
    (SEGFAULT, "crashed", "crashed: SIGSEGV while importing torch", False),
    ("os.abort()", "crashed", "crashed: SIGABRT while importing torch", False),
    ("os._exit(3)", "failed", "exited with status 3 while importing torch", False),
    ("os.kill(os.getpid(), signal.SIGKILL)", "crashed", "killed by SIGKILL while importing torch", None),
    ("time.sleep(600)", "timed-out", "timed out after 0.5 s while importing torch", None),
)  # fmt: skip
def test_a_death_on_import(machine: Machine, code: str, status: str, detail: str, imported: object) -> None:
    machine.add("deep_look", importing(code), seconds=0.5 if "sleep" in code else 30.0)
    row = machine.run()["deep_look", "torch"]
    assert (row.status, row.detail) == (status, detail)
    trial = machine.trial()
    assert (trial.imported, trial.ran_on_gpu, trial.error) == (imported, None, detail)


@cases("code, detail, ran",
    (SEGFAULT, "crashed: SIGSEGV while computing a convolution", False),
    ("time.sleep(600)", "timed out after 0.5 s while computing a convolution", None),
)  # fmt: skip
def test_a_death_at_work_keeps_what_was_sent(machine: Machine, code: str, detail: str, ran: object) -> None:
    machine.add("deep_look", computing(code), seconds=0.5 if "sleep" in code else 30.0)
    machine.run()
    trial = machine.trial()
    assert (trial.imported, trial.ran_on_gpu, trial.error) == (True, ran, detail)


def test_a_probe_of_ours_that_fails_says_nothing_of_the_framework(machine: Machine) -> None:
    machine.add("deep_look", "def collect(tree, out):\n    raise KeyError('ours')\n")
    row = machine.run()["deep_look", "torch"]
    assert (row.status, row.detail) == ("failed", "KeyError: 'ours'")
    assert machine.framework().trial is None


def test_rubbish_is_noise_and_what_names_a_problem_is_kept(machine: Machine) -> None:
    code = (
        "print('hello\\x1b[2J', {'probe': 'x'}); os.write(2, b'Could not load dynamic library libcudnn.so.8\\n' * 3); "
        "warnings.warn('GPU too old'); os.write(1, b'\\xff\\x00' * 20000); print('\\nerror: at the end')"
    )
    machine.add("deep_look", importing(code))
    row = machine.run()["deep_look", "torch"]
    assert row.status == "ok"
    assert "\x1b" not in row.noise
    assert machine.trial().warnings[0] == "Could not load dynamic library libcudnn.so.8"
    assert machine.trial().warnings.count("Could not load dynamic library libcudnn.so.8") == 1
    assert any(line.endswith("UserWarning: GPU too old") for line in machine.trial().warnings)
    assert machine.trial().warnings[-1] == "error: at the end"


def test_what_it_left_running_is_ended(machine: Machine) -> None:
    machine.add("deep_look", importing("__import__('subprocess').Popen(['sleep', '600']); time.sleep(0.1)"))
    assert machine.run()["deep_look", "torch"].detail == "it left a process behind: sleep"


def test_an_interpreter_that_is_none_is_a_row(machine: Machine, tmp_path: Path) -> None:
    program = tmp_path / "python"
    program.write_text("#!/bin/sh\nexit 7\n")
    program.chmod(0o755)
    machine.add("deep_look", LOOK)
    row = machine.run(environment("torch", executable=str(program)))["deep_look", "torch"]
    assert (row.status, row.detail) == ("failed", "exited with status 7")


def test_the_deadline_of_all_ends_trials_too(machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    machine.add("deep_look", importing("time.sleep(600)"), seconds=60.0)
    row = machine.run(deadline_s=1.5)["deep_look", "torch"]
    assert row.status == "timed-out"
    assert "--timeout 1.5 s was reached" in row.detail
    assert list((tmp_path / "tmp").iterdir()) == []
