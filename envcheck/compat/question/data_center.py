"""Parts of data-center machines: MIG instances against the GPU and the driver, Fabric Manager against the driver."""

from __future__ import annotations

import re
from collections.abc import Iterator

from envcheck.compat.matrix import Matrix
from envcheck.compat.question.question import AskedGpu, Question, agree, listed
from envcheck.compat.relations.fit import Fit, conclude
from envcheck.compat.tables import MigRow
from envcheck.versions import ComputeCapability, DriverRelease

MIG = "mig"
FABRIC_MANAGER = "fabric-manager"
_MEMORY = re.compile(r"\b([0-9]{2,3}) ?GB", re.IGNORECASE)


def data_center_fits(question: Question) -> Iterator[Fit]:
    """Everything about the MIG instance, and about Fabric Manager, that were named."""
    if question.mig:
        for gpu in question.gpus:
            yield _divides(question, gpu, question.mig).concerning(MIG, "gpu")
    if question.fabric_manager and question.drivers:
        yield _same_release(question, question.fabric_manager)


def _divides(question: Question, gpu: AskedGpu, profile: str) -> Fit:
    """Whether the GPU has the profile; a name that stands for several models has what any of them has."""
    matrix = question.matrix
    rows = _of_memory(matrix, gpu, question.labels["gpu"])
    if not rows:
        reason = f"the documents list no MIG instances of {gpu.label}"
        without = _has_none(matrix, gpu.capability) or (gpu.model and gpu.model.kind == "geforce")
        return conclude(matrix, "incompatible" if without else "unknown", reason, *matrix.migs)
    having = [row for row in rows if profile in row.profiles]
    if not having:
        known = listed([each for row in rows for each in row.profiles])
        return conclude(
            matrix, "incompatible", f"{listed([row.name for row in rows])}: MIG instances {known}, no {profile}", *rows
        )
    too_old = _older_driver(question, having, profile)
    return too_old or conclude(matrix, "compatible", f"{listed([row.name for row in having])} has {profile}", *having)


def _of_memory(matrix: Matrix, gpu: AskedGpu, written: str) -> list[MigRow]:
    """The rows of the model, and of the memory that was named with it: ``A100 40GB``; none of another memory."""
    rows = [row for row in matrix.migs if gpu.model and gpu.model.name in row.gpus]
    memory = _MEMORY.search(written)
    if memory is None or (gpu.model and memory[1] in re.findall(r"[0-9]+", gpu.model.name)):
        return rows
    return [row for row in rows if (own := _MEMORY.search(row.name)) is None or own[1] == memory[1]]


def _has_none(matrix: Matrix, capability: ComputeCapability) -> bool:
    """Whether no GPU of a compute capability can be divided: none is listed, though newer ones are."""
    models = (matrix.find_gpu(name) for row in matrix.migs for name in row.gpus)
    known = {each for model in models if model and (each := ComputeCapability.parse(model.compute_capability))}
    row = matrix.capability_rows.get(capability)
    return capability not in known and capability < max(known) and not (row and row.tegra)


def _older_driver(question: Question, rows: list[MigRow], profile: str) -> Fit | None:
    """Why the driver that was named does not divide the GPU so."""
    needed = [release for row in rows if (release := DriverRelease.parse(row.drivers.get(profile) or row.driver))]
    if not needed or not question.drivers or max(question.drivers) >= min(needed):
        return None
    reason = f"{profile} of {rows[0].name} needs driver {min(needed)} or newer, this is {question.drivers[-1]}"
    return conclude(question.matrix, "incompatible", reason, *rows, change=f"driver >= {min(needed)}")


def _same_release(question: Question, release: DriverRelease) -> Fit:
    rows = question.matrix.rows_of(FABRIC_MANAGER)
    exact = [driver for driver in question.drivers if str(driver) == str(release)]
    fits = [
        (
            str(driver),
            conclude(
                question.matrix,
                "compatible" if driver in exact else "incompatible",
                f"Fabric Manager {release} needs the driver of the same version; this is {driver}",
                *rows[:1],
                change=f"driver {release}",
            ),
        )
        for driver in question.drivers
    ]
    is_branch = question.labels["driver"].count(".") < 2
    if not exact and is_branch and any(driver.branch == release.branch for driver in question.drivers):
        reason = f"Fabric Manager {release} needs the driver of the same version; which release is meant is not known"
        return conclude(question.matrix, "unknown", reason, *rows[:1]).concerning(FABRIC_MANAGER, "driver")
    return agree(fits, question.labels["driver"]).concerning(FABRIC_MANAGER, "driver")
