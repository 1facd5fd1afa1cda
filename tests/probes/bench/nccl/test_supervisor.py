"""Who is at fault when processes that work together do not end, with processes that die, hang, stop or fail."""

import faulthandler
import mmap
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from probes.measuring.nccl import supervisor
from probes.measuring.nccl.supervisor import Fault, Limits, Talk, supervise
from tests.every import cases
from tests.known import known

QUICK = Limits(start=1.5, step=1.2, silent=1.0, grace=0.3)
PATIENT = Limits(start=60, step=60, silent=60, grace=0.3)
AT_ONCE = 20  # Seconds that even a loaded machine does not need, and that no limit of ``PATIENT`` ends


def run(*works: Any, limits: Limits = QUICK) -> tuple[list[Fault], list[tuple[int, dict[str, Any]]], float]:
    heard: list[tuple[int, dict[str, Any]]] = []
    began = time.monotonic()
    return supervise(works, lambda worker, line: heard.append((worker, line)), limits), heard, time.monotonic() - began


def pids_in(heard: list[tuple[int, dict[str, Any]]]) -> list[int]:
    return [line["pid"] for _, line in heard if "pid" in line]


def gone(pid: int) -> bool:
    return not Path(f"/proc/{pid}").exists()


def agreeing(value: int) -> Any:
    def work(talk: Talk) -> None:
        talk.say(pid=os.getpid(), ready=True)
        for step in range(3):
            talk.say(result=talk.agree(value + step))

    return work


def waiting(talk: Talk) -> None:
    talk.say(pid=os.getpid(), ready=True, step="waiting for the others")
    talk.agree(1)
    time.sleep(60)


def test_workers_agree_on_the_greatest_value() -> None:
    faults, heard, seconds = run(agreeing(1), agreeing(7), agreeing(3), limits=PATIENT)
    assert faults == []
    assert [line["result"] for worker, line in heard if worker == 0 and "result" in line] == [7, 8, 9]
    assert seconds < AT_ONCE
    assert all(map(gone, pids_in(heard)))


def test_a_value_of_one_worker_reaches_all() -> None:
    def giving(talk: Talk) -> None:
        talk.say(got=talk.agree("id"))

    def taking(talk: Talk) -> None:
        talk.say(got=talk.agree(None))

    _, heard, _ = run(giving, taking, taking, limits=PATIENT)
    assert [line["got"] for _, line in heard if "got" in line] == ["id"] * 3


def die(number: int) -> None:
    faulthandler.disable()  # it would print this death into the output of the tests
    os.kill(os.getpid(), number)


def fail() -> None:
    raise ValueError("not this one")


@cases("end, fault, limits, least",
    (partial(die, signal.SIGKILL), ("killed", "killed by SIGKILL"), PATIENT, 0),
    (partial(die, signal.SIGSEGV), ("killed", "killed by SIGSEGV"), PATIENT, 0),
    (partial(os._exit, 3), ("exited", "exited with status 3"), PATIENT, 0),
    (fail, ("failed", "ValueError: not this one"), PATIENT, 0),
    (partial(die, signal.SIGSTOP), ("silent", ""), QUICK, 1), (partial(time.sleep, 60), ("stuck", ""), QUICK, 1.2),
)  # fmt: skip
@cases("ready", True, False)
def test_the_one_at_fault_is_named_with_its_step(
    end: Callable[[], None], fault: tuple[str, str], limits: Limits, least: float, *, ready: bool
) -> None:
    """At once where it ended; of those that stop or hang, the one for which the others wait."""

    def ending(talk: Talk) -> None:
        talk.say(pid=os.getpid(), ready=ready, step="all-reduce of 512 MiB")
        end()

    faults, heard, seconds = run(waiting, ending, waiting, limits=limits)
    assert [(each.worker, each.step, (each.kind, each.text if fault[1] else "")) for each in faults] == [
        (1, "all-reduce of 512 MiB", fault)
    ]
    assert least <= seconds < AT_ONCE
    assert all(map(gone, pids_in(heard)))


def test_what_one_says_without_end_is_not_kept() -> None:
    def talking(talk: Talk) -> None:
        talk.say(ready=True, noise="x" * (4 << 20))

    faults, _, _ = run(talking)
    assert [(fault.kind, fault.text) for fault in faults] == [("failed", "it sent a line that is too long")]


def test_workers_end_with_the_process_that_watches_them() -> None:
    """Killed by the parent at its deadline, the supervisor leaves no process on a GPU."""
    root = Path(__file__).parents[4]
    program = f"""
import sys, time, os
sys.path.insert(0, {str(root)!r})
from probes.measuring.nccl import supervisor
from probes.measuring.nccl.supervisor import supervise, Limits
def work(talk):
    os.write(1, b"%d\\n" % os.getpid())
    time.sleep(60)
supervise([work, work], lambda *_: None, Limits())
"""
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as process:
        pids = [int(known(process.stdout).readline()) for _ in range(2)]
        process.kill()
        process.wait()
        until = time.monotonic() + 5
        while time.monotonic() < until and not all(map(gone, pids)):
            time.sleep(0.05)
        assert all(map(gone, pids))


def test_files_that_killed_workers_had_in_shared_memory_are_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of the workers, and no others."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as name:
        folder = Path(name)
        monkeypatch.setattr(supervisor, "PREFIX", f"{folder}/nccl-")
        (folder / "nccl-other").write_bytes(bytes(4096))
        (folder / "theirs").write_bytes(bytes(4096))

        def connecting(talk: Talk) -> None:
            (folder / "nccl-mine").write_bytes(bytes(4096))
            held = []
            for each in ("nccl-mine", "theirs"):
                with (folder / each).open("r+b") as file:
                    held.append(mmap.mmap(file.fileno(), 0))
            talk.say(ready=True)
            os.kill(os.getpid(), signal.SIGSTOP)

        run(connecting)
        assert sorted(file.name for file in folder.iterdir()) == ["nccl-other", "theirs"]
