"""Infer from a pasted text what it does not say itself: builds of frameworks, that no driver is there, and that what is
built with the CUDA of a toolkit, an image or conda does not start.

Only what holds whichever of the possible builds it is gets inferred; an examined machine shows its builds. A record
named ``PROGRAMS`` stands for what is built with a stated CUDA, as no framework is named.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import msgspec

from envcheck.compat.package_needs import release_rows
from envcheck.knowledge.error_lines import lines_with
from envcheck.knowledge.images import image_of
from envcheck.knowledge.matrix import Matrix
from envcheck.knowledge.relations.driver import driver_runs_cuda
from envcheck.knowledge.relations.gpu_code import code_runs_on, cuda_serves, cuda_targets, targets_of
from envcheck.knowledge.relations.libraries import TOOLKIT
from envcheck.knowledge.relations.torch import builds, torch_row
from envcheck.knowledge.specifier import Cover, Version, parse_specifier
from envcheck.knowledge.tables import Machine, Os
from envcheck.knowledge.tables.software import TorchBuild
from envcheck.model.snapshot import (
    OF_FRAMEWORK_IMAGE,
    OF_IMAGE,
    PASTED,
    Distribution,
    Driver,
    Environment,
    Framework,
    Gpu,
    Listing,
    ObservedError,
    Platform,
    Snapshot,
    frameworks_in,
    inferred,
    items_in,
)
from envcheck.model.versions import CodeTarget, ComputeCapability, CondaBuild, CudaVersion, DriverRelease, is_release
from envcheck.text.lazy import lazy_pattern

ARCHIVE = "archive name"  # What tells a version that belongs to one build of a release: not to those of other indexes

_ONE_RELEASE = lazy_pattern(r"==([0-9]{1,2}\.[0-9]{1,3}\.[0-9]{1,3})$")
_BUILD_OF_TORCH = lazy_pattern(r"\+(?:cu[0-9]{2,3}|cpu)$")
_TAG = lazy_pattern(r"(?:\+cu(?:da)?|\.post)(1[0-9]{2})$")
"""The build of a wheel of another index: ``+cu118``, ``+cuda111``, ``.post101``; ``+cuda12.cudnn89`` names no minor
version, ``.post107`` of PaddlePaddle CUDA 10 and cuDNN 7.
"""
_LEAST = lazy_pattern(r"(?:>=|==)([0-9]{1,2}\.[0-9]{1,2})")


class Inference(msgspec.Struct, frozen=True):
    """Values of a framework's fields, and the row (or other knowledge) they come from."""

    values: dict[str, Any]
    why: str


def add_frameworks(environment: Environment, matrix: Matrix, errors: Sequence[ObservedError] = ()) -> Environment:
    """The environment of a text with a record for each listed package that is a framework."""
    if environment.source != PASTED:
        return environment
    environment = _with_provider(environment, matrix, errors)
    listed_as = {listed.name: listed.version for listed in environment.distributions or ()}
    known = tuple(
        msgspec.structs.replace(framework, version=framework.version or listed_as.get(framework.name))
        for framework in frameworks_in(environment)
    )
    names = {framework.name for framework in known}
    # What computes on the GPU by itself. PyTorch has a reader of its own, which its extensions share.
    others = ((each, matrix.role_of(each.name)) for each in environment.distributions or () if each.name not in names)
    told = (each for each, row in others if row and row.role != "compiler" and row.name != "torch")
    found = tuple(Framework(source=each.source, name=each.name, version=each.version, read=each.read) for each in told)
    if not found and not known:
        return environment
    items = tuple(_of_conda(each, environment.distributions or (), matrix) for each in (*known, *found))
    complete = environment.frameworks.complete if environment.frameworks else False
    return msgspec.structs.replace(environment, frameworks=Listing(items=items, complete=complete))


def _of_conda(framework: Framework, distributions: Sequence[Distribution], matrix: Matrix) -> Framework:
    """The framework as its conda package's build string says, unless a package for GPUs may have overwritten it."""
    listed = next((each for each in distributions if each.name == framework.name and each.build), None)
    tried = framework.cuda or framework.cpu_only is not None or framework.hip or framework.gpu_available
    names = [each.name for each in distributions]
    beside = any(name.endswith("-gpu") and framework.name.startswith(name.removesuffix("-gpu")) for name in names)
    if listed is None or listed.channel != "conda" or framework.name == "torch" or tried or beside:
        return framework
    text = listed.build or ""
    build = CondaBuild.parse(text)
    rows = [row for row in matrix.conda_cpu_builds if framework.name in row.names and re.fullmatch(row.builds, text)]
    if build.cuda is not None:
        return msgspec.structs.replace(framework, cuda=str(build.cuda), cpu_only=False, cudnn=build.cudnn)
    return msgspec.structs.replace(framework, cpu_only=True) if build.cpu or rows else framework


def _with_provider(environment: Environment, matrix: Matrix, errors: Sequence[ObservedError]) -> Environment:
    """The environment with the package for GPUs, where a text names the project, and what only that has was tried."""
    listed = environment.distributions or ()
    provider, gpu_build = lines_with("cuda-provider-tried", errors), lines_with("tensorflow-for-gpus", errors)
    created = lines_with("cuda-provider-not-created", errors)
    names = {each.name for each in listed}
    items = []
    for each in listed:
        for_gpus = f"{each.name}-gpu"
        has_provider = matrix.has_trait(for_gpus, "has-cuda-provider")
        tried = provider and has_provider
        if gpu_build and each.read.get("name"):  # a release built for the CPU, which the package for GPUs has too
            own, other = (release_rows(matrix, name, first_of(each.version)) for name in (each.name, for_gpus))
            apart = all(row.cuda == "" for row in own) and all(row.cuda for row in other)
            tried = tried or (bool(own and other) and apart)
        renamed = (each.read.get("name") and tried) or (created and for_gpus not in names and has_provider)
        items.append(msgspec.structs.replace(each, name=for_gpus) if renamed else each)
    return msgspec.structs.replace(environment, distributions=tuple(items) or None)


def add_pinned_torch(environment: Environment, matrix: Matrix) -> Environment:
    """The environment of a text that does not name PyTorch, with the one release that its packages pin."""
    listed = environment.distributions or ()
    frameworks = environment.frameworks or Listing()
    names = (*(each.name for each in listed), *(each.name for each in frameworks.items))
    if environment.source != PASTED or any(matrix.has_trait(name, "distributes-torch") for name in names):
        return environment
    pins: dict[str, str] = {}  # versions with the build that the tag of a release from an index names; and their rows
    for each in listed:
        public, _, local = each.version.partition("+")
        tag = _BUILD_OF_TORCH.search(each.version)
        plain = re.fullmatch(r"[0-9.]{3,12}(?:\.post[0-9])?", public)
        if each.channel != "conda" and plain and (tag or not local):
            rows = [row for row in release_rows(matrix, each.name, public) if "torch" in row.needs]
            pin = _ONE_RELEASE.match(rows[0].needs["torch"]) if len(rows) == 1 else None
            if pin:
                pins[f"{pin[1]}{tag[0] if tag else ''}"] = rows[0].id
    if len(pins) != 1:
        return environment
    ((version, row),) = pins.items()
    torch = Framework(source=PASTED, name="torch", version=version, read={"version": inferred(row)})
    return msgspec.structs.replace(
        environment, frameworks=Listing(items=(*frameworks.items, torch), complete=frameworks.complete)
    )


def infer_release(framework: Framework, snapshot: Snapshot, matrix: Matrix) -> Iterator[Inference]:
    """What every build of this release was built with, by its rows; for Jetsons NVIDIA builds wheels of its own."""
    platform, version = snapshot.platform or Platform(), framework.version
    of_jetson = platform.tegra and "+" not in (version or "")
    if version is None or not is_release(version) or of_jetson or framework.cpu_only or framework.hip:
        return
    rows = release_rows(matrix, framework.name, first_of(version), driver_os(platform), _machine(platform))
    cudas = {row.cuda for row in rows if row.cuda is not None}
    # Whether a release was built for CUDA of several majors under one version, which the plug-in's name may tell
    cuda = cudas.pop() if len(cudas) == 1 and not any("|" in row.needs.get("cuda", "") for row in rows) else None
    extends = "torch" if any("torch" in row.needs for row in rows) else None
    tag = CudaVersion.from_tag(f"cu{found[1]}") if (found := _TAG.search(version)) else None
    own_cuda = None if framework.is_inferred("cuda") else framework.cuda
    if tag in matrix.toolkits and str(tag) != cuda:
        yield Inference({"cuda": str(tag), "extends": extends}, "local version")
    elif cuda and own_cuda in (None, cuda):  # nothing where the build told another CUDA itself
        codes = {row.targets for row in rows if row.targets}
        code = codes.pop() if len(codes) == 1 else None
        yield Inference({"cuda": cuda, "gpu_code": code, "extends": extends}, rows[0].id)
    elif cuda == "" and framework.gpu_available is False and not framework.cuda:
        yield Inference({"cpu_only": True, "extends": extends}, rows[0].id)


def infer_least_cuda(framework: Framework, snapshot: Snapshot, matrix: Matrix) -> Iterator[Inference]:
    """The oldest CUDA that a release works with, where the stated driver does not even run that."""
    driver = DriverRelease.stated(snapshot.driver.release if snapshot.driver else None)
    if framework.cuda or framework.cpu_only or framework.hip or driver is None:
        return
    platform = snapshot.platform or Platform()
    version, os = first_of(framework.version or ""), driver_os(platform)
    rows = release_rows(matrix, framework.name, version, os, _machine(platform))
    needs = [row.needs["cuda"] for row in rows if "cuda" in row.needs]
    bound = _LEAST.match(needs[0]) if len(needs) == 1 and "|" not in needs[0] else None
    least = CudaVersion.parse(bound[1]) if bound else None
    if least is not None and driver_runs_cuda(matrix, driver, least, os).bad:
        yield Inference({"cuda": str(least)}, rows[0].id)


def first_of(version: str) -> str:
    """The first release of a minor version, where people state only that: ``2.3.0`` of ``2.3``."""
    public, plus, local = version.partition("+")
    return f"{public}.0{plus}{local}" if re.fullmatch(r"[0-9]{1,4}\.[0-9]{1,4}", public) else version


def infer_any_build(framework: Framework, snapshot: Snapshot, matrix: Matrix) -> Iterator[Inference]:
    """What holds for every CUDA build of this PyTorch: that none has code for the GPU, or none runs on the driver."""
    row = torch_row(matrix, framework.version or "")
    platform = snapshot.platform or Platform()
    if platform.tegra:  # for Jetsons NVIDIA builds wheels of its own
        return
    os, machine, gpus = driver_os(platform), _machine(platform), items_in(snapshot.gpus)
    if row is None and framework.cuda and _BUILD_OF_TORCH.search(framework.version or ""):
        # A nightly of PyTorch's index, where no release that was built with its CUDA has code for a GPU.
        every = [build for row in matrix.torch for build in builds(row, os, machine) if build.cuda == framework.cuda]
        if code := _lacking_code(every, gpus, matrix):
            yield Inference({"gpu_code": code}, f"every release for CUDA {framework.cuda}")
    unknown = framework.cuda is None and framework.cpu_only is None and framework.hip is None
    own_build = "+" in (framework.version or "")  # its tag names none of the listed builds, or the platform were known
    possible = builds(row, os, machine) if row is not None and row.all_builds and unknown and not own_build else ()
    if row is None or not possible:
        return
    why = f"every build of {row.id}"
    if code := _lacking_code(possible, gpus, matrix):
        yield Inference({"gpu_code": code}, why)
    driver = DriverRelease.stated(snapshot.driver.release if snapshot.driver else None)
    oldest = CudaVersion.parse(possible[-1].cuda)
    if driver and oldest and driver_runs_cuda(matrix, driver, oldest, os).bad:
        yield Inference({"cuda": str(oldest)}, why)


def _lacking_code(possible: Sequence[TorchBuild], gpus: Sequence[Gpu], matrix: Matrix) -> tuple[str, ...]:
    """The code of all builds, where none has any for a GPU, on any driver; Jetsons have builds of their own."""
    known = [found for gpu in gpus if (found := ComputeCapability.parse(gpu.compute_capability))]
    capabilities = [found for found in known if (row := matrix.capability_rows.get(found)) and not row.tegra]
    codes = [
        (CudaVersion.parse(build.cuda), [target for text in build.targets if (target := CodeTarget.parse(text))])
        for build in possible
        if build.targets
    ]
    lacking = codes and any(
        all(code_runs_on(matrix, code, capability, driver_cuda=cuda, built_with=cuda).bad for cuda, code in codes)
        for capability in capabilities
    )
    return tuple(dict.fromkeys(target for build in possible for target in build.targets)) if lacking else ()


def infer_driver(snapshot: Snapshot) -> Driver | None:
    """No driver where Python runs: a CUDA build that finds no CUDA, in a report for which nvidia-smi had no answer."""
    platform = snapshot.platform or Platform()
    pasted = (each for each in items_in(snapshot.environments) if each.source == PASTED)
    frameworks = [framework for environment in pasted for framework in frameworks_in(environment)]
    refused = any(each.gpu_available is False and each.cuda and not each.cpu_only for each in frameworks)
    silent = bool(snapshot.told and snapshot.told.silent_smi)
    if not silent or not refused or snapshot.driver or snapshot.gpus or platform.os == "macos" or snapshot.kernel:
        return None
    return Driver(source=PASTED, installed=False, read={"installed": inferred("from the report")})


def driver_os(platform: Platform | None) -> Os:
    """The system whose driver releases apply: Windows in WSL, Linux when the system is unknown."""
    if platform is None:
        return "linux"
    return "wsl" if platform.wsl else platform.os or "linux"


def _machine(platform: Platform) -> Machine:
    return "aarch64" if platform.on_arm else "x86_64"


PROGRAMS = "CUDA"  # The name of the record that stands for what is built with a stated CUDA

FORWARD = "cuda-compat"

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
    if not stated or not _is_refused(stated[0], snapshot, os, matrix):
        return None
    # A package of forward compatibility, which images hold, may stand in for the driver.
    of_image = {each.read.get("declared") for each in items_in(snapshot.libraries)} & {OF_IMAGE, OF_FRAMEWORK_IMAGE}
    if of_image and not forward_covers(stated[0], snapshot, matrix) <= {"none"}:
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


def infer_default_build(framework: Framework, snapshot: Snapshot, matrix: Matrix) -> Iterator[Inference]:
    """The CUDA of PyTorch's default build, where a text states CUDA of its major version, the driver does not run
    that, and the text speaks of a failure.
    """
    version, platform = framework.version or "", snapshot.platform or Platform()
    row, os = torch_row(matrix, version), driver_os(platform)
    default = CudaVersion.parse(row.default_cuda if row else None)
    elsewhere = os == "windows" or platform.on_arm or "+" in version or framework.cpu_only
    if row is None or default is None or elsewhere or not snapshot.observed_errors:
        return
    stated = set(_stated(snapshot, matrix))
    offered = {build.cuda for build in builds(row, os)}
    matches = {cuda.major for cuda in stated} == {default.major} and any(str(cuda) in offered for cuda in stated)
    if matches and _is_refused(default, snapshot, os, matrix):
        yield Inference({"cuda": str(default)}, f"{row.id} as stated")


def infer_older_build(framework: Framework, snapshot: Snapshot, matrix: Matrix) -> Iterator[Inference]:
    """The build of PyTorch that a text about a failure states, where its CUDA is older than every GPU of the text: by
    the release and the CUDA beside it, if there is such a build. Whatever it holds, CUDA's libraries have no code.
    """
    row, platform = torch_row(matrix, framework.version or ""), snapshot.platform or Platform()
    other = platform.tegra or "+" in (framework.version or "") or framework.cpu_only or framework.hip
    if row is None or framework.gpu_code or other or not snapshot.observed_errors:
        return
    stated = {each.cuda for each in items_in(snapshot.libraries) if each.stated and each.family == "cuda-toolkit"}
    cuda_text = framework.cuda or (stated.pop() if len(stated) == 1 else None)
    cuda = CudaVersion.parse(cuda_text)
    build = next((each for each in builds(row, driver_os(platform)) if each.cuda == cuda_text), None)
    if cuda is not None and build is not None and _serves_no_gpu(cuda, snapshot, matrix):
        code = build.targets or tuple(str(target) for target in targets_of(matrix, cuda))
        yield Inference({"cuda": cuda_text, "gpu_code": code}, f"{row.id} as stated")


def infer_code_of_older(framework: Framework, snapshot: Snapshot, matrix: Matrix) -> Iterator[Inference]:
    """The most that another build can hold, in a text about a failure, where its CUDA is older than every GPU."""
    cuda, row, platform = CudaVersion.parse(framework.cuda), matrix.role_of(framework.name), snapshot.platform
    known = framework.gpu_code or (platform and platform.tegra) or not snapshot.observed_errors
    if cuda is None or row is None or row.role != "framework" or known:
        return
    if _serves_no_gpu(cuda, snapshot, matrix):
        yield Inference({"gpu_code": tuple(str(target) for target in targets_of(matrix, cuda))}, f"CUDA {cuda}")


def infer_gpu_build(framework: Framework, snapshot: Snapshot, matrix: Matrix) -> Iterator[Inference]:
    """The build for GPUs of a release that a text about a failure names by its project alone (``TensorFlow 1.14``),
    where its CUDA is older than every GPU of the text. The package of the project's own name is built for the CPU.
    """
    known = framework.cuda or framework.hip or framework.cpu_only or framework.gpu_available is False
    if not framework.read.get("name") or known or not snapshot.observed_errors:
        return
    version, os = first_of(framework.version or ""), driver_os(snapshot.platform)
    own, other = (release_rows(matrix, name, version, os) for name in (framework.name, f"{framework.name}-gpu"))
    cudas = {row.cuda for row in other if row.cuda}
    cuda = CudaVersion.parse(cudas.pop()) if len(cudas) == 1 else None
    if cuda is not None and any(row.cuda == "" for row in own) and _serves_no_gpu(cuda, snapshot, matrix):
        code = next((row.targets for row in other if row.targets), ())
        yield Inference({"cuda": str(cuda), "gpu_code": code or None}, other[0].id)


OF_TORCH = (infer_any_build, infer_default_build, infer_older_build)
OF_OTHERS = (infer_release, infer_least_cuda, infer_gpu_build, infer_code_of_older)
"""What is inferred of PyTorch, and of other frameworks of a text, in the order in which it is filled in."""


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


def forward_covers(cuda: CudaVersion, snapshot: Snapshot, matrix: Matrix) -> set[Cover]:
    """How far the drivers that a CUDA's package stands in for cover this one; empty unless all are data-center GPUs."""
    release = DriverRelease.stated(snapshot.driver.release if snapshot.driver else None)
    models = [matrix.find_gpu(gpu.name or "") for gpu in items_in(snapshot.gpus)]
    if release is None or not models or not all(model and model.kind == "data-center" for model in models):
        return set()
    specs = [row.needs.get("driver-linux") for row in matrix.rows_for(FORWARD, Version((cuda.major, cuda.minor)))]
    return {parse_specifier(spec).cover(Version(tuple(release))) for spec in specs if spec}


def forward_of_image(snapshot: Snapshot, matrix: Matrix) -> tuple[CudaVersion, str] | None:
    """The CUDA that a planned image's package of forward compatibility supports in the driver's place, for all that is
    installed in it, and the row that says so.
    """
    environment = snapshot.judged_environment
    for name in {each.image for each in environment.planned or () if each.image} if environment else ():
        image = image_of(matrix, name)
        cuda = CudaVersion.parse(".".join(image.holds.get("cuda", "").split(".")[:2])) if image else None
        if image and image.row and image.row.forward and cuda and forward_covers(cuda, snapshot, matrix) == {"all"}:
            return cuda, image.row.id
    return None
