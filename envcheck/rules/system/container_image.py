from __future__ import annotations

from envcheck.model.checks import Evidence, Fix
from envcheck.model.snapshot import DriverLibrary, Snapshot, items_in
from envcheck.rules.api import Facts, Outcome, passed, rule
from envcheck.rules.driver.loaded_library import module_version
from envcheck.rules.facts.machine import cuda_answers, driver_of, in_container, nvml_answers, uses_linux_driver
from envcheck.rules.fixes.driver import family
from envcheck.rules.messages.observed import answers, call_evidence, results_naming

_OWNER = {"ubuntu": ("dpkg", "-S"), "debian": ("dpkg", "-S"), "fedora": ("rpm", "-qf"), "suse": ("rpm", "-qf")}
"""The command that names the package of a file."""

_SHOWN = 5


def _in_container_with_module(_subject: Snapshot, facts: Facts) -> bool:
    return in_container(facts) and uses_linux_driver(facts) and module_version(facts) is not None


@rule(
    layer="container",
    needs=("driver.libraries",),
    arises=_in_container_with_module,
    remedy=lambda facts: _remove(_mismatched(facts), facts),
    explains=("driver-library-mismatch", "driver-too-old", "gpu-init-failed", "no-gpu-visible"),
)
def driver_libraries_in_image(_snapshot: Snapshot, facts: Facts) -> Outcome | None:
    """The container image contains driver libraries that do not match the host."""
    others, module = _mismatched(facts), module_version(facts)
    listing = driver_of(facts).libraries
    if not others:
        unsure = _mismatched(facts, mounted=None)
        return passed("Driver libraries match the host") if listing and listing.complete and not unsure else None
    first = [library for library in others if _is_found_first(library, facts)]
    versions = dict.fromkeys(library.version for library in others if library.version)
    works = nvml_answers(facts) and cuda_answers(facts)
    failed = results_naming("driver-library-mismatch", answers(facts))
    return Outcome(
        status="fail" if first and not works else "note",
        title=f"The image contains driver libraries of version {', '.join(versions)}",
        message=f"The host's kernel module is {module}. "
        + ("The loader finds them before the host's." if first else "The loader finds the host's first."),
        evidence=(
            Evidence(what="kernel module", value=module or "", source="file /proc/driver/nvidia/version"),
            *(
                Evidence(what=each.soname or "library", value=f"{each.path} (in the image)", source=each.source)
                for each in (first or others)[:_SHOWN]
            ),
            *(call_evidence(result) for result in failed),
        ),
        decided_by="driver-answered" if failed or works else "inferred",
        fixes=_remove(first or others, facts),
    )


def _mismatched(facts: Facts, *, mounted: bool | None = False) -> list[DriverLibrary]:
    """The driver libraries of another version than the host's module that belong to the image (or, with ``mounted``
    None, may be mounted).
    """
    listing, module = driver_of(facts).libraries, module_version(facts)
    return [
        library
        for library in items_in(listing)
        if library.kind == "driver" and library.mounted is mounted and library.version not in (None, module)
    ]


def _is_found_first(library: DriverLibrary, facts: Facts) -> bool:
    """Whether the loader finds no other file of that name before it; the list is in the loader's order."""
    listing = driver_of(facts).libraries
    same = (other for other in items_in(listing) if other.soname == library.soname and other.found_as)
    return library.soname is not None and next(same, None) == library


def _remove(libraries: list[DriverLibrary], facts: Facts) -> tuple[Fix, ...]:
    owner = _OWNER.get(family(facts))
    find = (Fix(text="Find its package", command=(*owner, libraries[0].path)),) if owner and libraries else ()
    text = "Remove the driver packages or files from the image and rebuild it: the host's are mounted at start"
    return (*find, Fix(text=text))
