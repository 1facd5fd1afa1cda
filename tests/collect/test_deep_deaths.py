"""How a trial may end, and what becomes of what it sent and printed. The children are real, the frameworks made up."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from tests.collect.trying import LOOK, Machine, environment


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


@pytest.mark.parametrize(
    ("code", "status", "detail", "imported"),
    [
        (SEGFAULT, "crashed", "crashed: SIGSEGV while importing torch", False),
        ("os.abort()", "crashed", "crashed: SIGABRT while importing torch", False),
        ("os._exit(3)", "failed", "exited with status 3 while importing torch", False),
        ("os.kill(os.getpid(), signal.SIGKILL)", "crashed", "killed by SIGKILL while importing torch", None),
        ("time.sleep(600)", "timed-out", "timed out after 0.5 s while importing torch", None),
    ],
)
def test_a_death_on_import(machine: Machine, code: str, status: str, detail: str, imported: object) -> None:
    machine.add("deep_look", importing(code), seconds=0.5 if "sleep" in code else 30.0)
    row = machine.run()["deep_look", "torch"]
    assert (row.status, row.detail) == (status, detail)
    trial = machine.trial()
    assert (trial.imported, trial.ran_on_gpu, trial.error) == (imported, None, detail)


@pytest.mark.parametrize(
    ("code", "detail", "ran"),
    [
        (SEGFAULT, "crashed: SIGSEGV while computing a convolution", False),
        ("time.sleep(600)", "timed out after 0.5 s while computing a convolution", None),
    ],
)
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


def test_the_whole_runs_deadline_ends_trials_too(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    machine.add("deep_look", importing("time.sleep(600)"), seconds=60.0)
    row = machine.run(deadline_s=1.5)["deep_look", "torch"]
    assert row.status == "timed-out"
    assert "--timeout 1.5 s was reached" in row.detail
    assert list((tmp_path / "tmp").iterdir()) == []
