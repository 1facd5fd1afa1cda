"""Run what needs the interpreters of judged environments: the deep probes, and what their ends prove, and bench probes
that need the environment's packages.

Each framework gets a process of its own, in an empty working folder, with its caches in a folder that is removed
afterwards. It is started as the user's own program would be: with PYTHONPATH, user site and ``.pth`` files.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import msgspec

from envcheck.collect.attempt import Verdict, row
from envcheck.collect.bench_plan import Chosen, seen_alone
from envcheck.collect.catalog import ProbeSpec
from envcheck.collect.child import AS_A_USERS_PROGRAM, Launch
from envcheck.collect.job import Ended, ProbeGroup
from envcheck.collect.loop import Loop
from envcheck.collect.trial_plan import (
    Choice,
    PlannedTrial,
    TrialPlan,
    child_variables,
    choose_gpu,
    plan,
    temporary_folder,
)
from envcheck.model.events import OnEvent, ProbesPlanned
from envcheck.model.snapshot import Environment, Framework, Gpu, Listing, Snapshot, Trial, frameworks_in, items_in

SOURCE = "trial"


def with_its_end(ended: Ended) -> Ended:
    """The facts of a trial, with its printed lines and how it died.

    A process that crashed or exited has failed. One that was terminated from outside (deadline, out of memory) leaves
    open whether the framework works.
    """
    about = ended.run
    if about.framework is None or about.environment is None or about.status in ("skipped", "absent"):
        return ended
    found = [item for part in ended.facts for item in items_in(part.environments)]
    sent = [framework.trial for item in found for framework in frameworks_in(item) if framework.trial]
    past_import = any(trial.imported is not None for trial in sent)
    record = Trial(source=SOURCE, warnings=ended.telling)
    if ended.death is not None:
        record = Trial(
            source=SOURCE,
            warnings=ended.telling,
            imported=False if ended.death == "own" and not past_import else None,
            ran_on_gpu=False if ended.death == "own" and past_import else None,
            error=about.detail,
        )
    elif not sent:
        return ended
    framework = Framework(source=SOURCE, name=about.framework, trial=record)
    part = Environment(source=SOURCE, key=about.environment, frameworks=Listing(items=(framework,)))
    return msgspec.structs.replace(ended, facts=(*ended.facts, Snapshot(environments=Listing(items=(part,)))))


MOST_AT_ONCE = 3
"""Most parallel trials: they share one GPU, and each import takes a gigabyte or two of memory."""


class Deep(msgspec.Struct, frozen=True):
    """A request for trials; ``force`` allows busy GPUs."""

    force: bool = False


def run_deep(
    specs: Sequence[ProbeSpec],
    wish: Deep,
    loop: Loop,
    *,
    request: Mapping[str, Any],
    gathered: Snapshot,
    finished: Callable[[Ended], None],
    on_event: OnEvent,
) -> None:
    """Run the deep probes ``specs`` for the ``gathered`` facts, and report how each ended."""
    choice = choose_gpu(gathered, request["variables"], force=wish.force)
    planned = plan(specs, gathered, request, choice)
    for ended in planned.settled:
        finished(ended)
    if not planned.trials:
        return
    run_trials(planned.trials, loop, 1 if choice.one_at_a_time else MOST_AT_ONCE, finished, on_event)


def run_trials(
    trials: Sequence[PlannedTrial], loop: Loop, most: int, finished: Callable[[Ended], None], on_event: OnEvent
) -> None:
    """Run ``trials``, at most ``most`` of them side by side, and remove what they left in their folders."""
    on_event(ProbesPlanned(probes=tuple((trial.spec.name, trial.spec.title) for trial in trials)))
    with ExitStack() as stack:
        try:
            folder = stack.enter_context(temporary_folder())
            groups = [_group(trial, folder / str(number)) for number, trial in enumerate(trials)]
        except OSError as error:
            for trial in trials:
                verdict = Verdict("failed", f"no temporary folder could be made: {error}")
                finished(Ended(trial.spec, row(trial.spec, verdict, trial.about)))
            return
        stack.callback(loop.abort)  # before the folder is removed
        loop.run(groups, most=most)


def _group(trial: PlannedTrial, folder: Path) -> ProbeGroup:
    work = folder / "work"
    work.mkdir(parents=True)
    request = trial.request
    launch = Launch(
        interpreter=trial.interpreter,
        request=request,
        flags=AS_A_USERS_PROGRAM,
        variables=child_variables(request["variables"], request["cwd"], str(folder), trial.visible),
        cwd=str(work),
    )
    return ProbeGroup((trial.spec,), launch, trial.about)


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


def _for_gpu(specs: Sequence[ProbeSpec], gpu: Gpu, gathered: Snapshot, request: Mapping[str, Any]) -> TrialPlan:
    """The trials on one GPU."""
    asked = {**request, "bench": {**request["bench"], "gpu": gpu.uuid}}
    return plan(specs, gathered, asked, Choice(gpu=gpu, visible=seen_alone(gpu, gathered)))


def _of_no_framework(planned: TrialPlan, gpu: str | None) -> TrialPlan:
    """Rows as other measurements have them: how these end says nothing about a framework."""
    return _about(planned, framework=None, gpu=gpu)


def _about(planned: TrialPlan, **fields: str | None) -> TrialPlan:
    replace = msgspec.structs.replace
    trials = (replace(trial, about=replace(trial.about, **fields)) for trial in planned.trials)
    settled = (replace(ended, run=replace(ended.run, **fields)) for ended in planned.settled)
    return TrialPlan(tuple(trials), tuple(settled))
