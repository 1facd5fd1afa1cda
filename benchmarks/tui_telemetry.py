"""What part of a processor the application needs while it watches GPUs once a second.

    python -m benchmarks.tui_telemetry [SECONDS]

It runs in a pseudo-terminal of 140 x 40, over facts of a recorded machine with 1, 2 or 8 GPUs. A stand-in for NVML
changes every value each second; what NVML itself takes is not in the figures. Processor time is that of the whole
process: with the overview, the GPUs, and the window of one GPU in front.
"""

from __future__ import annotations

import itertools
import os
import sys
import time
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

from msgspec.structs import replace

from benchmarks.replayed_bench import machine
from benchmarks.terminal import Program
from envcheck.model.snapshot import Listing, Snapshot
from envcheck.pipeline.request import Request
from envcheck.report import Options
from envcheck.tui.app import EnvcheckApp
from envcheck.tui.worker.examination import examine
from envcheck.tui.worker.telemetry import Telemetry

KEYS = {"overview": (), "GPUs": ((b"2", b"last minute"),), "one GPU": ((b"2", b"last minute"), (b"\r", b"esc closes"))}
UUID = "GPU-{:08}-0000-0000-0000-000000000000"


def gpus(count: int) -> Snapshot:
    """The recorded machine with so many of its first GPU."""
    known = machine()
    first = known.gpus.items[0]  # type: ignore[union-attr]
    names = [{"uuid": UUID.format(place), "pci_bus_id": f"0000:{place:02x}:00.0"} for place in range(count)]
    items = [replace(first, index=place, **name) for place, name in enumerate(names)]
    return replace(known, gpus=Listing(items=tuple(items), complete=True))


class Nvml:
    """Answers every question with the next number below a bound."""

    def __init__(self, count: int) -> None:
        steps = itertools.count()

        def next_below(bound: int) -> int:
            return next(steps) * 7919 % bound

        self.asked: dict[str, Callable[..., Any]] = {
            "GetCount": lambda: count,
            "GetHandleByIndex": int,
            "GetUUID": UUID.format,
            "GetPowerUsage": lambda *_: next_below(700_000),
            "GetMemoryInfo": lambda *_, **__: SimpleNamespace(used=next_below(140) << 30),
            "GetClockInfo": lambda *_: next_below(1980),
            "GetTemperature": lambda *_: next_below(80),
            "GetUtilizationRates": lambda *_: SimpleNamespace(gpu=next_below(100)),
            "GetFieldValues": lambda _, wanted: [
                SimpleNamespace(nvmlReturn=0, value=SimpleNamespace(ullVal=next(steps) << 24)) for _ in wanted
            ],
        }

    def __getattr__(self, name: str) -> Any:
        nothing = (lambda *_: 0) if name.startswith(("nvmlDevice", "nvmlInit", "nvmlShutdown")) else 0
        return self.asked.get(name.removeprefix("nvmlDevice"), nothing)


def watch(count: int) -> None:
    """The application over the stand-ins."""
    look = partial(examine, gather=lambda *_: gpus(count))
    EnvcheckApp(Request(), Options(), examine=look, telemetry=lambda: Telemetry(lambda: Nvml(count))).run()


def main() -> None:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 30.0
    print(f"load {os.getloadavg()[0]:.1f}, {os.cpu_count()} processors; share of one processor in {seconds:.0f} s")
    for count, (name, keys) in itertools.product((1, 2, 8), KEYS.items()):
        program = Program(["-m", "benchmarks.tui_telemetry", "watch", str(count)], 140, 40)
        try:
            program.wait(lambda written: b"palette" in written)
            program.rest(10.0)
            for key, expected in keys:
                program.press(key, expected)
                program.rest(1.0)
            clock = ~program.pid << 3 | 2  # that of the process, as clock_getcpuclockid makes it
            before = time.clock_gettime(clock)
            program.rest(seconds)
            share = (time.clock_gettime(clock) - before) / seconds
        finally:
            program.end()
        print(f"{count} GPUs, in front: {name:<10}{share:8.2%}", flush=True)


if __name__ == "__main__":
    watch(int(sys.argv[2])) if sys.argv[1:2] == ["watch"] else main()
