from __future__ import annotations

from envcheck.model.checks import Evidence, Fix
from envcheck.model.snapshot import DriverLibrary, Snapshot, items_in
from envcheck.rules.api import Facts, Outcome, passed, rule
from envcheck.rules.facts.machine import cuda_answers, in_container, nvml_answers, uses_linux_driver
from envcheck.rules.fixes.driver import family
from envcheck.rules.messages.observed import refusals

_OWNER = {"ubuntu": ("dpkg", "-S"), "debian": ("dpkg", "-S"), "fedora": ("rpm", "-qf"), "suse": ("rpm", "-qf")}
"""The command that names the package of a file."""

_SHOWN = 5


@rule(
    layer="container",
    needs=("driver.libraries",),
    arises=lambda _subject, facts: (
        in_container(facts) and uses_linux_driver(facts) and facts.module.version is not None
    ),
    remedy=lambda facts: _remove(_mismatched(facts), facts),
    explains=("driver-library-mismatch", "driver-too-old", "gpu-init-failed", "no-gpu-visible"),
)
def driver_libraries_in_image(_snapshot: Snapshot, facts: Facts) -> Outcome | None:
    """The container image contains driver libraries that do not match the host."""
    others, module, listing = _mismatched(facts), facts.module.version, facts.driver.libraries
    if not others:
        unsure = _mismatched(facts, mounted=None)
        return passed("Driver libraries match the host") if listing and listing.complete and not unsure else None
    # The listing is in the loader's order: the first file of a name is the one that it finds.
    in_order = {library.soname: library for library in reversed(items_in(listing)) if library.found_as}
    first = [library for library in others if library.soname and in_order.get(library.soname) == library]
    versions = dict.fromkeys(library.version for library in others if library.version)
    works = nvml_answers(facts) and cuda_answers(facts)
    failed = refusals("driver-library-mismatch", facts)
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
            *failed,
        ),
        decided_by="driver-answered" if failed or works else "inferred",
        fixes=_remove(first or others, facts),
    )


def _mismatched(facts: Facts, *, mounted: bool | None = False) -> list[DriverLibrary]:
    """The driver libraries of another version than the host's module that belong to the image (or, with ``mounted``
    None, may be mounted).
    """
    return [
        library
        for library in items_in(facts.driver.libraries)
        if library.kind == "driver"
        and library.mounted is mounted
        and library.version not in (None, facts.module.version)
    ]


def _remove(libraries: list[DriverLibrary], facts: Facts) -> tuple[Fix, ...]:
    owner = _OWNER.get(family(facts))
    find = (Fix(text="Find its package", command=(*owner, libraries[0].path)),) if owner and libraries else ()
    text = "Remove the driver packages or files from the image and rebuild it: the host's are mounted at start"
    return (*find, Fix(text=text))
