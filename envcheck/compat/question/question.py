"""A question about compatibility: everything that was named, in the types that the relations take."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from envcheck.compat.gpu_driver import Flavour
from envcheck.compat.question.judgement import Judgement
from envcheck.compat.specifier import Version
from envcheck.compat.tables import GpuRow, Machine, Os, ReleaseRow
from envcheck.versions import ComputeCapability, CudaVersion, DriverRelease

_NO_LIMIT = 10**9


class AskedGpu(NamedTuple):
    """A GPU as it was named, and what is known of it."""

    label: str
    capability: ComputeCapability
    model: GpuRow | None


class BranchHead(DriverRelease):
    """The newest release of a driver branch, whatever its further numbers are."""

    @classmethod
    def of(cls, branch: int) -> BranchHead:
        return cls(branch, _NO_LIMIT, _NO_LIMIT)

    def __str__(self) -> str:
        return f"R{self.branch} (newest)"


class AnyPatch(DriverRelease):
    """The last release of two numbers, whatever its third is: 550.54 stands for 550.54.14 too."""

    @classmethod
    def of(cls, release: DriverRelease) -> AnyPatch:
        return cls(release.branch, release.minor, _NO_LIMIT)

    def __str__(self) -> str:
        return f"{self.branch}.{self.minor:02d}.x"


class Implied(NamedTuple):
    """A component that comes with a named one."""

    by: str
    """Canonical name of the one that was named."""
    label: str
    version: Version
    row: ReleaseRow


class Question(NamedTuple):
    """Everything that was named. A component that stands for several versions has several members, ascending."""

    labels: Mapping[str, str]
    """By canonical name, the component as it was written; in the order of writing."""
    os: Os = "linux"
    machine: Machine = "x86_64"
    drivers: tuple[DriverRelease, ...] = ()
    cuda: tuple[CudaVersion, ...] = ()
    """What software is built with or runs on."""
    nvcc: tuple[CudaVersion, ...] = ()
    """The toolkit that compiles."""
    compat: CudaVersion | None = None
    """The package of forward compatibility."""
    gpus: tuple[AskedGpu, ...] = ()
    flavour: Flavour | None = None
    versions: Mapping[str, tuple[Version, ...]] = MappingProxyType({})
    """Everything that rows of releases may speak of, by canonical name; CUDA and nvcc too."""
    systems: tuple[Implied, ...] = ()
    """The rows of Jetson system software that was named."""
    implied: Mapping[str, Implied] = MappingProxyType({})
    """What comes with what was named, where it is not named itself."""
    torch_cuda: Implied | None = None
    """The CUDA of PyTorch's build, where PyTorch is named and only one is meant."""
    problems: tuple[Judgement, ...] = ()
    """What was named and is not known."""
    assumed: Mapping[str, str] = MappingProxyType({})

    @property
    def windows_driver(self) -> bool:
        """Whether the driver is Windows', with its numbers."""
        return self.os in ("windows", "wsl")
