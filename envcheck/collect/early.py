"""A child that is started while this process still imports the rest of envcheck, and imports its probes meanwhile.

Of all children the one that reads environments takes longest, and everybody waits for it.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress

from envcheck import bundle
from envcheck.collect.starting import ISOLATED, Started, start

PROBES = ("environments", "libraries")
"""What it imports, the one that it runs first in front."""

_waiting: list[tuple[str, Started]] = []
"""The folder of its probes, and the child."""


def begin() -> None:
    """Start it, if that can be done; what goes wrong is met again, and told, when a child is needed.

    Should this process be killed, its end closes the order, which ends the child.
    """
    with suppress(OSError):
        folder = str(bundle.folder("probes"))
        _waiting.append((folder, start(sys.executable, ISOLATED, os.environ, None, folder, *PROBES)))


def end() -> None:
    """End it, if nobody came to need it."""
    while _waiting:
        _, started = _waiting.pop()
        for descriptor in (started.facts, started.noise, started.order):
            os.close(descriptor)
        started.process.kill()
        started.process.wait()


def take(folder: str, first: str) -> Started | None:
    """The child that waits, where its probes are of this folder and this is the first of them."""
    if first == PROBES[0] and _waiting and _waiting[0][0] == folder:
        return _waiting.pop()[1]
    return None
