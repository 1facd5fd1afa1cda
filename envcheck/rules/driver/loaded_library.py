"""The copy of a driver library that the loader finds: whether it is usable, and what leads the loader to it."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import NamedTuple

from envcheck.model.checks import Evidence, Fix, Status
from envcheck.model.snapshot import ApiResult, DriverLibrary, Snapshot, items_in
from envcheck.rules.api import Facts, Outcome, rule
from envcheck.rules.facts.machine import cuda_answers, driver_of, in_container, may_have_gpus, nvml_answers
from envcheck.rules.facts.trials import ran_on_gpu, tried_frameworks
from envcheck.rules.fixes.libraries import without_variable
from envcheck.rules.messages.observed import NOT_LOADABLE, call_evidence

CUDA, NVML = "libcuda.so.1", "libnvidia-ml.so.1"
_FOR_CODE = ("libnvidia-ptxjitcompiler.so.1", "libnvidia-nvvm.so.4")
"""What libcuda opens by name, with the same search, to compile PTX."""
_STUB = 34
"""``CUDA_ERROR_STUB_LIBRARY``."""
_NVML_NOT_FOUND = 12
"""The code that the binding, or the stub itself, returns for a library without NVML's functions."""
_BY_VARIABLE = ("LD_PRELOAD", "LD_LIBRARY_PATH")
_COMPLAINT = re.compile(r"(?P<file>/[^:]{1,300}): (?P<why>.{1,200})")
_USED_BY = {
    CUDA: "No program can use a GPU: every CUDA program loads libcuda by this name.",
    NVML: "nvidia-smi, NCCL, JAX and PyTorch's queries of the GPU load it by this name and fail.",
}


def find_library(name: str, facts: Facts) -> DriverLibrary | None:
    """The file that the loader finds for ``name``; None if there is none, or if unknown."""
    listing = driver_of(facts).libraries
    return next((library for library in items_in(listing) if _place(library, name)), None)


def _place(library: DriverLibrary, name: str) -> str | None:
    """The path by which the loader finds the file under ``name``."""
    return next((path for path in library.found_as if PurePosixPath(path).name == name), None)


def redirect_loader(library: DriverLibrary, name: str, facts: Facts) -> tuple[Fix, ...]:
    """Keep the loader from this file, by changing what leads it there."""
    place = _place(library, name) or library.path
    folder = str(PurePosixPath(place).parent)
    if library.found_by in _BY_VARIABLE:
        return without_variable(library.found_by, [folder], facts)
    if library.mounted and in_container(facts):
        text = f"Restart the container: {library.path} comes from the host; then check the driver there"
        return (Fix(text=text, who="cluster-admin"),)
    if library.listed_in:
        text = f"Remove the line {folder} from {library.listed_in}, then rebuild the loader cache"
        return (Fix(text=text, command=("sudo", "ldconfig"), who="root"),)
    text = f"Remove {place}, reinstall the driver libraries, then rebuild the loader cache"
    return (Fix(text=text, command=("sudo", "ldconfig"), who="root"),)


class _Unusable(NamedTuple):
    """A file that the loader finds for a driver library, and that is none."""

    name: str
    path: str
    why: str
    library: DriverLibrary | None
    call: ApiResult | None


def _problem_of(name: str, facts: Facts) -> _Unusable | None:
    """What is wrong with the file that the loader finds for ``name``, by the file and by the answer of the call."""
    driver = driver_of(facts)
    library, call = find_library(name, facts), {CUDA: driver.cuda_init, NVML: driver.nvml}.get(name)
    if call is not None and call.code == 0:
        return None  # it works
    if library is not None and call is not None and call.library not in (None, library.path):
        library = None  # the loader found another
    # An image keeps a placeholder of each mounted library; the container then lacks the GPU.
    placeholder = library is not None and library.kind is None and library.found_by not in _BY_VARIABLE
    if library is not None and library.refused and not (placeholder and in_container(facts)):
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


def _is_chosen_by_variable(bad: _Unusable) -> bool:
    """Whether a variable leads to a damaged file, which stops programs without a GPU too. A stub may be intended:
    images without a driver are built with it.
    """
    return bad.library is not None and is_found_by_variable(bad.library) and bool(bad.library.refused)


@rule(
    layer="driver",
    scope="container",
    by_variable=lambda _snapshot, facts: any(is_found_by_variable(bad.library) for bad in _unusable_libraries(facts)),
    arises=lambda _snapshot, facts: (
        may_have_gpus(facts) or any(map(_is_chosen_by_variable, _unusable_libraries(facts)))
    ),
    explains=(
        "container-lost-gpu",
        "container-without-gpu",
        "driver-library-mismatch",
        "driver-not-installed",
        "driver-not-loaded",
        "driver-too-old",
        "gpu-init-failed",
        "no-gpu-visible",
        "stub-library-loaded",
    ),
    remedy=(Fix(text="Install the driver's libraries again; in a container, let its runtime mount those of the host"),),
)
def driver_library_unusable(_snapshot: Snapshot, facts: Facts) -> Outcome | None:
    """The driver library that programs load is unusable."""
    found = _unusable_libraries(facts)
    if not found:
        return None
    if not may_have_gpus(facts):
        found = [bad for bad in found if _is_chosen_by_variable(bad)]
    name, path, why, library, call = found[0]
    used = _USED_BY.get(name, "Code that the driver compiles at program start (PTX) cannot be loaded.")
    leads = f" {library.found_by} selects it." if library and library.found_by in _BY_VARIABLE else ""
    return Outcome(
        status=_severity(found, facts),
        title=f"{name} is unusable: {why}",
        message=f"The loader finds {path}: {why}.{leads} {used}",
        evidence=tuple(part for bad in found for part in _evidence(bad)),
        decided_by="driver-answered" if call is not None and may_have_gpus(facts) else "declared",
        fixes=tuple(dict.fromkeys(fix for bad in found for fix in _fixes(bad, facts))),
    )


def _severity(found: list[_Unusable], facts: Facts) -> Status:
    """A warning if no GPU is used, if only compiling PTX suffers, or if frameworks work without NVML."""
    names = {bad.name for bad in found}
    if not may_have_gpus(facts) or not names & {CUDA, NVML}:
        return "warn"
    trials = tried_frameworks(facts.environment)
    seen_at_work = bool(trials) and all(ran_on_gpu(framework) for framework in trials)
    return "warn" if CUDA not in names and seen_at_work else "fail"


def _evidence(bad: _Unusable) -> tuple[Evidence, ...]:
    name, path, why, library, call = bad
    by = f" (found by {library.found_by})" if library and library.found_by else ""
    file = Evidence(what=name, value=f"{path}{by}: {why}", source=library.source if library else "loader")
    return (file, *((call_evidence(call),) if call is not None else ()))


def _fixes(bad: _Unusable, facts: Facts) -> tuple[Fix, ...]:
    name, path, _, library, _ = bad
    if library is not None and library.path == path:
        return redirect_loader(library, name, facts)
    folder = str(PurePosixPath(path).parent)
    for entry in re.split(r"[:;]", facts.variable("LD_LIBRARY_PATH") or ""):
        if entry and str(PurePosixPath(entry)) == folder:
            return without_variable("LD_LIBRARY_PATH", [folder], facts)
    return (
        Fix(
            text=f"Remove {path}, or remove {folder} from the loader path: the command shows what leads there",
            command=("env", "LD_DEBUG=libs", "nvidia-smi"),
        ),
    )


def module_version(facts: Facts) -> str | None:
    """The version of the kernel module, which a container sees too."""
    kernel = facts.snapshot.kernel
    return kernel.nvidia.version if kernel and kernel.nvidia else None


def mismatched(facts: Facts) -> tuple[DriverLibrary, str] | None:
    """A library of another version than the kernel module that the loader finds before a matching one, or by a
    variable; with its name.
    """
    module, listing = module_version(facts), driver_of(facts).libraries
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


@rule(
    layer="driver",
    scope="container",
    by_variable=mismatched_by_variable,
    arises=lambda _snapshot, facts: nvml_answers(facts) or cuda_answers(facts),
)
def driver_compiler_mismatch(_snapshot: Snapshot, facts: Facts) -> Outcome | None:
    """The driver's compiler library has a different version than the driver."""
    found = mismatched(facts)
    if found is None or found[1] not in _FOR_CODE:
        return None
    (library, name), module = found, module_version(facts) or ""
    return Outcome(
        status="warn",
        title=f"{name} is version {library.version}, the driver {module}",
        message=f"The loader finds {library.path}. Code that the driver compiles at program start may not load.",
        evidence=(
            Evidence(what=name, value=f"{library.path} (found by {library.found_by or 'the loader'})", source="file"),
            Evidence(what="kernel module", value=module, source="procfs"),
        ),
        decided_by="declared",
        fixes=redirect_loader(library, name, facts),
    )
