"""Run the deep probes, and conclude from how each ended."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import msgspec

from envcheck.collect.attempt import Verdict, row
from envcheck.collect.catalog import ProbeSpec
from envcheck.collect.child import AS_A_USERS_PROGRAM, Launch
from envcheck.collect.job import Ended, Group
from envcheck.collect.loop import Loop
from envcheck.collect.trial_plan import PlannedTrial, child_variables, choose_gpu, plan, temporary_folder
from envcheck.events import OnEvent, ProbesPlanned
from envcheck.snapshot import Environment, Framework, Listing, Snapshot, Trial, items_in

# What the end of a trial proves about its framework, beyond the facts that the probe sent.

SOURCE = "trial"


def with_its_end(ended: Ended) -> Ended:
    """The facts of a trial, with its printed lines and how it died.

    A process that crashed or exited has failed. One that was terminated from outside (deadline, out of memory) leaves
    open whether the framework works.
    """
    about = ended.run
    if about.framework is None or about.environment is None or about.status in ("skipped", "absent"):
        return ended
    sent = [trial for part in ended.facts if (trial := _trial(part)) is not None]
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


def _trial(part: Snapshot) -> Trial | None:
    environments = items_in(part.environments)
    frameworks = [framework for found in environments if found.frameworks for framework in found.frameworks.items]
    return next((framework.trial for framework in frameworks if framework.trial), None)


# Try frameworks: run the deep probes under the interpreters of the environments that are judged.
#
# Each framework gets a process of its own, in an empty working folder, with its caches in a folder that is removed
# afterwards. It is started as the user's own program would be: with PYTHONPATH, user site and ``.pth`` files.


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


def _group(trial: PlannedTrial, folder: Path) -> Group:
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
    return Group((trial.spec,), launch, trial.about)
