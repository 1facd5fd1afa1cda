"""Forked processes that work together, and the one that watches them: who died, failed or hung, then the end of all.

The supervisor is the process that forks; it must not have started CUDA, which no fork could use. Workers speak in
lines of JSON. What NCCL leaves in /dev/shm where its processes are killed while they connect is removed.
"""

from __future__ import annotations

import ctypes
import json
import os
import selectors
import signal
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol

PREFIX = "/dev/shm/nccl-"  # noqa: S108  NCCL names them so
_GONE = " (deleted)"


def mapped_files(processes: Iterable[int]) -> set[str]:
    """NCCL's files that these processes have mapped, and that are still in their folder."""
    found: set[str] = set()
    for process in processes:
        with suppress(OSError), open(f"/proc/{process}/maps", encoding="utf-8", errors="surrogateescape") as file:
            for line in file.read(16 << 20).splitlines():
                _, slash, path = line.partition("/")
                if slash and f"/{path}".startswith(PREFIX) and not path.endswith(_GONE):
                    found.add(f"/{path}")
    return found


def remove(files: Iterable[str]) -> None:
    for path in files:
        with suppress(OSError):
            os.unlink(path)


Line = dict[str, Any]
_PDEATHSIG = 1
_MOST_UNREAD = 1 << 20  # Bytes of one line; a worker that sends a longer one has failed


class Limits(NamedTuple):
    """Seconds after which a worker is given up."""

    start: float = 40.0  # Without progress, until it says that it is ready
    step: float = 8.0  # Without progress, from then on
    silent: float = 4.0  # Without a sign of life from a process that goes on by itself
    grace: float = 1.0  # For the others to say what they met, once one has failed


class Fault(NamedTuple):
    """How a worker ended that did not end well."""

    worker: int
    kind: Literal["killed", "exited", "failed", "silent", "stuck"]
    text: str
    step: str  # What it was doing, in its own words
    line: Line  # What it said of its failure


class Talk:
    """The worker's side."""

    def __init__(self, reading: int, writing: int) -> None:
        self._reading = open(reading, "rb")  # noqa: SIM115  as long as the process
        self._writing = writing
        self._lock = threading.Lock()

    def say(self, **line: Any) -> None:
        """Tell the supervisor; ``ready`` ends the start, ``step`` names what is done now."""
        data = json.dumps(line).encode() + b"\n"
        with self._lock:
            while data:
                data = data[os.write(self._writing, data) :]

    def agree(self, value: Any) -> Any:
        """The greatest value of all workers, once each has named one; None does not count."""
        self.say(agree=value)
        answer = self._reading.readline()
        if not answer:
            os._exit(0)  # the supervisor is gone
        return json.loads(answer)

    def beat(self) -> None:
        """Give signs of life from now on, from a thread."""

        def beat() -> None:
            while True:
                time.sleep(0.5)
                with suppress(OSError):
                    self.say(alive=True)

        threading.Thread(target=beat, daemon=True).start()


Work = Callable[[Talk], None]


class Uplink(Protocol):
    """The line to whoever watches several nodes, where the workers of this one are only some of those that agree."""

    ended: bool  # Whether the work is no longer wanted

    def fileno(self) -> int:
        """What to listen to."""

    def listen(self) -> None:
        """Read what came, without waiting."""

    def ask(self, value: Any) -> None:
        """Tell the greatest value of this node's workers."""

    def answer(self) -> tuple[Any] | None:
        """The greatest value of all nodes, once; None before it is there."""


@dataclass
class _Worker:
    number: int
    process: int
    reading: int
    writing: int
    unread: bytes = b""
    step: str = "starting"
    heard: float = field(default_factory=time.monotonic)
    moved: float = field(default_factory=time.monotonic)
    ready: bool = False
    done: bool = False
    asked: bool = False
    passed_on: bool = False  # Whether what it asked was told to the uplink
    value: Any = None


def supervise(
    works: Sequence[Work], on_line: Callable[[int, Line], None], limits: Limits, uplink: Uplink | None = None
) -> list[Fault]:
    """Run each work in a fork of its own until all are done or one is at fault; the first fault is the one that counts.

    ``on_line`` gets what workers say, other than what is for the supervisor. With ``uplink``, they agree with those of
    other nodes, and end when it ends. No worker is left when it returns.
    """
    workers: list[_Worker] = []
    try:
        for number, work in enumerate(works):
            workers.append(_forked(number, work, workers))
        return _watched(workers, on_line, limits, uplink)
    finally:
        left = mapped_files(worker.process for worker in workers if worker.process and not worker.done)
        for worker in workers:
            os.close(worker.reading)
            os.close(worker.writing)
            if worker.process:
                os.kill(worker.process, signal.SIGKILL)  # it is not reaped yet, so its id is not reused
                os.waitpid(worker.process, 0)
        remove(left)


def _forked(number: int, work: Work, before: Sequence[_Worker]) -> _Worker:
    heard, telling = os.pipe()
    asked, answering = os.pipe()
    parent = os.getpid()
    process = os.fork()
    if not process:
        try:
            for other in before:
                os.close(other.reading)
                os.close(other.writing)
            os.close(heard)
            os.close(answering)
            _serve(number, work, Talk(asked, telling), parent)
        finally:
            os._exit(70)  # always: nothing that the parent had begun may happen twice
    os.close(telling)
    os.close(asked)
    os.set_blocking(heard, False)
    return _Worker(number, process, heard, answering)


def _serve(number: int, work: Work, talk: Talk, parent: int) -> None:
    """Do the work of a fork; never returns."""
    ctypes.CDLL(None).prctl(_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(0)
    with suppress(OSError), open("/proc/self/comm", "w", encoding="ascii") as file:
        file.write(f"nccl worker {number}"[:15])
    talk.beat()
    try:
        work(talk)
    except BaseException as error:
        talk.say(error=f"{type(error).__name__}: {error}"[:2000])
        os._exit(1)
    talk.say(done=True)
    os._exit(0)


def _watched(
    workers: list[_Worker], on_line: Callable[[int, Line], None], limits: Limits, uplink: Uplink | None
) -> list[Fault]:
    faults: list[Fault] = []
    until = 0.0
    with selectors.DefaultSelector() as selector:
        for worker in workers:
            selector.register(worker.reading, selectors.EVENT_READ, worker)
        if uplink:
            selector.register(uplink.fileno(), selectors.EVENT_READ)
        while not all(worker.done for worker in workers) and not (uplink and uplink.ended):
            for key, _ in selector.select(0.1):
                if key.data is None and uplink:
                    uplink.listen()
                    continue
                fault = _messages(key.data, selector, on_line)
                if fault:
                    faults.append(fault)
            now = time.monotonic()
            if not faults:
                _answer(workers, uplink)
                faults += _late(workers, limits, now)
            if faults and not until:
                until = now + (limits.grace if faults[0].kind == "failed" else 0.0)
            if faults and now >= until:
                break
    return faults


def _messages(worker: _Worker, selector: selectors.BaseSelector, on_line: Callable[[int, Line], None]) -> Fault | None:
    """Read what a worker said; a fault where it ended without being done."""
    try:
        data = os.read(worker.reading, 1 << 16)
    except BlockingIOError:
        return None
    if not data:
        selector.unregister(worker.reading)
        if worker.done:
            return None
        _, status = os.waitpid(worker.process, 0)
        worker.process = 0
        if os.WIFSIGNALED(status):
            name = signal_name(os.WTERMSIG(status))
            return Fault(worker.number, "killed", f"killed by {name}", worker.step, {})
        return Fault(worker.number, "exited", f"exited with status {os.WEXITSTATUS(status)}", worker.step, {})
    worker.heard = time.monotonic()
    *lines, worker.unread = (worker.unread + data).split(b"\n")
    for text in lines:
        line = json.loads(text)
        if "alive" in line:
            continue
        worker.moved = worker.heard
        if "error" in line:
            worker.done = True
            return Fault(worker.number, "failed", str(line["error"]), worker.step, line)
        if "agree" in line:
            worker.asked, worker.value = True, line["agree"]
        worker.done = worker.done or "done" in line
        worker.ready = worker.ready or "ready" in line
        worker.step = line.get("step", worker.step)
        on_line(worker.number, line)
    if len(worker.unread) > _MOST_UNREAD:
        worker.done = True
        return Fault(worker.number, "failed", "it sent a line that is too long", worker.step, {})
    return None


def signal_name(number: int) -> str:
    """``SIGKILL``; real-time signals have a number only."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _answer(workers: Sequence[_Worker], uplink: Uplink | None) -> None:
    """Answer, once all that are not done have asked."""
    asking = [worker for worker in workers if not worker.done]
    if not asking or not all(worker.asked for worker in asking):
        return
    greatest = max((worker.value for worker in asking if worker.value is not None), default=None)
    if uplink:
        if not all(worker.passed_on for worker in asking):
            uplink.ask(greatest)
            for worker in asking:
                worker.passed_on = True
        answer = uplink.answer()
        if answer is None:
            return
        greatest = answer[0]
    data = json.dumps(greatest).encode() + b"\n"
    now = time.monotonic()
    for worker in asking:
        worker.asked = worker.passed_on = False
        worker.moved = now  # however long the other nodes took
        with suppress(BrokenPipeError):  # its end is noticed where it is read
            os.write(worker.writing, data)


def _late(workers: Sequence[_Worker], limits: Limits, now: float) -> list[Fault]:
    """Workers that stopped; else, where none made progress for too long, those that all others wait for."""
    at_work = [worker for worker in workers if not worker.done]
    silent = [worker for worker in at_work if now - worker.heard > limits.silent]
    if silent:
        words = f"no sign of life for {limits.silent:.0f} s"
        return [Fault(worker.number, "silent", words, worker.step, {}) for worker in silent]
    limit = limits.step if all(worker.ready for worker in at_work) else limits.start
    if not at_work or any(now - worker.moved <= limit for worker in at_work):
        return []
    behind = [worker for worker in at_work if not worker.asked]
    words = f"no progress for {limit:.0f} s"
    return [Fault(worker.number, "stuck", words, worker.step, {}) for worker in behind]
