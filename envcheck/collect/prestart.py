"""Start the slowest child first, before this process has imported the rest of envcheck.

The child that reads environments takes longest of all, and the check waits for it. Starting it first saves 7 to
9 % of a check's wall time (two cores, no GPU, 40 runs in turns with and without, 2026-11-23).
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from envcheck import bundle
from envcheck.collect.starting import ISOLATED, WORKING_FOLDER, Started, own_variables, start

PROBE = "environments"
"""The probe that it imports and runs first."""
_ALARM = 600
"""Seconds after which the child ends itself; more than the deadlines of its probes, which are not known yet."""


class _Waiting(NamedTuple):
    """A child that no job has taken yet."""

    started: Started
    folder: str
    """The folder of its probes."""
    request: dict[str, Any] | None = None
    """The request that was sent for its first probe, if any."""


_waiting: list[_Waiting] = []


def begin() -> None:
    """Start the child. An error is suppressed here: it occurs again, and is reported, when a job needs a child.

    If this process is killed, its end of the pipe closes, which ends the child before or after its probe.
    """
    with suppress(OSError):
        folder = bundle.place("probes")
        _waiting.append(
            _Waiting(start(sys.executable, ISOLATED, own_variables(), WORKING_FOLDER, folder, PROBE), folder)
        )


def send_request(request: dict[str, Any]) -> None:
    """Let the child, if there is one, run its first probe."""
    if not _waiting:
        return
    import json  # noqa: PLC0415  there is time for it while the child imports its probes

    from envcheck.collect.request import order, own_path  # noqa: PLC0415

    child = _waiting.pop()
    data = f"{json.dumps(order(request, child.folder, own_path(), _ALARM))}\n{PROBE}\n".encode()
    sent = 0
    with suppress(OSError):  # the pipe is full, or the child has ended, which its job notices
        sent = os.write(child.started.order, data)
    started = child.started._replace(sent_probe=PROBE, unsent=data[sent:])
    _waiting.append(child._replace(started=started, request=request))


def end() -> None:
    """End the child if no job took it."""
    while _waiting:
        started = _waiting.pop().started
        for descriptor in (started.facts, started.noise, started.order):
            os.close(descriptor)
        os.killpg(started.process.pid, signal.SIGKILL)  # and any copies that it forked
        started.process.wait()


def take(folder: str, first: str, request: Mapping[str, Any]) -> Started | None:
    """The waiting child, if its folder and first probe are these and it was not sent another request."""
    if not _waiting or first != PROBE:
        return None
    child = _waiting[0]
    if child.folder != folder or child.request not in (None, request):
        return None
    return _waiting.pop().started
