"""Terminate children and whatever they started, and nothing else.

A child leads its own session and process group. A process that left the group is found by the marker in its inherited
environment. A group is signalled only before its leader is reaped: until then its number cannot be reused.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from pathlib import Path

from envcheck.collect.starting import MARKER
from envcheck.text.clean import one_line

TERM_GRACE = 0.3
"""Seconds between SIGTERM and SIGKILL."""
KILL_GRACE = 1.0
"""Seconds for a killed process to end; one that still runs is blocked in the kernel (state D)."""
_ENVIRONMENT_LIMIT = 4 << 20
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
    if not all(has_ended(pid) for pid in leaders):
        _signal_groups(leaders, signal.SIGTERM)
        _wait(lambda: all(has_ended(pid) for pid in leaders), TERM_GRACE)
    _signal_groups(leaders, signal.SIGKILL)
    _wait(lambda: all(has_ended(pid) for pid in leaders), KILL_GRACE)
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
    """The ids of the visible processes."""
    try:
        names = os.listdir("/proc")  # noqa: PTH208  a Path for each process takes several times as long
        return frozenset(int(name) for name in names if name.isdecimal())
    except OSError:
        return frozenset()


def _marked(token: str, passed_over: Collection[int]) -> list[int]:
    entry = f"{MARKER}={token}".encode()
    return [
        pid
        for pid in running_processes().difference(passed_over)
        if entry in _read(f"/proc/{pid}/environ", _ENVIRONMENT_LIMIT).split(b"\0")
    ]


def _name(pid: int) -> str:
    return one_line(_read(f"/proc/{pid}/comm", 64).decode("utf-8", "replace")) or f"process {pid}"


def _read(path: str, limit: int) -> bytes:
    try:
        with Path(path).open("rb") as file:
            return file.read(limit)
    except OSError:
        return b""


def _signal_groups(leaders: Iterable[int], number: signal.Signals) -> None:
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
