"""A child that is started, and gets to work, while this process still imports the rest of envcheck.

Of all children the one that reads environments takes longest, and everybody waits for it. Started early it saves 7 to
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
"""What it imports, and runs first."""
_ALARM = 600
"""Seconds; far more than its probes are given, which nobody knows yet."""


class Early(NamedTuple):
    """A child that nobody has taken yet."""

    started: Started
    folder: str
    """Of its probes."""
    request: dict[str, Any] | None = None
    """What its first probe was asked, if it was told to run."""


_waiting: list[Early] = []


def begin() -> None:
    """Start it, if that can be done; what goes wrong is met again, and told, when a child is needed.

    Should this process be killed, its end closes the order, which ends the child before its probe and after it.
    """
    with suppress(OSError):
        folder = bundle.place("probes")
        _waiting.append(Early(start(sys.executable, ISOLATED, own_variables(), WORKING_FOLDER, folder, PROBE), folder))


def tell(request: dict[str, Any]) -> None:
    """Let it run its first probe, should it be there."""
    if not _waiting:
        return
    import json  # noqa: PLC0415  while the child imports its probes there is time for it

    from envcheck.collect.request import order, own_path  # noqa: PLC0415

    child = _waiting.pop()
    data = f"{json.dumps(order(request, child.folder, own_path(), _ALARM))}\n{PROBE}\n".encode()
    sent = 0
    with suppress(OSError):  # it is full, or the child has ended, and then somebody hears of it later
        sent = os.write(child.started.order, data)
    told = child.started._replace(told=PROBE, unsent=data[sent:])
    _waiting.append(child._replace(started=told, request=request))


def end() -> None:
    """End it, if nobody came to need it."""
    while _waiting:
        started = _waiting.pop().started
        for descriptor in (started.facts, started.noise, started.order):
            os.close(descriptor)
        os.killpg(started.process.pid, signal.SIGKILL)  # with the copies of itself that it may have made
        started.process.wait()


def take(folder: str, first: str, request: Mapping[str, Any]) -> Started | None:
    """The child that waits, where its probes are of this folder, this is the first of them, and it was asked no other
    request.
    """
    if not _waiting or first != PROBE:
        return None
    child = _waiting[0]
    if child.folder != folder or child.request not in (None, request):
        return None
    return _waiting.pop().started
