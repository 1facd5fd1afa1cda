"""PyTorch in a text that finds no CUDA, and must be a build for the CPU: as PyPI has it for the machine."""

from __future__ import annotations

import re

from envcheck.compat.matrix import Matrix
from envcheck.compat.relations.torch import torch_row
from envcheck.enrich.torch import Inference
from envcheck.snapshot import PASTED, Framework, Platform, Snapshot, items_in

FROM_PYPI = "a command installs PyTorch from PyPI and names no release"
"""What the reader of commands says of one without a release or another index."""

_PLAIN = re.compile(r"[0-9]{1,2}\.[0-9]{1,3}(?:\.[0-9]{1,3})?")
"""A version without the label of another build, as in ``2.3.0a0+ebedce2.nv24.02``."""


def infer_pypi_build(framework: Framework, snapshot: Snapshot, matrix: Matrix) -> list[Inference]:
    """That the build is for the CPU, where it is PyPI's, and PyPI has no other for this machine."""
    platform = snapshot.platform or Platform()
    unknown = framework.cuda is None and framework.cpu_only is None and framework.hip is None
    if framework.source != PASTED or not unknown or framework.gpu_available is not False:
        return []
    on_windows = platform.os == "windows" and not platform.wsl
    if framework.version is None:
        told = any(FROM_PYPI in run.detail for run in snapshot.runs)
        return [Inference({"cpu_only": True}, FROM_PYPI)] if told and (platform.tegra or on_windows) else []
    row = torch_row(matrix, framework.version)
    if row is None or not _PLAIN.fullmatch(framework.version) or _came_by_conda(framework, snapshot):
        return []
    on_arm = platform.tegra or platform.machine in ("aarch64", "arm64")
    without = on_windows or (on_arm and row.default_cuda_aarch64 == "")
    return [Inference({"cpu_only": True}, row.id)] if without else []


def _came_by_conda(framework: Framework, snapshot: Snapshot) -> bool:
    listed = [each for found in items_in(snapshot.environments) for each in found.distributions or ()]
    return any(each.channel == "conda" and each.version == framework.version for each in listed)
