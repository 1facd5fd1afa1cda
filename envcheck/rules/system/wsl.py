"""The Windows Subsystem for Linux: which libcuda a program loads there."""

from __future__ import annotations

from collections.abc import Mapping

from envcheck.knowledge.error_lines import ErrorLine, lines_with
from envcheck.knowledge.relations.variables import hides_all
from envcheck.model.checks import Evidence, Fix
from envcheck.model.snapshot import DriverLibrary, Snapshot, frameworks_in, items_in
from envcheck.rules.api import Facts, Outcome, evidence_of, passed, rule
from envcheck.rules.facts.machine import cuda_answers, release, supports_all_natively
from envcheck.rules.fixes.driver import family
from envcheck.rules.messages.observed import (
    ObservedProblem,
    call_evidence,
    line_evidence,
    observed_problems,
    results_naming,
)
from envcheck.rules.variables.visible_devices import VISIBLE

_SHADOWED = (
    "driver-library-mismatch",
    "driver-not-installed",
    "driver-not-loaded",
    "gpu-init-failed",
    "no-gpu-visible",
)
"""What programs say when they load a Linux driver's libcuda there."""
_OWN_FOLDER = "/usr/lib/wsl/"


@rule(
    layer="driver",
    arises=lambda _subject, facts: facts.driver_os == "wsl",
    remedy=lambda facts: _fixes(None, facts),
    explains=(
        "driver-library-mismatch",
        "driver-not-installed",
        "driver-not-loaded",
        "gpu-init-failed",
        "no-gpu-visible",
    ),
)
def wsl_libcuda_shadowed(snapshot: Snapshot, facts: Facts) -> Outcome | None:
    """Inside WSL, another libcuda shadows the one from Windows."""
    driver = facts.driver
    files = items_in(driver.libraries)
    found = [library for library in files if library.found_as and "libcuda.so" in library.found_as[0]]
    foreign, first = [library for library in found if _is_foreign(library)], found[0] if found else None
    if cuda_answers(facts):
        return _works(foreign, facts)
    if first is None or first not in foreign:
        return _by_text(snapshot, facts)
    failed = results_naming("no-gpu-visible", (driver.cuda_init,)) if driver.cuda_init else ()
    whose = "A Linux driver's" if first.version else "Another"
    return Outcome(
        status="fail",
        title=f"{whose} libcuda shadows the one from Windows",
        message=f"Programs load {first.found_as[0]}, which cannot reach the GPU inside WSL.",
        evidence=(
            Evidence(what="libcuda", value=f"{first.path}, found as {first.found_as[0]}", source=first.source),
            *(call_evidence(result) for result in failed),
        ),
        decided_by="driver-answered" if failed else "inferred",
        fixes=_fixes(first, facts),
    )


def _is_foreign(library: DriverLibrary) -> bool:
    """Whether it is not from Windows: its real path is elsewhere, and no container runtime mounted it from there."""
    own = library.path.startswith(_OWN_FOLDER) or (library.mounted is True and library.version is None)
    return library.kind == "driver" and not own


def _works(foreign: list[DriverLibrary], facts: Facts) -> Outcome:
    driver = facts.driver
    if not foreign:
        evidence = (call_evidence(driver.cuda_init),) if driver.cuda_init else ()
        return passed("Programs load the libcuda from Windows", *evidence, decided_by="driver-answered")
    return Outcome(
        status="note",
        title="A Linux driver is installed inside WSL",
        message="Programs load the libcuda from Windows; the Linux driver has no effect.",
        evidence=tuple(Evidence(what="libcuda", value=library.path, source=library.source) for library in foreign),
        decided_by="driver-answered",
        fixes=_fixes(foreign[0], facts),
    )


def _by_text(snapshot: Snapshot, facts: Facts) -> Outcome | None:
    """What the error lines of a text say, if the libraries decide nothing."""
    lines = lines_with("released-driver-read", snapshot.observed_errors)
    if lines:
        return Outcome(
            status="fail",
            title="A Linux driver's libcuda is loaded inside WSL",
            message="The name of the loaded libcuda contains a Linux driver version.",
            evidence=tuple(line_evidence(error) for error in lines),
            decided_by="framework-ran",
            fixes=_fixes(None, facts),
        )
    met = {found.line.problem: found for found in observed_problems(snapshot)}
    if installed := _installed(met, facts):
        return installed
    contradicted = met.get("driver-too-old") if supports_all_natively(facts) else None
    no_device = met.get("no-gpu-visible") or met.get("driver-not-installed") or contradicted
    others = [
        problem
        for problem, found in met.items()
        if found.line.status == "fail" and found is not no_device and found is not contradicted
    ]
    value = facts.variable(VISIBLE)
    if no_device is None and not others and _finds_none_here(facts):
        no_device = ObservedProblem(ErrorLine("no-gpu-visible", "", "framework-ran"), _answers(facts))
    if no_device is None or others or (value is not None and hides_all(value)):
        return None
    system = (evidence_of("WSL", snapshot.platform, "wsl"),) if snapshot.platform else ()
    return Outcome(
        status="warn",
        title="CUDA does not start inside WSL: usually another libcuda is loaded",
        message="If /usr/lib/wsl/lib/nvidia-smi lists the GPU, the loader finds a Linux libcuda (or a stub) first.",
        evidence=(*no_device.evidence, *system),
        confidence="weak",
        fixes=(
            Fix(
                text="List the libcuda files that the loader knows: all should be in /usr/lib/wsl",
                command=("ldconfig", "-p"),
            ),
            *_fixes(None, facts),
        ),
    )


def _installed(met: Mapping[str, ObservedProblem], facts: Facts) -> Outcome | None:
    """A Linux driver that a text lists or installs inside WSL, where something then fails."""
    package = _package(facts)
    refused = tuple(each for problem in _SHADOWED if problem in met for each in met[problem].evidence)
    failed = refused + _answers(facts)
    on_cpu = any(each.cpu_only for each in frameworks_in(facts.environment))
    if package is None or not failed or (on_cpu and not refused) or "cpu-only-build" in met:
        return None
    return Outcome(
        status="fail",
        title="A Linux driver is installed inside WSL",
        message="Inside WSL the driver is that of Windows; a Linux driver's libraries stand in its way.",
        evidence=(Evidence(what="package", value=package.path, source=package.source), *failed),
        fixes=_fixes(None, facts),
    )


def _package(facts: Facts) -> DriverLibrary | None:
    """A package with a Linux driver's libraries that a text lists or installs."""
    files = items_in(facts.driver.libraries)
    return next((each for each in files if not each.found_as and "/" not in each.path), None)


def _finds_none_here(facts: Facts) -> bool:
    """Whether a build for CUDA finds no GPU, though Windows' driver is there and new enough for it."""
    builds = [each for each in frameworks_in(facts.environment) if each.cuda and not each.cpu_only]
    refused = any(each.gpu_available is False for each in builds)
    return refused and release(facts) is not None and supports_all_natively(facts)


def _answers(facts: Facts) -> tuple[Evidence, ...]:
    return tuple(
        evidence_of(f"{each.name} can use the GPU", each, "gpu_available")
        for each in frameworks_in(facts.environment)
        if each.gpu_available is False
    )


def _fixes(library: DriverLibrary | None, facts: Facts) -> tuple[Fix, ...]:
    path = facts.variable("LD_LIBRARY_PATH") or ""
    folder = library.found_as[0].rpartition("/")[0] if library and library.found_as else ""
    if folder and folder in path.split(":"):
        return (Fix(text=f"Remove {folder} from LD_LIBRARY_PATH, or put /usr/lib/wsl/lib before it"),)
    remove = {
        "ubuntu": ("sudo", "apt-get", "remove", "--purge", "^libnvidia-compute-[0-9].*", "^nvidia-driver-[0-9].*"),
        "debian": ("sudo", "apt-get", "remove", "--purge", "libcuda1", "nvidia-driver"),
    }
    return (
        Fix(
            text="Remove the Linux driver from this distribution; the Windows driver stays",
            command=remove.get(family(facts), ()),
            who="root",
            risk="also removes packages that depend on the Linux driver",
        ),
        Fix(text="Then rebuild the loader cache", command=("sudo", "ldconfig"), who="root"),
        Fix(text="Workaround: export LD_LIBRARY_PATH=/usr/lib/wsl/lib:$LD_LIBRARY_PATH"),
    )
