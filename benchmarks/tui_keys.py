"""How long the terminal application takes to answer a key: while nothing happens, while it examines this machine,
while a benchmark of four GPUs sends its events, and while the matrix is asked what fits.

    python -m benchmarks.tui_keys [ROUNDS]

The application runs in a pseudo-terminal of 140 x 40. ``?`` opens a page over the screen and enter closes it; a key is
answered when the words that its screen holds are written to the terminal. The next is pressed 20 to 80 ms later. What
takes place when nothing is under way is Textual and the drawing alone; the scenes take turns, so that other programs on
the machine disturb all of them alike.
"""

from __future__ import annotations

import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.replayed_bench import machine
from benchmarks.terminal import Program
from envcheck.report import render
from envcheck.request import Request
from envcheck.session import judge

SECONDS = 8.0
SIZE = (140, 40)
BOUND = 0.05
ENVCHECK = ("-m", "envcheck", "tui")
Answers = list[float]


def toggle(program: Program, answers: Answers) -> None:
    """Open the page of keys and close it."""
    for key, expected in ((b"?", b"esc closes"), (b"\r", b"Overview")):
        answers.append(program.press(key, expected))
        program.rest(random.uniform(0.02, 0.08))


def nothing(program: Program, answers: Answers) -> None:
    """A saved report, nothing under way."""
    program.wait(lambda written: b"palette" in written)
    program.rest(1)
    for _ in range(20):
        toggle(program, answers)


def examining(program: Program, answers: Answers) -> None:
    """From the first screen on, and again and again."""
    program.wait(lambda written: b"palette" in written)
    ends = time.monotonic() + SECONDS
    while time.monotonic() < ends:
        place = len(program.written)
        toggle(program, answers)
        if b" probes" not in program.written[place:]:  # which the top row tells while it examines
            os.write(program.terminal, b"r")


def measuring(program: Program, answers: Answers) -> None:
    """Events at 40 a second, each tenth with a figure that is judged."""
    program.wait(lambda written: b"palette" in written)
    ends = time.monotonic() + SECONDS
    while time.monotonic() < ends:
        toggle(program, answers)


def asking(program: Program, answers: Answers) -> None:
    """The grid of a framework is made anew, and meanwhile keys are pressed."""
    program.wait(lambda written: b"palette" in written)
    program.rest(1)
    program.press(b"3", b"COMPATIBLE")
    program.rest(2)
    for release in ("tensorflow==2.16.1", "torch==2.6.0", "vllm==0.8.5") * 2:
        os.write(program.terminal, b"/")
        program.rest(0.3)
        os.write(program.terminal, b"\x01\x0b" + release.encode() + b"\r")
        program.rest(0.25)  # until the field has let go of the keys
        for _ in range(4):
            toggle(program, answers)


def first_visit(program: Program, answers: Answers) -> None:
    """The tabs, which are built when they are first looked at."""
    program.wait(lambda written: b"palette" in written)
    program.rest(1)
    for key, expected in ((b"2", b"figures"), (b"3", b"package"), (b"4", b"search: a name")):
        answers.append(program.press(key, expected))
        program.rest(1)


Scene = Callable[[Program, Answers], None]
SCENES: dict[str, tuple[tuple[str, ...], Scene]] = {
    "nothing is under way": ((*ENVCHECK, "--from", "SAVED"), nothing),
    "this machine is examined": (ENVCHECK, examining),
    "a benchmark of four GPUs": (("-m", "benchmarks.replayed_bench_app"), measuring),
    "the matrix is asked": ((*ENVCHECK, "--from", "SAVED"), asking),
    "a tab for the first time": ((*ENVCHECK, "--from", "SAVED"), first_visit),
}


def told(name: str, seconds: Answers) -> str:
    """A row: median, 95th percentile and greatest, in ms; how many, and how many within the bound."""
    parts = statistics.quantiles(seconds, n=20, method="inclusive")
    figures = f"{parts[9] * 1e3:8.0f} {parts[18] * 1e3:8.0f} {max(seconds) * 1e3:8.0f}"
    within = sum(second <= BOUND for second in seconds) / len(seconds)
    return f"{name:<28}{figures} {len(seconds):8} {within:10.0%}"


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    found: dict[str, Answers] = {name: [] for name in SCENES}
    with tempfile.TemporaryDirectory() as folder:
        saved = str(Path(folder) / "report.json")
        Path(saved).write_text(render(judge(machine(), Request()), "json"))
        for _ in range(rounds):
            for name, (arguments, scene) in SCENES.items():
                program = Program([part.replace("SAVED", saved) for part in arguments], *SIZE)
                try:
                    scene(program, found[name])
                finally:
                    program.end()
    print(f"load {os.getloadavg()[0]:.1f}, {os.cpu_count()} processors; milliseconds")
    print(f"{'while':<28}{'p50':>8} {'p95':>8} {'most':>8} {'keys':>8} {'<= 50 ms':>10}")
    for name, answers in found.items():
        print(told(name, answers))


if __name__ == "__main__":
    main()
