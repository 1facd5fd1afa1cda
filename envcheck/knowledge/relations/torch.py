"""PyTorch's releases: which Pythons have wheels, which builds there are, and which of them fit a machine."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from envcheck.knowledge.matrix import Matrix
from envcheck.knowledge.relations.driver import driver_runs_cuda
from envcheck.knowledge.relations.fit import Fit, conclude
from envcheck.knowledge.relations.gpu_code import read_targets, runs_natively
from envcheck.knowledge.specifier import numbers_in, parse_version
from envcheck.knowledge.tables import Machine, Os, TorchBuild, TorchRow, TorchSymbolRow
from envcheck.model.versions import CodeTarget, ComputeCapability, CudaVersion, DriverRelease


def torch_row(matrix: Matrix, version: str) -> TorchRow | None:
    """The row of a release; a local version (``2.5.1+cu124``) does not matter. A pre-release or nightly has none."""
    parsed = parse_version(version)
    if parsed is None or parsed.pre or parsed.post is not None:
        return None
    wanted = ".".join(str(part) for part in (*parsed.numbers, 0, 0)[:3])
    return next((row for row in matrix.torch if row.version == wanted), None)


def python_runs_torch(
    matrix: Matrix, torch_version: str, python: str, os: Os = "linux", machine: Machine = "x86_64"
) -> Fit:
    """Whether PyPI has a wheel of this release for ``python`` (``3.12`` or ``3.12.4``) on this system."""
    row = torch_row(matrix, torch_version)
    asked, low = _minor(python), _minor(row.python_min) if row else None
    newest = newest_python(row, os, machine) if row else None
    high = _minor(newest)
    if row is None or asked is None or low is None or high is None:
        reason = f"the matrix does not know which Pythons torch {torch_version} has wheels for"
        return conclude(matrix, "unknown", reason, row)
    span = f"torch {row.version} has wheels for CPython {row.python_min} to {newest}"
    if low <= asked <= high or ".".join(map(str, asked)) in row.python_also:
        return conclude(matrix, "compatible", span, row)
    change = f"Python {newest}" if asked > high else f"Python {row.python_min}"
    return conclude(matrix, "incompatible", f"{span}, not for {python}", row, change=change)


def newest_python(row: TorchRow, os: Os, machine: Machine) -> str | None:
    if os == "windows":
        return row.python_max_windows or row.python_max
    if machine == "aarch64":
        return row.python_max_aarch64 or row.python_max
    return row.python_max


def _minor(python: str | None) -> tuple[int, ...] | None:
    parsed = parse_version(python or "")
    return parsed.numbers[:2] if parsed and len(parsed.numbers) > 1 else None


def build_of(
    matrix: Matrix, version: str, cuda: CudaVersion, os: Os = "linux", machine: Machine = "x86_64"
) -> TorchBuild | None:
    row = torch_row(matrix, version)
    return next((build for build in builds(row, os, machine) if build.cuda == str(cuda)), None) if row else None


def builds(row: TorchRow, os: Os = "linux", machine: Machine = "x86_64") -> tuple[TorchBuild, ...]:
    """The CUDA builds of a release for a system, newest CUDA first."""
    kind = "linux" if os == "wsl" else os
    fitting = [build for build in row.builds if (build.os, build.machine) == (kind, machine)]
    return tuple(sorted(fitting, key=lambda build: CudaVersion.parse(build.cuda) or CudaVersion(0, 0), reverse=True))


def targets_of(build: TorchBuild) -> tuple[CodeTarget, ...]:
    return read_targets(build.targets)


def tag_of(cuda: str) -> str:
    """The local tag of a build for ``cuda``: ``cu124``, or ``cpu`` for none."""
    return "cu" + cuda.replace(".", "") if cuda else "cpu"


def builds_that_fit(
    matrix: Matrix,
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
    rows = matrix.torch if version is None else [row for row in (torch_row(matrix, version),) if row]
    newest_first = sorted(rows, key=lambda row: numbers_in(row.version), reverse=True)
    installable = [
        row for row in newest_first if python is None or python_runs_torch(matrix, row.version, python, os, machine).ok
    ]
    return [
        (row, build)
        for row in installable
        for build in builds(row, os, machine)
        if (cuda := CudaVersion.parse(build.cuda))
        and (driver is None or driver_runs_cuda(matrix, driver, cuda, os).ok)
        and all(any(runs_natively(matrix, target, gpu) for target in targets_of(build)) for gpu in gpus)
    ]


def compiled_for(matrix: Matrix, symbols: Collection[str]) -> tuple[str, tuple[TorchSymbolRow, ...]]:
    """For which releases something with these symbols was compiled, in words, and the rows that agree on it."""
    rows = tuple(row for row in matrix.torch_symbols if not set(row.names).isdisjoint(symbols))
    first = max((row.first for row in rows if row.first), key=numbers_in, default="")
    last = min((row.last for row in rows if row.last), key=numbers_in, default="")
    if not rows or (first and last and numbers_in(first) > numbers_in(last)):
        return "", ()
    if first and last:
        return f"torch {first}" if first == last else f"torch {first} to {last}", rows
    return f"torch {first} or newer" if first else f"torch {last} or older", rows
