"""How a process ends: words for the end of a child, the lines it printed that name a problem, and Ctrl-C, deferred so
that what was measured is still reported.

Standard library only and Python 3.8 or newer: the collector brings this file along.
"""

from __future__ import annotations

import re
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Literal

from envcheck.text.clean import clean_block, one_line

DeathStatus = Literal["failed", "crashed"]
Death = Literal["own", "outside"]

_FAULTS = frozenset({"SIGSEGV", "SIGABRT", "SIGBUS", "SIGFPE", "SIGILL", "SIGSYS", "SIGTRAP"})
"""Signals that a process causes itself; all others come from outside (SIGKILL also when memory runs out)."""

TAIL = 4096
"""Bytes kept of what one probe printed."""
MOST_TELLING = 40
"""Lines kept that name a problem; the first ones are closest to the cause."""
LONGEST_LINE = 500
"""Characters kept of one."""
_LINE_LIMIT = 1 << 16
_TELLING = re.compile(
    r"error|fail|fatal|warn|cannot|could not|couldn't|can't|unable|not (?:found|supported|compiled|available|installed)"
    r"|unknown|unrecogni[sz]ed|invalid|expected|assert|aborted|terminate called|stoull|stod\b"
    r"|unsupported|undefined symbol|falling back|no such file|incompatible|mismatch|too old|no gpu|no device",
    re.IGNORECASE,
)
_LOGGED = re.compile(r"\W*[EF]\d{4} \d{2}:\d{2}:\d{2}")
"""The beginning of errors, and of fatal errors, in logs of glog and Abseil."""
_FATAL = re.compile(r"\W*F\d{4} \d{2}:\d{2}:\d{2}")
_MOST_FATAL = 8
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_WITHOUT_CONTENT = re.compile(
    r"\W*(?:\w*Warning|Traceback .*|warnings\.warn\(.*|raise .*|.*All log messages before absl.*|errors?)?\W*$",
    re.IGNORECASE,
)


def describe(returncode: int) -> tuple[DeathStatus, str]:
    """Status and description of ``subprocess``'s return code: the exit status, or minus the number of the signal."""
    if returncode >= 0:
        return "failed", f"exited with status {returncode}"
    name = signal_name(-returncode)
    return "crashed", f"crashed: {name}" if name in _FAULTS else f"killed by {name}"


def whose(returncode: int) -> Death:
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
        text = _COLOUR.sub("", line[:_LINE_LIMIT].decode("utf-8", "replace"))
        # A fatal error comes last, often after many other lines.
        if len(self._telling) >= MOST_TELLING + (_MOST_FATAL if _FATAL.match(text) else 0):
            return
        if (_TELLING.search(text) or _LOGGED.match(text)) and not _WITHOUT_CONTENT.fullmatch(text.strip()):
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
