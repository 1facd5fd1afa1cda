"""What a driver release supports: GPUs, by flavour of its kernel module, and programs, by their CUDA."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from envcheck.knowledge.matrix import Matrix
from envcheck.knowledge.relations.fit import Fit, FitVerdict, conclude
from envcheck.knowledge.specifier import Version, parse_specifier, parse_version
from envcheck.knowledge.tables import Os
from envcheck.knowledge.tables.hardware import ArchitectureRow, CapabilityRow, CudaRow, DriverBranchRow, GpuRow
from envcheck.model.versions import ComputeCapability, CudaVersion, DriverRelease, Flavour


def driver_supports(
    matrix: Matrix,
    gpu: ComputeCapability,
    driver: DriverRelease,
    os: Os = "linux",
    flavour: Flavour | None = None,
    *,
    model: GpuRow | None = None,
) -> Fit:
    """Whether ``driver`` supports a GPU of this compute capability (and ``model``, where it is known).

    ``flavour`` is that of the kernel module; None leaves it out of the question. A driver newer than the data supports
    every generation that no row says was dropped.
    """
    capability = matrix.capability_rows.get(gpu)
    architecture = architecture_of(matrix, gpu)
    if capability is None or architecture is None:
        return conclude(matrix, "unknown", f"the matrix does not know which drivers support {gpu.sm}")
    if capability.tegra:
        reason = f"{gpu.sm} is integrated in a Tegra system, whose driver comes with its system software"
        return conclude(matrix, "unknown", reason, capability)
    named = _named(gpu, architecture)
    dropped = _dropped(matrix, driver, architecture, named) or (model and _dropped(matrix, driver, model, model.name))
    first = capability.first_branch or architecture.first_branch
    if dropped is None and first is not None and driver.branch < first:
        # First branches are Linux's. On Windows a branch has the same name, and its releases are numbered differently.
        reason = f"driver {driver} is older than {named}; R{first} is the first branch that supports it"
        known = os == "linux" or branch_of(matrix, driver, os) is not None
        verdict: FitVerdict = "incompatible" if known else "unknown"
        return conclude(matrix, verdict, reason, capability, architecture, change=f"driver >= {first}")
    on_linux = model if os == "linux" else None
    return (
        dropped
        or _before_the_data(matrix, gpu, driver, os, model)
        or (on_linux and _before_the_model(matrix, driver, on_linux))
        or (on_linux and _before_it_is_added(matrix, driver, on_linux))
        or _wrong_flavour(matrix, gpu, flavour, capability, architecture, model)
        or conclude(matrix, "compatible", f"driver {driver} supports {named}", capability, architecture)
    )


def module_supports(matrix: Matrix, gpu: ComputeCapability, flavour: Flavour, *, model: GpuRow | None = None) -> Fit:
    """Whether a flavour of the kernel module supports a GPU, by a driver release that supports it at all."""
    capability, architecture = matrix.capability_rows.get(gpu), architecture_of(matrix, gpu)
    if capability is None or architecture is None:
        return conclude(matrix, "unknown", f"the matrix does not know which kernel modules support {gpu.sm}")
    wrong = _wrong_flavour(matrix, gpu, flavour, capability, architecture, model)
    if wrong is not None:
        return wrong
    if architecture.kernel_module is None:
        reason = f"the matrix does not know which kernel modules support {_named(gpu, architecture)}"
        return conclude(matrix, "unknown", reason, capability)
    reason = f"the {flavour} kernel module supports {_named(gpu, architecture)}"
    return conclude(matrix, "compatible", reason, capability, architecture)


def architecture_of(matrix: Matrix, gpu: ComputeCapability) -> ArchitectureRow | None:
    name = str(gpu)
    return next((row for row in matrix.architectures if name in row.capabilities), None)


def architecture_name(matrix: Matrix, compute_capability: str | None) -> str:
    """The name of the architecture with a compute capability such as ``9.0``; empty where it is not known."""
    capability = ComputeCapability.parse(compute_capability)
    architecture = architecture_of(matrix, capability) if capability else None
    return architecture.name if architecture else ""


def _dropped(matrix: Matrix, driver: DriverRelease, row: ArchitectureRow | GpuRow, what: str) -> Fit | None:
    last = row.last_branch
    if last is None:
        return None
    # On Windows, releases of a branch have numbers above its name, but below the next branch.
    if driver.branch < min((each.branch for each in matrix.drivers if each.branch > last), default=last + 1):
        return None
    reason = f"driver {driver} has dropped {what}; R{last} is its last branch"
    return conclude(matrix, "incompatible", reason, row, change=f"driver R{last}")


def _before_the_data(
    matrix: Matrix, gpu: ComputeCapability, driver: DriverRelease, os: Os, model: GpuRow | None
) -> Fit | None:
    releases = (model.added_by, *model.first_drivers) if model and os == "linux" else ()
    if any(release.branch == driver.branch for text in releases if (release := DriverRelease.parse(text))):
        return None
    rows = branches(matrix, "linux" if os == "linux" else "windows")
    listed = next((row for row in rows if row.branch == driver.branch and row.capabilities), None)
    if listed and str(gpu) in listed.capabilities:
        return None
    if listed:
        reason = f"driver {driver} supports compute capability {', '.join(listed.capabilities)}; this is {gpu}"
        return conclude(matrix, "incompatible", reason, listed, change=f"driver newer than R{listed.branch}")
    if driver.branch >= min((row.branch for row in rows if row.cuda), default=0):
        return None
    reason = f"driver {driver} is older than the matrix, which does not say whether it supports {gpu.sm}"
    return conclude(matrix, "unknown", reason)


def _before_the_model(matrix: Matrix, driver: DriverRelease, model: GpuRow) -> Fit | None:
    """Releases that know other GPUs of the generation, but not yet this model.

    Branches are kept up side by side: one with a higher number than the first release may still be older.
    """
    firsts = [release for text in model.first_drivers if (release := DriverRelease.parse(text))]
    own = [release for release in firsts if release.branch == driver.branch]
    least = own[0] if own else min(firsts, default=driver)
    if driver >= least:
        return None
    branch = branch_of(matrix, driver)
    reason = f"driver {driver} is older than {model.name}; {firsts[0]} is the first that supports it"
    change = f"driver >= {least}"
    if driver > firsts[0]:
        known = f"the first of R{least.branch} that is known to support {model.name}"
        return conclude(matrix, "unknown", f"driver {driver} is older than {least}, {known}", model, change=change)
    if branch and branch.developer and parse_specifier(branch.developer).cover(Version(tuple(driver))) == "all":
        reason = f"driver {driver} is a release for developers, which may support {model.name} before {least} does"
        return conclude(matrix, "unknown", reason, model, branch, change=change)
    return conclude(matrix, "incompatible", reason, model, change=change)


def _before_it_is_added(matrix: Matrix, driver: DriverRelease, model: GpuRow) -> Fit | None:
    """Releases before the one that adds the model: those of its branch up to the one before it lack it, and of others
    nobody can tell. Nor can anybody of those before the first that lists it.
    """
    listed, added = DriverRelease.parse(model.listed_from), DriverRelease.parse(model.added_by)
    if listed is not None and driver < listed:
        reason = f"the first driver that lists {model.name} is {listed}; whether {driver} supports it is not known"
        return conclude(matrix, "unknown", reason, model, change=f"driver >= {listed}")
    if added is None or driver >= added:
        return None
    lacking = DriverRelease.parse(model.lacked_by)
    if lacking is not None and driver.branch == lacking.branch and driver.minor <= lacking.minor:
        reason = f"driver {driver} is older than {added}, which adds {model.name} to R{added.branch}"
        return conclude(matrix, "incompatible", reason, model, change=f"driver >= {added}")
    reason = f"driver {added} adds {model.name}; whether a release of R{driver.branch} supports it is not known"
    return conclude(matrix, "unknown", reason, model, change=f"driver >= {added}")


def _wrong_flavour(
    matrix: Matrix,
    gpu: ComputeCapability,
    flavour: Flavour | None,
    capability: CapabilityRow,
    architecture: ArchitectureRow,
    model: GpuRow | None,
) -> Fit | None:
    if flavour == "open" and architecture.kernel_module == "proprietary":
        reason = f"the open kernel module does not support {_named(gpu, architecture)}"
        return conclude(matrix, "incompatible", reason, architecture, change="the proprietary kernel module")
    for row, what in ((capability, _named(gpu, architecture)), (model, model.name if model else "")):
        if flavour == "proprietary" and row is not None and row.open_module_only:
            reason = f"only the open kernel module supports {what}"
            return conclude(matrix, "incompatible", reason, row, change="the open kernel module")
    return None


def _named(gpu: ComputeCapability, architecture: ArchitectureRow) -> str:
    return f"{architecture.name.capitalize()} GPUs ({gpu.sm})"


_FIRST_MAJOR_WITH_MINOR_COMPATIBILITY = 11

_WINDOWS_DRIVERS = ("windows", "wsl")


def minor_compatible(cuda: CudaVersion) -> bool:
    """Whether a driver for any minor version of this major runs what was built with ``cuda``."""
    return cuda.major >= _FIRST_MAJOR_WITH_MINOR_COMPATIBILITY


def may_exist(matrix: Matrix, cuda: CudaVersion) -> bool:
    """Whether there is, or may come to be, a toolkit of this version: a tag such as cu999 names none."""
    known = matrix.toolkits
    return cuda in known or (bool(known) and cuda > known[-1] and cuda.major <= known[-1].major + 1)


def neighbouring_toolkits(matrix: Matrix, cuda: CudaVersion) -> tuple[CudaVersion, CudaVersion] | None:
    """The toolkits before and after a version that only drivers report; None for any other version."""
    row = matrix.cuda_rows.get(cuda)
    known = matrix.toolkits
    before, after = [one for one in known if one < cuda], [one for one in known if one > cuda]
    return (before[-1], after[0]) if row and not row.toolkit and before and after else None


class Minimum(msgspec.Struct, frozen=True):
    """The least driver for a CUDA version, and the row that says so."""

    driver: str
    row: CudaRow
    disputed: str | None  # A lower minimum that another document states
    release: bool = False  # Whether it is that of one release of the minor


def driver_runs_cuda(
    matrix: Matrix,
    driver: DriverRelease,
    cuda: CudaVersion,
    os: Os = "linux",
    *,
    reported: CudaVersion | None = None,
    release: Sequence[int] = (),
) -> Fit:
    """Whether ``driver`` runs what was built with ``cuda``.

    From CUDA 11 on the minimum of the major holds (minor-version compatibility), before that the exact version's.
    ``reported`` is the CUDA that the driver itself reported; it decides where the data ends. ``release`` are
    the numbers of the toolkit's release, as in 9.2.148, where more than its minor is known.
    """
    if reported is not None and reported >= cuda:
        return conclude(matrix, "compatible", f"driver {driver} supports CUDA {reported}, as new as CUDA {cuda}")
    least = minimum_driver(matrix, cuda, os, release)
    cuda_told = ".".join(map(str, release)) if least and least.release else str(cuda)
    if least is None:  # minimums only grow: what cannot run the newest known CUDA cannot run one that is newer still
        newest = max(matrix.cuda_rows, default=None)
        last = minimum_driver(matrix, newest, os) if newest and cuda > newest else None
        needed = (DriverRelease.parse(last.disputed) or DriverRelease.parse(last.driver)) if last else None
        if last and needed and driver < needed:
            reason = f"CUDA {newest} already needs driver {last.driver}, CUDA {cuda} no less; this is {driver}"
            return conclude(matrix, "incompatible", reason, last.row, change=f"driver > {last.driver}")
        reason = f"the matrix has no minimum driver of CUDA {cuda} for {os}"
        return conclude(matrix, "unknown", f"{reason}; the CUDA that the driver supports would decide it")
    needed = DriverRelease.parse(least.driver)
    if needed is None or driver >= needed:
        reason = f"CUDA {cuda_told} needs driver {least.driver}, this is {driver}"
        return conclude(matrix, "compatible", reason, least.row)
    disputed = DriverRelease.parse(least.disputed)
    change = f"driver >= {least.driver}"
    if disputed is not None and driver >= disputed:
        reason = f"NVIDIA's documents give both {least.disputed} and {least.driver} as minimum for CUDA {cuda}"
        return conclude(matrix, "unknown", f"{reason}; this is {driver}", least.row, change=change)
    reason = f"CUDA {cuda_told} needs driver {least.driver} or newer, this is {driver}"
    return conclude(matrix, "incompatible", reason, least.row, change=change)


def minimum_driver(matrix: Matrix, cuda: CudaVersion, os: Os = "linux", release: Sequence[int] = ()) -> Minimum | None:
    """The least driver for ``cuda``; a minor newer than the data has its major's; None where the data has none.

    ``release`` are the numbers of its release, where more than the minor is known.
    """
    rows = matrix.cuda_rows
    row = rows.get(cuda)
    newest = max(rows, default=cuda)
    if row is None and cuda > newest and cuda.major == newest.major and minor_compatible(cuda):
        row = rows[newest]
    if row is not None:
        numbers = tuple(release)
        updates = [  # of those that the release is not older than, the newest tells
            update
            for update in row.updates
            if (own := parse_version(update.release)) and len(numbers) >= len(own.numbers) and numbers >= own.numbers
        ]
        if updates and os != "macos":
            least = updates[-1].driver_windows if os in _WINDOWS_DRIVERS else updates[-1].driver_linux
            if least:
                return Minimum(least, row, None, release=True)
        if os in _WINDOWS_DRIVERS and row.driver_windows:
            return Minimum(row.driver_windows, row, row.disputed_windows)
        if os == "linux" and row.driver_linux:
            return Minimum(row.driver_linux, row, row.disputed_linux)
    return None


def newest_cuda_of(matrix: Matrix, driver: DriverRelease, os: Os = "linux") -> CudaVersion | None:
    """The newest CUDA that the driver's own libcuda supports, by its branch: up to it, programs run natively."""
    row = branch_of(matrix, driver, os)
    return CudaVersion.parse(row.cuda) if row else None


def known_cuda_of(matrix: Matrix, driver: DriverRelease, os: Os = "linux") -> CudaVersion | None:
    """The newest CUDA that a driver supports; of one newer than the data, what the newest known branch supports."""
    spoken = newest_cuda_of(matrix, driver, os)
    if spoken is not None:
        return spoken
    rows = [row for row in branches(matrix, os) if row.cuda]
    newest = max(rows, key=lambda row: row.branch, default=None)
    if newest is None or driver.branch <= (newest.until or newest.branch):
        return None
    return CudaVersion.parse(newest.cuda)


def branches(matrix: Matrix, os: Os) -> list[DriverBranchRow]:
    kind = "windows" if os in _WINDOWS_DRIVERS else os
    return [row for row in matrix.drivers if row.os == kind]


def branch_of(matrix: Matrix, driver: DriverRelease, os: Os = "linux") -> DriverBranchRow | None:
    return next((row for row in branches(matrix, os) if row.branch <= driver.branch <= (row.until or row.branch)), None)


def branch_for_cuda(matrix: Matrix, cuda: str, os: Os = "linux") -> DriverBranchRow | None:
    """The only branch whose newest CUDA is this one; None where several have it, or none."""
    found = [row for row in branches(matrix, os) if row.cuda == cuda]
    return found[0] if len(found) == 1 else None
