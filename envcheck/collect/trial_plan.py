"""Plan trials: which frameworks, on which GPU, with which environment variables.

A framework that is tried must see what the user's own program sees; so all of the user's variables stay, but for those
that say where caches lie, how much of the GPU's memory is taken in advance, and whether the network is asked. A busy
GPU is not used.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import msgspec

from envcheck.collect.attempt import About, Verdict, row
from envcheck.collect.catalog import ProbeSpec
from envcheck.collect.job import Ended
from envcheck.knowledge.performance.expected import in_use
from envcheck.model.snapshot import Environment, Framework, Gpu, Snapshot, frameworks_in, items_in

_EXCLUSIVE = ("exclusive_process", "exclusive_thread", "prohibited")
_HIDES_ALL = frozenset({"", "-1", "none", "NoDevFiles"})


class Choice(msgspec.Struct, frozen=True):
    """The GPU for trials; ``gpu`` is None if none is known: then the trial shows whether a framework finds one."""

    gpu: Gpu | None = None
    visible: str | None = None
    """The value of CUDA_VISIBLE_DEVICES; None keeps the user's."""
    refused: str = ""
    """Why no GPU may be used now."""
    absent: str = ""
    """Why there is no GPU for trials."""

    @property
    def one_at_a_time(self) -> bool:
        """Whether it accepts only one process."""
        return self.gpu is not None and self.gpu.compute_mode in _EXCLUSIVE


def choose_gpu(snapshot: Snapshot, variables: Mapping[str, str], *, force: bool = False) -> Choice:
    """The first idle GPU that CUDA shows with the user's ``variables``; with ``force``, the first one."""
    listing = snapshot.gpus
    users = variables.get("CUDA_VISIBLE_DEVICES")
    tegra = snapshot.platform is not None and bool(snapshot.platform.tegra_release)  # its GPU is not on a bus
    if listing is not None and listing.complete and not listing.items and not tegra:
        return Choice(absent="there is no NVIDIA GPU here")
    if users is not None and users.strip() in _HIDES_ALL:
        return Choice(absent=f"CUDA_VISIBLE_DEVICES={users} hides every GPU")
    shown = [gpu for gpu in items_in(listing) if gpu.cuda_ordinal is not None]
    shown.sort(key=lambda gpu: gpu.cuda_ordinal or 0)
    if not shown:
        return Choice()
    reasons = [why_not(gpu) for gpu in shown]
    free = next((gpu for gpu, reason in zip(shown, reasons, strict=True) if force or not reason), None)
    if free is None:
        return Choice(refused=f"{'; '.join(reasons[:3])}; --force tries it anyway")
    instances = free.mig.instances if free.mig and free.mig.enabled else None
    if instances:
        own = [name.strip() for name in (users or "").split(",") if name.strip().startswith("MIG-")]
        return Choice(gpu=free, visible=own[0] if own else instances[0].uuid)
    return Choice(gpu=free, visible=free.uuid if len(shown) > 1 else None)


def why_not(gpu: Gpu) -> str:
    """Reasons not to use this GPU without ``--force``; empty if it is idle."""
    busy = in_use(gpu)
    name = f"GPU {gpu.index if gpu.index is not None else gpu.key}"
    if gpu.compute_mode in _EXCLUSIVE and (busy or gpu.processes):
        return f"{name} takes no further process (compute mode {gpu.compute_mode}) and is in use"
    return f"{name} is busy ({busy})" if busy else ""


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


OLDEST_PYTHON = (3, 8)
"""The oldest Python that the probes' own code runs in."""
_MOST_NAMED = 3


class PlannedTrial(msgspec.Struct, frozen=True):
    """One deep probe in one environment."""

    spec: ProbeSpec
    about: About
    interpreter: str
    request: Mapping[str, Any]
    visible: str | None = None
    """For CUDA_VISIBLE_DEVICES; None: as the user has it."""


class TrialPlan(msgspec.Struct, frozen=True):
    """The planned trials, and rows for those that are skipped."""

    trials: tuple[PlannedTrial, ...]
    settled: tuple[Ended, ...]


def plan(specs: Sequence[ProbeSpec], snapshot: Snapshot, request: Mapping[str, Any], choice: Choice) -> TrialPlan:
    """The trials of ``specs`` for the gathered facts, each with its complete ``request``."""
    environments = [found for found in items_in(snapshot.environments) if found.judged]
    steps = [step for environment in environments for step in _within(environment, specs, snapshot, request, choice)]
    if not environments:
        reason = Verdict("skipped", "no Python environment was found to try anything in")
        steps = [Ended(spec, row(spec, reason)) for spec in specs]
    trials = tuple(step for step in steps if isinstance(step, PlannedTrial))
    return TrialPlan(trials, tuple(step for step in steps if isinstance(step, Ended)))


def _within(
    environment: Environment,
    specs: Sequence[ProbeSpec],
    snapshot: Snapshot,
    request: Mapping[str, Any],
    choice: Choice,
) -> Iterator[PlannedTrial | Ended]:
    interpreter, problem = _interpreter(environment)
    for spec in specs:
        for about, framework, absent in _subjects(spec, environment, snapshot):
            reason = problem or (choice.refused if spec.uses == "gpu" else "")
            if absent:
                yield Ended(spec, row(spec, Verdict("absent", absent), about))
            elif reason:
                yield Ended(spec, row(spec, Verdict("skipped", reason), about))
            else:
                asked = {**request, **_details(environment, framework, snapshot, choice)}
                yield PlannedTrial(spec, about, interpreter, asked, choice.visible)


def _subjects(
    spec: ProbeSpec, environment: Environment, snapshot: Snapshot
) -> Iterator[tuple[About, Framework | None, str]]:
    """The frameworks that ``spec`` tries in the environment, or why there are none."""
    if not spec.tries:
        asks_libraries = spec.kind == "deep"
        found_any = snapshot.libraries is not None and bool(snapshot.libraries.items)
        yield About(environment.key), None, "no library was found" if asks_libraries and not found_any else ""
        return
    frameworks = frameworks_in(environment)
    found = [framework for framework in frameworks if any(fnmatchcase(framework.name, name) for name in spec.tries)]
    for framework in found:
        yield About(environment.key, framework.name), framework, ""
    if not found:
        names = ", ".join(spec.tries[:_MOST_NAMED]) + (" …" if len(spec.tries) > _MOST_NAMED else "")
        yield About(environment.key), None, f"not there: {names}"


def _interpreter(environment: Environment) -> tuple[str, str]:
    """The environment's interpreter, or why it is not started."""
    inside = f"{environment.prefix}/bin/python" if environment.prefix else ""
    interpreter = environment.executable or inside
    if environment.problem:
        return interpreter, f"the environment cannot run: {environment.problem}"
    if not interpreter or not Path(interpreter).is_file():
        return interpreter, f"{environment.key} has no interpreter"
    numbers = (environment.python or "").split(".")[: len(OLDEST_PYTHON)]
    version = tuple(int(part) for part in numbers if part.isdecimal() and len(part) < 5)
    if len(version) == len(OLDEST_PYTHON) and version < OLDEST_PYTHON:
        oldest = ".".join(map(str, OLDEST_PYTHON))
        return interpreter, f"a trial needs Python {oldest} or newer; this is {environment.python}"
    return interpreter, ""


def _details(
    environment: Environment, framework: Framework | None, snapshot: Snapshot, choice: Choice
) -> dict[str, Any]:
    """The additional request of a deep probe."""
    libraries = snapshot.libraries.items if framework is None and snapshot.libraries else ()
    return {
        "environment": environment.key,
        "framework": framework and {"name": framework.name, "version": framework.version, "path": framework.path},
        "no_gpu": choice.absent,
        "libraries": [
            {"path": library.path, "family": library.family}
            for library in libraries
            if not library.stub and library.environment in (None, environment.key)
        ],
        "gpu": choice.gpu and msgspec.to_builtins({"uuid": choice.gpu.uuid, "index": choice.gpu.index}),
    }
