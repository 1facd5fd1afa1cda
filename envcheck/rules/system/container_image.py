"""Driver libraries that a container image brought along."""

from __future__ import annotations

from envcheck.checks import Evidence, Fix
from envcheck.rules.api import Facts, Outcome, passed, rule
from envcheck.rules.facts.machine import cuda_answers, driver_of, in_container, nvml_answers, own_kind_of_driver
from envcheck.rules.fixes.driver import family
from envcheck.rules.messages.driver import answers, naming, shown
from envcheck.snapshot import DriverLibrary, Snapshot

_OWNER = {"ubuntu": ("dpkg", "-S"), "debian": ("dpkg", "-S"), "fedora": ("rpm", "-qf"), "suse": ("rpm", "-qf")}
"""What tells which package a file belongs to."""

_SHOWN = 5


def _boxed_with_a_known_module(_subject: Snapshot, facts: Facts) -> bool:
    return in_container(facts) and own_kind_of_driver(facts) and _module(facts) is not None


def _module(facts: Facts) -> str | None:
    """Release of the host's kernel module, which every container sees."""
    kernel = facts.snapshot.kernel
    return kernel.nvidia.version if kernel and kernel.nvidia else None


def _take_out(facts: Facts) -> tuple[Fix, ...]:
    return _ways_out(_strangers(facts), facts)


@rule(
    layer="container",
    scope="container",
    needs=("driver.libraries",),
    arises=_boxed_with_a_known_module,
    remedy=_take_out,
    explains=("driver-library-mismatch", "driver-too-old", "gpu-init-failed", "no-gpu-visible"),
)
def driver_libraries_in_image(_snapshot: Snapshot, facts: Facts) -> Outcome | None:
    """The container image contains driver libraries that do not match the host.

    What it checks
        Checks, inside a container, for driver files (libcuda, libnvidia-ml …) that were not mounted
        from the host and have a different version than its kernel module, and whether the loader finds
        them first. Forward-compatibility packages (folders named compat) are intended.

    Why it matters
        Driver libraries must match the kernel module exactly, so the host's are mounted at start.
        Copies in the image shadow them or block the mount: CUDA and NVML fail with a mismatch, or the
        container does not start ("file exists").

    How to fix
        Remove the driver packages from the image (libnvidia-compute-*, nvidia-utils-*, cuda-drivers,
        cuda): install only a toolkit (cuda-toolkit-*) or libraries. Do not build or commit images in
        containers that have a GPU.

    Sources
        NVIDIA Container Toolkit, troubleshooting:
          https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/troubleshooting.html
        CUDA compatibility: https://docs.nvidia.com/deploy/cuda-compatibility/
    """
    strangers, module = _strangers(facts), _module(facts)
    listing = driver_of(facts).libraries
    if not strangers:
        whole = listing is not None and listing.complete and not _doubtful(facts)
        return passed("Every driver library here is of the host's release, or mounted") if whole else None
    first = [library for library in strangers if _is_met_first(library, facts)]
    works = nvml_answers(facts) and cuda_answers(facts)
    failed = naming("driver-library-mismatch", answers(facts))
    return Outcome(
        status="fail" if first and not works else "note",
        title=f"The image holds driver libraries of {', '.join(_releases(strangers))}",
        message=f"The host's kernel module is {module}. "
        + ("They are met before the host's." if first else "The host's own are met before them."),
        evidence=(
            Evidence(what="kernel module", value=module or "", source="file /proc/driver/nvidia/version"),
            *(_as_evidence(library) for library in (first or strangers)[:_SHOWN]),
            *(shown(result) for result in failed),
        ),
        decided_by="driver-answered" if failed or works else "inferred",
        fixes=_ways_out(first or strangers, facts),
    )


def _doubtful(facts: Facts) -> bool:
    """Whether a library of another release is there of which nobody can say whose it is."""
    listing, module = driver_of(facts).libraries, _module(facts)
    return any(
        library.kind == "driver" and library.mounted is None and library.version not in (None, module)
        for library in (listing.items if listing else ())
    )


def _strangers(facts: Facts) -> list[DriverLibrary]:
    """Libraries of the driver that are the image's own, and of another release than the host's module."""
    listing, module = driver_of(facts).libraries, _module(facts)
    found = listing.items if listing else ()
    return [
        library
        for library in found
        if library.kind == "driver" and library.mounted is False and library.version not in (None, module)
    ]


def _is_met_first(library: DriverLibrary, facts: Facts) -> bool:
    """Whether the loader meets no other file under its name before it; the list is in the loader's order."""
    listing = driver_of(facts).libraries
    same = (other for other in (listing.items if listing else ()) if other.soname == library.soname and other.found_as)
    return library.soname is not None and next(same, None) == library


def _releases(libraries: list[DriverLibrary]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(library.version for library in libraries if library.version))


def _as_evidence(library: DriverLibrary) -> Evidence:
    return Evidence(what=library.soname or "library", value=f"{library.path} (in the image)", source=library.source)


def _ways_out(libraries: list[DriverLibrary], facts: Facts) -> tuple[Fix, ...]:
    tell = _OWNER.get(family(facts))
    own = (Fix(text="See which package brought it", command=(*tell, libraries[0].path)),) if tell and libraries else ()
    return (
        *own,
        Fix(text="Take the driver's packages or files out of the image and build it anew: the host's are put in"),
    )
