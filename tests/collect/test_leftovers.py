"""What a probe starts ends with it, however far it went away. The fixture of this folder looks for survivors."""

import os
import random
import signal
import subprocess
import sys
import time
import uuid
from typing import Any

import pytest

from envcheck.collect import child
from envcheck.collect.starting import MARKER
from envcheck.model.events import Progress
from tests.every import cases

SLEEPER = "system(b'sleep 600 &')"
FORK = "if os.fork() == 0:\n        {in_child}time.sleep(600)"
SECOND_FORK = "if os.fork() != 0: os._exit(0)\n        "

LEFTOVERS: dict[str, tuple[str, int]] = {
    # what is left: (how it was started, number of processes)
    "grandchild": (SLEEPER, 1),
    "three grandchildren": (f"{SLEEPER}; {SLEEPER}; {SLEEPER}", 3),
    "grandchild in its own session": ("system(b'setsid sleep 600 &')", 1),
    "fork": (FORK.format(in_child=""), 1),
    "fork that called setsid": (FORK.format(in_child="os.setsid(); "), 1),
    "daemon by two forks": (FORK.format(in_child="os.setsid()\n        " + SECOND_FORK), 1),
    "grandchild that ignores signals": (
        FORK.format(in_child="[signal.signal(s, signal.SIG_IGN) for s in (1, 2, 15)]; os.setsid(); "), 1),
    "grandchild with the output": ("system(b'setsid sh -c \"while :; do echo y; done\" &')", 1),
}  # fmt: skip


def probe_that_leaves(how: str, then: str = "out.fact({'variables': {'values': {'after': 'sent'}}})") -> str:
    ready = "time.sleep(0.05)  # until an exec, or a second fork, is through"
    # Python code may start no program there, a library may.
    start = "import ctypes, os, signal, time\nsystem = ctypes.CDLL(None).system\n"
    return f"{start}def collect(tree, out):\n    {how}\n    {ready}\n    {then}\n"


@pytest.mark.parametrize("what", LEFTOVERS)
@cases("kind", "file", "driver")
def test_leftovers_of_a_normal_end_are_killed_and_named(probes: Any, kind: str, what: str) -> None:
    how, number = LEFTOVERS[what]
    probes.add_healthy("before", "later")
    probes.add("leaves", probe_that_leaves(how), kind=kind)
    started = time.monotonic()
    run = probes.run()["leaves"]
    assert time.monotonic() - started < 5, "nobody waits for a grandchild"
    counted = "it left a process behind: " if number == 1 else f"it left {number} processes behind: "
    assert run.status == "ok"
    assert run.detail.startswith(counted)
    assert run.detail.removeprefix(counted).split(", ") == [run.detail.rsplit(" ", 1)[1]] * number
    assert probes.facts("leaves") == {"after": "sent"}
    probes.assert_healthy("before", "later")


CRASH = ("os.abort()", 60.0, "crashed", "crashed: SIGABRT; it left ")
HANG = ("time.sleep(600)", 0.4, "timed-out", "timed out after 0.4 s")


@cases("what, end",
    *((what, CRASH) for what in LEFTOVERS),
    *((what, HANG) for what in ("three grandchildren", "daemon by two forks", "grandchild that ignores signals")),
)  # fmt: skip
def test_leftovers_of_a_death_are_killed(probes: Any, what: str, end: tuple[str, float, str, str]) -> None:
    then, seconds, status, detail = end
    probes.add_healthy("later")
    probes.add("dies", probe_that_leaves(LEFTOVERS[what][0], then), seconds=seconds)
    run = probes.run()["dies"]
    assert (run.status, run.detail[: len(detail)]) == (status, detail)
    probes.assert_healthy("later")


def test_group_member_without_the_marker_is_killed(probes: Any) -> None:
    seconds = f"{600 + random.random()}"
    probes.add("leaves", probe_that_leaves(f"system(b'env -i PATH=\"$PATH\" sleep {seconds} &')"))
    assert probes.run()["leaves"].status == "ok"
    until = time.monotonic() + 1
    while f"sleep\0{seconds}\0".encode() in command_lines() and time.monotonic() < until:
        time.sleep(0.01)
    assert f"sleep\0{seconds}\0".encode() not in command_lines()


def command_lines() -> list[bytes]:
    return [child._read(f"/proc/{pid}/cmdline", 64) for pid in child.running_processes()]


def test_grandchild_that_talks_on_the_fact_line_is_not_waited_for(probes: Any) -> None:
    talk = "if os.fork() == 0:\n        os.setsid()\n        while True: out.progress('late'); out.fact({})"
    probes.add("leaves", probe_that_leaves(talk), kind="driver")
    run = probes.run()["leaves"]
    assert run.status == "ok"
    assert run.detail.startswith("it left a process behind: ")


def test_fork_that_returns_does_not_go_on_in_the_probes_place(probes: Any) -> None:
    probes.add("forks", "import os\ndef collect(tree, out):\n    pid = os.fork()\n    if pid: os.waitpid(pid, 0)\n")
    probes.add_healthy("next")
    assert probes.run()["forks"].status == "ok"
    probes.assert_healthy("next")
    assert [event.run.name for event in probes.events if type(event).__name__ == "ProbeFinished"] == ["forks", "next"]


def test_child_that_cannot_be_killed_is_abandoned_and_named(probes: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process in state D cannot be made at will: here the signals do not arrive instead."""
    monkeypatch.setattr(child, "kill_groups", lambda _leaders, _number=signal.SIGKILL: None)
    monkeypatch.setattr(child, "KILL_GRACE", 0.1)
    probes.add("later", "def collect(tree, out):\n    pass\n", kind="driver")
    body = "import os, time\ndef collect(tree, out):\n    out.progress(f'being {os.getpid()}')\n    time.sleep(600)\n"
    probes.add("stuck", body, kind="driver", seconds=0.3)
    run = probes.run()["stuck"]
    pid = int(next(event.text for event in probes.events if isinstance(event, Progress)).removeprefix("being "))
    os.kill(pid, signal.SIGKILL)
    assert os.waitpid(child._ABANDONED.pop(), 0)[1] == signal.SIGKILL
    assert run.status == "timed-out"
    remark = f"it left a process behind: process {pid}, which cannot be killed and was abandoned"
    assert run.detail == f"timed out after 0.3 s while being {pid}; {remark}"
    assert probes.parts["later"].runs[0].status == "ok"


def test_only_the_marked_are_killed() -> None:
    command = [sys.executable, "-c", "import time; time.sleep(600)"]
    token = uuid.uuid4().hex  # another run of this test may look at the same processes
    environments = [{MARKER: mark, "PATH": "/bin"} for mark in (token, f"{token}butlonger", "another")]
    mine, *others = [subprocess.Popen(command, env=environment) for environment in environments]
    try:
        spared = subprocess.Popen(command, env=environments[0])
        others.append(spared)
        wait_until_executed(command, [mine, *others])
        assert len(child.kill_marked(token, spare=[spared.pid])) == 1
        assert mine.wait(5) == -signal.SIGKILL
        assert [process.poll() for process in others] == [None, None, None]
        assert child.kill_marked(token, older=[spared.pid]) == ()
    finally:
        for process in (mine, *others):
            process.kill()
            process.wait()


def wait_until_executed(command: list[str], processes: list[subprocess.Popen[bytes]]) -> None:
    expected = b"".join(part.encode() + b"\0" for part in command)
    for process in processes:
        while child._read(f"/proc/{process.pid}/cmdline", 4096) != expected:
            time.sleep(0.005)


def test_own_process_is_never_killed() -> None:
    """Run in a process that carries the token itself."""
    token = uuid.uuid4().hex
    code = f"from envcheck.collect import child; print(child.kill_marked({token!r}))"
    environment = {**os.environ, MARKER: token}
    result = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert result.stdout == "()\n"


def test_names_of_leftovers_are_harmless() -> None:
    code = "import time; open('/proc/self/comm', 'wb').write(b'\\x1b[31mx'); print(flush=True); time.sleep(600)"
    token = uuid.uuid4().hex
    environment = {MARKER: token}
    with subprocess.Popen([sys.executable, "-c", code], env=environment, stdout=subprocess.PIPE) as process:
        assert process.stdout
        process.stdout.readline()
        assert child.kill_marked(token) == ("\\x1b[31mx",)
