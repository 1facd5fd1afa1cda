"""Add to a Snapshot what follows from the matrix. An observation is never overwritten, and added facts are marked.

An added field has ``inferred <row id>`` in its record's ``read``, or ``inferred local version`` where it follows from a
package's version (``2.5.1+cu124``).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, TypeVar

import msgspec

from envcheck.enrich.loads import with_frameworks
from envcheck.enrich.stated import (
    add_frameworks,
    add_pinned_torch,
    driver_os,
    infer_any_build,
    infer_code_of_older,
    infer_default_build,
    infer_driver,
    infer_gpu_build,
    infer_least_cuda,
    infer_older_build,
    infer_release,
    programs_of_stated_cuda,
    programs_older_than_gpus,
)
from envcheck.enrich.torch import Inference, infer_pypi_build, infer_torch, without_foreign_build
from envcheck.knowledge.matrix import Matrix
from envcheck.knowledge.relations.driver import architecture_of, branch_of
from envcheck.model.snapshot import (
    PASTED,
    Environment,
    Framework,
    Gpu,
    Listing,
    Platform,
    Record,
    Snapshot,
    inferred,
    items_in,
)
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
        platform=_system(snapshot, matrix),
        driver=driver,
        gpus=_listing(gpus, [_gpu(gpu, matrix) for gpu in gpus.items]) if gpus else None,
    )
    if environments is None:
        return _with_programs(machine, matrix)
    items = [
        add_frameworks(add_pinned_torch(item, matrix), matrix, machine.observed_errors) for item in environments.items
    ]
    whole = msgspec.structs.replace(machine, environments=_listing(environments, items))
    whole = with_frameworks(whole, lambda each, found: _framework(each, found, matrix, machine))
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


def _system(snapshot: Snapshot, matrix: Matrix) -> Platform | None:
    """The system, with what follows from a text that names a GPU of a superchip (its processor, and that it is no
    Jetson), or a driver as only Linux numbers it.
    """
    platform, driver = snapshot.platform or Platform(source=PASTED), snapshot.driver
    gpus = items_in(snapshot.gpus)
    models = [matrix.model_of(gpu) for gpu in gpus if gpu.source == PASTED]
    if gpus and len(models) == len(gpus) and all(model and model.superchip for model in models):
        return _add(platform, {"os": "linux", "machine": "aarch64", "tegra_release": ""}, f"{gpus[0].name}")
    told = driver is not None and driver.source == PASTED and _OF_LINUX.fullmatch(driver.release or "")
    return _add(platform, {"os": "linux"}, "the driver") if told and not platform.wsl else snapshot.platform


def _gpu(gpu: Gpu, matrix: Matrix) -> Gpu:
    model = matrix.model_of(gpu)
    if model is not None:
        gpu = _add(gpu, {"name": model.name, "compute_capability": model.compute_capability}, model.id)
    capability = ComputeCapability.parse(gpu.compute_capability)
    architecture = architecture_of(matrix, capability) if capability else None
    return _add(gpu, {"architecture": architecture.name}, architecture.id) if architecture else gpu


def _framework(framework: Framework, environment: Environment, matrix: Matrix, machine: Snapshot) -> Framework:
    platform = machine.platform or Platform()
    os = driver_os(platform)

    def add(inferences: Iterable[Inference]) -> None:
        nonlocal framework
        for inference in inferences:
            framework = _add(framework, inference.values, inference.why)

    if framework.name == "torch":
        framework = without_foreign_build(framework, machine, matrix)
        add(infer_pypi_build(framework, machine, matrix))
    if framework.version is None:
        return framework
    if framework.name != "torch":
        add(infer_release(framework, platform, matrix))
        add(infer_least_cuda(framework, machine, matrix))
        add(infer_gpu_build(framework, machine, os, matrix))
        add(infer_code_of_older(framework, machine, matrix))
    else:
        add(infer_torch(framework, environment, platform, matrix))
        add(infer_any_build(framework, machine, matrix))
        add(infer_default_build(framework, machine, os, matrix))
        add(infer_older_build(framework, machine, os, matrix))
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
