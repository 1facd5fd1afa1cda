"""Warm-up: work that will be needed later, done in a thread while this process waits for its children.

What it saves is measured in docs/decisions/044-one-runner.md.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from threading import Thread

Work = Callable[[], object]


class WarmUp:
    """Work that may as well be done later; ``start`` lets it run beside the caller."""

    def __init__(self, *works: Work) -> None:
        self._works = works
        self._thread: Thread | None = None

    def start(self) -> None:
        """Start the thread, once. An error in it is suppressed: the caller meets it again when it needs the same.

        So it is where this user may start no more threads: the caller then does the work itself.
        """
        if self._thread is None:
            self._thread = Thread(target=self._run, name="warm-up")
            with suppress(RuntimeError):
                self._thread.start()

    def join(self) -> None:
        """Join the thread: a second thread must not see a half-initialized module or msgspec decoder."""
        if self._thread is not None and self._thread.ident is not None:
            self._thread.join()

    def _run(self) -> None:
        for work in self._works:
            with suppress(Exception):
                work()
