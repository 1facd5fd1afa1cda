"""Try what needs the interpreters of judged environments: the deep probes, and what their ends prove, and bench probes
that need the environment's packages.

Each framework gets a process of its own, in an empty working folder, with its caches in a folder that is removed
afterwards. It is started as the user's own program would be, with PYTHONPATH, user site and ``.pth`` files, and must
see what that program sees; so all of the user's variables stay, but for those that say where caches lie, how much of
the GPU's memory is taken in advance, and whether the network is asked.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec

from envcheck.collect.catalog import ProbeSpec
from envcheck.collect.plan import Choice, Chosen, PlannedTrial, choose_gpu, plan_trials, seen_alone
from envcheck.collect.runner import Ended, Loop, ProbeGroup, Verdict, not_run
from envcheck.collect.starting import AS_A_USERS_PROGRAM, Launch
from envcheck.model.events import OnEvent, ProbesPlanned
from envcheck.model.snapshot import (
    Environment,
    Framework,
    Gpu,
    Listing,
    ProbeRun,
    Snapshot,
    Trial,
    frameworks_in,
    items_in,
)

SOURCE = "trial"
MOST_AT_ONCE = 3
"""Most parallel trials: they share one GPU, and each import takes a gigabyte or two of memory."""
NO_PREALLOCATION = {
    "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
    "TF_FORCE_GPU_ALLOW_GROWTH": "true",
    "FLAGS_allocator_strategy": "auto_growth",
}
OFFLINE = {
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "HF_DATASETS_OFFLINE": "1",
    "DO_NOT_TRACK": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "WANDB_MODE": "disabled",
}
CACHES = (
    "CUDA_CACHE_PATH",
    "CUPY_CACHE_DIR",
    "FLASHINFER_WORKSPACE_BASE",
    "HF_HOME",
    "KERAS_HOME",
    "MPLCONFIGDIR",
    "NUMBA_CACHE_DIR",
    "PYTORCH_KERNEL_CACHE_PATH",
    "TMPDIR",
    "TORCHINDUCTOR_CACHE_DIR",
    "TORCH_EXTENSIONS_DIR",
    "TORCH_HOME",
    "TRITON_CACHE_DIR",
    "TRITON_HOME",
    "VLLM_CACHE_ROOT",
    "XDG_CACHE_HOME",
)
"""Variables with the folder of a cache."""
TALKATIVE = {"TF_CPP_MIN_LOG_LEVEL": "0"}
"""Variables that make a library log why it does not use the GPU."""
_LASTING_CACHES = ("JAX_COMPILATION_CACHE_DIR",)
"""Variables that enable a cache when they are set."""
_SEARCH_PATHS = ("PYTHONPATH", "LD_LIBRARY_PATH")


def child_variables(variables: Mapping[str, str], cwd: str, folder: str, visible: str | None = None) -> dict[str, str]:
    """The variables of a child that sees only the GPU ``visible``, with caches in ``folder``, which is created here.

    Search paths that are relative to the user's working folder ``cwd`` are made absolute, since the child works in
    another. ``visible`` is a value for CUDA_VISIBLE_DEVICES; None leaves the user's own.
    """
    kept = {name: value for name, value in variables.items() if name not in _LASTING_CACHES}
    for name in _SEARCH_PATHS:
        if kept.get(name):
            entries = kept[name].split(os.pathsep)
            kept[name] = os.pathsep.join(each if each.startswith("$") else str(Path(cwd, each)) for each in entries)
    for name in CACHES:
        place = Path(folder, name.lower())
        place.mkdir(parents=True, exist_ok=True)
        kept[name] = str(place)
    narrowed = {} if visible is None else {"CUDA_VISIBLE_DEVICES": visible}
    return {**kept, **NO_PREALLOCATION, **OFFLINE, **TALKATIVE, **narrowed, "PYTHONDONTWRITEBYTECODE": "1"}


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """A temporary folder for the files of trials; raise OSError if none can be created.

    Compiled code is loaded from it, so file systems that forbid that are skipped.
    """
    import shutil  # noqa: PLC0415  it costs start-up time, and most checks try nothing
    import tempfile  # noqa: PLC0415

    folder = Path(tempfile.mkdtemp(prefix="envcheck-", dir=_place(tempfile.gettempdir())))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _place(usual: str) -> str:
    for place in (usual, "/var/tmp", "/dev/shm"):  # noqa: S108  a new folder of its own is made in it
        with suppress(OSError):
            if os.access(place, os.W_OK) and not os.statvfs(place).f_flag & os.ST_NOEXEC:
                return place
    return usual


def proof_of(ended: Ended, run: ProbeRun) -> tuple[Snapshot, ...]:
    """What the end of a trial adds to its facts: its printed lines and how it died.

    A process that crashed or exited has failed. One that was terminated from outside (deadline, out of memory) leaves
    open whether the framework works.
    """
    if run.framework is None or run.environment is None or run.status in ("skipped", "absent"):
        return ()
    found = [item for part in ended.attempt.facts for item in items_in(part.environments)]
    sent = [framework.trial for item in found for framework in frameworks_in(item) if framework.trial]
    past_import = any(trial.imported is not None for trial in sent)
    record = Trial(source=SOURCE, warnings=ended.telling)
    if ended.death is not None:
        record = Trial(
            source=SOURCE,
            warnings=ended.telling,
            imported=False if ended.death == "own" and not past_import else None,
            ran_on_gpu=False if ended.death == "own" and past_import else None,
            error=run.detail,
        )
    elif not sent:
        return ()
    framework = Framework(source=SOURCE, name=run.framework, trial=record)
    part = Environment(source=SOURCE, key=run.environment, frameworks=Listing(items=(framework,)))
    return (Snapshot(environments=Listing(items=(part,))),)


def run_deep(
    specs: Sequence[ProbeSpec],
    loop: Loop,
    *,
    request: Mapping[str, Any],
    gathered: Snapshot,
    force: bool,
    on_event: OnEvent,
) -> None:
    """Run the deep probes ``specs`` for the ``gathered`` facts; ``force`` allows busy GPUs."""
    choice = choose_gpu(gathered, request["variables"], force=force)
    most = 1 if choice.one_at_a_time else MOST_AT_ONCE
    _run_trials(plan_trials(specs, gathered, request, choice), loop, most, on_event)


def run_inside(
    specs: Sequence[ProbeSpec],
    chosen: Chosen,
    loop: Loop,
    *,
    request: Mapping[str, Any],
    gathered: Snapshot,
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

    def on_gpu(gpu: Gpu, *, asked: bool) -> list[PlannedTrial | Ended]:
        mine = [spec for spec in specs if spec.per == "gpu" and bool(spec.asked) is asked]
        order = {**request, "bench": {**request["bench"], "gpu": gpu.uuid}}
        return [*plan_trials(mine, gathered, order, Choice(gpu=gpu, visible=seen_alone(gpu, gathered)))]

    on_machine = [spec for spec in specs if spec.per == "machine"]
    stages = (
        ([step for gpu in chosen.gpus for step in on_gpu(gpu, asked=False)], len(chosen.gpus)),
        (on_gpu(chosen.gpus[0], asked=True), 1),
        ([*plan_trials(on_machine, gathered, request, Choice())], 1),
    )
    for steps, most in stages:
        _run_trials(steps, loop, most, on_event)


def _run_trials(steps: Iterable[PlannedTrial | Ended], loop: Loop, most: int, on_event: OnEvent) -> None:
    """Run the trials among ``steps``, at most ``most`` of them side by side, and remove what they left in their
    folders.
    """
    trials: list[PlannedTrial] = []
    for step in steps:
        if isinstance(step, PlannedTrial):
            trials.append(step)
        else:
            loop.finished(step)
    if not trials:
        return
    on_event(ProbesPlanned(probes=tuple((trial.spec.name, trial.spec.title) for trial in trials)))
    with ExitStack() as stack:
        groups = []
        try:
            folder = stack.enter_context(temporary_folder())
            for number, trial in enumerate(trials):
                place, asked = folder / str(number), trial.request
                work = place / "work"
                work.mkdir(parents=True)
                variables = child_variables(asked["variables"], asked["cwd"], str(place), trial.visible)
                launch = Launch(trial.interpreter, asked, (), AS_A_USERS_PROGRAM, variables, str(work))
                groups.append(ProbeGroup((trial.spec,), launch, trial.about))
        except OSError as error:
            verdict = Verdict("failed", f"no temporary folder could be made: {error}")
            for trial in trials:
                loop.finished(not_run(trial.spec, verdict, trial.about))
            return
        stack.callback(loop.abort)  # before the folder is removed
        loop.run(groups, most=most)
