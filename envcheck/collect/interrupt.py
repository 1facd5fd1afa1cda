"""Take note of Ctrl-C where there is something to lose, so that what was measured can still be told."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def noted() -> Iterator[Callable[[], bool]]:
    """Within the block the first SIGINT, SIGTERM or SIGHUP is only noted; what is yielded tells whether there was one.

    The second raises KeyboardInterrupt. A signal that is ignored stays so. In any other thread than the main one,
    which alone gets signals, nothing changes.
    """
    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    met: list[int] = []

    def note(number: int, _frame: FrameType | None) -> None:
        if met:
            raise KeyboardInterrupt
        met.append(number)

    heeded = [number for number in _SIGNALS if signal.getsignal(number) != signal.SIG_IGN]
    before = {number: signal.signal(number, note) for number in heeded}
    try:
        yield lambda: bool(met)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler if handler is not None else signal.SIG_DFL)
