"""The driver's libraries: installed, usable, of the kernel module's release, and the copy that the loader finds."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import NamedTuple

from envcheck.knowledge.error_lines import lines_with, named_by
from envcheck.model.checks import Evidence, Fix
from envcheck.model.snapshot import ApiResult, DriverLibrary, Snapshot, items_in
from envcheck.rules.api import Facts, Outcome, evidence_of, failure, if_known, passed, rule, warning
from envcheck.rules.fixes import driver as fixes
from envcheck.rules.fixes.libraries import without_variable
from envcheck.rules.messages.observed import NOT_LOADABLE, answers, call_evidence, refusals, results_naming
from envcheck.text.lazy import lazy_pattern

CUDA, NVML = "libcuda.so.1", "libnvidia-ml.so.1"
_FOR_CODE = ("libnvidia-ptxjitcompiler.so.1", "libnvidia-nvvm.so.4")
"""What libcuda opens by name, with the same search, to compile PTX."""
_STUB = 34
"""``CUDA_ERROR_STUB_LIBRARY``."""
_NVML_NOT_FOUND = 12  # The code that the binding, or the stub itself, returns for a library without NVML's functions
_BY_VARIABLE = ("LD_PRELOAD", "LD_LIBRARY_PATH")
_COMPLAINT = lazy_pattern(r"(?P<file>/[^:]{1,300}): (?P<why>.{1,200})")
_USED_BY = {
    CUDA: "No program can use a GPU: every CUDA program loads libcuda by this name.",
    NVML: "nvidia-smi, NCCL, JAX and PyTorch's queries of the GPU load it by this name and fail.",
}


def find_library(name: str, facts: Facts) -> DriverLibrary | None:
    """The file that the loader finds for ``name``; None if there is none, or if unknown."""
    return next((library for library in items_in(facts.driver.libraries) if _place(library, name)), None)


def _place(library: DriverLibrary, name: str) -> str | None:
    """The path by which the loader finds the file under ``name``."""
    return next((path for path in library.found_as if PurePosixPath(path).name == name), None)


def redirect_loader(library: DriverLibrary, name: str, facts: Facts) -> tuple[Fix, ...]:
    """Keep the loader from this file, by changing what leads it there."""
    place = _place(library, name) or library.path
    folder = str(PurePosixPath(place).parent)
    if library.found_by in _BY_VARIABLE:
        return without_variable(library.found_by, [folder], facts)
    if library.mounted and facts.in_container:
        text = f"Restart the container: {library.path} comes from the host; then check the driver there"
        return (Fix(text, who="cluster-admin"),)
    if library.listed_in:
        text = f"Remove the line {folder} from {library.listed_in}, then rebuild the loader cache"
        return (Fix(text, command=("sudo", "ldconfig"), who="root"),)
    text = f"Remove {place}, reinstall the driver libraries, then rebuild the loader cache"
    return (Fix(text, command=("sudo", "ldconfig"), who="root"),)


class _Unusable(NamedTuple):
    """A file that the loader finds for a driver library, and that is none."""

    name: str
    path: str
    why: str
    library: DriverLibrary | None
    call: ApiResult | None


def _problem_of(name: str, facts: Facts) -> _Unusable | None:
    """What is wrong with the file that the loader finds for ``name``, by the file and by the answer of the call."""
    library, call = find_library(name, facts), {CUDA: facts.driver.cuda_init, NVML: facts.driver.nvml}.get(name)
    if call is not None and call.code == 0:
        return None  # it works
    if library is not None and call is not None and call.library not in (None, library.path):
        library = None  # the loader found another
    # An image keeps a placeholder of each mounted library; the container then lacks the GPU.
    placeholder = library is not None and library.kind is None and library.found_by not in _BY_VARIABLE
    if library is not None and library.refused and not (placeholder and facts.in_container):
        return _Unusable(name, library.path, library.refused, library, call)
    # A loaded library without NVML's functions is NVML's stub.
    if call is not None and ((call.code == _NVML_NOT_FOUND and call.library) if name == NVML else call.code == _STUB):
        path = call.library or (library.path if library else name)
        of_path = library if library and library.path == path else None
        return _Unusable(name, path, "it is a link-time stub", of_path, call)
    if library is not None and library.kind == "stub":
        return _Unusable(name, library.path, "it is a link-time stub", library, call)
    complaint = _COMPLAINT.search(call.text) if call is not None and call.code == NOT_LOADABLE else None
    if complaint is None or "No such file" in complaint["why"]:
        return None
    return _Unusable(name, complaint["file"], f"error from the loader: {complaint['why']}", library, call)


def _unusable_libraries(facts: Facts) -> list[_Unusable]:
    return [bad for name in (CUDA, NVML, *_FOR_CODE) if (bad := _problem_of(name, facts))]


def is_found_by_variable(library: DriverLibrary | None) -> bool:
    """Whether LD_PRELOAD or LD_LIBRARY_PATH leads to it."""
    return library is not None and library.found_by in _BY_VARIABLE


@rule(
    layer="driver",
    scope="container",
    by_variable=lambda _snapshot, facts: any(is_found_by_variable(bad.library) for bad in _unusable_libraries(facts)),
)
def driver_library_unusable(_snapshot: Snapshot, facts: Facts) -> Outcome | None:
    """The driver library that programs load is unusable."""
    # A damaged file to which a variable leads stops programs without a GPU too; a stub may be intended there.
    found = _unusable_libraries(facts)
    if not facts.may_have_gpus:
        found = [bad for bad in found if bad.library and is_found_by_variable(bad.library) and bad.library.refused]
    if not found:
        return None
    name, path, why, library, call = found[0]
    used = _USED_BY.get(name, "Code that the driver compiles at program start (PTX) cannot be loaded.")
    leads = f" {library.found_by} selects it." if library and library.found_by in _BY_VARIABLE else ""
    # A warning if no GPU is used, if only compiling PTX suffers, or if frameworks work without NVML.
    names, trials = {bad.name for bad in found}, facts.tried_frameworks
    seen_at_work = bool(trials) and all(framework.ran_on_gpu for framework in trials)
    mild = not names & {CUDA, NVML} or (CUDA not in names and seen_at_work)
    evidence = []
    for bad in found:
        by = f" (found by {bad.library.found_by})" if bad.library and bad.library.found_by else ""
        source = bad.library.source if bad.library else "loader"
        evidence.append(Evidence(bad.name, f"{bad.path}{by}: {bad.why}", source))
        if bad.call is not None:
            evidence.append(call_evidence(bad.call))
    return Outcome(
        status="warn" if mild or not facts.may_have_gpus else "fail",
        title=f"{name} is unusable: {why}",
        message=f"The loader finds {path}: {why}.{leads} {used}",
        evidence=tuple(evidence),
        decided_by="driver-answered" if call is not None and facts.may_have_gpus else "declared",
        fixes=tuple(dict.fromkeys(fix for bad in found for fix in _fixes(bad, facts))),
    )


def _fixes(bad: _Unusable, facts: Facts) -> tuple[Fix, ...]:
    name, path, _, library, _ = bad
    if library is not None and library.path == path:
        return redirect_loader(library, name, facts)
    folder = str(PurePosixPath(path).parent)
    for entry in re.split(r"[:;]", facts.variable("LD_LIBRARY_PATH") or ""):
        if entry and str(PurePosixPath(entry)) == folder:
            return without_variable("LD_LIBRARY_PATH", [folder], facts)
    text = f"Remove {path}, or remove {folder} from the loader path: the command shows what leads there"
    return (Fix(text, command=("env", "LD_DEBUG=libs", "nvidia-smi")),)


def mismatched(facts: Facts) -> tuple[DriverLibrary, str] | None:
    """A library of another version than the module, found before a matching one or by a variable; with its name."""
    module, listing = facts.module.version, facts.driver.libraries
    if module is None or listing is None:
        return None
    matching = {library.soname for library in listing.items if library.version == module}
    for name in (CUDA, NVML, *_FOR_CODE):
        library = find_library(name, facts)
        if library is None or library.version in (None, module) or library.kind != "driver":
            continue
        if name in matching or library.found_by in _BY_VARIABLE:
            return library, name
    return None


def mismatched_by_variable(_snapshot: Snapshot, facts: Facts) -> bool:
    """Whether LD_PRELOAD or LD_LIBRARY_PATH leads to a driver library of another version than the kernel module's."""
    found = mismatched(facts)
    return found is not None and is_found_by_variable(found[0])


@rule(layer="driver", decided_by="declared", scope="container", by_variable=mismatched_by_variable)
def driver_compiler_mismatch(_snapshot: Snapshot, facts: Facts) -> Outcome | None:
    """The driver's compiler library has a different version than the driver."""
    found = mismatched(facts) if facts.nvml_answers or facts.cuda_answers else None
    if found is None or found[1] not in _FOR_CODE:
        return None
    (library, name), module = found, facts.module.version or ""
    return warning(
        title=f"{name} is version {library.version}, the driver {module}",
        message=f"The loader finds {library.path}. Code that the driver compiles at program start may not load.",
        evidence=(
            Evidence(name, f"{library.path} (found by {library.found_by or 'the loader'})", "file"),
            Evidence("kernel module", module, "procfs"),
        ),
        fixes=redirect_loader(library, name, facts),
    )


def _install(facts: Facts) -> tuple[Fix, ...]:
    if facts.on_plain_host and (found := fixes.install_libraries(facts)):
        return found
    elsewhere = "Where the host has it and the program runs in a container: start that with --gpus all"
    unknown = facts.platform.container is None and facts.driver_os not in ("windows", "wsl")
    return (*fixes.install_driver(facts), *((Fix(elsewhere),) if unknown else ()))


@rule(
    layer="driver",
    needs=("driver.installed",),
    arises=lambda _subject, facts: facts.may_have_gpus and not facts.in_container,
    remedy=_install,
)
def driver_not_installed(_snapshot: Snapshot, facts: Facts) -> Outcome | None:
    """The NVIDIA driver is not installed."""
    driver = facts.driver
    if driver.installed or facts.cuda_answers:
        return passed("Driver libraries are installed", evidence_of("driver libraries", driver, "installed"))
    failed = refusals("driver-not-installed", facts)
    module = facts.module if facts.module.loaded else None
    title, message = "", "There is a GPU, but no driver library was found."
    if not facts.own_gpus:
        message = "No driver library was found; GPU presence is unknown."
    if module is not None:
        release = f" {module.version}" if module.version else ""
        title = f"The driver's libraries are missing; its kernel module{release} is loaded"
        message += f" The libraries must be of the module's release{release}; others do not match it."
    return failure(
        title=title,
        message=message,
        evidence=(
            evidence_of("driver libraries", driver, "installed"),
            if_known("kernel module", module, "version"),
            *failed,
        ),
        decided_by="driver-answered" if failed else "inferred",
    )


_COMPAT = lazy_pattern(r"/compat(?:/|$)")  # The folder of the forward-compatibility libraries
_MISMATCH = "driver-library-mismatch"


def _match_versions(facts: Facts) -> tuple[Fix, ...]:
    failed = results_naming(_MISMATCH, answers(facts))
    of_compat = any(_COMPAT.search(result.library or "") for result in failed)
    # In a text CUDA alone says that they differ, and the loader finds a libcuda in a folder ``compat``.
    errors = facts.snapshot.observed_errors
    lines = [each for each in errors if (line := named_by(each.text)) and line.problem == _MISMATCH]
    if lines and len(lines_with("cuda-refuses-libcuda", lines)) == len(lines):
        of_compat = of_compat or any(map(_COMPAT.search, (facts.variable("LD_LIBRARY_PATH") or "").split(":")))
        of_compat = of_compat or any(library.kind == "compat" for library in items_in(facts.driver.libraries))
    if of_compat:
        return fixes.DROP_COMPAT_LIBRARY
    found = mismatched(facts)
    if found is not None:
        return redirect_loader(*found, facts)
    if facts.in_container:
        text = "Remove the driver libraries (libcuda, libnvidia-*) from the image: the host's are mounted at start"
        return (Fix(text), Fix("If the host was updated, restart it", who="cluster-admin"))
    if facts.lines_with("driver-parts-differ"):
        text = "If they still differ, reinstall the driver: its kernel modules and firmware must be of one release"
        return (*fixes.REBOOT, Fix(text, who="root"))
    return fixes.REBOOT


@rule(layer="driver", by_variable=mismatched_by_variable, remedy=_match_versions)
def driver_library_mismatch(_snapshot: Snapshot, facts: Facts) -> Outcome | None:
    """Kernel module and driver library versions do not match."""
    failed, found, module = refusals(_MISMATCH, facts), mismatched(facts), facts.module.version
    versions = (library.version for library in items_in(facts.driver.libraries) if library.kind == "driver")
    libraries = tuple(dict.fromkeys(version for version in versions if version))
    releases = (
        Evidence(found[1], found[0].path, found[0].source) if found else None,
        Evidence("kernel module", module, "procfs") if module else None,
        *(Evidence("library", version, "file") for version in libraries),
    )
    if not failed and (facts.nvml_answers or facts.cuda_answers):
        return passed("Kernel module and driver library versions match", *releases, decided_by="driver-answered")
    if not failed and (module is None or not libraries or module in libraries):
        return None
    message = "The driver reports different versions of the loaded module and the library."
    if found is not None:
        library, _ = found
        by = f" by {library.found_by}" if library.found_by else ""
        message = f"The loader finds {library.path}{by}, version {library.version}; the kernel module is {module}."
    elif module and libraries and module not in libraries:
        message = f"The loaded module is {module}, the libraries on disk are {', '.join(libraries)}."
    return failure(
        message=message,
        evidence=(*failed, *releases),
        decided_by="driver-answered" if failed else "inferred",
        action="none" if facts.in_container or found else "reboot",
    )


@rule(
    layer="driver",
    decided_by="driver-answered",
    scope="container",
    by_variable=lambda _snapshot, facts: is_found_by_variable(find_library(CUDA, facts)),
    remedy=fixes.DROP_COMPAT_LIBRARY,
)
def forward_compat_unsupported(_snapshot: Snapshot, facts: Facts) -> Outcome | None:
    """The GPU does not support the forward-compatibility libcuda that was loaded."""
    failed = refusals("forward-compat-unsupported", facts)
    if not failed:
        return None
    return failure(
        title="The GPU does not support forward compatibility",
        message="Programs load a newer libcuda than the driver's own, which this GPU does not support.",
        evidence=failed,
        fixes=(*fixes.DROP_COMPAT_LIBRARY, *fixes.update_driver(facts)),
    )
