"""What is to be measured: on which GPUs, with which libraries, and why not on others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from envcheck.collect.catalog import ProbeSpec
from envcheck.collect.trial_plan import why_not
from envcheck.knowledge.performance.quantities import QUANTITIES, framework_tested
from envcheck.model.snapshot import Gpu, Snapshot, frameworks_in, items_in


class BenchRequest(msgspec.Struct, frozen=True):
    """That GPUs are to be measured."""

    full: bool = False
    only: tuple[str, ...] = ()
    """Names of measurements; empty: all that quick or full comprise."""
    gpus: tuple[int, ...] = ()
    """Indices as nvidia-smi shows them; empty: all."""
    force: bool = False
    """Whether GPUs that others use are measured too; they are never judged."""
    frameworks: bool = False
    """Whether frameworks are imported and measured too, and with them what they are compared with."""
    timing: bool = True
    """Whether work is timed; if not, libraries only show on one GPU that they work."""


class Chosen(msgspec.Struct, frozen=True):
    """The GPUs that are measured, and why others are not, by UUID."""

    gpus: tuple[Gpu, ...]
    refused: Mapping[str, str]


def choose(snapshot: Snapshot, wish: BenchRequest) -> Chosen:
    """The GPUs that CUDA shows, that were asked for, and that are not in use."""
    listing = items_in(snapshot.gpus)
    shown = [gpu for gpu in listing if gpu.cuda_ordinal is not None and gpu.uuid]
    shown.sort(key=lambda gpu: gpu.cuda_ordinal or 0)
    asked = [gpu for gpu in shown if not wish.gpus or gpu.index in wish.gpus]
    refused = {gpu.uuid or "": reason for gpu in asked if (reason := why_not(gpu)) and not wish.force}
    free = tuple(gpu for gpu in asked if gpu.uuid not in refused)
    return Chosen(free if wish.timing else free[:1], {} if free and not wish.timing else refused)


def request_of(wish: BenchRequest, chosen: Chosen, snapshot: Snapshot) -> dict[str, Any]:
    """The part ``bench`` of a bench probe's request, less the GPU that a probe is for."""
    beside = compared(wish)
    return {
        "full": wish.full,
        "only": [*wish.only, *beside] if wish.only else [],
        "frameworks": wish.frameworks,
        "beside": beside,
        "timing": wish.timing,
        "gpus": [_described(gpu) for gpu in chosen.gpus],
        "links": _links(snapshot, chosen.gpus),
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


def _described(gpu: Gpu) -> dict[str, Any]:
    before = {  # anything is measured, as fields of ``Conditions``
        "utilisation_before": None if gpu.utilisation is None else 100 * gpu.utilisation,
        "memory_before": gpu.memory.used if gpu.memory else None,
        "temperature_before": gpu.temperature.gpu if gpu.temperature else None,
        "ecc": gpu.ecc.enabled if gpu.ecc else None,
    }
    return {
        "uuid": gpu.uuid,
        "ordinal": gpu.cuda_ordinal,
        "index": gpu.index,
        "pci_bus_id": gpu.pci_bus_id,
        "numa_node": gpu.numa_node,
        "before": {name: value for name, value in before.items() if value is not None},
    }


def _links(snapshot: Snapshot, gpus: Iterable[Gpu]) -> dict[str, str]:
    """``NVLink`` for each pair of UUIDs that NVLinks join, directly or through a switch."""
    links = (snapshot.fabric.links if snapshot.fabric else None) or ()
    joined = {(link.first, link.second) for link in links if link.nvlinks}
    by_switch = {gpu.uuid for gpu in gpus for link in gpu.nvlinks or () if link.active and link.remote_kind == "switch"}
    found = {}
    for one in gpus:
        for other in gpus:
            ids = (one.pci_bus_id or "", other.pci_bus_id or "")
            if one is not other and (ids in joined or ids[::-1] in joined or {one.uuid, other.uuid} <= by_switch):
                found[f"{one.uuid} {other.uuid}"] = "NVLink"
    return found


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
