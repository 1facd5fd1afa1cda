"""Plan trials and measurements: on which GPUs, in which environments, with which libraries, and why not on others.

A busy GPU is not used unless that is forced.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from itertools import permutations
from pathlib import Path
from typing import Any

import msgspec

from envcheck.collect.catalog import ProbeSpec
from envcheck.collect.runner import About, Ended, Verdict, not_run
from envcheck.knowledge.performance.expected import in_use
from envcheck.knowledge.performance.quantities import QUANTITIES, framework_tested
from envcheck.model.snapshot import Environment, Framework, Gpu, Snapshot, frameworks_in, items_in


class BenchRequest(msgspec.Struct, frozen=True):
    """That GPUs are to be measured."""

    full: bool = False
    only: tuple[str, ...] = ()  # Names of measurements; empty: all that quick or full comprise
    gpus: tuple[int, ...] = ()  # Indices as nvidia-smi shows them; empty: all
    force: bool = False  # Whether GPUs that others use are measured too; they are never judged
    frameworks: bool = False  # Whether frameworks are measured too, and with them what they are compared with
    timing: bool = True  # Whether work is timed; if not, libraries only show on one GPU that they work


class Chosen(msgspec.Struct, frozen=True):
    """The GPUs that are measured, and why others are not, by UUID."""

    gpus: tuple[Gpu, ...]
    refused: Mapping[str, str]


def choose(snapshot: Snapshot, wish: BenchRequest) -> Chosen:
    """The GPUs that CUDA shows, that were asked for, and that are not in use."""
    shown = [gpu for gpu in items_in(snapshot.gpus) if gpu.cuda_ordinal is not None and gpu.uuid]
    shown.sort(key=lambda gpu: gpu.cuda_ordinal or 0)
    asked = [gpu for gpu in shown if not wish.gpus or gpu.index in wish.gpus]
    refused = {gpu.uuid or "": reason for gpu in asked if (reason := why_not(gpu)) and not wish.force}
    free = tuple(gpu for gpu in asked if gpu.uuid not in refused)
    return Chosen(free if wish.timing else free[:1], {} if free and not wish.timing else refused)


def request_of(wish: BenchRequest, chosen: Chosen, snapshot: Snapshot) -> dict[str, Any]:
    """The part ``bench`` of a bench probe's request, less the GPU that a probe is for."""
    beside, gpus = compared(wish), list[dict[str, Any]]()
    for gpu in chosen.gpus:
        before = {  # anything is measured, as fields of ``Conditions``
            "utilisation_before": None if gpu.utilisation is None else 100 * gpu.utilisation,
            "memory_before": gpu.memory.used if gpu.memory else None,
            "temperature_before": gpu.temperature.gpu if gpu.temperature else None,
            "ecc": gpu.ecc.enabled if gpu.ecc else None,
        }
        described = {
            "uuid": gpu.uuid,
            "ordinal": gpu.cuda_ordinal,
            "index": gpu.index,
            "pci_bus_id": gpu.pci_bus_id,
            "numa_node": gpu.numa_node,
            "before": {name: value for name, value in before.items() if value is not None},
        }
        gpus.append(described)
    # ``NVLink`` for each pair of UUIDs that NVLinks join, directly or through a switch.
    links = (snapshot.fabric.links if snapshot.fabric else None) or ()
    joined = {(link.first, link.second) for link in links if link.nvlinks}
    nvlinks = [(gpu.uuid, link) for gpu in chosen.gpus for link in gpu.nvlinks or ()]
    by_switch = {uuid for uuid, link in nvlinks if link.active and link.remote_kind == "switch"}
    ways = {}
    for one, other in permutations(chosen.gpus, 2):
        ids = (one.pci_bus_id or "", other.pci_bus_id or "")
        if ids in joined or ids[::-1] in joined or {one.uuid, other.uuid} <= by_switch:
            ways[f"{one.uuid} {other.uuid}"] = "NVLink"
    return {
        "full": wish.full,
        "only": [*wish.only, *beside] if wish.only else [],
        "frameworks": wish.frameworks,
        "beside": beside,
        "timing": wish.timing,
        "gpus": gpus,
        "links": ways,
        "libraries": _libraries(snapshot),
    }


def compared(wish: BenchRequest) -> list[str]:
    """Quantities of which only those figures are measured that frameworks are compared with."""
    if wish.full or not wish.timing:
        return []
    words = [name for name in wish.only if framework_tested(name)]
    asked = [each for each in QUANTITIES if framework_tested(each.name) and (wish.frameworks and not words)]
    asked += [each for each in QUANTITIES if each.name in words]
    return list(dict.fromkeys(each.beside for each in asked if each.beside and each.beside not in wish.only))


def wanted(spec: ProbeSpec, wish: BenchRequest) -> bool:
    """Whether a probe that runs in the environment is to run; one that measures a framework is named like it."""
    if spec.asked != "frameworks":
        return wish.full or bool(wish.only)
    mine = spec.name.rpartition(".")[2].partition("_")[0]
    return any(name.startswith(f"{mine}-") for name in wish.only) if wish.only else wish.frameworks


def seen_alone(gpu: Gpu, snapshot: Snapshot) -> str | None:
    """What CUDA_VISIBLE_DEVICES makes ``gpu`` the only one; None where it is that already, or has no such name."""
    shown = [each for each in items_in(snapshot.gpus) if each.cuda_ordinal is not None]
    return None if len(shown) < 2 or (gpu.mig and gpu.mig.enabled) else gpu.uuid


def _libraries(snapshot: Snapshot) -> dict[str, list[str]]:
    """Files of each library, by what stands between ``lib`` and ``.so``: ``cudnn``, ``cublasLt`` …

    First what a framework of the judged environment would load, then the environment's others, then any.
    """
    environment = snapshot.judged_environment
    frameworks = frameworks_in(environment)
    loads = [load for framework in frameworks for load in framework.loads or () if load.path]
    found = [(load.name, load.path or "") for load in loads]
    own = environment.key if environment else None
    listed = [library for library in items_in(snapshot.libraries) if not library.stub]
    found += [(each.path, each.path) for each in sorted(listed, key=lambda each: each.environment != own)]
    paths: dict[str, dict[str, None]] = {}
    for name, path in found:
        stem, ending, _ = name.rpartition("/")[2].partition(".so")
        if ending and stem.startswith("lib"):
            paths.setdefault(stem.removeprefix("lib"), {})[path] = None
    return {name: list(files) for name, files in paths.items()}


_EXCLUSIVE = ("exclusive_process", "exclusive_thread", "prohibited")


class Choice(msgspec.Struct, frozen=True):
    """The GPU for trials; ``gpu`` is None if none is known: then the trial shows whether a framework finds one."""

    gpu: Gpu | None = None
    visible: str | None = None  # The value of CUDA_VISIBLE_DEVICES; None keeps the user's
    refused: str = ""  # Why no GPU may be used now
    absent: str = ""  # Why there is no GPU for trials

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
    if users is not None and users.strip() in {"", "-1", "none", "NoDevFiles"}:
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


OLDEST_PYTHON = (3, 8)  # The oldest Python that the probes' own code runs in
_MOST_NAMED = 3


class PlannedTrial(msgspec.Struct, frozen=True):
    """A probe in the interpreter of an environment."""

    spec: ProbeSpec
    about: About
    interpreter: str
    request: Mapping[str, Any]
    visible: str | None = None  # For CUDA_VISIBLE_DEVICES; None: as the user has it


def plan_trials(
    specs: Sequence[ProbeSpec], snapshot: Snapshot, request: Mapping[str, Any], choice: Choice
) -> Iterator[PlannedTrial | Ended]:
    """The trials of ``specs`` in the judged environments, each with its complete ``request``, and what is not tried.

    A bench probe about one GPU has that in its row. The end of a measurement says something about a framework only
    where that is what is measured: these begin with what a deep check does.
    """
    gpus = {spec.name: choice.gpu.uuid for spec in specs if spec.kind == "bench" and spec.per == "gpu" and choice.gpu}
    environments = [found for found in items_in(snapshot.environments) if found.judged]
    if not environments:
        reason = Verdict("skipped", "no Python environment was found to try anything in")
        yield from (not_run(spec, reason, About(gpu=gpus.get(spec.name))) for spec in specs)
    for environment in environments:
        interpreter, problem = _interpreter(environment)
        for spec in specs:
            of_framework = spec.kind == "deep" or (bool(spec.asked) and spec.per == "gpu")
            for framework, absent in _frameworks(spec, environment, snapshot):
                name = framework.name if framework and of_framework else None
                about = About(environment.key, name, gpus.get(spec.name))
                refused = problem or (choice.refused if spec.uses == "gpu" else "")
                if absent:
                    yield not_run(spec, Verdict("absent", absent), about)
                elif refused:
                    yield not_run(spec, Verdict("skipped", refused), about)
                else:
                    libraries = items_in(snapshot.libraries) if framework is None else ()
                    details = {
                        "environment": environment.key,
                        "framework": framework
                        and {"name": framework.name, "version": framework.version, "path": framework.path},
                        "no_gpu": choice.absent,
                        "libraries": [
                            {"path": library.path, "family": library.family}
                            for library in libraries
                            if not library.stub and library.environment in (None, environment.key)
                        ],
                        "gpu": choice.gpu and {"uuid": choice.gpu.uuid, "index": choice.gpu.index},
                    }
                    yield PlannedTrial(spec, about, interpreter, {**request, **details}, choice.visible)


def _frameworks(spec: ProbeSpec, environment: Environment, snapshot: Snapshot) -> list[tuple[Framework | None, str]]:
    """The frameworks that ``spec`` tries in the environment, None for all it holds; or why there are none."""
    if not spec.tries:
        any_library = spec.kind != "deep" or bool(items_in(snapshot.libraries))
        return [(None, "" if any_library else "no library was found")]
    frameworks = frameworks_in(environment)
    found = [framework for framework in frameworks if any(fnmatchcase(framework.name, name) for name in spec.tries)]
    names = ", ".join(spec.tries[:_MOST_NAMED]) + (" …" if len(spec.tries) > _MOST_NAMED else "")
    return [(framework, "") for framework in found] or [(None, f"not there: {names}")]


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
