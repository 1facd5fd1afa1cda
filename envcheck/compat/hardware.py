"""Hardware and what drives it: the pairs among driver, kernel module, GPU, CUDA and nvcc with forward compatibility,
Jetsons and their packages, MIG, Fabric Manager.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TypeVar

import msgspec

from envcheck.compat.question import AskedGpu, BranchHead, Question, agree, listed, readable, reworded, summary
from envcheck.knowledge.matrix import Matrix
from envcheck.knowledge.names import CUDA_PARTS, HARDWARE, PLATFORM
from envcheck.knowledge.relations.driver import (
    driver_runs_cuda,
    driver_supports,
    known_cuda_of,
    minor_compatible,
    module_supports,
)
from envcheck.knowledge.relations.fit import Fit, FitVerdict, conclude
from envcheck.knowledge.relations.gpu_code import cuda_serves, cuda_targets
from envcheck.knowledge.specifier import Version, covered, numbers_in, parse_specifier
from envcheck.knowledge.tables.packages import IndexRow
from envcheck.model.versions import ComputeCapability, CudaVersion, DriverRelease
from envcheck.text.lazy import lazy_pattern

T = TypeVar("T")

_JETPACK = "jetpack"
NAME = "cuda-compat"
MIG = "mig"
FABRIC_MANAGER = "fabric-manager"
_MEMORY = lazy_pattern(r"\b([0-9]{2,3}) ?GB", re.IGNORECASE)
_BUILD = CUDA_PARTS | HARDWARE | PLATFORM | {"python", "glibc", "ubuntu"}
"""What another build of the same release may need or hold otherwise."""
_OWN = "-for-jetson"
"""Rows of ``torch-for-jetson`` tell for which releases of JetPack there is which release of PyTorch."""


def tegra_serves(matrix: Matrix, gpu: ComputeCapability, cuda: CudaVersion) -> Fit | None:
    """Whether any JetPack for a Jetson's GPU takes ``cuda``; None where its rows do not say.

    A JetPack that is yet to come may take another CUDA, unless JetPack has left the GPU behind.
    """
    every = sorted(matrix.rows_of("jetpack"), key=lambda row: numbers_in(row.versions.removeprefix("==")))
    own = [row for row in every if str(gpu) in row.capabilities and "cuda" in row.needs]
    taking = [row for row in own if parse_specifier(row.needs["cuda"]).cover(Version(tuple(cuda))) != "none"]
    if taking:
        reason = f"JetPack {taking[-1].versions.removeprefix('==')} for {gpu.sm} takes CUDA {cuda}"
        return conclude(matrix, "compatible", reason, taking[-1])
    least = min(bound.numbers for bound in parse_specifier(own[0].needs["cuda"]).bounds) if own else ()
    if not own or cuda < CudaVersion(*(*least, 0)[:2]):
        return None
    if own[-1] is every[-1]:
        return conclude(matrix, "unknown", f"no JetPack in the matrix takes CUDA {cuda} for {gpu.sm}", own[-1])
    last = own[-1].versions.removeprefix("==")
    reason = f"no JetPack for {gpu.sm} takes CUDA {cuda}; JetPack {last} is the last for it"
    return conclude(matrix, "incompatible", reason, own[-1], every[-1])


# Forward compatibility: a newer libcuda from the package cuda-compat, over an older driver.
#
# It is for data center GPUs, on Linux, and never older than the CUDA that the driver itself supports. Which driver
# branches each package may sit on is in the rows of ``cuda-compat``.


def compat_fits(question: Question, package: CudaVersion) -> Iterator[Fit]:
    """The package beside the system, the GPUs and the driver that were named. (What it needs, its rows say.)"""
    if question.os != "linux":
        verdict: FitVerdict = "unknown" if question.os == "wsl" else "incompatible"
        reason = f"the forward-compatibility package is for Linux, not for {question.os}"
        fit = conclude(question.matrix, verdict, reason, *question.matrix.rows_of(NAME)[:1], change="os linux")
        yield fit.concerning(NAME, "os")
    yield from (_on_gpu(question.matrix, package, gpu).concerning(NAME, "gpu") for gpu in question.gpus)
    if question.drivers:
        fit = _each(question.drivers, lambda driver: _over(question.matrix, package, driver), question.labels["driver"])
        yield fit.concerning(NAME, "driver")


def replaces_driver(question: Question, package: CudaVersion) -> bool:
    """Whether programs find the package's libcuda in place of the driver's."""
    return all(not fit.bad for fit in compat_fits(question, package)) or not question.drivers


def compat_runs(matrix: Matrix, package: CudaVersion, cuda: CudaVersion) -> Fit:
    """Whether the package's libcuda runs what was built with ``cuda``."""
    row = matrix.cuda_rows.get(package)
    if package >= cuda:
        return conclude(matrix, "compatible", f"cuda-compat {package} supports CUDA {package}, as new as {cuda}", row)
    if package.major == cuda.major and minor_compatible(cuda):
        reason = f"cuda-compat {package} runs every minor of CUDA {cuda.major}, so CUDA {cuda} too"
        return conclude(matrix, "compatible", reason, row, matrix.cuda_rows.get(cuda))
    reason = f"cuda-compat {package} supports CUDA {package}, which does not run CUDA {cuda}"
    newer = f"cuda-compat >= {cuda.major}"
    return conclude(matrix, "incompatible", reason, row, matrix.cuda_rows.get(cuda), change=newer)


def _on_gpu(matrix: Matrix, package: CudaVersion, gpu: AskedGpu) -> Fit:
    answer = partial(conclude, matrix)
    rows = matrix.rows_of(NAME)[:1]  # one row of the package, for its source
    # A package is made from the driver branch with its CUDA, and supports the GPUs of that branch.
    branch = next((row.branch for row in matrix.drivers if row.os == "linux" and row.cuda == str(package)), None)
    if branch is not None:
        fit = driver_supports(matrix, gpu.capability, BranchHead.of(branch), model=gpu.model)
        if fit.bad:
            return reworded(matrix, fit, f"cuda-compat {package} is made from R{branch}: {fit.reason}", *rows)
    alike = (row.kind for row in matrix.gpus if row.compute_capability == str(gpu.capability))
    kinds = {gpu.model.kind} if gpu.model else set(alike)
    if kinds == {"data-center"}:
        return answer("compatible", f"forward compatibility is for data center GPUs, as {gpu.label} is", *rows)
    if kinds == {"geforce"}:
        reason = f"forward compatibility is for data center GPUs; {gpu.label} is a GeForce"
        return answer("incompatible", reason, *rows, change="a driver as new as the CUDA that is needed")
    if kinds == {"workstation"}:
        reason = "forward compatibility is for data center GPUs and selected boards in certified servers; whether "
        return answer("unknown", f"{reason}{gpu.label} is one is not known", *rows)
    if kinds == {"tegra"}:
        return answer("unknown", f"{gpu.label} takes a cuda-compat of its own system, which is not this one", *rows)
    return answer("unknown", f"whether {gpu.label} is a data center GPU is not known", *rows)


def _over(matrix: Matrix, package: CudaVersion, driver: DriverRelease) -> Fit:
    own = known_cuda_of(matrix, driver)
    rows = matrix.rows_of(NAME)[:1]  # one row of the package, for its source
    if own is None:
        reason = f"the CUDA that driver {driver} supports is not known"
        return conclude(matrix, "unknown", f"{reason}; an older cuda-compat must not replace its libcuda", *rows)
    if own > package:
        reason = f"driver {driver} supports CUDA {own}; cuda-compat {package} is older, and must not replace it"
        return conclude(matrix, "incompatible", reason, *rows, change="no cuda-compat")
    return conclude(matrix, "compatible", f"cuda-compat {package} is no older than driver {driver}", *rows)


def hardware_fits(question: Question) -> Iterator[Fit]:
    for gpu in question.gpus:
        yield from _gpu_fits(question, gpu)
    if question.compat:
        yield from compat_fits(question, question.compat)
    for name, members in (("cuda", question.cuda), ("nvcc", question.nvcc)):
        runner = runner_of(question)
        if members and runner:
            versions = question.versions[name] if len(members) == 1 else ()
            release = versions[0].numbers if versions else ()
            fits = [(str(cuda), runs(question, cuda, release)) for cuda in members]
            yield agree(fits, question.labels[name]).concerning(runner, name)


def _gpu_fits(question: Question, gpu: AskedGpu) -> Iterator[Fit]:
    matrix, labels = question.matrix, question.labels
    if question.drivers:
        fit = _each(
            question.drivers,
            lambda driver: driver_supports(matrix, gpu.capability, driver, question.os, model=gpu.model),
            labels["driver"],
        )
        yield fit.concerning("driver", "gpu")
    if question.flavour:
        module = module_supports(matrix, gpu.capability, question.flavour, model=gpu.model)
        yield module.concerning("kernel-module", "gpu")
    if question.cuda:
        fits = []
        row = matrix.capability_rows.get(gpu.capability)
        for cuda in question.cuda:
            fit = _too_new(matrix, gpu, cuda) or cuda_serves(matrix, gpu.capability, cuda)
            if fit.ok and row and row.tegra:  # a Jetson has the CUDA of its system software
                fit = tegra_serves(matrix, gpu.capability, cuda) or fit
            fits.append((str(cuda), fit))
        yield agree(fits, labels["cuda"]).concerning("cuda", "gpu")
    if question.nvcc:
        compiles = _each(question.nvcc, lambda cuda: _accepts(matrix, gpu, cuda), labels["nvcc"])
        yield compiles.concerning("nvcc", "gpu")
    # Whether the JetPack that was named, or whose L4T was, came before the module: of others its own row speaks.
    if gpu.model is None or not gpu.model.jetpack:
        return
    matrix, spec, implied = question.matrix, gpu.model.jetpack, question.implied.get(_JETPACK)
    given = question.versions.get(_JETPACK, (implied.version,) if implied else ())
    if not given:  # what was named and needs a JetPack that does not support the module
        serving = [version for version in matrix.known_versions(_JETPACK) if covered(spec, version) == "all"]
        for name, versions in question.versions.items():
            rows = [row for version in versions for row in matrix.rows_for(name, version) if _JETPACK in row.needs]
            if rows and not any(covered(row.needs[_JETPACK], version) != "none" for row in rows for version in serving):
                needed = readable("JetPack", rows[0].needs[_JETPACK])
                reason = f"{name} {versions[0]} needs {needed}, and {gpu.label} {readable('JetPack', spec)}"
                yield conclude(matrix, "incompatible", reason, *rows, gpu.model).concerning(name, "gpu")
    for version in given:
        cover = covered(spec, version)
        if cover != "all":
            verdict: FitVerdict = "incompatible" if cover == "none" else "unknown"
            reason = f"{gpu.label} needs {readable('JetPack', spec)}; this is {version}"
            fit = conclude(matrix, verdict, reason, gpu.model, change=readable(_JETPACK, spec))
            yield fit.concerning(implied.by if implied else _JETPACK, "gpu")


def _accepts(matrix: Matrix, gpu: AskedGpu, cuda: CudaVersion) -> Fit:
    """Whether nvcc accepts the GPU's target: of a GPU by its name, under whichever name the target has there."""
    fit = _too_new(matrix, gpu, cuda) or cuda_targets(matrix, gpu.capability, cuda)
    row = matrix.cuda_rows.get(cuda)
    if gpu.model or fit.verdict != "unknown" or row is None or not row.targets:
        return fit
    named = gpu.capability.sm in (*row.targets, *row.disputed_targets)
    if named or not any(gpu.capability.sm in other.targets for other in matrix.cuda):
        return fit
    refused = msgspec.structs.replace(fit, verdict="incompatible")
    return reworded(matrix, refused, f"nvcc {cuda} has no target {gpu.label}: {fit.reason}", row)


def _too_new(matrix: Matrix, gpu: AskedGpu, cuda: CudaVersion) -> Fit | None:
    """Why a toolkit does not have the architecture- or family-specific target that was named."""
    if not gpu.suffix:
        return None
    row = matrix.capability_rows.get(gpu.capability)
    if row is None:
        return conclude(matrix, "unknown", f"the matrix does not know whether there is a target {gpu.label}")
    first = CudaVersion.parse(row.own_from if gpu.suffix == "a" else row.family_from)
    if first is None:
        return conclude(matrix, "incompatible", f"there is no target {gpu.label}", row, change=gpu.capability.sm)
    if cuda >= first:
        return None
    reason = f"CUDA {cuda} has no target {gpu.label}; CUDA {first} is the first with it"
    return conclude(matrix, "incompatible", reason, row, change=f"CUDA >= {first}")


def runner_of(question: Question) -> str | None:
    """What runs CUDA programs here: the driver, or the package of forward compatibility; None when neither is named."""
    if question.compat:
        return "cuda-compat"
    return "driver" if question.drivers else None


def runs(question: Question, cuda: CudaVersion, release: Sequence[int] = ()) -> Fit:
    if question.compat and replaces_driver(question, question.compat):
        return compat_runs(question.matrix, question.compat, cuda)
    return _each(
        question.drivers,
        lambda driver: driver_runs_cuda(question.matrix, driver, cuda, question.os, release=release),
        question.labels.get("driver", ""),
    )


def driver_cudas(question: Question) -> tuple[CudaVersion | None, ...]:
    """The CUDA that each named driver, or the package, supports: the newest whose PTX it compiles."""
    if question.compat and replaces_driver(question, question.compat):
        return (question.compat,)
    return tuple(known_cuda_of(question.matrix, driver, question.os) for driver in question.drivers)


def _each(members: Sequence[T], ask: Callable[[T], Fit], what: str) -> Fit:
    return agree([(str(member), ask(member)) for member in members], what)


def data_center_fits(question: Question) -> Iterator[Fit]:
    if question.mig:
        yield from (_divides(question, gpu, question.mig).concerning(MIG, "gpu") for gpu in question.gpus)
    release, matrix = question.fabric_manager, question.matrix
    if release is None or not question.drivers:
        return
    rows = matrix.rows_of(FABRIC_MANAGER)[:1]
    needed = f"Fabric Manager {release} needs the driver of the same version"
    exact = [driver for driver in question.drivers if str(driver) == str(release)]
    is_branch = question.labels["driver"].count(".") < 2
    if not exact and is_branch and any(driver.branch == release.branch for driver in question.drivers):
        fit = conclude(matrix, "unknown", f"{needed}; which release is meant is not known", *rows)
    else:
        fits = []
        for driver in question.drivers:
            verdict: FitVerdict = "compatible" if driver in exact else "incompatible"
            one = conclude(matrix, verdict, f"{needed}; this is {driver}", *rows, change=f"driver {release}")
            fits.append((str(driver), one))
        fit = agree(fits, question.labels["driver"])
    yield fit.concerning(FABRIC_MANAGER, "driver")


def _divides(question: Question, gpu: AskedGpu, profile: str) -> Fit:
    """Whether the GPU has the profile; a name that stands for several models has what any of them has."""
    matrix = question.matrix
    rows = [row for row in matrix.migs if gpu.model and gpu.model.name in row.gpus]
    memory = _MEMORY.search(question.labels["gpu"])  # named with the model: ``A100 40GB``
    if memory and not (gpu.model and memory[1] in re.findall(r"[0-9]+", gpu.model.name)):
        rows = [row for row in rows if (own := _MEMORY.search(row.name)) is None or own[1] == memory[1]]
    if not rows:
        reason = f"the documents list no MIG instances of {gpu.label}"
        # None can be divided of a compute capability of which none is listed, though newer ones are.
        models = (matrix.find_gpu(name) for row in matrix.migs for name in row.gpus)
        listing = {each for model in models if model and (each := ComputeCapability.parse(model.compute_capability))}
        capability = matrix.capability_rows.get(gpu.capability)
        older = gpu.capability not in listing and gpu.capability < max(listing)
        without = (older and not (capability and capability.tegra)) or (gpu.model and gpu.model.kind == "geforce")
        return conclude(matrix, "incompatible" if without else "unknown", reason, *matrix.migs)
    having = [row for row in rows if profile in row.profiles]
    if not having:
        known = listed([each for row in rows for each in row.profiles])
        reason = f"{listed([row.name for row in rows])}: MIG instances {known}, no {profile}"
        return conclude(matrix, "incompatible", reason, *rows)
    needed = [release for row in having if (release := DriverRelease.parse(row.drivers.get(profile) or row.driver))]
    if needed and question.drivers and max(question.drivers) < min(needed):
        reason = f"{profile} of {having[0].name} needs driver {min(needed)} or newer, this is {question.drivers[-1]}"
        return conclude(matrix, "incompatible", reason, *having, change=f"driver >= {min(needed)}")
    return conclude(matrix, "compatible", f"{listed([row.name for row in having])} has {profile}", *having)


def on_jetsons(question: Question, found: Sequence[Fit]) -> list[Fit]:
    """The answers, without those about the build on PyPI where another index has its own for Jetsons."""
    indexes = {name: row for row in question.matrix.indexes if row.jetsons for name in row.packages}
    left = list(found)
    rows = (question.matrix.capability_rows.get(gpu.capability) for gpu in question.gpus)
    is_jetson = bool(question.systems) or any(row and row.tegra for row in rows)
    for name in indexes.keys() & question.versions.keys() if is_jetson else ():
        refusals = [fit for fit in left if fit.bad and name in fit.about and {*fit.about} <= {*_BUILD, name}]
        if refusals and not any(version.local for version in question.versions[name]):
            left = [fit for fit in left if name not in fit.about or not {*fit.about} <= {*_BUILD, name}]
            left.append(_elsewhere(question, name, question.versions[name][-1], refusals, indexes[name]))
    return left


def _elsewhere(question: Question, name: str, version: Version, refusals: list[Fit], index: IndexRow) -> Fit:
    """The answer for the build of the other index, where a row tells of it; else both sides."""
    matrix, about = question.matrix, tuple(dict.fromkeys(part for fit in refusals for part in fit.about))
    implied = question.implied.get(_JETPACK)
    for jetpack in question.versions.get(_JETPACK, (implied.version,) if implied else ()):
        rows = [row for row in matrix.rows_for(name + _OWN, version) if covered(row.needs[_JETPACK], jetpack) == "all"]
        if rows:
            reason = f"{name} {version} has a wheel for JetPack {jetpack} of its own, which is not on PyPI"
            return conclude(matrix, "compatible", reason, *rows).concerning(*about)
    label = f"{name} {version}"
    why = f"PyPI's {label} does not fit: {refusals[0].reason}; {index.note}, and may have {label}: the index decides"
    return summary("unknown", why, [*refusals, conclude(matrix, "unknown", "", index)]).concerning(*about)
