"""How long the terminal application takes to its first screen, beside an empty application of Textual's.

    python -m benchmarks.tui_start [RUNS]

Each program runs in a pseudo-terminal of 80 x 24. Its first screen stands when the last cell of its first frame is
written: for envcheck the footer's last words, for the empty application its first cursor position after the switch to
the alternate screen.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from pathlib import Path

from benchmarks.terminal import Program

EMPTY = "from textual.app import App\nApp().run()\n"
ALTERNATE = b"\x1b[?1049h"


def first_screen(arguments: list[str], last: bytes) -> float:
    program = Program(arguments)
    try:
        return program.wait(lambda written: last in written.partition(ALTERNATE)[2])
    finally:
        program.end()


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


if __name__ == "__main__":
    main()
