"""A running child: its three pipes, its end with whatever it started, words for that end, the lines it printed that
name a problem; and Ctrl-C, deferred so that what was measured is still reported.

A child leads its own session and process group. A process that left the group is found by the marker in its inherited
environment. A group is signalled only before its leader is reaped: until then its number cannot be reused.

Standard library only and Python 3.8 or newer: the collector brings this file along.
"""

from __future__ import annotations

import os
import re
import selectors
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import TYPE_CHECKING, Literal

from envcheck.collect.starting import MARKER
from envcheck.text.clean import clean_block, one_line

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping
    from typing import Any

    from envcheck.collect.starting import Started

DeathStatus = Literal["failed", "crashed"]
Death = Literal["own", "outside"]

_FAULTS = frozenset({"SIGSEGV", "SIGABRT", "SIGBUS", "SIGFPE", "SIGILL", "SIGSYS", "SIGTRAP"})
"""Signals that a process causes itself; all others come from outside (SIGKILL also when memory runs out)."""

TAIL = 4096  # Bytes kept of what one probe printed
MOST_TELLING = 40  # Lines kept that name a problem; the first ones are closest to the cause
LONGEST_LINE = 500  # Characters kept of one
_LINE_LIMIT = 1 << 16
_TELLING = (
    r"(?i)error|fail|fatal|warn|cannot|could not|couldn't|can't|unable|not (?:found|supported|compiled|available)"
    r"|not installed|unknown|unrecogni[sz]ed|invalid|expected|assert|aborted|terminate called|stoull|stod\b"
    r"|unsupported|undefined symbol|falling back|no such file|incompatible|mismatch|too old|no gpu|no device"
)
_LOGGED = r"\W*[EF]\d{4} \d{2}:\d{2}:\d{2}"  # The beginning of errors, and of fatal errors, in logs of glog and Abseil
_FATAL = r"\W*F\d{4} \d{2}:\d{2}:\d{2}"
_MOST_FATAL = 8
_WITHOUT_CONTENT = (
    r"(?i)\W*(?:\w*Warning|Traceback .*|warnings\.warn\(.*|raise .*|.*All log messages before absl.*|errors?)?\W*$"
)


def describe(returncode: int) -> tuple[DeathStatus, str]:
    """Status and description of ``subprocess``'s return code: the exit status, or minus the number of the signal."""
    if returncode >= 0:
        return "failed", f"exited with status {returncode}"
    name = signal_name(-returncode)
    return "crashed", f"crashed: {name}" if name in _FAULTS else f"killed by {name}"


def cause_of_end(returncode: int) -> Death:
    """Whether the process caused its end itself: it exited, or a fault ended it."""
    return "own" if returncode >= 0 or signal_name(-returncode) in _FAULTS else "outside"


def signal_name(number: int) -> str:
    """The name of a signal: ``SIGSEGV`` for 11; ``signal 40`` for one without a name."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


class Noise:
    """Text from the child's standard output and error."""

    def __init__(self) -> None:
        self._tail = b""
        self._line = b""
        self._telling: dict[str, None] = {}

    def feed(self, data: bytes) -> None:
        self._tail = (self._tail + data)[-TAIL:]
        *lines, rest = (self._line + data).split(b"\n")
        for line in lines:
            self._look_at(line)
        self._line = rest[-_LINE_LIMIT:]

    def take(self) -> str:
        """The tail of the text since the last call, made safe to print."""
        tail, self._tail = self._tail, b""
        return clean_block(tail.decode("utf-8", "replace")).strip("\n")

    def take_telling(self) -> tuple[str, ...]:
        """The lines since the last call that name a problem, each once."""
        self._look_at(self._line)
        self._line = b""
        telling, self._telling = tuple(self._telling), {}
        return telling

    def _look_at(self, line: bytes) -> None:
        text = re.sub(r"\x1b\[[0-9;]*m", "", line[:_LINE_LIMIT].decode("utf-8", "replace"))
        # A fatal error comes last, often after many other lines.
        if not text or len(self._telling) >= MOST_TELLING + (_MOST_FATAL if re.match(_FATAL, text) else 0):
            return
        if (re.search(_TELLING, text) or re.match(_LOGGED, text)) and not re.fullmatch(_WITHOUT_CONTENT, text.strip()):
            self._telling[one_line(text, LONGEST_LINE)] = None


_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def noted(waits: Callable[[], bool] = lambda: False) -> Iterator[Callable[[], bool]]:
    """Within the block, the first SIGINT, SIGTERM or SIGHUP is only recorded; the yielded function tells whether there
    was one.

    The second raises KeyboardInterrupt, and so does the first while the program ``waits``. An ignored signal stays
    ignored. Outside the main thread, which alone receives signals, nothing changes.
    """
    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    signals: list[int] = []

    def note(number: int, _frame: FrameType | None) -> None:
        signals.append(number)
        if len(signals) > 1 or waits():
            raise KeyboardInterrupt

    handled = [number for number in _SIGNALS if signal.getsignal(number) != signal.SIG_IGN]
    before = {number: signal.signal(number, note) for number in handled}
    try:
        yield lambda: bool(signals)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler if handler is not None else signal.SIG_DFL)


LINE_LIMIT = 4 << 20  # Most bytes of one line
TOTAL_LIMIT = 64 << 20  # Most bytes from one child
_CHUNK = 1 << 18
_DRAIN = 1 << 21  # Bytes read from a pipe at once; more than a pipe can hold


class Child:
    def __init__(
        self,
        started: Started,
        order: Mapping[str, Any],
        selector: selectors.BaseSelector,
        on_lines: Callable[[list[bytes | None]], None],
    ) -> None:
        """Send ``started`` its order if it has none.

        ``selector`` gets handlers as data, which are called without arguments. ``on_lines`` is called with the lines
        that the child sends, after what it printed before them was read.
        """
        self.token = started.token
        self.noise = Noise()
        self.lines = Lines()
        self._on_lines = on_lines
        self._selector = selector
        self._facts, self._noise, self._order_end = started.facts, started.noise, started.order
        self._open = {self._facts, self._noise, self._order_end}
        self._unsent, self._sent_probe = started.unsent, started.sent_probe
        if not started.ordered:
            import json  # noqa: PLC0415  the child that starts first brings it; whoever only plans needs none

            self._unsent = json.dumps(order).encode() + b"\n"
        self._hung_up = False
        self._process = started.process
        self.pid = self._process.pid
        for descriptor, heard in ((self._facts, self._read_facts), (self._noise, self._read_noise)):
            self._selector.register(descriptor, selectors.EVENT_READ, heard)
        with suppress(AttributeError, OSError):  # where the kernel has none, its pipes and the clock suffice
            end = os.pidfd_open(self.pid)
            self._open.add(end)
            self._selector.register(end, selectors.EVENT_READ, lambda: self._close(end))
        self._send()

    def run_probe(self, name: str) -> None:
        sent, self._sent_probe = self._sent_probe, ""
        if name != sent:
            self._unsent += name.encode() + b"\n"
            self._send()

    def close_order(self) -> None:
        self._hung_up = True
        self._send()

    def read_pipes(self) -> None:
        """Read everything that is in the pipes now."""
        self._read_facts(_DRAIN)

    def reap(self) -> int:
        """Reap the ended child and return its return code; unread messages are lost."""
        self._close_all()
        return self._process.wait()

    def abandon(self) -> None:
        """Close the pipes of a child that cannot be killed, or that is not waited for."""
        self._close_all()
        _ABANDONED.append(self.pid)
        self._process.returncode = 0  # else it warns, when it is destroyed, that the child still runs

    def _read_facts(self, most: int = _CHUNK) -> None:
        data = self._read(self._facts, most)
        self._read_noise()
        if data:
            self._on_lines(self.lines.feed(data))

    def _read_noise(self) -> None:
        self.noise.feed(self._read(self._noise, _DRAIN))

    def _read(self, descriptor: int, most: int) -> bytes:
        """Read at most about ``most`` bytes from a pipe; at its end, close it."""
        parts: list[bytes] = []
        with suppress(BlockingIOError):
            while descriptor in self._open and sum(map(len, parts)) < most:
                parts.append(os.read(descriptor, _CHUNK))
                if not parts[-1]:
                    self._close(descriptor)
        return b"".join(parts)

    def _send(self) -> None:
        """Write what the pipe accepts now, and the rest when the selector reports it writable."""
        if self._order_end not in self._open:
            return
        try:
            self._unsent = self._unsent[os.write(self._order_end, self._unsent) :]
        except BlockingIOError:
            pass
        except BrokenPipeError:
            self._unsent, self._hung_up = b"", True
        if self._hung_up and not self._unsent:
            self._close(self._order_end)
            return
        with suppress(KeyError):  # it was or was not registered before
            if self._unsent:
                self._selector.register(self._order_end, selectors.EVENT_WRITE, self._send)
            else:
                self._selector.unregister(self._order_end)

    def _close(self, descriptor: int) -> None:
        if descriptor in self._open:
            self._open.remove(descriptor)
            with suppress(KeyError):
                self._selector.unregister(descriptor)
            os.close(descriptor)

    def _close_all(self) -> None:
        for descriptor in tuple(self._open):
            self._close(descriptor)


_ABANDONED: list[int] = []


def reap_abandoned() -> bool:
    """Reap the abandoned children that have exited; whether all have."""
    for pid in tuple(_ABANDONED):
        if has_ended(pid):
            _ABANDONED.remove(pid)
            with suppress(ChildProcessError):
                os.waitpid(pid, 0)
    return not _ABANDONED


class Lines:
    """Splits a child's messages into lines, and keeps no more of a line than its limit."""

    def __init__(self) -> None:
        self.total = 0
        self._rest = bytearray()
        self._too_long = False

    def feed(self, data: bytes) -> list[bytes | None]:
        """The lines that ``data`` completes; None stands for one that was too long."""
        self.total += len(data)
        *ends, rest = data.split(b"\n")
        lines: list[bytes | None] = []
        for end in ends:
            self._append(end)
            lines.append(None if self._too_long else bytes(self._rest))
            self._rest.clear()
            self._too_long = False
        self._append(rest)
        return lines

    def _append(self, data: bytes) -> None:
        if self._too_long or len(self._rest) + len(data) > LINE_LIMIT:
            self._too_long = True
            self._rest.clear()
        else:
            self._rest += data


TERM_GRACE = 0.3  # Seconds between SIGTERM and SIGKILL
KILL_GRACE = 1.0  # Seconds for a killed process to end; one that still runs is blocked in the kernel (state D)
_PAUSE = 0.002


def has_ended(pid: int) -> bool:
    """Whether the child ``pid`` has ended, without reaping it."""
    try:
        return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:
        return True


def end_groups(leaders: Collection[int]) -> frozenset[int]:
    """Terminate the process groups of these unreaped children together: SIGTERM, a short grace, SIGKILL.

    Returns the leaders that could not be killed.
    """

    def all_ended() -> bool:
        return all(map(has_ended, leaders))

    if not all_ended():
        kill_groups(leaders, signal.SIGTERM)
        _wait(all_ended, TERM_GRACE)
    kill_groups(leaders)
    _wait(all_ended, KILL_GRACE)
    return frozenset(pid for pid in leaders if not has_ended(pid))


def kill_marked(token: str, spare: Collection[int] = (), older: Collection[int] = ()) -> tuple[str, ...]:
    """Kill every process that carries ``token`` in its environment, and return their names.

    Never kills this process or those in ``spare``. ``older`` are processes that existed before the token and need not
    be examined. A name says so when its process could not be killed.
    """
    names: dict[int, str] = {}
    passed_over = {os.getpid(), *spare, *older}

    def none_left() -> bool:
        # Search again after each round: a process may fork between being found and being killed.
        found = _marked(token, passed_over)
        for pid in found:
            names.setdefault(pid, _name(pid))
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        return not found

    if not _wait(none_left, KILL_GRACE):
        for pid in _marked(token, passed_over):
            names[pid] = f"{names.get(pid) or _name(pid)} ({pid}, which cannot be killed)"
    return tuple(names.values())


def running_processes() -> frozenset[int]:
    try:
        names = os.listdir("/proc")  # noqa: PTH208  a Path for each process takes several times as long
        return frozenset(int(name) for name in names if name.isdecimal())
    except OSError:
        return frozenset()


def _marked(token: str, passed_over: Collection[int]) -> list[int]:
    entry = f"{MARKER}={token}".encode()
    others = running_processes().difference(passed_over)
    return [pid for pid in others if entry in _read(f"/proc/{pid}/environ", 4 << 20).split(b"\0")]


def _name(pid: int) -> str:
    return one_line(_read(f"/proc/{pid}/comm", 64).decode("utf-8", "replace")) or f"process {pid}"


def _read(path: str, limit: int) -> bytes:
    try:
        with open(path, "rb") as file:  # noqa: PTH123  as above
            return file.read(limit)
    except OSError:
        return b""


def kill_groups(leaders: Iterable[int], number: signal.Signals = signal.SIGKILL) -> None:
    """Signal the process groups of these unreaped children."""
    for pid in leaders:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, number)


def _wait(done: Callable[[], bool], seconds: float) -> bool:
    until = time.monotonic() + seconds
    while not done():
        if time.monotonic() >= until:
            return False
        time.sleep(_PAUSE)
    return True
