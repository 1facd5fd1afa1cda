"""Infer the build of an installed PyTorch from its version and its origin."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import msgspec
from packaging.version import Version

from envcheck.knowledge.matrix import Matrix
from envcheck.knowledge.relations.torch import build_of, torch_row
from envcheck.knowledge.tables import Machine, Os, TorchRow
from envcheck.model.snapshot import PASTED, Environment, Framework, Platform, Snapshot, items_in
from envcheck.model.versions import CudaVersion

FROM_PYPI = "a command installs PyTorch from PyPI and names no release"
"""What the reader of commands says of one without a release or another index."""

FOR_ARM = "a build that finds no CUDA on a Jetson, for which NVIDIA publishes builds of its own"
"""Why a build of PyTorch of which a text tells no release is taken for one without CUDA."""

_PLAIN = re.compile(r"[0-9]{1,2}\.[0-9]{1,3}(?:\.[0-9]{1,3})?")
"""A version without the label of another build, as in ``2.3.0a0+ebedce2.nv24.02``."""


class Inference(NamedTuple):
    """Values of a framework's fields, and the row (or other knowledge) they come from."""

    values: dict[str, Any]
    why: str


def infer_torch(framework: Framework, environment: Environment, platform: Platform, matrix: Matrix) -> list[Inference]:
    """Everything that can be inferred about this PyTorch, in the order in which it is filled in."""
    local = _from_local_version(framework.version or "")
    row = torch_row(matrix, framework.version or "")
    listed = next((item for item in environment.distributions or () if item.name == "torch"), None)
    channel = listed.channel if listed else None
    # Builds of conda have GPU code that no row describes.
    from_conda = environment.manager == "conda" if channel is None else channel == "conda"
    found = [local] if local else []
    if row is None or from_conda:
        return found
    if local is None and not _platform_is_known(framework) and listed is not None and not listed.editable:
        likely = platform
        if framework.source == PASTED and not (platform.machine or platform.tegra or platform.tegra_release):
            likely = msgspec.structs.replace(platform, machine="x86_64")  # as a text that names none means
        default = _default_wheel(row, likely, planned=environment.planned is not None)
        found += [default] if default else []
    cuda = framework.cuda or next((item.values["cuda"] for item in found if "cuda" in item.values), None)
    # The GPU code of the build, and the pins of the default build.
    parsed = None if platform.os == "macos" else CudaVersion.parse(cuda)
    os: Os = "windows" if platform.os == "windows" else "linux"
    machine: Machine = "aarch64" if platform.on_arm else "x86_64"
    build = build_of(matrix, row.version, parsed, os, machine) if parsed else None
    if build is None:
        return found
    values: dict[str, Any] = {"gpu_code": build.targets or None}
    if (os, machine, build.cuda) == ("linux", "x86_64", row.default_cuda):
        values |= {"cudnn": row.cudnn, "nccl": row.nccl}
    return [*found, Inference(values, row.id)]


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
    """The framework without the CUDA of an index that has no such build for this machine: installers then take from it
    the build for the CPU.
    """
    platform = snapshot.platform or Platform()
    row, cuda = torch_row(matrix, framework.version or ""), CudaVersion.parse(framework.cuda)
    found_none = framework.source == PASTED and framework.gpu_available is False
    if not found_none or row is None or cuda is None or not platform.on_arm or "+" in (framework.version or ""):
        return framework
    if build_of(matrix, row.version, cuda, "linux", "aarch64") is not None or not row.all_builds:
        return framework
    return msgspec.structs.replace(framework, cuda=None, cpu_only=None)


def infer_pypi_build(framework: Framework, snapshot: Snapshot, matrix: Matrix) -> list[Inference]:
    """That a build which finds no CUDA is for the CPU, where it is PyPI's, and PyPI has no other for this machine."""
    platform = snapshot.platform or Platform()
    if framework.source != PASTED or _platform_is_known(framework) or framework.gpu_available is not False:
        return []
    on_windows = platform.os == "windows" and not platform.wsl
    if framework.version is None:
        told = bool(snapshot.told and snapshot.told.torch_of_pypi)
        if platform.tegra and not platform.image_tegra_release:
            return [Inference({"cpu_only": True}, FROM_PYPI if told else FOR_ARM)]
        return [Inference({"cpu_only": True}, FROM_PYPI)] if told and on_windows else []
    row = torch_row(matrix, framework.version)
    listed = [each for found in items_in(snapshot.environments) for each in found.distributions or ()]
    of_conda = any(each.channel == "conda" and each.version == framework.version for each in listed)
    if row is None or not _PLAIN.fullmatch(framework.version) or of_conda:
        return []
    on_arm = platform.tegra or platform.on_arm
    without = on_windows or (on_arm and row.default_cuda_aarch64 == "")
    return [Inference({"cpu_only": True}, row.id)] if without else []
