"""PyTorch's builds: which there are, and which of them fit a machine."""

from __future__ import annotations

from collections.abc import Sequence

from envcheck.compat.driver_cuda import driver_runs_cuda
from envcheck.compat.gpu_code import read_targets, runs_natively
from envcheck.compat.specifier import parse_version
from envcheck.compat.tables import Machine, Os, Tables, TorchBuild, TorchRow
from envcheck.compat.torch_python import python_runs_torch, torch_row
from envcheck.versions import CodeTarget, ComputeCapability, CudaVersion, DriverRelease


def build_of(
    tables: Tables, version: str, cuda: CudaVersion, os: Os = "linux", machine: Machine = "x86_64"
) -> TorchBuild | None:
    """The build of a release for ``cuda`` on this system."""
    row = torch_row(tables, version)
    return next((build for build in builds(row, os, machine) if build.cuda == str(cuda)), None) if row else None


def builds(row: TorchRow, os: Os = "linux", machine: Machine = "x86_64") -> tuple[TorchBuild, ...]:
    """The CUDA builds of a release for a system, newest CUDA first."""
    kind = "linux" if os == "wsl" else os
    fitting = [build for build in row.builds if (build.os, build.machine) == (kind, machine)]
    return tuple(sorted(fitting, key=lambda build: CudaVersion.parse(build.cuda) or CudaVersion(0, 0), reverse=True))


def targets_of(build: TorchBuild) -> tuple[CodeTarget, ...]:
    """What the build holds GPU code for."""
    return read_targets(build.targets)


def tag_of(cuda: str) -> str:
    """The local tag of a build for ``cuda``: ``cu124``, or ``cpu`` for none."""
    return "cu" + cuda.replace(".", "") if cuda else "cpu"


def builds_that_fit(
    tables: Tables,
    version: str | None,
    gpus: Sequence[ComputeCapability],
    driver: DriverRelease | None,
    os: Os = "linux",
    python: str | None = None,
    machine: Machine = "x86_64",
) -> list[tuple[TorchRow, TorchBuild]]:
    """The builds that the driver runs and that hold native code for every GPU, newest release first, then newest CUDA.

    Only what is known to fit is listed; what would need PTX to be compiled is left out. ``version`` limits it to one
    release, ``python`` to releases with a wheel for it; no ``driver`` leaves the driver out of the question, as no
    ``gpus`` does the GPUs.
    """
    rows = tables.torch if version is None else [row for row in (torch_row(tables, version),) if row]
    newest_first = sorted(rows, key=_age, reverse=True)
    installable = [
        row for row in newest_first if python is None or python_runs_torch(tables, row.version, python, os, machine).ok
    ]
    return [
        (row, build)
        for row in installable
        for build in builds(row, os, machine)
        if _driver_fits(tables, build, driver, os) and _code_fits(tables, build, gpus)
    ]


def _driver_fits(tables: Tables, build: TorchBuild, driver: DriverRelease | None, os: Os) -> bool:
    cuda = CudaVersion.parse(build.cuda)
    if cuda is None:
        return False
    return driver is None or driver_runs_cuda(tables, driver, cuda, os).ok


def _code_fits(tables: Tables, build: TorchBuild, gpus: Sequence[ComputeCapability]) -> bool:
    targets = targets_of(build)
    return all(any(runs_natively(tables, target, gpu) for target in targets) for gpu in gpus)


def _age(row: TorchRow) -> tuple[int, ...]:
    version = parse_version(row.version)
    return version.numbers if version else ()
