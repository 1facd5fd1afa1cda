"""Measure inside the judged environment: bench probes that need its packages, under its own interpreter."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from envcheck.collect.bench_plan import Chosen, seen_alone
from envcheck.collect.catalog import ProbeSpec
from envcheck.collect.job import Ended
from envcheck.collect.loop import Loop
from envcheck.collect.trial_plan import Choice, Plan, plan
from envcheck.collect.trials import run_trials
from envcheck.events import OnEvent
from envcheck.snapshot import Gpu, Listing, Snapshot


def run_inside(
    specs: Sequence[ProbeSpec],
    chosen: Chosen,
    loop: Loop,
    *,
    request: Mapping[str, Any],
    gathered: Snapshot,
    finished: Callable[[Ended], None],
    on_event: OnEvent,
) -> None:
    """Run the bench probes ``specs`` in the environment that libraries are taken from too.

    Their children are started as trials are. ``request`` has the part ``bench``. What needs a GPU runs
    on all of ``chosen`` side by side, each in a child that is shown this GPU alone; what measures the machine runs
    afterwards, one at a time, since it would share the processor with them. Frameworks are measured on the first GPU,
    in turn: how fast the GPUs are is known by then, and what a framework makes of one does not differ among them.
    """
    judged = gathered.judged_environment
    items = () if judged is None else (judged,)
    gathered = msgspec.structs.replace(gathered, environments=Listing(items=items, complete=True))
    on_gpus = [spec for spec in specs if spec.per == "gpu" and not spec.asked]
    on_one = [spec for spec in specs if spec.per == "gpu" and spec.asked]
    on_machine = [spec for spec in specs if spec.per == "machine"]
    plans = [_of_no_framework(_for_gpu(on_gpus, gpu, gathered, request), gpu.uuid) for gpu in chosen.gpus]
    first = chosen.gpus[0]
    # These begin with what a deep check does, and are trials of their frameworks.
    by_framework = _about(_for_gpu(on_one, first, gathered, request), gpu=first.uuid)
    by_itself = _of_no_framework(plan(on_machine, gathered, request, Choice()), None)
    for ended in [*(ended for each in (*plans, by_framework) for ended in each.settled), *by_itself.settled]:
        finished(ended)
    for trials, most in (
        ([trial for each in plans for trial in each.trials], len(chosen.gpus)),
        (by_framework.trials, 1),
        (by_itself.trials, 1),
    ):
        if trials:
            run_trials(trials, loop, most, finished, on_event)


def _for_gpu(specs: Sequence[ProbeSpec], gpu: Gpu, gathered: Snapshot, request: Mapping[str, Any]) -> Plan:
    """The trials on one GPU."""
    asked = {**request, "bench": {**request["bench"], "gpu": gpu.uuid}}
    return plan(specs, gathered, asked, Choice(gpu=gpu, visible=seen_alone(gpu, gathered)))


def _of_no_framework(planned: Plan, gpu: str | None) -> Plan:
    """Rows as other measurements have them: how these end says nothing about a framework."""
    return _about(planned, framework=None, gpu=gpu)


def _about(planned: Plan, **fields: str | None) -> Plan:
    replace = msgspec.structs.replace
    trials = (replace(trial, about=replace(trial.about, **fields)) for trial in planned.trials)
    settled = (replace(ended, run=replace(ended.run, **fields)) for ended in planned.settled)
    return Plan(tuple(trials), tuple(settled))
