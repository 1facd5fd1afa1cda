"""A program in a pseudo-terminal: when it wrote what, and how long after a key."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import select
import signal
import struct
import sys
import termios
import time
from collections.abc import Callable, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
_PATIENCE = 20.0


class Program:
    """A Python program on a terminal of its own."""

    def __init__(self, arguments: Sequence[str], columns: int = 80, rows: int = 24) -> None:
        self.started = time.monotonic()
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            variables = {name: value for name, value in os.environ.items() if name not in ("CI", "NO_COLOR")}
            variables |= {"TERM": "xterm-256color", "COLORTERM": "truecolor", "PYTHONPATH": str(ROOT)}
            os.chdir("/")  # where nothing lies that it could import by chance
            os.execve(sys.executable, [sys.executable, *arguments], variables)
        fcntl.ioctl(self.terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.written = b""

    def wait(self, true: Callable[[bytes], object]) -> float:
        """Seconds since the start until what was written is as wanted."""
        deadline = time.monotonic() + _PATIENCE
        while not true(self.written):
            if time.monotonic() > deadline:
                raise TimeoutError(self.written[-500:])
            self.read(0.005)
        return time.monotonic() - self.started

    def read(self, seconds: float) -> None:
        """Take what is written within some seconds, if anything is."""
        if select.select([self.terminal], [], [], seconds)[0]:
            self.written += os.read(self.terminal, 65536)

    def rest(self, seconds: float) -> None:
        """Press nothing for some seconds."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            self.read(left)

    def press(self, key: bytes, expected: bytes) -> float:
        """Seconds from a key to the words that it brings up."""
        place, pressed = len(self.written), time.monotonic()
        os.write(self.terminal, key)
        self.wait(lambda written: expected in written[place:])
        return time.monotonic() - pressed

    def end(self) -> None:
        """Leave by ``q``, or by force."""
        os.write(self.terminal, b"q")
        deadline = time.monotonic() + 5
        while not os.waitpid(self.pid, os.WNOHANG)[0]:
            if time.monotonic() >= deadline:
                os.kill(self.pid, signal.SIGKILL)
            with contextlib.suppress(OSError):  # the program is gone
                self.read(0.05)
        os.close(self.terminal)
