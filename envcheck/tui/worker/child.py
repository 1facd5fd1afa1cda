"""The other end: the program that a process beside the application runs."""

from __future__ import annotations

import importlib
import os
import signal
from contextlib import suppress
from types import FrameType

from envcheck.tui.worker.process import Link


def main(incoming: int, outgoing: int) -> None:
    """Run what the application asks for first."""
    signal.signal(signal.SIGTERM, _interrupt)
    for descriptor in (incoming, outgoing):
        os.set_inheritable(descriptor, False)
    link = Link(incoming, outgoing)
    with suppress(EOFError, BrokenPipeError, KeyboardInterrupt):  # the application is gone, or wants no more
        module, arguments = link.receive()
        importlib.import_module(module).serve(link, *arguments)


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    """End as by Ctrl-C, which ends the probes first."""
    raise KeyboardInterrupt
