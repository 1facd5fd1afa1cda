"""Run one command for each node, many at a time, and yield an answer for each as it ends; or talk to it in lines.

No command runs beyond the deadline, and none prints more than a report may have. No socket is opened: orders go to a
program's stdin, and its stdout brings its answers. Whatever ends the iteration or the talk, Ctrl-C included, ends the
commands.
"""

from __future__ import annotations

import os
import queue
import re
import selectors
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import IO, Protocol, cast

import msgspec

from envcheck.collect.child import describe
from envcheck.errors import UsageError
from envcheck.fleet.examine import NodeAnswer
from envcheck.report.saved import MOST_BYTES
from envcheck.text.clean import brief

DEFAULT_JOBS = 128
DEFAULT_TIMEOUT = 120.0
_TAIL = 4096
_LISTED = 1 << 30  # Bytes of a list of all nodes: Kubernetes tells some 20 KiB of each
_OWN = re.compile(rb"""^[ \t]*\{\s*"(?:schema_version|collected)":""", re.MULTILINE)
_OBJECT = re.compile(rb"^[ \t]*\{", re.MULTILINE)  # How a report or a collection begins; else what may be meant as one
_LAUNCHER = "srun: "
_JOB = re.compile(r"^srun: job \d+(?= queued)")  # Its number would make the reason of each node another one
_TICK = 0.2
_GRACE = 3.0  # Seconds for a command to end what it started elsewhere
LINGER = 1.0
"""Seconds of silence after which an ended command is no longer listened to: what it started may keep its streams open,
as ssh's ProxyCommand does under nohup."""


class NodeCommand(msgspec.Struct, frozen=True):
    node: str
    argv: tuple[str, ...]
    stdin: bytes = b""

    def start(self) -> subprocess.Popen[bytes]:
        """Start it with pipes for all three streams, in a session of its own, which ``end_process`` ends."""
        pipe = subprocess.PIPE
        return subprocess.Popen(self.argv, stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True)


def output_of(
    argv: Sequence[str], option: str, *, called: str, seconds: float, stdin: bytes = b"", most: int = _LISTED
) -> bytes:
    """What a program that lists or starts nodes prints; raise UsageError, about ``option``, where it fails."""
    try:
        output = _Output(NodeCommand("", tuple(argv), stdin), time.monotonic() + seconds, threading.Event(), most)
    except OSError as error:
        raise UsageError(f"{option}: {argv[0]} cannot be started: {error.strerror or error}") from None
    why, status = output.why, output.status
    if why == "late":
        raise UsageError(f"{option}: {called} did not answer within {seconds:g} s")
    if why or status:
        lines = output.err.decode("utf-8", "replace").strip().splitlines()
        raise UsageError(brief(f"{option}: {called}: {why or (lines[-1] if lines else f'exit status {status}')}"))
    return output.out


def run_all(
    commands: Sequence[NodeCommand], *, jobs: int, timeout: float, each: float | None = None
) -> Iterator[NodeAnswer]:
    """An answer for each command, in the order in which they end; at most ``jobs`` run at a time.

    One that runs for ``each`` seconds is ended. After ``timeout`` seconds, all that still run are, and what did not
    start is not started.
    """
    deadline = time.monotonic() + timeout
    waiting: queue.SimpleQueue[NodeCommand] = queue.SimpleQueue()
    for command in commands:
        waiting.put(command)
    answers: queue.SimpleQueue[NodeAnswer] = queue.SimpleQueue()
    stop = threading.Event()

    def work() -> None:
        while True:
            try:
                command = waiting.get_nowait()
            except queue.Empty:
                return
            answers.put(_answer(command, deadline, timeout, each or timeout, stop))

    workers = [threading.Thread(target=work, daemon=True) for _ in range(min(jobs, len(commands)))]
    try:
        for worker in workers:
            worker.start()
        for _ in commands:
            yield answers.get()
    finally:
        stop.set()
        for worker in workers:
            worker.join(timeout=2.0)


def _answer(command: NodeCommand, deadline: float, timeout: float, each: float, stop: threading.Event) -> NodeAnswer:
    if stop.is_set() or time.monotonic() >= deadline:
        return NodeAnswer(command.node, problem=f"not asked: --timeout {timeout:g} s was over")
    try:
        output = _Output(command, min(deadline, time.monotonic() + each), stop)
    except OSError as error:
        problem = brief(f"{command.argv[0]} cannot be started: {error.strerror or error}")
        return NodeAnswer(command.node, problem=problem)
    # A report may have come from a program that left stdout open to one that it started.
    if output.why == "late" and output.out.rstrip()[-1:] != b"}":
        return NodeAnswer(command.node, problem=no_answer(min(each, timeout), output.err))
    if output.why not in ("", "late"):
        return NodeAnswer(command.node, problem=output.why)
    return read_answer(command.node, output.out, output.err, output.status)


def read_answer(node: str, out: bytes, err: bytes, status: int | None) -> NodeAnswer:
    """The report in ``out``, among words of a login shell or, in a pod's log, of stderr; else why there is none."""
    found = _OWN.search(out) or _OBJECT.search(out)
    if found is not None:
        return NodeAnswer(node, content=out[found.start() : out.rfind(b"}") + 1] or out[found.start() :])
    return NodeAnswer(node, problem=last_words(err, status, "it printed no report"))


def no_answer(seconds: float, err: bytes) -> str:
    """What to say of a node that is waited for no longer: with its last word, such as that its job is queued."""
    lines = [line for line in err.decode("utf-8", "replace").splitlines() if line.strip()]
    last = _JOB.sub("srun: the job is", lines[-1].strip()) if lines else ""
    return brief(f"no answer within {seconds:g} s" + (f": {last}" if last else ""))


def last_words(err: bytes, status: int | None, otherwise: str) -> str:
    """Why a program ended: the last line of its stderr, else ``otherwise``, after a signal or a status that is not 0.

    What the launcher says counts only where the program said nothing: its last line says no more than the status.
    """
    lines = [line for line in err.decode("utf-8", "replace").splitlines() if line.strip()]
    lines = [line for line in lines if not line.startswith(_LAUNCHER)] or lines
    reason = brief(lines[-1].strip()) if lines else otherwise
    if not status:
        return reason
    return f"{f'exit status {status}' if status > 0 else describe(status)[1]}: {reason}"


class _Output:
    """What a command prints while its stdin is written, until it ends; raises OSError where it cannot be started."""

    def __init__(self, command: NodeCommand, deadline: float, stop: threading.Event, most: int = MOST_BYTES) -> None:
        self.err = b""
        self._most = most
        self._parts: list[bytes] = []
        self._process = command.start()
        self._left = memoryview(command.stdin)
        try:
            self.why = self._listen(deadline, stop)
            """Why it was ended: ``late``, ``interrupted`` …; empty where it ended."""
            self.status = self._process.poll()
        finally:
            end_process(self._process)
        self.out = b"".join(self._parts)

    def _listen(self, deadline: float, stop: threading.Event) -> str:
        """Listen to the end of the streams, or to silence after the end of the process; return why neither came."""
        process = self._process
        size, heard = 0, time.monotonic()
        with selectors.DefaultSelector() as selector:
            for stream, events in (
                (process.stdin, selectors.EVENT_WRITE),
                (process.stdout, selectors.EVENT_READ),
                (process.stderr, selectors.EVENT_READ),
            ):
                if stream is not None:
                    os.set_blocking(stream.fileno(), False)
                    selector.register(stream, events)
            while selector.get_map():
                if stop.is_set():
                    return "interrupted"
                if time.monotonic() >= deadline:
                    return "late"
                ready = selector.select(_TICK)
                if ready or process.poll() is None:
                    heard = time.monotonic()
                elif time.monotonic() - heard > LINGER:
                    break
                for key, _ in ready:
                    size += self._serve(selector, key)
                if size > self._most:
                    return f"it printed more than {self._most >> 20} MiB"
        with suppress(subprocess.TimeoutExpired):
            process.wait(timeout=max(0.1, min(5.0, deadline - time.monotonic())))
        return ""

    def _serve(self, selector: selectors.BaseSelector, key: selectors.SelectorKey) -> int:
        stream = key.fileobj
        try:
            if stream is self._process.stdin:
                self._left = self._left[os.write(key.fd, self._left[: 1 << 16]) :] if self._left else self._left
                if self._left:
                    return 0
                data = b""
            else:
                data = os.read(key.fd, 1 << 18)
        except BlockingIOError:
            return 0
        except OSError:
            data = b""
        if not data:
            selector.unregister(stream)
            stream.close()  # type: ignore[union-attr]
        elif stream is self._process.stdout:
            self._parts.append(data)
        else:
            self.err = (self.err + data)[-_TAIL:]
        return len(data)


def end_process(process: subprocess.Popen[bytes]) -> None:
    """End the process with everything that it started in its group: first asked to, since srun then ends its tasks."""
    if process.poll() is None:
        with suppress(OSError):
            os.killpg(process.pid, signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            process.wait(timeout=_GRACE)
    with suppress(OSError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream is not None:
            with suppress(OSError):
                stream.close()


_LONGEST_LINE = 1 << 20
_CHUNK = 1 << 16


class NodeWord(msgspec.Struct, frozen=True):
    """What came of a node."""

    node: str
    line: bytes = b""
    ended: str | None = None  # Why nothing more will come; None: it goes on


class Crew(Protocol):
    """Running programs on nodes."""

    def send(self, node: str, data: bytes) -> None:
        """Send a line to a node; a failure is reported by ``receive``."""

    def receive(self, seconds: float) -> list[NodeWord]:
        """What came, after ``seconds`` at most."""

    def stderr_of(self, node: str) -> bytes:
        """What a node's program, or its launcher, said on stderr so far."""


class Processes:
    """A crew of processes here, each of which is the line to its node."""

    def __init__(self, commands: Sequence[NodeCommand]) -> None:
        self._selector = selectors.DefaultSelector()
        self._lines: dict[str, _NodeLine] = {}
        self._failed: list[NodeWord] = []
        for command in commands:
            try:
                line = _NodeLine(command)
            except OSError as error:
                why = f"{command.argv[0]} cannot be started: {error.strerror or error}"
                self._failed.append(NodeWord(command.node, ended=why))
                continue
            self._lines[command.node] = line
            for descriptor in (line.out, line.err):
                self._selector.register(descriptor, selectors.EVENT_READ, line)

    def close(self) -> None:
        for line in self._lines.values():  # all at once: each may take a while to end
            with suppress(OSError):
                line.orders.close()
        until = time.monotonic() + 3.0
        for line in self._lines.values():
            with suppress(subprocess.TimeoutExpired):
                line.process.wait(timeout=max(0.0, until - time.monotonic()))
            end_process(line.process)
        self._selector.close()

    def send(self, node: str, data: bytes) -> None:
        if node in self._lines:
            # Orders are short: one that finds its pipe full goes to a node that has not read for long.
            with suppress(OSError):
                os.write(self._lines[node].orders.fileno(), data)

    def stderr_of(self, node: str) -> bytes:
        return self._lines[node].stderr if node in self._lines else b""

    def receive(self, seconds: float) -> list[NodeWord]:
        found, self._failed = self._failed, []
        if found or not self._selector.get_map():
            return found
        for key, _ in self._selector.select(seconds):
            line: _NodeLine = key.data
            data = line.read(key.fd)
            if not data:
                self._selector.unregister(key.fd)
            found += line.take(key.fd, data)
        return found


class _NodeLine:
    """The process that is the line to a node."""

    def __init__(self, command: NodeCommand) -> None:
        self.process = command.start()
        streams = (self.process.stdin, self.process.stdout, self.process.stderr)
        self.orders, out, err = cast("tuple[IO[bytes], IO[bytes], IO[bytes]]", streams)
        self.out, self.err = out.fileno(), err.fileno()
        os.set_blocking(self.orders.fileno(), False)
        self._node = command.node
        self._unread = self.stderr = b""

    def read(self, descriptor: int) -> bytes:
        try:
            return os.read(descriptor, _CHUNK)
        except OSError:
            return b""

    def take(self, descriptor: int, data: bytes) -> list[NodeWord]:
        """The whole lines in ``data``; at the end of stdout, why it ended."""
        if not data and descriptor == self.out:
            # What the process started may keep its stderr open, so its end is not waited for.
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(timeout=5.0)
            os.set_blocking(self.err, False)
            for _ in range(64):
                if not (more := self.read(self.err)):
                    break
                self.take(self.err, more)
            why = last_words(self.stderr, self.process.returncode, "it ended without a message")
            return [NodeWord(self._node, ended=why)]
        if descriptor == self.err:
            self.stderr = (self.stderr + data)[-_TAIL:]
            return []
        *lines, self._unread = (self._unread + data).split(b"\n")
        if len(self._unread) > _LONGEST_LINE:
            self._unread = b""
            return [NodeWord(self._node, ended="it printed a line that is too long")]
        return [NodeWord(self._node, line) for line in lines]
