"""Measurements as the Snapshot describes them: timed by events, made on one GPU."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Any

from ..common.out import Out
from ..common.tree import Tree
from .device import Device, Stopwatch, ordinals
from .kernels import Compiler
from .runtime import Fields, FigureKey, Measures, Unavailable, run_all
from .sampler import Sampler

# Time work on a GPU: events around a batch, after a warm-up, several samples.

Work = Callable[[], None]  # Queues one run of what is timed


@dataclass(frozen=True)
class Plan:
    """How often something is run and timed."""

    samples: int = 9
    sample_seconds: float = 0.02  # About how long one sample lasts; it holds as many runs as fit, one at least
    warmup_seconds: float = 0.02
    pause: float = 0.0  # Seconds of rest before each sample, in which the GPU cools and saves up power
    most_runs: int = 1000
    least_runs: int = 1
    enough: float = math.inf  # Seconds from which on a single warm run is sample enough


MATHEMATICS = Plan(samples=7, sample_seconds=0.01, warmup_seconds=0.02, least_runs=2, enough=0.5)
"""For the libraries of mathematics, and below for the choice between their algorithms."""
TRIAL = Plan(samples=2, sample_seconds=0.003, warmup_seconds=0.0, enough=0.02)


def timed(device: Device, work: Work, plan: Plan, before: Work | None = None) -> list[float]:
    """Seconds of one run, once for each sample; ``before`` queues what precedes a sample and is not timed."""
    watch = Stopwatch(device)
    work()
    device.synchronize()
    until = time.monotonic() + plan.warmup_seconds
    while True:  # until clocks and caches are up
        watch.start()
        work()
        watch.stop()
        one = watch.seconds()
        if time.monotonic() >= until:
            break
    if one >= plan.enough:
        return [one]
    runs = max(plan.least_runs, min(plan.most_runs, round(plan.sample_seconds / max(one, 1e-7))))
    samples = []
    for _ in range(plan.samples):
        if plan.pause:
            time.sleep(plan.pause)
        if before:
            before()
        watch.start()
        for _ in range(runs):
            work()
        watch.stop()
        samples.append(watch.seconds() / runs)
    return samples


@dataclass(frozen=True)
class Bench:
    """What every measurement on one GPU works with."""

    uuid: str
    device: Device
    sampler: Sampler
    compiler: Compiler
    full: bool
    only: frozenset[str]
    libraries: dict[str, list[str]]
    timing: bool = True  # Whether work is timed, and not only done and verified
    frameworks: bool = False  # Whether frameworks are measured too, to be compared with libraries

    def wants(self, name: str) -> bool:
        return not self.only or name in self.only

    def rate(
        self, name: str, amount: float, work: Work, plan: Plan, *, poison: Work | None = None, **facts: Any
    ) -> Fields:
        """Time ``work``, which moves or computes ``amount``, and describe it; ``unit`` is among ``facts``.

        ``poison`` queues the overwriting of its output, which is done before each sample. Where nothing is to be timed,
        ``work`` runs once, and the measurement has no value.
        """
        if not self.timing:
            if poison:
                poison()
            work()
            self.device.synchronize()
            return {"source": "bench", "name": name, "gpu": self.uuid, **facts}
        with self.sampler.watch() as conditions:
            seconds = timed(self.device, work, plan, poison)
        return measurement(name, self.uuid, [amount / each for each in seconds], conditions=conditions, **facts)


def measurement(name: str, uuid: str, samples: list[float], *, conditions: Fields, **facts: Any) -> Fields:
    """A ``Measurement``: its value is the median of the samples.

    ``conditions`` is what ``Sampler.watch`` yielded during them; it is empty only where NVML had no answer.
    """
    record: Fields = {"source": "bench", "name": name, "gpu": uuid, "value": statistics.median(samples)}
    record |= {"samples": samples, "conditions": conditions or None, **facts}
    return {key: value for key, value in record.items() if value is not None}


def missing(name: str, uuid: str, why: str, **facts: Any) -> Fields:
    return {"source": "bench", "name": name, "gpu": uuid, "missing": why, **facts}


@dataclass(frozen=True)
class Task:
    """Work that is ready to run, what it moves or computes, and how its result is verified."""

    work: Work
    amount: float
    verified: Callable[[], Fields]
    facts: Fields  # ``unit`` and whatever else the measurement says
    poison: Work | None = None  # Queues the overwriting of what the work writes
    plan: Plan = MATHEMATICS


Make = Callable[[ExitStack], Task]  # Makes a task ready; what it needs is held open until the task is done


def run_task(bench: Bench, figure: FigureKey, make: Make) -> Fields:
    """Make a task ready, time it and verify its result."""
    with ExitStack() as stack:
        task = make(stack)
        facts = {**task.facts, **figure.facts}
        found = bench.rate(figure.name, task.amount, task.work, task.plan, poison=task.poison, **facts)
        found["verification"] = task.verified()
    return found


def tasks(bench: Bench, makes: Mapping[FigureKey, Make]) -> Measures:
    return {figure: partial(run_task, bench, figure, make) for figure, make in makes.items()}


def late(make: Callable[[], Any], method: Callable[..., Any], *given: Any) -> Callable[..., Any]:
    """The method of what ``make`` makes once it is needed, with its first arguments."""
    return lambda *more: method(make(), *given, *more)


def before(asked: Fields, uuid: str) -> Fields:
    """What was read of a GPU before anything was measured."""
    found: Fields = next((gpu.get("before") or {} for gpu in asked["gpus"] if gpu["uuid"] == uuid), {})
    return found


def visible(out: Out) -> dict[str, int] | None:
    """UUID → CUDA ordinal; None, and said, where CUDA cannot be called from here at all."""
    try:
        return ordinals()
    except Unavailable as error:
        out.absent(str(error))
        return None


def on_gpu(tree: Tree, out: Out, measures: Callable[[Bench], Measures]) -> None:
    """Run ``measures`` on the GPU that the request names."""
    asked = tree.request["bench"]
    uuid = asked["gpu"]
    found = visible(out)
    if found is None:
        return
    if uuid not in found:
        out.absent(f"CUDA does not show {uuid} to this process")
        return
    with Device(found[uuid]) as device:
        bench = bench_of(asked, uuid, device)
        run_all(out, measures(bench), uuid, bench.only)


def bench_of(asked: Fields, uuid: str, device: Device) -> Bench:
    """What measurements on a GPU work with, as the request asks for them."""
    compiler = Compiler(asked["libraries"].get("nvrtc", ()), device.capability)
    only, timing = frozenset(asked.get("only", ())), bool(asked.get("timing", True))
    sampler, beside = Sampler(uuid, before(asked, uuid)), bool(asked.get("beside"))
    return Bench(uuid, device, sampler, compiler, bool(asked.get("full")), only, asked["libraries"], timing, beside)


def with_full(tree: Tree, out: Out, measures: Callable[[Bench], Measures]) -> None:
    """Run ``measures`` with ``--full``, when named, or in a deep check; a quick run leaves them out."""
    asked = tree.request["bench"]
    if not asked.get("full") and not asked.get("only") and asked.get("timing", True):
        out.absent("measured with --full")
        return
    on_gpu(tree, out, measures)
