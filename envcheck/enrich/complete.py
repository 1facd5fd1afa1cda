"""Add to a Snapshot what follows from the matrix. An observation is never overwritten, and added facts are marked.

An added field has ``inferred <row id>`` in its record's ``read``, or ``inferred local version`` where it follows from a
package's version (``2.5.1+cu124``).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, TypeVar

import msgspec

from envcheck.enrich.stated import (
    add_frameworks,
    add_pinned_torch,
    infer_any_build,
    infer_driver,
    infer_least_cuda,
    infer_release,
)
from envcheck.enrich.stated_cuda import (
    infer_code_of_older,
    infer_default_build,
    infer_gpu_build,
    infer_older_build,
    programs_of_stated_cuda,
    programs_older_than_gpus,
)
from envcheck.enrich.torch import Inference, infer_pypi_build, infer_torch, without_foreign_build
from envcheck.knowledge.matrix import Matrix
from envcheck.knowledge.relations.driver import architecture_of, branch_of
from envcheck.knowledge.tables import Os
from envcheck.model.snapshot import PASTED, Environment, Framework, Gpu, Listing, Platform, Record, Snapshot, inferred
from envcheck.model.versions import ComputeCapability, DriverRelease

R = TypeVar("R", bound=Record)

_OF_LINUX = re.compile(r"[0-9]{3}\.[0-9]{2,3}\.[0-9]{2}")
"""Releases of the driver for Windows have two numbers, also where nvidia-smi shows them inside WSL."""


_LEAST = 100
"""NVIDIA's releases have three digits before the first dot."""


def complete(snapshot: Snapshot, matrix: Matrix) -> Snapshot:
    """The Snapshot with known facts about its GPUs, driver and frameworks filled in."""
    platform = snapshot.platform or Platform()
    driver, gpus, environments = snapshot.driver, snapshot.gpus, snapshot.environments
    release = DriverRelease.parse(driver.release) if driver and driver.source == PASTED else None
    if driver and release and release.branch < _LEAST:  # a number of CUDA's or Windows': 12.2.79
        driver = msgspec.structs.replace(driver, release=None)
    release = DriverRelease.stated(driver.release) if driver else None
    row = branch_of(matrix, release, driver_os(platform)) if release else None
    if driver and row:
        driver = _add(driver, {"cuda": row.cuda}, row.id)
    machine = msgspec.structs.replace(
        snapshot,
        platform=_of_superchip(snapshot, matrix) or _of_driver(snapshot) or snapshot.platform,
        driver=driver,
        gpus=_listing(gpus, [_gpu(gpu, matrix) for gpu in gpus.items]) if gpus else None,
    )
    if environments is None:
        return _with_programs(machine, matrix)
    items: list[Environment] = []
    for item in environments.items:
        found = add_frameworks(add_pinned_torch(item, matrix), matrix, machine.observed_errors)
        if found.frameworks is not None:
            frameworks = [_framework(each, found, matrix, machine) for each in found.frameworks.items]
            found = msgspec.structs.replace(found, frameworks=_listing(found.frameworks, frameworks))
        items.append(found)
    whole = msgspec.structs.replace(machine, environments=_listing(environments, items))
    return _with_programs(msgspec.structs.replace(whole, driver=whole.driver or infer_driver(whole)), matrix)


def _with_programs(snapshot: Snapshot, matrix: Matrix) -> Snapshot:
    """The Snapshot with a record for what is built with a stated CUDA, where that is what decides."""
    known = snapshot.judged_environment
    if known is not None and known.source != PASTED:
        return snapshot
    programs = programs_of_stated_cuda(known, snapshot, driver_os(snapshot.platform), matrix)
    programs = programs or programs_older_than_gpus(known, snapshot, matrix)
    if programs is None:
        return snapshot
    if known is None or snapshot.environments is None:
        made = Environment(source=PASTED, key=PASTED, why=PASTED, judged=True, frameworks=Listing(items=(programs,)))
        return msgspec.structs.replace(snapshot, environments=Listing(items=(made,)))
    frameworks = known.frameworks or Listing()
    whole = msgspec.structs.replace(frameworks, items=(*frameworks.items, programs))
    items = [
        msgspec.structs.replace(each, frameworks=whole) if each is known else each
        for each in snapshot.environments.items
    ]
    return msgspec.structs.replace(snapshot, environments=_listing(snapshot.environments, items))


def _of_superchip(snapshot: Snapshot, matrix: Matrix) -> Platform | None:
    """The system of a text that names a GPU of a superchip: its processor, and that it is no Jetson."""
    gpus = snapshot.gpus.items if snapshot.gpus else ()
    models = [matrix.model_of(gpu) for gpu in gpus if gpu.source == PASTED]
    if not gpus or len(models) < len(gpus) or not all(model and model.superchip for model in models):
        return None
    known = {"os": "linux", "machine": "aarch64", "tegra_release": ""}
    return _add(snapshot.platform or Platform(source=PASTED), known, f"{gpus[0].name}")


def _of_driver(snapshot: Snapshot) -> Platform | None:
    """The system of a text that tells a driver as only Linux numbers it."""
    driver, platform = snapshot.driver, snapshot.platform or Platform(source=PASTED)
    if driver is None or driver.source != PASTED or platform.os or platform.wsl:
        return None
    return _add(platform, {"os": "linux"}, "the driver") if _OF_LINUX.fullmatch(driver.release or "") else None


def driver_os(platform: Platform | None) -> Os:
    """The system whose driver releases apply: Windows in WSL, Linux when the system is unknown."""
    if platform is None:
        return "linux"
    if platform.wsl:
        return "wsl"
    return platform.os or "linux"


def _gpu(gpu: Gpu, matrix: Matrix) -> Gpu:
    model = matrix.model_of(gpu)
    if model is not None:
        gpu = _add(gpu, {"name": model.name, "compute_capability": model.compute_capability}, model.id)
    capability = ComputeCapability.parse(gpu.compute_capability)
    architecture = architecture_of(matrix, capability) if capability else None
    return _add(gpu, {"architecture": architecture.name}, architecture.id) if architecture else gpu


def _framework(framework: Framework, environment: Environment, matrix: Matrix, machine: Snapshot) -> Framework:
    platform = machine.platform or Platform()
    if framework.name == "torch":
        framework = without_foreign_build(framework, machine, matrix)
        framework = _with(framework, infer_pypi_build(framework, machine, matrix))
    if framework.version is None:
        return framework
    if framework.name != "torch":
        framework = _with(framework, infer_release(framework, platform, matrix))
        framework = _with(framework, infer_least_cuda(framework, machine, matrix))
        framework = _with(framework, infer_gpu_build(framework, machine, driver_os(platform), matrix))
        return _with(framework, infer_code_of_older(framework, machine, matrix))
    framework = _with(framework, infer_torch(framework, environment, platform, matrix))
    framework = _with(framework, infer_any_build(framework, machine, matrix))
    framework = _with(framework, infer_default_build(framework, machine, driver_os(platform), matrix))
    return _with(framework, infer_older_build(framework, machine, driver_os(platform), matrix))


def _with(framework: Framework, inferences: Iterable[Inference]) -> Framework:
    for inference in inferences:
        framework = _add(framework, inference.values, inference.why)
    return framework


def _add(record: R, values: dict[str, Any], why: str) -> R:
    """Fill the fields of ``record`` that were not observed."""
    refused = getattr(record, "not_supported", ())
    new = {
        name: value
        for name, value in values.items()
        if value is not None and getattr(record, name) is None and name not in refused
    }
    if not new:
        return record
    read = {**record.read, **dict.fromkeys(new, inferred(why))}
    return msgspec.structs.replace(record, **new, read=read)


def _listing(listing: Listing[Any], items: list[Any]) -> Listing[Any]:
    return msgspec.structs.replace(listing, items=tuple(items))
