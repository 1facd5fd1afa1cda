"""A benchmark of four GPUs that nobody runs: its events as a machine sends them, at the pace of a quick measurement."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from envcheck.model.events import OnEvent, ProbeFinished, ProbesPlanned, ProbeStarted, Progress
from envcheck.model.snapshot import Measurement, ProbeRun, Snapshot
from envcheck.pipeline.request import Request

MACHINE = Path(__file__).resolve().parents[1] / "tests/machines/h200x4.json"
SECONDS = 12.0
PAUSE = 0.025
NAMES = ("gemm", "device-memory-copy", "reduction", "launch-latency")


def machine() -> Snapshot:
    """The facts of the recorded machine."""
    return msgspec.convert(msgspec.json.decode(MACHINE.read_bytes())["snapshot"], Snapshot)


def gather(request: Request, on_event: OnEvent, should_stop: Callable[[], bool]) -> Snapshot:
    """The facts of a recorded machine at once; then each GPU tells how far it is, and now and then a figure."""
    known = machine()
    gpus = [gpu.uuid for gpu in known.gpus.items if gpu.uuid] if known.gpus else []
    on_event(ProbesPlanned(tuple((run.name, run.title) for run in known.runs)))
    on_event(ProbeStarted("nvml", "NVML"))
    on_event(ProbeFinished(ProbeRun(name="nvml", status="ok"), known))
    figures: list[Measurement] = []
    started = time.monotonic()
    for uuid in gpus:
        on_event(ProbeStarted("bench.gemm", "Products of matrices", gpu=uuid))
    step = 0
    while request.bench and time.monotonic() - started < SECONDS and not should_stop():
        time.sleep(PAUSE)
        uuid, step = gpus[step % len(gpus)], step + 1
        on_event(Progress("bench.gemm", f"FP8 {step} of 480", gpu=uuid))
        if step % 10 == 0:
            figure = Measurement(name=NAMES[step // 10 % 4], gpu=uuid, value=1e12 + step, unit="FLOP/s")
            figures.append(figure)
            run = ProbeRun(name=f"bench_{step}", status="ok", gpu=uuid)
            on_event(ProbeFinished(run, Snapshot(measurements=(figure,), runs=(run,))))
    return msgspec.structs.replace(known, measurements=tuple(figures))
