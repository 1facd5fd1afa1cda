"""How long the terminal application takes to its first screen, beside an empty application of Textual's, and to answer
a key while probes run.

    python benchmarks/tui_start.py [RUNS]

Each program runs in a pseudo-terminal of 80 x 24. Its first screen stands when the last cell of its first frame is
written: for envcheck the footer's last words, for the empty application its first cursor position after the switch to
the alternate screen. A key is answered when the screen that it asks for is written.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import select
import signal
import statistics
import struct
import sys
import tempfile
import termios
import time
from collections.abc import Callable
from pathlib import Path

EMPTY = "from textual.app import App\nApp().run()\n"
ALTERNATE = b"\x1b[?1049h"
ROOT = Path(__file__).resolve().parents[1]


class Program:
    """A program on a terminal of its own."""

    def __init__(self, arguments: list[str]) -> None:
        self.started = time.monotonic()
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            variables = {name: value for name, value in os.environ.items() if name not in ("CI", "NO_COLOR")}
            variables |= {"TERM": "xterm-256color", "COLORTERM": "truecolor", "PYTHONPATH": str(ROOT)}
            os.execve(sys.executable, [sys.executable, *arguments], variables)
        fcntl.ioctl(self.terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        self.written = b""

    def wait(self, true: Callable[[bytes], object], seconds: float = 20) -> float:
        """Seconds since the start until what was written is as wanted."""
        while not true(self.written):
            if time.monotonic() - self.started > seconds:
                raise TimeoutError(self.written[-500:])
            if select.select([self.terminal], [], [], 0.005)[0]:
                self.written += os.read(self.terminal, 65536)
        return time.monotonic() - self.started

    def press(self, key: bytes, expected: bytes) -> float:
        """Seconds from a key to the words that it brings up."""
        place, pressed = len(self.written), time.monotonic()
        os.write(self.terminal, key)
        self.wait(lambda written: expected in written[place:])
        return time.monotonic() - pressed

    def end(self) -> None:
        os.write(self.terminal, b"q")
        deadline = time.monotonic() + 5
        while not os.waitpid(self.pid, os.WNOHANG)[0]:
            if time.monotonic() >= deadline:
                os.kill(self.pid, signal.SIGKILL)
            if select.select([self.terminal], [], [], 0.05)[0]:
                with contextlib.suppress(OSError):  # the program is gone
                    os.read(self.terminal, 65536)
        os.close(self.terminal)


def first_screen(arguments: list[str], last: bytes) -> float:
    program = Program(arguments)
    try:
        return program.wait(lambda written: last in written.partition(ALTERNATE)[2])
    finally:
        program.end()


def keys() -> list[float]:
    """Answers to keys while the first session runs: a list that opens and closes over the screen."""
    program = Program(["-m", "envcheck"])
    try:
        program.wait(lambda written: b"Examining" in written)
        return [program.press(b"?", b"esc closes"), *_further(program)]
    finally:
        program.end()


def _further(program: Program) -> list[float]:
    """Close the page with enter, open it again, as long as probes run."""
    found = []
    for _ in range(5):
        os.write(program.terminal, b"\r")
        pause = time.monotonic() + 0.06
        while time.monotonic() < pause:
            if select.select([program.terminal], [], [], 0.005)[0]:
                program.written += os.read(program.terminal, 65536)
        found.append(program.press(b"?", b"esc closes"))
    return found


def told(name: str, seconds: list[float]) -> None:
    ordered = sorted(seconds)
    middle, most = statistics.median(ordered) * 1e3, ordered[-1] * 1e3
    print(f"{name:<34} median {middle:6.0f} ms   most {most:6.0f} ms   n {len(ordered)}")


def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    with tempfile.TemporaryDirectory() as folder:
        empty = Path(folder) / "empty.py"
        empty.write_text(EMPTY)
        first_screen([str(empty)], b"\x1b[1;1H")  # warms the caches of both
        first_screen(["-m", "envcheck"], b"palette")
        plain, whole = [], []
        for _ in range(runs):
            plain.append(first_screen([str(empty)], b"\x1b[1;1H"))
            whole.append(first_screen(["-m", "envcheck"], b"palette"))
    told("empty application, first screen", plain)
    told("envcheck, first screen", whole)
    told("difference", [after - before for before, after in zip(plain, whole, strict=True)])
    told("key while probes run", [second for _ in range(max(1, runs // 3)) for second in keys()])


if __name__ == "__main__":
    main()
