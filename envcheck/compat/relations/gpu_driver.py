"""GPU and driver: whether a driver release, and a flavour of its kernel module, supports a GPU."""

from __future__ import annotations

from envcheck.compat.matrix import Matrix
from envcheck.compat.relations.driver_cuda import branch_of
from envcheck.compat.relations.fit import Fit, FitVerdict, conclude
from envcheck.compat.specifier import Version, parse_specifier
from envcheck.compat.tables import ArchitectureRow, CapabilityRow, GpuRow, Os, Row
from envcheck.versions import ComputeCapability, DriverRelease, Flavour


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
    reason = f"driver {driver} supports {_named(gpu, architecture)}"
    return (
        _dropped(matrix, gpu, driver, architecture)
        or _dropped_the_model(matrix, driver, model)
        or _not_yet(matrix, gpu, driver, os, capability, architecture)
        or _before_the_data(matrix, gpu, driver, os, model)
        or _before_the_model(matrix, driver, os, model)
        or _before_it_is_added(matrix, driver, os, model)
        or _wrong_flavour(matrix, gpu, flavour, capability, architecture, model)
        or conclude(matrix, "compatible", reason, capability, architecture)
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


def _dropped(matrix: Matrix, gpu: ComputeCapability, driver: DriverRelease, row: ArchitectureRow) -> Fit | None:
    if row.last_branch is None or driver.branch < _next_branch(matrix, row.last_branch):
        return None
    reason = f"driver {driver} has dropped {_named(gpu, row)}; R{row.last_branch} is its last branch"
    return conclude(matrix, "incompatible", reason, row, change=f"driver R{row.last_branch}")


def _dropped_the_model(matrix: Matrix, driver: DriverRelease, model: GpuRow | None) -> Fit | None:
    if model is None or model.last_branch is None or driver.branch < _next_branch(matrix, model.last_branch):
        return None
    reason = f"driver {driver} has dropped {model.name}; R{model.last_branch} is its last branch"
    return conclude(matrix, "incompatible", reason, model, change=f"driver R{model.last_branch}")


def _next_branch(matrix: Matrix, last: int) -> int:
    """The branch after ``last``: releases of a branch on Windows have numbers above its name, but below this."""
    return min((row.branch for row in matrix.drivers if row.branch > last), default=last + 1)


def _before_the_data(
    matrix: Matrix, gpu: ComputeCapability, driver: DriverRelease, os: Os, model: GpuRow | None
) -> Fit | None:
    kind = "linux" if os == "linux" else "windows"
    releases = (model.added_by, *model.first_drivers) if model and os == "linux" else ()
    if any(release.branch == driver.branch for text in releases if (release := DriverRelease.parse(text))):
        return None
    rows = [row for row in matrix.drivers if row.os == kind]
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


def _not_yet(
    matrix: Matrix,
    gpu: ComputeCapability,
    driver: DriverRelease,
    os: Os,
    capability: CapabilityRow,
    architecture: ArchitectureRow,
) -> Fit | None:
    """First branches are Linux's. On Windows a branch has the same name, and its releases are numbered differently."""
    first = capability.first_branch or architecture.first_branch
    if first is None or driver.branch >= first:
        return None
    reason = f"driver {driver} is older than {_named(gpu, architecture)}; R{first} is the first branch that supports it"
    known = os == "linux" or branch_of(matrix, driver, os) is not None
    verdict: FitVerdict = "incompatible" if known else "unknown"
    return conclude(matrix, verdict, reason, capability, architecture, change=f"driver >= {first}")


def _before_the_model(matrix: Matrix, driver: DriverRelease, os: Os, model: GpuRow | None) -> Fit | None:
    """Releases that know other GPUs of the generation, but not yet this model.

    Branches are kept up side by side: one with a higher number than the first release may still be older.
    """
    firsts = [release for text in (model.first_drivers if model else ()) if (release := DriverRelease.parse(text))]
    own = [release for release in firsts if release.branch == driver.branch]
    least = own[0] if own else min(firsts, default=driver)
    if model is None or os != "linux" or driver >= least:
        return None
    branch = branch_of(matrix, driver, os)
    reason = f"driver {driver} is older than {model.name}; {firsts[0]} is the first that supports it"
    change = f"driver >= {least}"
    if driver > firsts[0]:
        reason = (
            f"driver {driver} is older than {least}, the first of R{least.branch} that is known to support {model.name}"
        )
        return conclude(matrix, "unknown", reason, model, change=change)
    if branch and branch.developer and parse_specifier(branch.developer).cover(Version(tuple(driver))) == "all":
        reason = f"driver {driver} is a release for developers, which may support {model.name} before {least} does"
        return conclude(matrix, "unknown", reason, model, branch, change=change)
    return conclude(matrix, "incompatible", reason, model, change=change)


def _before_it_is_added(matrix: Matrix, driver: DriverRelease, os: Os, model: GpuRow | None) -> Fit | None:
    """Releases before the one that adds the model: those of its branch up to the one before it lack it, and of others
    nobody can tell. Nor can anybody of those before the first that lists it.
    """
    listed = DriverRelease.parse(model.listed_from) if model and os == "linux" else None
    if model is not None and listed is not None and driver < listed:
        reason = f"the first driver that lists {model.name} is {listed}; whether {driver} supports it is not known"
        return conclude(matrix, "unknown", reason, model, change=f"driver >= {listed}")
    added = DriverRelease.parse(model.added_by) if model and os == "linux" else None
    if model is None or added is None or driver >= added:
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
    if flavour == "proprietary" and capability.open_module_only:
        return _needs_open_module(matrix, _named(gpu, architecture), capability)
    if flavour == "proprietary" and model is not None and model.open_module_only:
        return _needs_open_module(matrix, model.name, model)
    return None


def _needs_open_module(matrix: Matrix, what: str, row: Row) -> Fit:
    reason = f"only the open kernel module supports {what}"
    return conclude(matrix, "incompatible", reason, row, change="the open kernel module")


def _named(gpu: ComputeCapability, architecture: ArchitectureRow) -> str:
    return f"{architecture.name.capitalize()} GPUs ({gpu.sm})"
