"""Tasks of a probe, shared out among its process and copies of it on other cores."""

from __future__ import annotations

import json
import os
import signal
from typing import TYPE_CHECKING, Any

from .tree import REFUSED

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Tasks = Sequence[Callable[[], Any]]
    Done = list[tuple[int, Any]]

_MOST_COPIES = 3
"""Each reads anew what two tasks have in common and nobody had read before."""
_ALARM = 60
"""Seconds after which a copy ends itself, should nobody be left to end it."""


def shared_out(tasks: Tasks) -> list[Any]:
    """What each of the tasks returns, which is made of what JSON knows.

    Whoever is free takes the next one. None stands for one that failed, and for all where there is no other core or no
    copy can be made: the caller does it then, and meets what went wrong.
    """
    results: list[Any] = [None] * len(tasks)
    copies: list[_Copy] = []
    turns = _turns(len(tasks))
    try:
        for _ in range(min(_other_cores(), len(tasks) - 1, _MOST_COPIES)):
            copies.append(_Copy(tasks, turns))  # noqa: PERF401  those made before one fails are ended too
        done = _done(tasks, turns) if copies else []
        for copy in copies:
            done += copy.told()
    except OSError:
        done = []
    finally:
        os.close(turns)
        for copy in copies:
            copy.end()
    for place, result in done:
        results[place] = result
    return results


class _Copy:
    """A copy of this process that does tasks as long as there are any."""

    def __init__(self, tasks: Tasks, turns: int) -> None:
        self._told, telling = os.pipe()
        try:
            self._process = os.fork()
            if not self._process:
                _serve(tasks, turns, telling)
        except OSError:
            os.close(self._told)
            raise
        finally:
            os.close(telling)

    def told(self) -> Done:
        """What it has done, once it is through."""
        with open(self._told, "rb", closefd=False) as file:
            line = file.read()
        if not line.endswith(b"\n"):
            return []
        done: Done
        done, refused = json.loads(line)
        for path, reason in refused.items():
            REFUSED.setdefault(path, reason)
        return done

    def end(self) -> None:
        """End it, whatever it is doing."""
        os.close(self._told)
        os.kill(self._process, signal.SIGKILL)  # it is not reaped yet, so that nobody else has its number
        os.waitpid(self._process, 0)


def _serve(tasks: Tasks, turns: int, telling: int) -> None:
    """What the copy does; it never returns."""
    try:
        signal.alarm(_ALARM)
        with open(telling, "wb") as file:
            file.write(json.dumps([_done(tasks, turns), REFUSED]).encode() + b"\n")
    finally:
        os._exit(0)  # whatever happened: nothing that this process had begun is to happen twice


def _other_cores() -> int:
    """Cores that copies may use; none where a thread runs here, which a copy would lack."""
    try:
        return len(os.sched_getaffinity(0)) - 1 if len(os.listdir("/proc/self/task")) == 1 else 0
    except (AttributeError, OSError):
        return 0


def _turns(number: int) -> int:
    """A descriptor from which each byte, by whomever it is read, is the number of a task that nobody else gets."""
    reading, writing = os.pipe()
    os.write(writing, bytes(range(number)))
    os.close(writing)
    return reading


def _done(tasks: Tasks, turns: int) -> Done:
    """The tasks that this process came to do."""
    found: Done = []
    while turn := os.read(turns, 1):
        try:
            found.append((turn[0], tasks[turn[0]]()))
        except Exception:
            pass  # the caller does it again, and meets it
    return found
