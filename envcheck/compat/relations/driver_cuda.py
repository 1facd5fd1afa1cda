"""Driver and CUDA: which programs, by the CUDA they were built with, a driver release runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from envcheck.compat.matrix import Matrix
from envcheck.compat.relations.fit import Fit, conclude
from envcheck.compat.specifier import parse_version
from envcheck.compat.tables import CudaRow, DriverBranchRow, Os
from envcheck.versions import CudaVersion, DriverRelease

# The rows of CUDA versions, and which versions stand for each other.

_FIRST_MAJOR_WITH_MINOR_COMPATIBILITY = 11

_WINDOWS_DRIVERS = ("windows", "wsl")


def minor_compatible(cuda: CudaVersion) -> bool:
    """Whether a driver for any minor version of this major runs what was built with ``cuda``."""
    return cuda.major >= _FIRST_MAJOR_WITH_MINOR_COMPATIBILITY


def may_exist(matrix: Matrix, cuda: CudaVersion) -> bool:
    """Whether there is, or may come to be, a toolkit of this version: a tag such as cu999 names none."""
    known = matrix.toolkits
    return cuda in known or (bool(known) and cuda > known[-1] and cuda.major <= known[-1].major + 1)


def around(matrix: Matrix, cuda: CudaVersion) -> tuple[CudaVersion, CudaVersion] | None:
    """The toolkits before and after a version that only drivers report; None for any other version."""
    row = matrix.cuda_rows.get(cuda)
    known = matrix.toolkits
    before, after = [one for one in known if one < cuda], [one for one in known if one > cuda]
    return (before[-1], after[0]) if row and not row.toolkit and before and after else None


class Minimum(NamedTuple):
    """The least driver for a CUDA version, and the row that says so."""

    driver: str
    row: CudaRow
    disputed: str | None
    """A lower minimum that another document states."""
    release: bool = False
    """Whether it is that of one release of the minor."""


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
    if least is None:
        return _beyond_the_data(matrix, driver, cuda, os)
    needed = DriverRelease.parse(least.driver)
    if needed is None or driver >= needed:
        return conclude(
            matrix, "compatible", f"CUDA {cuda_told} needs driver {least.driver}, this is {driver}", least.row
        )
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
        own = _of_release(row, release, os)
        if own:
            return Minimum(own, row, None, release=True)
        if os in _WINDOWS_DRIVERS and row.driver_windows:
            return Minimum(row.driver_windows, row, row.disputed_windows)
        if os == "linux" and row.driver_linux:
            return Minimum(row.driver_linux, row, row.disputed_linux)
    return None


def _of_release(row: CudaRow, release: Sequence[int], os: Os) -> str | None:
    """The minimum of the newest update that a release is not older than."""
    numbers = tuple(release)
    found = [
        update
        for update in row.updates
        if (own := parse_version(update.release)) and len(numbers) >= len(own.numbers) and numbers >= own.numbers
    ]
    if not found or os == "macos":
        return None
    return found[-1].driver_windows if os in _WINDOWS_DRIVERS else found[-1].driver_linux


def newest_cuda_of(matrix: Matrix, driver: DriverRelease, os: Os = "linux") -> CudaVersion | None:
    """The newest CUDA that the driver's own libcuda supports, by its branch: up to it, programs run natively."""
    row = branch_of(matrix, driver, os)
    return CudaVersion.parse(row.cuda) if row else None


def known_cuda_of(matrix: Matrix, driver: DriverRelease, os: Os = "linux") -> CudaVersion | None:
    """The newest CUDA that a driver supports; of one newer than the data, what the newest known branch supports."""
    spoken = newest_cuda_of(matrix, driver, os)
    if spoken is not None:
        return spoken
    kind = "windows" if os in _WINDOWS_DRIVERS else os
    rows = [row for row in matrix.drivers if row.os == kind and row.cuda]
    newest = max(rows, key=lambda row: row.branch, default=None)
    if newest is None or driver.branch <= (newest.until or newest.branch):
        return None
    return CudaVersion.parse(newest.cuda)


def branch_of(matrix: Matrix, driver: DriverRelease, os: Os = "linux") -> DriverBranchRow | None:
    """The row of the driver's branch."""
    kind = "windows" if os in _WINDOWS_DRIVERS else os
    rows = (row for row in matrix.drivers if row.os == kind)
    return next((row for row in rows if row.branch <= driver.branch <= (row.until or row.branch)), None)


def branch_for_cuda(matrix: Matrix, cuda: str, os: Os = "linux") -> DriverBranchRow | None:
    """The only branch whose newest CUDA is this one; None where several have it, or none."""
    kind = "windows" if os in _WINDOWS_DRIVERS else os
    found = [row for row in matrix.drivers if row.os == kind and row.cuda == cuda]
    return found[0] if len(found) == 1 else None


def _beyond_the_data(matrix: Matrix, driver: DriverRelease, cuda: CudaVersion, os: Os) -> Fit:
    """Minimums only grow: a driver below the newest known one cannot run a CUDA that is newer still."""
    newest = max(matrix.cuda_rows, default=None)
    if newest is not None and cuda > newest:
        least = minimum_driver(matrix, newest, os)
        needed = DriverRelease.parse(least.driver) if least else None
        if least and needed and driver < (DriverRelease.parse(least.disputed) or needed):
            reason = f"CUDA {newest} already needs driver {least.driver}, CUDA {cuda} no less; this is {driver}"
            return conclude(matrix, "incompatible", reason, least.row, change=f"driver > {least.driver}")
    reason = (
        f"the matrix has no minimum driver of CUDA {cuda} for {os}; the CUDA that the driver supports would decide it"
    )
    return conclude(matrix, "unknown", reason)
