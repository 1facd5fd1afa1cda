"""Progress: which probes still run, and on stderr a line that says so.

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
from typing import NamedTuple, TextIO

from envcheck.model.events import Event, OnEvent, ProbeFinished, ProbesPlanned, ProbeStarted, Progress, ignore
from envcheck.text.clean import clean
from envcheck.text.inert import inert
from envcheck.text.wrap import clip

_SECONDS_BETWEEN = 0.2
_SECONDS_BETWEEN_LINES = 2.0  # Where lines stay, one is written only this often, and only if there is something new
_SECONDS_OF_SILENCE = 10.0  # After these the same is said again: it still runs
_ERASE = "\r\x1b[K"


@contextmanager
def progress(stream: TextIO, *, quiet: bool = False, lines: bool = False) -> Iterator[OnEvent]:
    """Show on ``stream`` what the events tell until the block is left; on anything but a terminal, if ``lines``."""
    drawn = stream.isatty() and os.environ.get("TERM", "dumb") != "dumb"
    if quiet or not (drawn or lines):
        yield ignore
        return
    shown = ProbeProgress()
    stop = threading.Event()
    writer = threading.Thread(target=_repaint if drawn else _add_lines, args=(shown, stream, stop), daemon=True)
    try:
        writer.start()
    except RuntimeError:  # this user may start no more threads
        yield ignore
        return
    try:
        yield shown.add
    finally:
        stop.set()
        writer.join()
        if drawn:
            _write(stream, _ERASE)


class Running(NamedTuple):
    """A probe that still runs."""

    name: str  # Of the framework that it tries, else its own
    gpu: str | None  # UUID, where it runs for one GPU
    text: str
    seconds: float


class ProbeProgress:
    """Counts probes. One thread adds events, another reads."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._started = clock()
        self._lock = threading.Lock()
        self._running: dict[tuple[str, str | None, str | None], tuple[float, str]] = {}
        """Since when each runs, and its last words."""
        self._planned = self._ended = 0

    def add(self, event: Event) -> None:
        with self._lock:
            if isinstance(event, ProbesPlanned):
                self._planned += len(event.probes)
            elif isinstance(event, ProbeStarted):
                self._running[event.name, event.framework, event.gpu] = self._clock(), ""
            elif isinstance(event, Progress):
                key = event.name, event.framework, event.gpu
                since, _ = self._running.get(key, (self._clock(), ""))
                self._running[key] = since, event.text
            elif isinstance(event, ProbeFinished):
                run = event.run
                self._ended += self._running.pop((run.name, run.framework, run.gpu), None) is not None

    @property
    def running(self) -> list[Running]:
        """The probes that still run, the longest first."""
        with self._lock:
            now = self._clock()
            return [
                Running(framework or name, gpu, text, now - since)
                for (name, framework, gpu), (since, text) in self._running.items()
            ]

    def state(self) -> tuple[str, str]:
        """How many probes have ended, and what runs: ``3 of 8 probes``, ``bench.gemm (gemm bf16) x8``."""
        counted = f"{self._ended} of {self._planned} probes" if self._planned else "starting"
        running = Counter(f"{probe.name} ({probe.text})" if probe.text else probe.name for probe in self.running)
        return counted, ", ".join(f"{what} x{count}" if count > 1 else what for what, count in running.items())

    def counted(self) -> str:
        """``3 of 8 probes  1.2 s``."""
        return f"{self.state()[0]}  {self._clock() - self._started:.1f} s"

    def summary(self) -> str:
        """``3 of 8 probes  1.2 s  nvml (GPU 2 of 8), cuda``."""
        return f"{self.counted()}  {self.state()[1]}".rstrip()

    def line(self, columns: int) -> str:
        """The summary as a terminal may show it, within ``columns``."""
        return clip(inert(clean(self.summary())), columns)


def _repaint(shown: ProbeProgress, stream: TextIO, stop: threading.Event) -> None:
    while not stop.wait(_SECONDS_BETWEEN):
        columns = shutil.get_terminal_size().columns
        # One column stays free: a full line makes some terminals wrap, and the wrapped part would not be erased.
        _write(stream, _ERASE + shown.line(max(columns - 1, 1)))


def _add_lines(shown: ProbeProgress, stream: TextIO, stop: threading.Event) -> None:
    last, silent = ("", ""), 0.0
    while not stop.wait(_SECONDS_BETWEEN_LINES):
        silent += _SECONDS_BETWEEN_LINES
        now = shown.state()
        if now != last or silent >= _SECONDS_OF_SILENCE:
            last, silent = now, 0.0
            _write(stream, f"{shown.line(120)}\n")


def _write(stream: TextIO, text: str) -> None:
    # The terminal may go away during the run; the check goes on without it.
    with suppress(OSError):
        stream.write(text)
        stream.flush()
