"""A part of a probe's work, done by a copy of this process on another core."""

from __future__ import annotations

import json
import os
import signal
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import BinaryIO

_ALARM = 60
"""Seconds after which the copy ends itself, should nobody be left to end it."""


class Beside:
    """Steps that a copy of this process takes, one after the other, while this one goes on.

    What a step returns is made of what JSON knows. Where there is no second core, no copy can be made, or the copy
    fails, no step is taken: the caller does it then, and meets what went wrong.
    """

    def __init__(self, *steps: Callable[[], Any]) -> None:
        self._pid = 0
        self._results: BinaryIO | None = None
        if _is_worthwhile():
            try:
                self._start(steps)
            except OSError:
                self.end()

    def next(self) -> Any:
        """What the next step returned; None where it is not known, nor will that of those that follow be."""
        if self._results is None:
            return None
        line = self._results.readline()
        if line.endswith(b"\n"):
            return json.loads(line)
        self.end()
        return None

    def end(self) -> None:
        """End the copy, whatever it is doing."""
        if self._results is not None:
            self._results.close()
            self._results = None
        if self._pid:
            os.kill(self._pid, signal.SIGKILL)  # not reaped yet, so that nobody else has its number
            os.waitpid(self._pid, 0)
            self._pid = 0

    def _start(self, steps: tuple[Callable[[], Any], ...]) -> None:
        reading, writing = os.pipe()
        self._results = open(reading, "rb")  # noqa: SIM115  closed by ``end``
        try:
            self._pid = os.fork()
            if not self._pid:
                _take(steps, writing)
        finally:
            os.close(writing)


def _is_worthwhile() -> bool:
    """Whether there is a core for the copy, and no thread here that a copy would lack."""
    try:
        return len(os.sched_getaffinity(0)) > 1 and len(os.listdir("/proc/self/task")) == 1
    except (AttributeError, OSError):
        return False


def _take(steps: tuple[Callable[[], Any], ...], writing: int) -> None:
    """Take the steps in the copy, which ends with them and never returns."""
    try:
        signal.alarm(_ALARM)
        with open(writing, "wb") as results:
            for step in steps:
                results.write(json.dumps(step()).encode() + b"\n")
                results.flush()
    finally:
        os._exit(0)  # whatever happened: nothing of what this process had begun is to happen twice
