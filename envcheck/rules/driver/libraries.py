"""The driver libraries: installed, matching the kernel module, and supported by the GPU."""

from __future__ import annotations

import re

from envcheck.knowledge.error_lines import lines_with, named_by
from envcheck.model.checks import Evidence, Fix
from envcheck.model.snapshot import Snapshot, items_in
from envcheck.rules.api import Facts, Outcome, evidence_of, passed, rule
from envcheck.rules.driver.loaded_library import (
    CUDA,
    find_library,
    is_found_by_variable,
    mismatched,
    mismatched_by_variable,
    module_version,
    redirect_loader,
)
from envcheck.rules.facts.machine import (
    cuda_answers,
    driver_of,
    in_container,
    may_have_gpus,
    nvml_answers,
    on_plain_host,
)
from envcheck.rules.fixes import driver as fixes
from envcheck.rules.messages.observed import answers, call_evidence, results_naming


def _install(facts: Facts) -> tuple[Fix, ...]:
    beside_module = fixes.install_libraries(facts) if on_plain_host(facts) else ()
    return beside_module or fixes.install_driver(facts)


@rule(
    layer="driver",
    needs=("driver.installed",),
    arises=lambda _subject, facts: may_have_gpus(facts) and not in_container(facts),
    remedy=_install,
    explains=("driver-too-old", "gpu-code-missing", "gpu-init-failed", "no-gpu-visible"),
)
def driver_not_installed(_snapshot: Snapshot, facts: Facts) -> Outcome | None:
    """The NVIDIA driver is not installed."""
    driver = driver_of(facts)
    if driver.installed or cuda_answers(facts):
        return passed("Driver libraries are installed", evidence_of("driver libraries", driver, "installed"))
    failed = tuple(call_evidence(result) for result in results_naming("driver-not-installed", answers(facts)))
    kernel = facts.snapshot.kernel
    module = kernel.nvidia if kernel and kernel.nvidia and kernel.nvidia.loaded else None
    title, message = "The NVIDIA driver is not installed", "There is a GPU, but no driver library was found."
    if not facts.own_gpus:
        message = "No driver library was found; GPU presence is unknown."
    if module is not None:
        title = f"The driver's libraries are missing; its kernel module{_of(module.version)} is loaded"
        message += f" The libraries must be of the module's release{_of(module.version)}; others do not match it."
    return Outcome(
        status="fail",
        title=title,
        message=message,
        evidence=(
            evidence_of("driver libraries", driver, "installed"),
            *((evidence_of("kernel module", module, "version"),) if module and module.version else ()),
            *failed,
        ),
        decided_by="driver-answered" if failed else "inferred",
    )


_COMPAT = re.compile(r"/compat(?:/|$)")
"""The folder of the forward-compatibility libraries."""
_MISMATCH = "driver-library-mismatch"


def _of(release: str | None) -> str:
    return f" {release}" if release else ""


def _match_versions(facts: Facts) -> tuple[Fix, ...]:
    failed = results_naming(_MISMATCH, answers(facts))
    if any(_COMPAT.search(result.library or "") for result in failed) or _compat_is_refused_in_text(facts):
        return fixes.DROP_COMPAT_LIBRARY
    found = mismatched(facts)
    if found is not None:
        return redirect_loader(*found, facts)
    if in_container(facts):
        text = "Remove the driver libraries (libcuda, libnvidia-*) from the image: the host's are mounted at start"
        return (Fix(text=text), Fix(text="If the host was updated, restart it", who="cluster-admin"))
    if lines_with("driver-parts-differ", facts.snapshot.observed_errors):
        text = "If they still differ, reinstall the driver: its kernel modules and firmware must be of one release"
        return (*fixes.REBOOT, Fix(text=text, who="root"))
    return fixes.REBOOT


def _compat_is_refused_in_text(facts: Facts) -> bool:
    """Whether CUDA alone says in a text that driver and library differ, and the loader finds a libcuda in a folder
    named compat.
    """
    said = [
        each for each in facts.snapshot.observed_errors if (line := named_by(each.text)) and line.problem == _MISMATCH
    ]
    if not said or len(lines_with("cuda-refuses-libcuda", said)) < len(said):
        return False
    driver, folders = facts.snapshot.driver, (facts.variable("LD_LIBRARY_PATH") or "").split(":")
    listed = items_in(driver.libraries) if driver else ()
    return any(map(_COMPAT.search, folders)) or any(library.kind == "compat" for library in listed)


@rule(
    layer="driver",
    by_variable=mismatched_by_variable,
    remedy=_match_versions,
    explains=("driver-too-old", "gpu-init-failed", "no-gpu-visible"),
)
def driver_library_mismatch(_snapshot: Snapshot, facts: Facts) -> Outcome | None:
    """Kernel module and driver library versions do not match."""
    failed = results_naming("driver-library-mismatch", answers(facts))
    module, libraries, releases = module_version(facts), _library_versions(facts), _versions(facts)
    if not failed and (nvml_answers(facts) or cuda_answers(facts)):
        return passed("Kernel module and driver library versions match", *releases, decided_by="driver-answered")
    if not failed and (module is None or not libraries or module in libraries):
        return None
    return Outcome(
        status="fail",
        title="Kernel module and driver library versions do not match",
        message=_mismatch(facts),
        evidence=(*(call_evidence(result) for result in failed), *releases),
        decided_by="driver-answered" if failed else "inferred",
        action="none" if in_container(facts) or mismatched(facts) else "reboot",
    )


def _library_versions(facts: Facts) -> tuple[str, ...]:
    listing = driver_of(facts).libraries
    found = (library.version for library in items_in(listing) if library.kind == "driver")
    return tuple(dict.fromkeys(version for version in found if version))


def _versions(facts: Facts) -> tuple[Evidence, ...]:
    module, found = module_version(facts), mismatched(facts)
    taken = (Evidence(what=found[1], value=found[0].path, source=found[0].source),) if found else ()
    of_module = (*taken, *((Evidence(what="kernel module", value=module, source="procfs"),) if module else ()))
    versions = _library_versions(facts)
    return (*of_module, *(Evidence(what="library", value=version, source="file") for version in versions))


def _mismatch(facts: Facts) -> str:
    module, libraries = module_version(facts), _library_versions(facts)
    found = mismatched(facts)
    if found is not None:
        library, _ = found
        by = f" by {library.found_by}" if library.found_by else ""
        return f"The loader finds {library.path}{by}, version {library.version}; the kernel module is {module}."
    if module and libraries and module not in libraries:
        return f"The loaded module is {module}, the libraries on disk are {', '.join(libraries)}."
    return "The driver reports different versions of the loaded module and the library."


@rule(
    layer="driver",
    scope="container",
    by_variable=lambda _snapshot, facts: is_found_by_variable(find_library(CUDA, facts)),
    explains=("gpu-init-failed", "no-gpu-visible"),
    remedy=fixes.DROP_COMPAT_LIBRARY,
)
def forward_compat_unsupported(_snapshot: Snapshot, facts: Facts) -> Outcome | None:
    """The GPU does not support the forward-compatibility libcuda that was loaded."""
    failed = results_naming("forward-compat-unsupported", answers(facts))
    if not failed:
        return None
    return Outcome(
        status="fail",
        title="The GPU does not support forward compatibility",
        message="Programs load a newer libcuda than the driver's own, which this GPU does not support.",
        evidence=tuple(call_evidence(result) for result in failed),
        decided_by="driver-answered",
        fixes=(*fixes.DROP_COMPAT_LIBRARY, *fixes.update_driver(facts)),
    )
