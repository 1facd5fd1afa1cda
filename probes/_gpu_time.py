"""Time work on a GPU: events around a batch, after a warm-up, several samples."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

from ._gpu_device import Device, Stopwatch

Work = Callable[[], None]
"""Queues one run of what is timed."""


@dataclass(frozen=True)
class Plan:
    """How often something is run and timed."""

    samples: int = 9
    sample_seconds: float = 0.02
    """About how long one sample lasts; it holds as many runs as fit, one at least."""
    warmup_seconds: float = 0.02
    pause: float = 0.0
    """Seconds of rest before each sample, in which the GPU cools and saves up power."""
    most_runs: int = 1000
    least_runs: int = 1
    enough: float = math.inf
    """Seconds from which on a single warm run is sample enough."""


def timed(device: Device, work: Work, plan: Plan, before: Work | None = None) -> list[float]:
    """Seconds of one run, once for each sample; ``before`` queues what precedes a sample and is not timed."""
    watch = Stopwatch(device)
    one = _warm(device, work, watch, plan)
    if one >= plan.enough:
        return [one]
    runs = max(plan.least_runs, min(plan.most_runs, round(plan.sample_seconds / max(one, 1e-7))))
    return [_sample(work, watch, runs, plan.pause, before) for _ in range(plan.samples)]


def _warm(device: Device, work: Work, watch: Stopwatch, plan: Plan) -> float:
    """Seconds of one run, once clocks and caches are up."""
    work()
    device.synchronize()
    until = time.monotonic() + plan.warmup_seconds
    while True:
        watch.start()
        work()
        watch.stop()
        seconds = watch.seconds()
        if time.monotonic() >= until:
            return seconds


def _sample(work: Work, watch: Stopwatch, runs: int, pause: float, before: Work | None) -> float:
    if pause:
        time.sleep(pause)
    if before:
        before()
    watch.start()
    for _ in range(runs):
        work()
    watch.stop()
    return watch.seconds() / runs
