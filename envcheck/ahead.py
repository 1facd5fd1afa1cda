"""Do what will be needed while this process waits for its children."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from threading import Thread


def begin(work: Callable[[], object]) -> None:
    """Let ``work`` run beside the caller; it must be something that may just as well be done later.

    What it raises is met again, and told, when the caller comes to need the same.
    """
    Thread(target=_quietly, args=(work,), name="ahead").start()


def _quietly(work: Callable[[], object]) -> None:
    with suppress(Exception):  # it is only a head start
        work()
