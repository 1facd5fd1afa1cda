"""Add to a Snapshot what follows from the matrix and from its other facts. An observation is never overwritten.

An added field has ``inferred <row id>`` in its record's ``read``, or ``inferred local version`` where it follows from a
package's version (``2.5.1+cu124``).

The libraries that frameworks load are completed from a trial's memory map and from the copies on disk. A framework may
look where no file says that it does: a variable, another package or its own code may say so. What its process really
held outranks what was inferred, for that framework and that library. The loader's search and the inventory of copies
are read apart and meet here, by the real path of the file.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

import msgspec
from packaging.version import Version

from envcheck.enrich.stated import (
    OF_OTHERS,
    OF_TORCH,
    Inference,
    add_frameworks,
    add_pinned_torch,
    driver_os,
    forward_of_image,
    infer_driver,
    programs_of_stated_cuda,
    programs_older_than_gpus,
)
from envcheck.knowledge.matrix import Matrix
from envcheck.knowledge.relations.driver import architecture_of, branch_of
from envcheck.knowledge.relations.torch import build_of, torch_row
from envcheck.knowledge.tables import Machine, Os
from envcheck.knowledge.tables.software import TorchRow
from envcheck.model.snapshot import (
    PASTED,
    Environment,
    Framework,
    Gpu,
    Library,
    Listing,
    Load,
    Platform,
    Record,
    Snapshot,
    frameworks_in,
    inferred,
    items_in,
)
from envcheck.model.versions import ComputeCapability, CudaVersion, DriverRelease
from envcheck.text.lazy import lazy_pattern

R = TypeVar("R", bound=Record)

_OF_LINUX = lazy_pattern(r"[0-9]{3}\.[0-9]{2,3}\.[0-9]{2}")
"""Releases of the driver for Windows have two numbers, also where nvidia-smi shows them inside WSL."""

FROM_PYPI = "a command installs PyTorch from PyPI and names no release"
"""What the reader of commands says of one without a release or another index."""

FOR_ARM = "a build that finds no CUDA on a Jetson, for which NVIDIA publishes builds of its own"
"""Why a build of PyTorch of which a text tells no release is taken for one without CUDA."""

_PLAIN = lazy_pattern(r"[0-9]{1,2}\.[0-9]{1,3}(?:\.[0-9]{1,3})?")
"""A version without the label of another build, as in ``2.3.0a0+ebedce2.nv24.02``."""

_LEAST = 100  # NVIDIA's releases have three digits before the first dot


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
        cuda, why = forward_of_image(snapshot, matrix) or (None, "")
        newer = cuda is not None and cuda > (CudaVersion.parse(row.cuda) or cuda)
        driver = _add(driver, {"cuda": str(cuda)}, why) if newer else _add(driver, {"cuda": row.cuda}, row.id)
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
    Jetson), a driver as only Linux numbers it, or a kernel as only one distribution, and what is made of it, has.
    """
    platform, driver = snapshot.platform or Platform(source=PASTED), snapshot.driver
    kernel, gpus = platform.kernel_release if platform.source == PASTED else None, items_in(snapshot.gpus)
    if kernel and platform.distribution is None and not platform.distribution_like:
        of_kernel = [row for row in matrix.distributions if row.kernels and re.search(row.kernels, kernel)]
        read = {**platform.read, "distribution_like": inferred(of_kernel[0].id)} if of_kernel else platform.read
        like = tuple(row.name for row in of_kernel[:1])
        platform = msgspec.structs.replace(platform, distribution_like=like, read=read)
    models = [matrix.model_of(gpu) for gpu in gpus if gpu.source == PASTED]
    if gpus and len(models) == len(gpus) and all(model and model.superchip for model in models):
        return _add(platform, {"os": "linux", "machine": "aarch64", "tegra_release": ""}, f"{gpus[0].name}")
    of_linux = driver is not None and driver.source == PASTED and _OF_LINUX.fullmatch(driver.release or "")
    whole = _add(platform, {"os": "linux"}, "the driver") if of_linux and not platform.wsl else platform
    return whole if snapshot.platform or whole.os else None


def _gpu(gpu: Gpu, matrix: Matrix) -> Gpu:
    model = matrix.model_of(gpu)
    if model is not None:
        gpu = _add(gpu, {"name": model.name, "compute_capability": model.compute_capability}, model.id)
    capability = ComputeCapability.parse(gpu.compute_capability)
    architecture = architecture_of(matrix, capability) if capability else None
    return _add(gpu, {"architecture": architecture.name}, architecture.id) if architecture else gpu


def _framework(framework: Framework, environment: Environment, matrix: Matrix, machine: Snapshot) -> Framework:
    is_torch = framework.name == "torch"
    if is_torch:
        framework = without_foreign_build(framework, machine, matrix)
        framework = _filled(framework, infer_pypi_build(framework, machine, matrix))
    if framework.version is None:
        return framework
    if is_torch:
        framework = _filled(framework, infer_torch(framework, environment, machine.platform or Platform(), matrix))
    for infer in () if framework.source != PASTED else OF_TORCH if is_torch else OF_OTHERS:
        framework = _filled(framework, infer(framework, machine, matrix))
    return framework


def _filled(framework: Framework, inferences: Iterable[Inference]) -> Framework:
    for inference in inferences:
        framework = _add(framework, inference.values, inference.why)
    return framework


def infer_torch(
    framework: Framework, environment: Environment, platform: Platform, matrix: Matrix
) -> Iterator[Inference]:
    """Everything that can be inferred about this PyTorch, in the order in which it is filled in."""
    found = _from_local_version(framework.version or "")
    listed = next((item for item in environment.distributions or () if item.name == "torch"), None)
    channel = listed.channel if listed else None
    # Builds of conda have GPU code that no row describes.
    from_conda = environment.manager == "conda" if channel is None else channel == "conda"
    row = None if from_conda else torch_row(matrix, framework.version or "")
    if row and found is None and not _platform_is_known(framework) and listed is not None and not listed.editable:
        likely = platform
        if framework.source == PASTED and not (platform.machine or platform.tegra or platform.tegra_release):
            likely = msgspec.structs.replace(platform, machine="x86_64")  # as a text that names none means
        found = _default_wheel(row, likely, planned=environment.planned is not None)
    if found:
        yield found
    cuda = framework.cuda or (found.values.get("cuda") if found else None)
    # The GPU code of the build, and the pins of the default build.
    parsed = None if platform.os == "macos" else CudaVersion.parse(cuda)
    os: Os = "windows" if platform.os == "windows" else "linux"
    machine: Machine = "aarch64" if platform.on_arm else "x86_64"
    build = build_of(matrix, row.version, parsed, os, machine) if row and parsed else None
    if row is None or build is None:
        return
    values: dict[str, Any] = {"gpu_code": build.targets or None}
    if (os, machine, build.cuda) == ("linux", "x86_64", row.default_cuda):
        values |= {"cudnn": row.cudnn, "nccl": row.nccl}
    yield Inference(values, row.id)


def _from_local_version(version: str) -> Inference | None:
    """The local tags ``+cu124``, ``+cpu`` and ``+rocm6.2`` name the platform of a build."""
    try:
        local = Version(version).local or ""
    except ValueError:  # no version, or one of more digits than Python reads
        return None
    why = "local version"
    if local == "cpu":
        return Inference({"cpu_only": True}, why)
    if local.startswith("rocm"):
        return Inference({"hip": local.removeprefix("rocm") or None, "cpu_only": False}, why)
    cuda = CudaVersion.from_tag(local) if local.startswith("cu") else None
    return Inference({"cuda": str(cuda), "cpu_only": False}, why) if cuda else None


def _platform_is_known(framework: Framework) -> bool:
    """Whether the platform of the build is already known."""
    return framework.cuda is not None or framework.hip is not None or framework.cpu_only is not None


def _default_wheel(row: TorchRow, platform: Platform, *, planned: bool) -> Inference | None:
    """The contents of the PyPI wheel for this system; nothing where the system is unknown."""
    if platform.os == "windows":
        return Inference({"cpu_only": True}, row.id)
    if platform.os != "linux":
        return None
    if platform.machine == "x86_64" and row.default_cuda:
        return Inference({"cuda": row.default_cuda, "cpu_only": False}, row.id)
    # Installed wheels made for Jetson have plain versions too; of a plan the index is known.
    known = planned or platform.tegra_release == ""
    if platform.machine == "aarch64" and known and row.default_cuda_aarch64 is not None:
        cuda = row.default_cuda_aarch64
        return Inference({"cuda": cuda, "cpu_only": False} if cuda else {"cpu_only": True}, row.id)
    return None


def without_foreign_build(framework: Framework, snapshot: Snapshot, matrix: Matrix) -> Framework:
    """The framework without the CUDA of an index that lacks this build for the machine: installers take the CPU's."""
    platform = snapshot.platform or Platform()
    row, cuda = torch_row(matrix, framework.version or ""), CudaVersion.parse(framework.cuda)
    found_none = framework.source == PASTED and framework.gpu_available is False
    if not found_none or row is None or cuda is None or not platform.on_arm or "+" in (framework.version or ""):
        return framework
    if build_of(matrix, row.version, cuda, "linux", "aarch64") is not None or not row.all_builds:
        return framework
    return msgspec.structs.replace(framework, cuda=None, cpu_only=None)


def infer_pypi_build(framework: Framework, snapshot: Snapshot, matrix: Matrix) -> Iterator[Inference]:
    """That a build which finds no CUDA is for the CPU, where it is PyPI's, and PyPI has no other for this machine."""
    platform = snapshot.platform or Platform()
    if framework.source != PASTED or _platform_is_known(framework) or framework.gpu_available is not False:
        return
    on_windows = platform.os == "windows" and not platform.wsl
    if framework.version is None:
        of_pypi = bool(snapshot.told and snapshot.told.torch_of_pypi)
        if platform.tegra and not platform.image_tegra_release:
            yield Inference({"cpu_only": True}, FROM_PYPI if of_pypi else FOR_ARM)
        elif of_pypi and on_windows:
            yield Inference({"cpu_only": True}, FROM_PYPI)
        return
    row = torch_row(matrix, framework.version)
    listed = [each for found in items_in(snapshot.environments) for each in found.distributions or ()]
    of_conda = any(each.channel == "conda" and each.version == framework.version for each in listed)
    if row is None or not _PLAIN.fullmatch(framework.version) or of_conda:
        return
    if on_windows or ((platform.tegra or platform.on_arm) and row.default_cuda_aarch64 == ""):
        yield Inference({"cpu_only": True}, row.id)


def _add(record: R, values: dict[str, Any], why: str) -> R:
    """Fill the fields of ``record`` that were not observed."""
    refused = getattr(record, "not_supported", ())
    known = ((name, value) for name, value in values.items() if value is not None and name not in refused)
    new = {name: value for name, value in known if getattr(record, name) is None}
    if not new:
        return record
    read = {**record.read, **dict.fromkeys(new, inferred(why))}
    return msgspec.structs.replace(record, **new, read=read)


def _listing(listing: Listing[Any], items: list[Any]) -> Listing[Any]:
    return msgspec.structs.replace(listing, items=tuple(items))


MEMORY_MAP = "memory map"  # The source of a path that comes from a process's memory map and was not predicted

_MOST = 16  # Most copies elsewhere that are listed for a library that is not found


def observed_loads(snapshot: Snapshot) -> Snapshot:
    """The Snapshot with the paths of loads that were not found but were loaded in a trial."""

    def complete(framework: Framework, environment: Environment) -> Framework:
        found = frameworks_in(environment)
        maps = {item.name: item.trial.libraries for item in found if item.trial and item.trial.libraries}
        # A plug-in is in the process of its framework.
        base = framework.extends if framework.name.startswith(f"{framework.extends}-cuda") else None
        loads = []
        for load in framework.loads or ():
            # libcudnn.so.9.1.0 stands for the requested libcudnn.so.9.
            libraries = () if load.path is not None else maps.get(framework.name) or maps.get(base or "", ())
            fits = (each for each in libraries if f"{each.path.rpartition('/')[2]}.".startswith(f"{load.name}."))
            library = next(fits, None)
            if library is not None:
                read = {**load.read, "path": MEMORY_MAP, "version": MEMORY_MAP}
                load = msgspec.structs.replace(  # noqa: PLW2901
                    load, path=library.path, version=library.version, unfound=(), read=read
                )
            loads.append(load)
        return _with_loads(framework, loads)

    found = with_frameworks(snapshot, complete)
    return snapshot if found == snapshot else found


def with_frameworks(snapshot: Snapshot, change: Callable[[Framework, Environment], Framework]) -> Snapshot:
    """The Snapshot with every framework as ``change`` makes it."""
    if snapshot.environments is None:
        return snapshot
    environments = []
    for item in snapshot.environments.items:
        listing = item.frameworks
        if listing is not None:
            listing = msgspec.structs.replace(listing, items=tuple(change(each, item) for each in listing.items))
        environments.append(msgspec.structs.replace(item, frameworks=listing))
    listed = msgspec.structs.replace(snapshot.environments, items=tuple(environments))
    return msgspec.structs.replace(snapshot, environments=listed)


def _with_loads(framework: Framework, loads: list[Load]) -> Framework:
    return msgspec.structs.replace(framework, loads=tuple(loads)) if framework.loads else framework


def join_loads(snapshot: Snapshot) -> Snapshot:
    """The Snapshot with ``Load.owner``, ``Load.version`` and ``Load.unfound`` filled in where they are unknown."""
    if not snapshot.libraries or not snapshot.libraries.items:
        return snapshot
    copies = _Copies(snapshot.libraries.items)
    return with_frameworks(
        snapshot,
        lambda framework, environment: _with_loads(
            framework, [_load(load, copies, environment.key) for load in framework.loads or ()]
        ),
    )


def version_of(library: Library) -> str | None:
    """The file's version, by its call or its data, extended to its package's version where that begins with it."""
    own = library.loaded or library.on_disk
    if own is None:
        return None if library.altered else library.declared
    stated = library.declared
    return stated if stated and (stated == own or stated.startswith(f"{own}.")) else own


class _Copies:
    """The copies by path and by the names under which they are requested."""

    def __init__(self, libraries: Iterable[Library]) -> None:
        self.by_path: dict[str, Library] = {}
        self.by_name: dict[str, dict[str, None]] = {}
        for library in libraries:
            self.by_path[library.path] = library
            kept = f"/{library.soname}" in library.path  # A copy that a wheel renamed is not found by the soname in it.
            paths = () if library.stub else (library.soname or "" if kept else "", library.path, *library.names)
            for name in {path.rpartition("/")[2] for path in paths}:
                self.by_name.setdefault(name, {})[library.path] = None

    def named(self, name: str, key: str) -> tuple[str, ...]:
        """Paths of the copies with a name, those in the environment ``key`` first."""
        paths = self.by_name.get(name, ())
        return tuple(sorted(paths, key=lambda path: (self.by_path[path].environment != key, path)))[:_MOST]


def _load(load: Load, copies: _Copies, key: str) -> Load:
    if load.path is None:
        return msgspec.structs.replace(load, unfound=load.unfound or copies.named(load.name, key))
    library = copies.by_path.get(load.path)
    if library is None:
        return load
    new: dict[str, str] = {}
    read = dict(load.read)
    if library.owner is not None and load.owner is None:
        new["owner"], read["owner"] = library.owner, library.source_of("owner")
    version = version_of(library)
    if version and (load.version is None or version.startswith(f"{load.version}.")):  # the load's may be shorter
        field = next((name for name in ("loaded", "on_disk", "declared") if getattr(library, name) == version), None)
        new["version"], read["version"] = version, library.source_of(field) if field else library.source
    return msgspec.structs.replace(load, **new, read=read) if new else load
