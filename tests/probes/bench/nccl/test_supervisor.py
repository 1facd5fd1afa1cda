"""Who is at fault when processes that work together do not end, with processes that die, hang, stop or fail."""

import faulthandler
import mmap
import os
import signal
import subprocess
import sys
import tempfile
import time
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


@cases("number, text", (signal.SIGKILL, "killed by SIGKILL"), (signal.SIGSEGV, "killed by SIGSEGV"))
def test_a_killed_worker_is_named_at_once(number: int, text: str) -> None:
    def dying(talk: Talk) -> None:
        faulthandler.disable()  # it would print this death into the output of the tests
        talk.say(ready=True, step="all-reduce of 512 MiB")
        os.kill(os.getpid(), number)

    faults, heard, seconds = run(waiting, dying, waiting, limits=PATIENT)
    assert faults == [Fault(1, "killed", text, "all-reduce of 512 MiB", {})]
    assert seconds < AT_ONCE
    assert all(map(gone, pids_in(heard)))


def test_one_that_exits_without_being_done_is_at_fault() -> None:
    def leaving(talk: Talk) -> None:
        talk.say(step="connecting")
        os._exit(3)

    faults, _, _ = run(waiting, leaving, limits=PATIENT)
    assert faults == [Fault(1, "exited", "exited with status 3", "connecting", {})]


def test_one_that_raises_says_what_it_met() -> None:
    def failing(talk: Talk) -> None:
        talk.say(step="loading NCCL")
        raise ValueError("not this one")

    faults, heard, seconds = run(waiting, failing, limits=PATIENT)
    assert [(fault.worker, fault.kind, fault.text, fault.step) for fault in faults] == [
        (1, "failed", "ValueError: not this one", "loading NCCL")
    ]
    assert seconds < AT_ONCE
    assert all(map(gone, pids_in(heard)))


def test_a_stopped_worker_is_the_one_without_a_sign_of_life() -> None:
    def stopping(talk: Talk) -> None:
        talk.say(pid=os.getpid(), ready=True, step="broadcast of 8 B")
        os.kill(os.getpid(), signal.SIGSTOP)

    faults, heard, seconds = run(waiting, stopping)
    assert [(fault.worker, fault.kind, fault.step) for fault in faults] == [(1, "silent", "broadcast of 8 B")]
    assert 1 <= seconds < AT_ONCE
    assert all(map(gone, pids_in(heard)))


def test_of_those_that_hang_the_ones_that_others_wait_for_are_named() -> None:
    def hanging(talk: Talk) -> None:
        talk.say(pid=os.getpid(), ready=True, step="reduce of 1 MiB")
        time.sleep(60)

    faults, heard, seconds = run(waiting, hanging)
    assert [(fault.worker, fault.kind, fault.step) for fault in faults] == [(1, "stuck", "reduce of 1 MiB")]
    assert 1.2 <= seconds < AT_ONCE
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
