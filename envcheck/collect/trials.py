"""Try and measure: the deep probes, and what their ends prove; the bench probes, all GPUs side by side, then the links
between them in turn, then what needs the environment's packages; or become the program of a node that measures together
with others (``probes/measuring/nccl/node.py``).

Each framework that is tried gets a process of its own, in an empty working folder, with its caches in a folder that is
removed afterwards. It is started as the user's own program would be, with PYTHONPATH, user site and ``.pth`` files, and
must see what that program sees; so all of the user's variables stay, but for those that say where caches lie, how much
of the GPU's memory is taken in advance, and whether the network is asked.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, NoReturn

import msgspec

from envcheck import bundle
from envcheck.collect.catalog import ProbeSpec
from envcheck.collect.plan import (
    BenchRequest,
    Choice,
    Chosen,
    PlannedTrial,
    choose,
    choose_gpu,
    plan_trials,
    request_of,
    seen_alone,
    wanted,
)
from envcheck.collect.runner import About, Ended, Loop, ProbeGroup, Verdict, not_run
from envcheck.collect.starting import AS_A_USERS_PROGRAM, ISOLATED, Launch, bootstrap, own_path, own_variables
from envcheck.model.snapshot import (
    Environment,
    Framework,
    Gpu,
    Listing,
    Platform,
    ProbeRun,
    Snapshot,
    Trial,
    frameworks_in,
    items_in,
)

SOURCE = "trial"
_FEWEST, _MOST = 3, 6  # Trials side by side: they share a GPU, and each import takes 1 to 2 GB and some two processors
_MEMORY_OF_ONE, _PROCESSORS_OF_ONE = 4 << 30, 2
NO_PREALLOCATION = {
    "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
    "TF_FORCE_GPU_ALLOW_GROWTH": "true",
    "FLAGS_allocator_strategy": "auto_growth",
}
OFFLINE = {
    "HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "DO_NOT_TRACK": "1",
    "VLLM_NO_USAGE_STATS": "1", "WANDB_MODE": "disabled",
}  # fmt: skip
CACHES = (
    "CUDA_CACHE_PATH", "CUDA_TILE_CACHE_DIR", "CUPY_CACHE_DIR", "DG_JIT_CACHE_DIR", "FLASHINFER_WORKSPACE_BASE",
    "HF_HOME", "KERAS_HOME", "MPLCONFIGDIR", "NUMBA_CACHE_DIR", "PYTORCH_KERNEL_CACHE_PATH", "TILELANG_CACHE_DIR",
    "TMPDIR", "TORCHINDUCTOR_CACHE_DIR", "TORCH_EXTENSIONS_DIR", "TORCH_HOME", "TRITON_CACHE_DIR", "TRITON_HOME",
    "VLLM_CACHE_ROOT", "WARP_CACHE_PATH", "XDG_CACHE_HOME",
)  # fmt: skip
"""Variables with the folder of a cache."""
TALKATIVE = {"TF_CPP_MIN_LOG_LEVEL": "0"}  # Variables that make a library log why it does not use the GPU
_LASTING_CACHES = ("JAX_COMPILATION_CACHE_DIR",)  # Variables that enable a cache when they are set


def child_variables(variables: Mapping[str, str], cwd: str, folder: str, visible: str | None = None) -> dict[str, str]:
    """The variables of a child that sees only the GPU ``visible``, with caches in ``folder``, which is created here.

    Search paths that are relative to the user's working folder ``cwd`` are made absolute, since the child works in
    another. ``visible`` is a value for CUDA_VISIBLE_DEVICES; None leaves the user's own.
    """
    kept = {name: value for name, value in variables.items() if name not in _LASTING_CACHES}
    for name in ("PYTHONPATH", "LD_LIBRARY_PATH"):
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
    if ended.death is None and not sent:
        return ()
    record = Trial(source=SOURCE, warnings=ended.telling, error=None if ended.death is None else run.detail)
    if ended.death == "own":
        past_import = any(trial.imported is not None for trial in sent)
        record = msgspec.structs.replace(record, **{"ran_on_gpu" if past_import else "imported": False})
    framework = Framework(source=SOURCE, name=run.framework, trial=record)
    part = Environment(source=SOURCE, key=run.environment, frameworks=Listing(items=(framework,)))
    return (Snapshot(environments=Listing(items=(part,))),)


def run_deep(
    specs: Sequence[ProbeSpec], loop: Loop, request: Mapping[str, Any], gathered: Snapshot, *, force: bool
) -> None:
    """Run the deep probes ``specs`` for the ``gathered`` facts; ``force`` allows busy GPUs."""
    choice = choose_gpu(gathered, request["variables"], force=force)
    platform = gathered.platform or Platform()
    memory = min(filter(None, (platform.memory, platform.memory_limit)), default=0)
    processors = int(min(filter(None, (platform.cpus, platform.cpu_limit)), default=0))
    fit = min(_MOST, memory // _MEMORY_OF_ONE, processors // _PROCESSORS_OF_ONE)
    # Those first that may take longest: what extends PyTorch imports it too.
    longest = sorted(specs, key=lambda spec: -spec.seconds)
    most = 1 if choice.one_at_a_time else max(_FEWEST, fit)
    _run_trials(plan_trials(longest, gathered, request, choice), loop, most)


def run_inside(
    specs: Sequence[ProbeSpec], chosen: Chosen, loop: Loop, request: Mapping[str, Any], gathered: Snapshot
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
        _run_trials(steps, loop, most)


def _run_trials(steps: Iterable[PlannedTrial | Ended], loop: Loop, most: int) -> None:
    """Run the trials among ``steps``, at most ``most`` side by side, and remove what they left in their folders."""
    trials: list[PlannedTrial] = []
    for step in steps:
        if isinstance(step, PlannedTrial):
            trials.append(step)
        else:
            loop.finished(step)
    if not trials:
        return
    loop.planned([trial.spec for trial in trials])
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
        stack.callback(loop.abort, hashing=False)  # before the folder is removed
        loop.run(groups, most=most)


_QUICK_SECONDS = 45.0
"""Allowed to a probe that measures the main figures only: that takes seconds, and one that hangs shows the earlier."""
CHILD_VARIABLES = {"CUDA_CACHE_DISABLE": "1", "CUDA_MODULE_LOADING": "LAZY"}
"""Nothing that is compiled for a measurement is left behind."""


def run_bench(specs: Sequence[ProbeSpec], wish: BenchRequest, loop: Loop, launch: Launch, gathered: Snapshot) -> None:
    """Run the bench probes ``specs`` on the GPUs that ``gathered`` shows, and tell how each ended.

    What a GPU computes by itself is measured on all GPUs at once, each by a child of its own, so that one that hangs
    costs only its own rows. Links are measured afterwards, one at a time; to start CUDA for all GPUs takes long where
    there are many, so that child does it meanwhile, without a context on any. What runs in the judged environment comes
    last.
    """
    chosen = choose(gathered, wish)
    for ended in _not_measured(specs, chosen):
        loop.finished(ended)
    if not chosen.gpus:
        return
    asked = request_of(wish, chosen, gathered)
    request = {**launch.request, "bench": asked}
    own = [spec for spec in specs if spec.runs_in == "envcheck"]
    if not wish.full:
        own = [msgspec.structs.replace(spec, seconds=min(spec.seconds, _QUICK_SECONDS)) for spec in own]
    on_chip = [spec for spec in own if spec.per == "gpu"]
    links = sorted((spec for spec in own if spec.per == "machine"), key=lambda spec: spec.uses != "link")
    loop.planned([*(on_chip * len(chosen.gpus)), *links])
    with ExitStack() as stack:
        variables = {**os.environ, **CHILD_VARIABLES}
        with suppress(OSError):  # children that are killed remove nothing; without a folder they use the usual one
            variables["TMPDIR"] = str(stack.enter_context(temporary_folder()))
        stack.callback(loop.abort, hashing=False)  # before the folder is removed
        together: list[ProbeGroup] = []
        for gpu in chosen.gpus if on_chip else ():
            name = seen_alone(gpu, gathered)  # CUDA need not start the other GPUs for that child
            shown = {} if name is None else {"CUDA_VISIBLE_DEVICES": name}
            of_gpu = {**request, "bench": {**asked, "gpu": gpu.uuid}}
            child = launch._replace(request=of_gpu, variables={**variables, **shown})
            together.append(ProbeGroup(on_chip, child, About(gpu=gpu.uuid)))
        in_turn = [ProbeGroup((spec,), launch._replace(request=request, variables=variables)) for spec in links]
        loop.run_then(together, in_turn)
    inside = []
    for spec in specs:
        if spec.runs_in == "environment":
            if wanted(spec, wish):
                inside.append(spec)
            else:  # nothing of the environment is started for the main figures
                loop.finished(not_run(spec, Verdict("absent", f"measured with --{spec.asked or 'full'}")))
    if inside:
        run_inside(inside, chosen, loop, request, gathered)


def _not_measured(specs: Sequence[ProbeSpec], chosen: Chosen) -> Iterator[Ended]:
    """What is not started, and why."""
    if not chosen.gpus and not chosen.refused:
        yield from (not_run(spec, Verdict("skipped", "no matching CUDA GPU found")) for spec in specs)
        return
    for uuid, reason in chosen.refused.items():
        verdict = Verdict("skipped", f"{reason}; --force measures it anyway")
        yield from (not_run(spec, verdict, About(gpu=uuid)) for spec in specs if spec.per == "gpu")
    if not chosen.gpus:
        busy = Verdict("skipped", "every GPU is in use")
        yield from (not_run(spec, busy) for spec in specs if spec.per == "machine")


_PROGRAM_OF_NODE = "measuring.nccl.node"
_ALARM_OF_NODE = 24 * 3600  # Seconds after which it ends in any case: before that, at the end of its stdin


def become_node(gathered: Snapshot, request: Mapping[str, Any], wish: BenchRequest) -> NoReturn:
    """Replace this process by the program: it answers on this process's stdout, and takes orders from its stdin.

    Raises OSError where that fails.
    """
    import tempfile  # noqa: PLC0415  few measure together, and checks start faster

    chosen = choose(gathered, wish)
    asked = {**request_of(wish, chosen, gathered), "refused": dict(chosen.refused)}
    orders = tempfile.TemporaryFile()  # noqa: SIM115  the program reads it
    launch = Launch(sys.executable, {**request, "bench": asked}, own_path())
    first_line = launch.order(str(bundle.folder("probes")), _ALARM_OF_NODE)
    orders.write(msgspec.json.encode(first_line) + b"\n" + _PROGRAM_OF_NODE.encode() + b"\n")
    orders.seek(0)
    answers = os.dup(1)
    os.dup2(2, 1)  # what libraries print is no answer
    for descriptor in (answers, orders.fileno()):
        os.set_inheritable(descriptor, True)
    argv = [sys.executable, *ISOLATED, "-c", bootstrap(), str(answers), str(orders.fileno())]
    os.chdir("/")
    os.execve(sys.executable, argv, {**own_variables(), **CHILD_VARIABLES})  # noqa: S606  no shell
