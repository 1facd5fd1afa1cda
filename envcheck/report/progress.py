"""Progress on stderr: which probes still run.

On a terminal that is one line, overwritten and at last erased. Elsewhere (a pipe, the log of a CI job) plain lines are
written seldom, and only for what takes long by nature. A thread writes: the clock goes on while a probe hangs.
"""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TextIO

from envcheck.model.events import Event, OnEvent, ProbeFinished, ProbesPlanned, ProbeStarted, Progress, ignore
from envcheck.text.clean import clean
from envcheck.text.inert import inert
from envcheck.text.wrap import clip

_SECONDS_BETWEEN = 0.2
_SECONDS_BETWEEN_LINES = 2.0
"""Where lines stay, one is written only this often, and only if there is something new."""
_SECONDS_OF_SILENCE = 10.0
"""After these the same is said again: it still runs."""
_COLUMNS_OF_LINES = 120
_ERASE = "\r\x1b[K"


@contextmanager
def progress(stream: TextIO, *, quiet: bool = False, lines: bool = False) -> Iterator[OnEvent]:
    """Show on ``stream`` what the events tell until the block is left; on anything but a terminal, if ``lines``."""
    drawn = stream.isatty() and os.environ.get("TERM", "dumb") != "dumb"
    if quiet or not (drawn or lines):
        yield ignore
        return
    line = ProgressLine(time.monotonic)
    stop = threading.Event()
    writer = threading.Thread(target=_repaint if drawn else _add_lines, args=(line, stream, stop), daemon=True)
    writer.start()
    try:
        yield line.on_event
    finally:
        stop.set()
        writer.join()
        if drawn:
            _write(stream, _ERASE)


class ProgressLine:
    """What is running at the moment, in one line."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._started = clock()
        self._lock = threading.Lock()
        self._running: dict[tuple[str, str | None, str | None], str] = {}
        self._planned = 0
        self._ended = 0

    def on_event(self, event: Event) -> None:
        """Take note of ``event``."""
        with self._lock:
            if isinstance(event, ProbesPlanned):
                self._planned += len(event.probes)
            elif isinstance(event, ProbeStarted):
                self._running[event.name, event.framework, event.gpu] = ""
            elif isinstance(event, Progress):
                self._running[event.name, event.framework, event.gpu] = event.text
            elif isinstance(event, ProbeFinished):
                started = self._running.pop((event.run.name, event.run.framework, event.run.gpu), None)
                self._ended += started is not None

    def text(self, columns: int) -> str:
        """The line as it is now, within ``columns``: ``3 of 8 probes  1.2 s  nvml (GPU 2 of 8), cuda``."""
        counted, running = self.state()
        elapsed = self._clock() - self._started
        return clip(inert(clean(f"{counted}  {elapsed:.1f} s  {running}".rstrip())), columns)

    def state(self) -> tuple[str, str]:
        """How many probes have ended, and what runs: ``3 of 8 probes``, ``bench.gemm (gemm bf16) x8``."""
        with self._lock:
            running = Counter(f"{name} ({text})" if text else name for (name, *_), text in self._running.items())
            counted = f"{self._ended} of {self._planned} probes" if self._planned else "starting"
        return counted, ", ".join(f"{what} x{count}" if count > 1 else what for what, count in running.items())


def _repaint(line: ProgressLine, stream: TextIO, stop: threading.Event) -> None:
    while not stop.wait(_SECONDS_BETWEEN):
        columns = shutil.get_terminal_size().columns
        # One column stays free: a full line makes some terminals wrap, and the wrapped part would not be erased.
        _write(stream, _ERASE + line.text(max(columns - 1, 1)))


def _add_lines(line: ProgressLine, stream: TextIO, stop: threading.Event) -> None:
    told, silent = ("", ""), 0.0
    while not stop.wait(_SECONDS_BETWEEN_LINES):
        silent += _SECONDS_BETWEEN_LINES
        now = line.state()
        if now != told or silent >= _SECONDS_OF_SILENCE:
            told, silent = now, 0.0
            _write(stream, f"{line.text(_COLUMNS_OF_LINES)}\n")


def _write(stream: TextIO, text: str) -> None:
    # The terminal may go away during the run; the check goes on without it.
    with suppress(OSError):
        stream.write(text)
        stream.flush()
