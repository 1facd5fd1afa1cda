"""How long the terminal application takes to answer a key: while nothing happens, while it examines this machine,
while a benchmark sends its events (of four GPUs, replayed; and of those here, if there are any), and while the matrix
is asked what fits.

    python -m benchmarks.tui_keys [ROUNDS]

The application runs in a pseudo-terminal of 140 x 40. A key is answered when the words that its screen holds are
written to the terminal; the next is pressed 20 to 80 ms later. ``3`` and ``1`` go from place to place, ``?`` opens a
page over the screen and enter closes it. Beside it runs an application of Textual's with next to nothing in it, which
tells what this machine and Textual need for the same keys; all scenes take turns, so that other programs disturb them
alike.
"""

from __future__ import annotations

import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.replayed_bench import machine
from benchmarks.terminal import Program
from envcheck.pipeline.request import Request
from envcheck.pipeline.session import judge
from envcheck.report import render

SECONDS = 8.0
TIMES = 12
SIZE = (140, 40)
BOUND = 0.05
ENVCHECK = ("-m", "envcheck", "tui")
SAVED = (*ENVCHECK, "--from", "SAVED")
KEYS = {
    "to another place": ((b"3", b"figures"), (b"1", b"findings")),
    "a page opens": ((b"?", b"esc closes"),),
    "it closes": ((b"\r", b"verview"),),
}
Answers = dict[str, list[float]]


def press_each(program: Program, answers: Answers) -> None:
    """Each of the keys once."""
    for kind, keys in KEYS.items():
        for key, expected in keys:
            answers.setdefault(kind, []).append(program.press(key, expected))
            program.rest(random.uniform(0.02, 0.08))


def begin(program: Program, rest: float = 1.0) -> None:
    """Wait for the first screen, and let both places be built."""
    program.wait(lambda written: b"palette" in written)
    program.rest(rest)
    press_each(program, {})


def nothing(program: Program, answers: Answers) -> None:
    """Nothing is under way."""
    begin(program)
    for _ in range(TIMES):
        press_each(program, answers)


def examining(program: Program, answers: Answers) -> None:
    """From the first screen on, and again and again."""
    begin(program, 0.0)
    ends = time.monotonic() + SECONDS
    while time.monotonic() < ends:
        place = len(program.written)
        press_each(program, answers)
        if b" probes" not in program.written[place:]:  # which the top row tells while it examines
            os.write(program.terminal, b"r")


def replaying(program: Program, answers: Answers) -> None:
    """Events at 40 a second, each tenth with a figure that is judged."""
    begin(program, 0.0)
    measuring(program, answers)


def measuring(program: Program, answers: Answers) -> None:
    """While it goes on."""
    ends = time.monotonic() + SECONDS
    while time.monotonic() < ends:
        press_each(program, answers)


def measuring_here(program: Program, answers: Answers) -> None:
    """The main figures of the GPUs of this machine are measured."""
    begin(program, 3.0)
    os.write(program.terminal, b"b")
    program.rest(1.0)
    os.write(program.terminal, b"1")
    program.rest(0.5)
    measuring(program, answers)


def asking(program: Program, answers: Answers) -> None:
    """The grid of a framework is rebuilt, and meanwhile keys are pressed."""
    begin(program)
    program.press(b"4", b"COMPATIBLE")
    for release in ("tensorflow==2.16.1", "torch==2.6.0", "vllm==0.8.5") * 2:
        os.write(program.terminal, b"4/")
        program.rest(0.5)
        os.write(program.terminal, b"\x01\x0b" + release.encode() + b"\r")
        program.rest(0.6)  # until the field has let go of the keys
        for _ in range(2):
            press_each(program, answers)


Scene = Callable[[Program, Answers], None]
SCENES: dict[str, tuple[tuple[str, ...], Scene]] = {
    "Textual alone": (("-m", "benchmarks.textual_alone"), nothing),
    "nothing is under way": (SAVED, nothing),
    "this machine is examined": (ENVCHECK, examining),
    "a benchmark of four GPUs is replayed": (("-m", "benchmarks.replayed_bench_app"), replaying),
    "the matrix is asked": (SAVED, asking),
}
if Path("/dev/nvidiactl").exists():
    SCENES["GPUs are measured"] = (ENVCHECK, measuring_here)


@contextmanager
def running(arguments: list[str]) -> Iterator[Program]:
    """A program on a terminal, ended in any case."""
    program = Program(arguments, *SIZE)
    try:
        yield program
    finally:
        program.end()


def told(name: str, seconds: list[float]) -> str:
    """A row: median, 95th percentile and greatest, in ms; how many, and how many within the bound."""
    parts = statistics.quantiles(seconds, n=20, method="inclusive")
    figures = f"{parts[9] * 1e3:8.0f} {parts[18] * 1e3:8.0f} {max(seconds) * 1e3:8.0f}"
    within = sum(second <= BOUND for second in seconds) / len(seconds)
    return f"{name:<44}{figures} {len(seconds):8} {within:10.0%}"


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    found: dict[str, Answers] = {name: {} for name in SCENES}
    with tempfile.TemporaryDirectory() as folder:
        saved = str(Path(folder) / "report.json")
        Path(saved).write_text(render(judge(machine(), Request()), "json"))
        for _ in range(rounds):
            for name, (arguments, scene) in SCENES.items():
                with running([part.replace("SAVED", saved) for part in arguments]) as program:
                    scene(program, found[name])
    print(f"load {os.getloadavg()[0]:.1f}, {os.cpu_count()} processors; milliseconds")
    print(f"{'while':<44}{'p50':>8} {'p95':>8} {'most':>8} {'keys':>8} {'<= 50 ms':>10}")
    for name, answers in found.items():
        for kind, seconds in answers.items():
            print(told(f"{name}: {kind}", seconds))


if __name__ == "__main__":
    main()
