"""PyTorch's releases: which Pythons have wheels, which builds there are, and which of them fit a machine."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cache

from envcheck.knowledge.matrix import Matrix
from envcheck.knowledge.relations.driver import driver_runs_cuda
from envcheck.knowledge.relations.fit import Fit, conclude
from envcheck.knowledge.relations.gpu_code import read_targets, runs_natively
from envcheck.knowledge.specifier import Version, covered, numbers_in, parse_version
from envcheck.knowledge.tables import Machine, Os
from envcheck.knowledge.tables.software import TorchBuild, TorchRow, TorchSymbolRow
from envcheck.model.versions import ComputeCapability, CudaVersion, DriverRelease
from envcheck.text.lazy import lazy_pattern

MINORS = 40  # Minor versions of Python 3 that are asked for: more than there will be for long
_TORCH_OF_LABEL = lazy_pattern(r"(?:^|[^a-z])(pt|torch)([1-9])(?:\.(\d{1,2})(?!\d)|(\d{1,3})(?![\d.]))")
_CUDA_OF_LABEL = lazy_pattern(r"(?:^|[^a-z])(cu\d{2,3})(?!\d)")


def torch_row(matrix: Matrix, version: str) -> TorchRow | None:
    """The row of a release; a local version (``2.5.1+cu124``) does not matter. A pre-release or nightly has none."""
    parsed = parse_version(version)
    if parsed is None or parsed.pre or parsed.post is not None:
        return None
    wanted = ".".join(str(part) for part in (*parsed.numbers, 0, 0)[:3])
    return next((row for row in matrix.torch if row.version == wanted), None)


def torch_of_label(label: str) -> str | None:
    """The minor release of PyTorch that the local tag of a package built on it names.

    That is 2.6 of ``cu12torch2.6cxx11abiFALSE``, ``pt2.6.0cu126`` and ``torch260cu126``, and 2.10 of ``pt210cu128``.
    """
    if found := _TORCH_OF_LABEL.search(label):
        word, major, minor, digits = found.groups()
        if digits:  # Behind ``torch``, the last of several is that of the patch
            minor = digits[:-1] if word == "torch" and len(digits) > 1 else digits[:2]
        return f"{major}.{minor}"
    return None


def cuda_of_label(label: str) -> CudaVersion | None:
    """The CUDA of ``cu128``, also beside what else a build is for: ``cu128.torch2.9.0``, ``pt25cu124``."""
    found = _CUDA_OF_LABEL.search(label)
    return CudaVersion.from_tag(found[1]) if found else None


def python_runs_torch(
    matrix: Matrix, torch_version: str, python: str, os: Os = "linux", machine: Machine = "x86_64"
) -> Fit:
    """Whether there is a wheel of this release for ``python`` (``3.12`` or ``3.12.4``) on this system."""
    row, asked = torch_row(matrix, torch_version), parse_version(python)
    spec = pythons_with_wheels(matrix, row, os, machine) if row else ""
    minors = minors_within(spec)
    if row is None or asked is None or len(asked.numbers) < 2 or not minors:
        reason = f"the matrix does not know which Pythons torch {torch_version} has wheels for"
        return conclude(matrix, "unknown", reason, row)
    oldest, newest = minors[0], minors[-1]
    span = f"torch {row.version} has wheels for CPython {oldest} to {newest}"
    if covered(spec, Version(asked.numbers[:2])) != "none":
        return conclude(matrix, "compatible", span, row)
    change = f"Python {newest if asked.numbers > numbers_in(newest) else oldest}"
    return conclude(matrix, "incompatible", f"{span}, not for {python}", row, change=change)


def pythons_with_wheels(matrix: Matrix, row: TorchRow, os: Os = "linux", machine: Machine = "x86_64") -> str:
    """The Pythons with a wheel of a release for this system, as a specifier; empty where they are not known.

    Where PyPI has none for the system, PyTorch's own index may, for the same Pythons as for Linux.
    """
    version, own = parse_version(row.version), f"{'linux' if os == 'wsl' else os}-{machine}"
    wheels = [
        each for each in matrix.wheels_by_name.get("torch", ()) if version and covered(each.versions, version) == "all"
    ]
    for system in (own, "linux-x86_64"):
        if found := [spec for each in wheels for where, spec in each.pythons.items() if where == system]:
            return "|".join(found)
    return row.pythons


@cache
def minors_within(spec: str) -> tuple[str, ...]:
    """The minor versions of Python 3 that a specifier admits, ascending."""
    every = [Version((3, minor)) for minor in range(MINORS)] if spec else []
    return tuple(str(each) for each in every if covered(spec, each) != "none")


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
        and all(any(runs_natively(matrix, target, gpu) for target in read_targets(build.targets)) for gpu in gpus)
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
