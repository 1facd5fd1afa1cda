"""Defer Ctrl-C, so that what was measured is still reported."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def noted(waits: Callable[[], bool] = lambda: False) -> Iterator[Callable[[], bool]]:
    """Within the block, the first SIGINT, SIGTERM or SIGHUP is only recorded; the yielded function tells whether there
    was one.

    The second raises KeyboardInterrupt, and so does the first while the program ``waits``. An ignored signal stays
    ignored. Outside the main thread, which alone receives signals, nothing changes.
    """
    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    met: list[int] = []

    def note(number: int, _frame: FrameType | None) -> None:
        met.append(number)
        if len(met) > 1 or waits():
            raise KeyboardInterrupt

    handled = [number for number in _SIGNALS if signal.getsignal(number) != signal.SIG_IGN]
    before = {number: signal.signal(number, note) for number in handled}
    try:
        yield lambda: bool(met)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler if handler is not None else signal.SIG_DFL)
