"""Run tasks of a probe in its process and in forks of it on other cores."""

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

_MOST_COPIES = 4  # Most forks. Each reads again what tasks have in common and was not read before the fork.
_ALARM = 60  # Seconds after which a fork ends itself, in case its parent is gone


def run_tasks(tasks: Tasks) -> list[Any]:
    """The results of the tasks, which must be JSON values.

    Whichever process is free takes the next task. None stands for a failed task, and for all if there is no other core
    or no fork is possible: the caller then runs it and sees the error.
    """
    results: list[Any] = [None] * len(tasks)
    copies: list[_Fork] = []
    # A pipe with the numbers of the tasks; each byte is read by one process only.
    turns, writing = os.pipe()
    os.write(writing, bytes(range(len(tasks))))
    os.close(writing)
    try:
        for _ in range(min(_other_cores(), len(tasks) - 1, _MOST_COPIES)):
            copies.append(_Fork(tasks, turns))  # noqa: PERF401  those made before one fails are ended too
        done = _done(tasks, turns) if copies else []
        for copy in copies:
            done += copy.results()
    except OSError:
        done = []
    finally:
        os.close(turns)
        for copy in copies:
            copy.end()
    for place, result in done:
        results[place] = result
    return results


class _Fork:
    """A fork of this process that runs tasks while there are any."""

    def __init__(self, tasks: Tasks, turns: int) -> None:
        self._results, telling = os.pipe()
        try:
            self._process = os.fork()
            if not self._process:
                try:
                    signal.alarm(_ALARM)
                    with open(telling, "wb") as file:
                        file.write(json.dumps([_done(tasks, turns), REFUSED]).encode() + b"\n")
                finally:
                    os._exit(0)  # always: nothing that the parent had begun may happen twice
        except OSError:
            os.close(self._results)
            raise
        finally:
            os.close(telling)

    def results(self) -> Done:
        """Its results, after it has finished."""
        with open(self._results, "rb", closefd=False) as file:
            line = file.read()
        if not line.endswith(b"\n"):
            return []
        done: Done
        done, refused = json.loads(line)
        for path, reason in refused.items():
            REFUSED.setdefault(path, reason)
        return done

    def end(self) -> None:
        """Kill it."""
        os.close(self._results)
        os.kill(self._process, signal.SIGKILL)  # it is not reaped yet, so its id is not reused
        os.waitpid(self._process, 0)


def _other_cores() -> int:
    """Cores available for forks; none if threads run here, which a fork would lack."""
    try:
        return len(os.sched_getaffinity(0)) - 1 if len(os.listdir("/proc/self/task")) == 1 else 0
    except (AttributeError, OSError):
        return 0


def _done(tasks: Tasks, turns: int) -> Done:
    """The results of the tasks that this process ran."""
    found: Done = []
    while turn := os.read(turns, 1):
        try:
            found.append((turn[0], tasks[turn[0]]()))
        except Exception:
            pass  # the caller runs it again and sees the error
    return found
