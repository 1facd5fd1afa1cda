"""Toolkits, libraries, Python environments and variables."""

from __future__ import annotations

from typing import Literal

from envcheck.snapshot.base import Identified, Listing, Record


class Toolkit(Identified, frozen=True, kw_only=True, omit_defaults=True):
    """A CUDA toolkit on disk."""

    path: str
    """Real path of its folder."""
    version: str | None = None
    nvcc: str | None = None
    on_path: bool | None = None
    cuda_home: bool | None = None
    """Whether CUDA_HOME or CUDA_PATH names it."""
    origin: Literal["system", "conda", "wheel"] | None = None
    aliases: tuple[str, ...] = ()
    """Links that lead to it, such as ``/usr/local/cuda``."""

    def identities(self) -> tuple[str, ...]:
        return (self.path,)


class Library(Identified, frozen=True, kw_only=True, omit_defaults=True):
    """A copy of a CUDA library on disk."""

    path: str
    family: str
    """``cudart``, ``cublas``, ``cudnn``, ``nccl`` …"""
    soname: str | None = None
    declared: str | None = None
    """Version by the metadata of the package that owns the file."""
    on_disk: str | None = None
    """Version that the file itself says."""
    loaded: str | None = None
    """Version seen in the memory of a process after a real call."""
    owner: str | None = None
    gpu_code: tuple[str, ...] | None = None

    def identities(self) -> tuple[str, ...]:
        return (self.path,)


class Distribution(Record, frozen=True, kw_only=True, omit_defaults=True):
    """An installed Python distribution (or conda package), by its metadata."""

    name: str
    """Normalised."""
    version: str
    path: str | None = None
    build: str | None = None
    """Build string of a conda package."""
    channel: Literal["pip", "conda"] | None = None
    installer: str | None = None
    requires: tuple[str, ...] | None = None
    """``Requires-Dist``, kept for frameworks."""
    editable: bool | None = None


class Framework(Identified, frozen=True, kw_only=True, omit_defaults=True):
    """A framework in one environment, as its files describe it (and, after a deep probe, as it behaved)."""

    name: str
    """Name of the distribution: ``torch``."""
    version: str | None = None
    path: str | None = None
    cuda: str | None = None
    """CUDA version that it was built with."""
    cpu_only: bool | None = None
    """Whether it was built without any GPU support."""
    hip: str | None = None
    """ROCm version that it was built with."""
    cudnn: str | None = None
    nccl: str | None = None
    gpu_code: tuple[str, ...] | None = None
    """What it holds GPU code for, as targets: ``sm_90``, ``sm_90a``, ``compute_120``."""
    gpu_available: bool | None = None
    """Whether it said, when asked, that it can use a GPU."""
    requires: tuple[str, ...] = ()
    """The nvidia-* distributions it declares, as requirement lines."""
    problem: str | None = None
    """Why its files could not be read."""

    def identities(self) -> tuple[str, ...]:
        return (self.name,)


class Environment(Identified, frozen=True, kw_only=True, omit_defaults=True):
    """A Python environment, examined as files: nothing of it was started."""

    key: str
    """Prefix, or the path asked for when there is no prefix."""
    why: str | None = None
    """Why it was examined: ``--python``, ``VIRTUAL_ENV``, ``CONDA_PREFIX``, ``./.venv``, ``PATH``, ``envcheck``."""
    judged: bool | None = None
    """Whether the verdict is about it; others are only named."""
    executable: str | None = None
    python: str | None = None
    """Version, as far as the files tell."""
    implementation: str | None = None
    prefix: str | None = None
    base_prefix: str | None = None
    manager: Literal["venv", "uv", "virtualenv", "conda", "pyenv", "system", "other"] | None = None
    externally_managed: bool | None = None
    """PEP 668: the system forbids pip to install into it."""
    site_packages: tuple[str, ...] = ()
    distributions: tuple[Distribution, ...] | None = None
    distributions_complete: bool = False
    frameworks: Listing[Framework] | None = None
    problem: str | None = None
    """Why it cannot be examined, or cannot run: ``its base interpreter /usr/bin/python3.9 is gone``."""

    def identities(self) -> tuple[str, ...]:
        return (self.key,)


class Variables(Record, frozen=True, kw_only=True, omit_defaults=True):
    """The environment variables that matter here; one that is not in a complete list is not set."""

    values: dict[str, str] = {}
    complete: bool = False
