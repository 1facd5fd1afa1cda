"""The CUDA that a text states, where its driver does not run it or its GPUs need a newer one: of a toolkit, an image
or conda.

What is built with that CUDA does not start. A record named ``PROGRAMS`` stands for it, as no framework is named.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from envcheck.compat.package_needs import release_rows
from envcheck.enrich.stated import first_of
from envcheck.enrich.torch import Inference
from envcheck.knowledge.gpu_names import find_model
from envcheck.knowledge.matrix import Matrix
from envcheck.knowledge.relations.driver import driver_runs_cuda
from envcheck.knowledge.relations.gpu_code import cuda_serves, cuda_targets, targets_of
from envcheck.knowledge.relations.libraries import TOOLKIT
from envcheck.knowledge.relations.torch import builds, torch_row
from envcheck.knowledge.specifier import Version, parse_specifier
from envcheck.knowledge.tables import Os
from envcheck.model.snapshot import (
    OF_FRAMEWORK_IMAGE,
    OF_IMAGE,
    PASTED,
    Environment,
    Framework,
    Platform,
    Snapshot,
    frameworks_in,
    inferred,
    items_in,
)
from envcheck.model.versions import CodeTarget, ComputeCapability, CudaVersion, DriverRelease

PROGRAMS = "CUDA"
"""The name of the record that stands for what is built with a stated CUDA."""

_FORWARD = "cuda-compat"

_OF_CONDA = "cudatoolkit"


def programs_of_stated_cuda(
    environment: Environment | None, snapshot: Snapshot, os: Os, matrix: Matrix
) -> Framework | None:
    """The record of what is built with the stated CUDA, if no build is known that brings another, and the driver does
    not run it.

    Of several versions the oldest counts: if it does not run, none does.
    """
    platform, driver = snapshot.platform, snapshot.driver
    if driver is None or driver.source != PASTED or (platform and (platform.tegra or platform.tegra_release)):
        return None
    if environment is not None and _brings_its_own(environment, matrix):
        return None
    stated = sorted(_stated(snapshot, matrix))
    if not stated or not _is_refused(stated[0], snapshot, os, matrix) or _forward_serves(stated[0], snapshot, matrix):
        return None
    cuda = str(stated[0])
    return Framework(
        source=PASTED, name=PROGRAMS, version=cuda, cuda=cuda, read={"cuda": "pasted text", "version": "pasted text"}
    )


def programs_older_than_gpus(environment: Environment | None, snapshot: Snapshot, matrix: Matrix) -> Framework | None:
    """The record of what is built with a CUDA that is older than every GPU of the text, where no package is known to
    bring another: with conda's ``cudatoolkit``, or with the stated one of a text about a framework that fails.
    """
    listed = environment.distributions if environment else None
    frameworks = frameworks_in(environment) if environment else ()
    found = [each.version for each in listed or () if each.name == _OF_CONDA]
    if not found and frameworks and snapshot.observed_errors:
        found = [str(cuda) for cuda in _stated(snapshot, matrix)]
    cuda = CudaVersion.parse(".".join(found[0].split(".")[:2])) if len(set(found)) == 1 else None
    if environment is None or cuda is None or _brings_its_own(environment, matrix):
        return None
    if not _serves_no_gpu(cuda, snapshot, matrix):
        return None
    code = tuple(str(target) for target in targets_of(matrix, cuda))
    read = {"gpu_code": inferred(_OF_CONDA)}
    return Framework(source=PASTED, name=PROGRAMS, version=str(cuda), cuda=str(cuda), gpu_code=code, read=read)


def infer_default_build(framework: Framework, snapshot: Snapshot, os: Os, matrix: Matrix) -> list[Inference]:
    """The CUDA of PyTorch's default build, where a text states CUDA of its major version, the driver does not run
    that, and the text speaks of a failure.
    """
    version, platform = framework.version or "", snapshot.platform or Platform()
    row = torch_row(matrix, version)
    default = CudaVersion.parse(row.default_cuda if row else None)
    elsewhere = os == "windows" or platform.on_arm or "+" in version or framework.cpu_only
    if row is None or default is None or elsewhere or not snapshot.observed_errors:
        return []
    stated = set(_stated(snapshot, matrix))
    offered = {build.cuda for build in builds(row, os)}
    matches = {cuda.major for cuda in stated} == {default.major} and any(str(cuda) in offered for cuda in stated)
    if not matches or not _is_refused(default, snapshot, os, matrix):
        return []
    return [Inference({"cuda": str(default)}, f"{row.id} as stated")]


def infer_older_build(framework: Framework, snapshot: Snapshot, os: Os, matrix: Matrix) -> list[Inference]:
    """The build of PyTorch that a text about a failure states, where its CUDA is older than every GPU of the text: by
    the release and the CUDA beside it, if there is such a build. Whatever it holds, CUDA's libraries have no code.
    """
    row, platform = torch_row(matrix, framework.version or ""), snapshot.platform or Platform()
    other = platform.tegra or "+" in (framework.version or "") or framework.cpu_only or framework.hip
    if row is None or framework.gpu_code or other or framework.source != PASTED or not snapshot.observed_errors:
        return []
    stated = {each.cuda for each in items_in(snapshot.libraries) if each.stated and each.family == "cuda-toolkit"}
    cuda_text = framework.cuda or (stated.pop() if len(stated) == 1 else None)
    cuda = CudaVersion.parse(cuda_text)
    build = next((each for each in builds(row, os) if each.cuda == cuda_text), None)
    if cuda is None or build is None or not _serves_no_gpu(cuda, snapshot, matrix):
        return []
    code = build.targets or tuple(str(target) for target in targets_of(matrix, cuda))
    return [Inference({"cuda": cuda_text, "gpu_code": code}, f"{row.id} as stated")]


def infer_code_of_older(framework: Framework, snapshot: Snapshot, matrix: Matrix) -> list[Inference]:
    """The most that another framework's build can hold, of a text about a failure, where its CUDA is older than every
    GPU of the text.
    """
    cuda, row, platform = CudaVersion.parse(framework.cuda), matrix.role_of(framework.name), snapshot.platform
    if framework.source != PASTED or framework.gpu_code or (platform and platform.tegra):
        return []
    if cuda is None or row is None or row.role != "framework" or not snapshot.observed_errors:
        return []
    if not _serves_no_gpu(cuda, snapshot, matrix):
        return []
    return [Inference({"gpu_code": tuple(str(target) for target in targets_of(matrix, cuda))}, f"CUDA {cuda}")]


def infer_gpu_build(framework: Framework, snapshot: Snapshot, os: Os, matrix: Matrix) -> list[Inference]:
    """The build for GPUs of a release that a text about a failure names by its project alone (``TensorFlow 1.14``),
    where its CUDA is older than every GPU of the text. The package of the project's own name is built for the CPU.
    """
    known = framework.cuda or framework.hip or framework.cpu_only or framework.gpu_available is False
    if framework.source != PASTED or not framework.read.get("name") or known or not snapshot.observed_errors:
        return []
    version = first_of(framework.version or "")
    own, other = (release_rows(matrix, name, version, os) for name in (framework.name, f"{framework.name}-gpu"))
    cudas = {row.cuda for row in other if row.cuda}
    cuda = CudaVersion.parse(cudas.pop()) if len(cudas) == 1 else None
    if cuda is None or not any(row.cuda == "" for row in own) or not _serves_no_gpu(cuda, snapshot, matrix):
        return []
    code = next((row.targets for row in other if row.targets), ())
    return [Inference({"cuda": str(cuda), "gpu_code": code or None}, other[0].id)]


def _serves_no_gpu(cuda: CudaVersion, snapshot: Snapshot, matrix: Matrix) -> bool:
    """Whether a text names GPUs, and all are newer than a CUDA release knows, or older."""
    capabilities = [ComputeCapability.parse(gpu.compute_capability) for gpu in items_in(snapshot.gpus)]
    return bool(capabilities) and all(
        known is not None and cuda_serves(matrix, known, cuda).bad for known in capabilities
    )


def _stated(snapshot: Snapshot, matrix: Matrix) -> Iterator[CudaVersion]:
    """The CUDA versions of toolkits and images in a text."""
    libraries = (each.cuda for each in items_in(snapshot.libraries) if each.stated and each.family == TOOLKIT)
    toolkits = [each for each in items_in(snapshot.toolkits) if each.source == PASTED]
    for text in (*libraries, *(each.version for each in toolkits)):
        cuda = CudaVersion.parse(text)
        if cuda is not None:
            yield cuda
    for toolkit in toolkits:
        targets = [found.capability for text in toolkit.targets or () if (found := CodeTarget.parse(text))]
        if toolkit.version is None and targets:  # the oldest that compiles for all of them
            fits = (cuda for cuda in matrix.toolkits if all(cuda_targets(matrix, each, cuda).ok for each in targets))
            yield from islice(fits, 1)


def _brings_its_own(environment: Environment, matrix: Matrix) -> bool:
    """Whether something there may have another CUDA than the stated one: its own, or one that is known."""
    for each in frameworks_in(environment):
        row = matrix.role_of(each.name)
        own = row is not None and row.role not in ("library", "compiler")
        if each.cuda or each.cpu_only or each.hip or each.gpu_available:
            return True
        if own and not matrix.has_trait(each.name, "builds-listed"):
            return True
    return any(each.name.startswith("nvidia-") for each in environment.distributions or ())


def _is_refused(cuda: CudaVersion, snapshot: Snapshot, os: Os, matrix: Matrix) -> bool:
    driver = snapshot.driver
    release = DriverRelease.stated(driver.release if driver else None)
    supported = CudaVersion.parse(driver.cuda if driver else None)
    if release is not None:
        return driver_runs_cuda(matrix, release, cuda, os, reported=supported).bad
    return supported is not None and supported.major < cuda.major


def _forward_serves(cuda: CudaVersion, snapshot: Snapshot, matrix: Matrix) -> bool:
    """Whether a package of forward compatibility, which images hold, may stand in for the driver."""
    release = DriverRelease.stated(snapshot.driver.release if snapshot.driver else None)
    told_by = {each.read.get("declared") for each in items_in(snapshot.libraries)}
    rows = matrix.rows_for(_FORWARD, Version((cuda.major, cuda.minor)))
    specs = [spec for row in rows if (spec := row.needs.get("driver-linux"))]
    models = [find_model(gpu.name or "") for gpu in items_in(snapshot.gpus)]
    of_data_centers = bool(models) and all(model and model.kind == "data-center" for model in models)
    if told_by.isdisjoint({OF_IMAGE, OF_FRAMEWORK_IMAGE}) or release is None or not of_data_centers:
        return False
    return any(parse_specifier(spec).cover(Version(tuple(release))) != "none" for spec in specs)
