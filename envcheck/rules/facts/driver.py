"""The driver's release, the newest CUDA version that it supports, and which builds it runs."""

from __future__ import annotations

from envcheck.compat.relations.driver import driver_runs_cuda, minimum_driver, newest_cuda_of
from envcheck.rules.api import Facts
from envcheck.snapshot import DriverLibrary, Snapshot, frameworks_in
from envcheck.versions import CudaVersion, DriverRelease


def release_text(facts: Facts) -> str | None:
    """The driver's release: the running one, else the kernel module's, else that of the libraries on disk."""
    return release_in(facts.snapshot)


def release_in(snapshot: Snapshot) -> str | None:
    """The driver's release in a Snapshot. Of the libraries on disk, libcuda decides: programs load it."""
    driver, kernel = snapshot.driver, snapshot.kernel
    if driver and driver.release:
        return driver.release
    if kernel and kernel.nvidia and kernel.nvidia.version:
        return kernel.nvidia.version
    library = library_on_disk(snapshot)
    return library.version if library else None


def library_on_disk(snapshot: Snapshot) -> DriverLibrary | None:
    """A driver library with a known release, preferably libcuda."""
    driver = snapshot.driver
    libraries = driver.libraries.items if driver and driver.libraries else ()
    known = [library for library in libraries if library.kind == "driver" and library.version and not library.refused]
    return next((library for library in known if "/libcuda.so" in library.path), known[0] if known else None)


def release(facts: Facts) -> DriverRelease | None:
    return DriverRelease.stated(release_text(facts))


def supported_cuda(facts: Facts) -> CudaVersion | None:
    """The newest CUDA version that the driver supports: as it reports, else by its branch."""
    driver = facts.snapshot.driver
    said = CudaVersion.parse(driver.cuda if driver else None)
    number = release(facts)
    return said or (newest_cuda_of(facts.matrix, number, facts.driver_os) if number else None)


def supports_natively(facts: Facts, cuda: CudaVersion) -> bool | None:
    """Whether the driver supports ``cuda`` without minor-version compatibility; None when that is unknown."""
    spoken = supported_cuda(facts)
    return None if spoken is None else spoken >= cuda


def supports_all_natively(facts: Facts) -> bool:
    """Whether the driver supports the CUDA of every framework that states one, and there is one."""
    stated = [CudaVersion.parse(framework.cuda) for framework in frameworks_in(facts.environment)]
    known = [cuda for cuda in stated if cuda is not None]
    return bool(known) and all(supports_natively(facts, cuda) for cuda in known)


def runs_builds_for(facts: Facts, cuda: CudaVersion) -> bool:
    """Whether the driver runs builds for ``cuda``; true also where no driver is known."""
    number = release(facts)
    said = CudaVersion.parse(facts.snapshot.driver.cuda if facts.snapshot.driver else None)
    if number is not None:
        return driver_runs_cuda(facts.matrix, number, cuda, facts.driver_os, reported=said).ok
    return said is None or said >= cuda or _needs_no_newer_driver(cuda, said, facts)


def _needs_no_newer_driver(cuda: CudaVersion, spoken: CudaVersion, facts: Facts) -> bool:
    """Whether ``cuda`` runs on the oldest driver that supports ``spoken``."""
    needed, present = (minimum_driver(facts.matrix, version, facts.driver_os) for version in (cuda, spoken))
    least, own = (DriverRelease.parse(each.driver) if each else None for each in (needed, present))
    return least is not None and own is not None and least <= own
