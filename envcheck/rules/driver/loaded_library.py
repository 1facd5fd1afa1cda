"""The copy of a driver library that the loader takes: whether it is one at all, and what leads the loader to it."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import NamedTuple

from envcheck.checks import Evidence, Fix, Status
from envcheck.rules.api import Facts, Outcome, rule
from envcheck.rules.facts.machine import cuda_answers, driver_of, in_container, may_have_gpus, nvml_answers
from envcheck.rules.facts.trials import ran_on_gpu, tried
from envcheck.rules.fixes.libraries import without_variable
from envcheck.rules.messages.driver import NOT_LOADABLE, shown
from envcheck.snapshot import ApiResult, DriverLibrary, Snapshot

CUDA, NVML = "libcuda.so.1", "libnvidia-ml.so.1"
_FOR_CODE = ("libnvidia-ptxjitcompiler.so.1", "libnvidia-nvvm.so.4")
"""What libcuda opens, by these names and through the same search, when it compiles PTX."""
_STUB = 34
"""``CUDA_ERROR_STUB_LIBRARY``."""
_NVML_NOT_FOUND = 12
"""What the binding says of a library that has none of NVML's functions, or says so itself."""
_BY_VARIABLE = ("LD_PRELOAD", "LD_LIBRARY_PATH")
_COMPLAINT = re.compile(r"(?P<file>/[^:]{1,300}): (?P<why>.{1,200})")
_USED_BY = {
    CUDA: "No program can use a GPU: every CUDA program loads libcuda by this name.",
    NVML: "nvidia-smi, NCCL, JAX and PyTorch's queries of the GPU load it by this name and fail.",
}


def first_met(name: str, facts: Facts) -> DriverLibrary | None:
    """The file that the loader takes for ``name``; None where it finds none, or nobody looked."""
    listing = driver_of(facts).libraries
    return next((library for library in (listing.items if listing else ()) if _place(library, name)), None)


def _place(library: DriverLibrary, name: str) -> str | None:
    """The path under which the loader meets a file when it looks for ``name``."""
    return next((path for path in library.found_as if PurePosixPath(path).name == name), None)


def take_off(library: DriverLibrary, name: str, facts: Facts) -> tuple[Fix, ...]:
    """Keep the loader from this file, by what leads it there."""
    place = _place(library, name) or library.path
    folder = str(PurePosixPath(place).parent)
    if library.found_by in _BY_VARIABLE:
        return without_variable(library.found_by, [folder], facts)
    if library.mounted and in_container(facts):
        text = f"Start the container again: {library.path} comes from the host; then check the driver there"
        return (Fix(text=text, who="cluster-admin"),)
    if library.listed_in:
        text = f"Remove the line {folder} from {library.listed_in}, then rebuild the loader's cache"
        return (Fix(text=text, command=("sudo", "ldconfig"), who="root"),)
    text = f"Remove {place}, install the driver's libraries again, then rebuild the loader's cache"
    return (Fix(text=text, command=("sudo", "ldconfig"), who="root"),)


class _Bad(NamedTuple):
    """A file that is taken for a library of the driver and is none."""

    name: str
    path: str
    why: str
    library: DriverLibrary | None
    """Its record."""
    call: ApiResult | None
    """What came of calling it."""


def _unusable(name: str, facts: Facts) -> _Bad | None:
    """What is wrong with the file that the loader takes for ``name``, by the file and by what was answered."""
    library, call = first_met(name, facts), _call_of(name, facts)
    if call is not None and call.code == 0:
        return None  # it was loaded, and works
    if library is not None and call is not None and call.library not in (None, library.path):
        library = None  # the loader took another
    if library is not None and library.refused and not _is_place_holder(library, facts):
        return _Bad(name, library.path, library.refused, library, call)
    if call is not None and _answered_by_stub(name, call):
        path = call.library or (library.path if library else name)
        of_path = library if library and library.path == path else None
        return _Bad(name, path, "it is a link-time stub, made for linking only", of_path, call)
    if library is not None and library.kind == "stub":
        return _Bad(name, library.path, "it is a link-time stub, made for linking only", library, call)
    complaint = _COMPLAINT.search(call.text) if call is not None and call.code == NOT_LOADABLE else None
    if complaint is None or "No such file" in complaint["why"]:
        return None
    return _Bad(name, complaint["file"], f"the loader says: {complaint['why']}", library, call)


def _is_place_holder(library: DriverLibrary, facts: Facts) -> bool:
    """Whether it is what an image keeps of a library that was mounted there; the container then lacks the GPU."""
    return in_container(facts) and library.kind is None and library.found_by not in _BY_VARIABLE


def _call_of(name: str, facts: Facts) -> ApiResult | None:
    driver = driver_of(facts)
    return {CUDA: driver.cuda_init, NVML: driver.nvml}.get(name)


def _answered_by_stub(name: str, call: ApiResult) -> bool:
    if name == NVML:
        return call.code == _NVML_NOT_FOUND and bool(call.library)
    return call.code == _STUB


def _all_unusable(facts: Facts) -> list[_Bad]:
    return [bad for name in (CUDA, NVML, *_FOR_CODE) if (bad := _unusable(name, facts))]


def _gpus_matter(_snapshot: Snapshot, facts: Facts) -> bool:
    return may_have_gpus(facts) or any(map(_is_led_to, _all_unusable(facts)))


def _is_led_to(bad: _Bad) -> bool:
    """Whether a variable leads to a damaged file, which stops programs without a GPU too. A stub may be meant there:
    images without a driver are built with it.
    """
    return bad.library is not None and bad.library.found_by in _BY_VARIABLE and bool(bad.library.refused)


@rule(
    layer="driver",
    scope="container",
    arises=_gpus_matter,
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
)
def driver_library_unusable(_snapshot: Snapshot, facts: Facts) -> Outcome | None:
    """The driver library that programs load is unusable.

    What it checks
        Checks that the loader finds usable files for libcuda.so.1, libnvidia-ml.so.1 and the libraries
        that libcuda opens (libnvidia-ptxjitcompiler, libnvidia-nvvm): not empty, truncated, a text, a
        folder, or a toolkit's link-time stub. The loader takes the first file of that name (LD_PRELOAD,
        LD_LIBRARY_PATH, its cache, the system folders) and looks no further, even if it cannot be
        loaded.

    Why it matters
        Without libcuda no program can use a GPU. Without libnvidia-ml, CUDA may start, but nvidia-smi,
        NCCL, JAX and PyTorch's memory and utilization queries fail. The GPU and its driver are healthy.

    How to fix
        Remove the file's folder from LD_LIBRARY_PATH, or from the file in /etc/ld.so.conf.d that lists
        it (then run ldconfig). If it is the driver's own file, reinstall the driver libraries. In a
        container they come from the host.

    Sources
        Linux manual, the dynamic loader: https://man7.org/linux/man-pages/man8/ld.so.8.html
        CUDA driver API, CUresult: https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__TYPES.html
    """
    found = _all_unusable(facts)
    if not found:
        return None
    if not may_have_gpus(facts):
        found = [bad for bad in found if _is_led_to(bad)]
    name, path, why, library, call = found[0]
    used = _USED_BY.get(name, "Code that is compiled when a program starts (PTX) cannot be loaded.")
    leads = f" {library.found_by} leads the loader there." if library and library.found_by in _BY_VARIABLE else ""
    return Outcome(
        status=_weight(found, facts),
        title=f"{name} cannot be used: {why}",
        message=f"The loader takes {path}: {why}.{leads} {used}",
        evidence=tuple(part for bad in found for part in _told(bad)),
        decided_by="driver-answered" if call is not None and may_have_gpus(facts) else "declared",
        fixes=tuple(dict.fromkeys(fix for bad in found for fix in _ways_out(bad, facts))),
    )


def _weight(found: list[_Bad], facts: Facts) -> Status:
    """A warning where no GPU is used, where only compiling PTX suffers, or where frameworks work without NVML."""
    names = {bad.name for bad in found}
    if not may_have_gpus(facts) or not names & {CUDA, NVML}:
        return "warn"
    trials = tried(facts.environment)
    seen_at_work = bool(trials) and all(ran_on_gpu(framework) for framework in trials)
    return "warn" if CUDA not in names and seen_at_work else "fail"


def _told(bad: _Bad) -> tuple[Evidence, ...]:
    name, path, why, library, call = bad
    by = f" (found by {library.found_by})" if library and library.found_by else ""
    file = Evidence(what=name, value=f"{path}{by}: {why}", source=library.source if library else "loader")
    return (file, *((shown(call),) if call is not None else ()))


def _ways_out(bad: _Bad, facts: Facts) -> tuple[Fix, ...]:
    name, path, _, library, _ = bad
    if library is not None and library.path == path:
        return take_off(library, name, facts)
    folder = str(PurePosixPath(path).parent)
    for entry in re.split(r"[:;]", facts.variable("LD_LIBRARY_PATH") or ""):
        if entry and str(PurePosixPath(entry)) == folder:
            return without_variable("LD_LIBRARY_PATH", [folder], facts)
    return (Fix(text=f"Remove {path}, or take {folder} off the loader's path: see what leads there", command=_SEE),)


_SEE = ("env", "LD_DEBUG=libs", "nvidia-smi")


def stranger(facts: Facts) -> tuple[DriverLibrary, str] | None:
    """A library of another release than the kernel module's that the loader takes before one of the module's release,
    or that a variable leads it to; with the name that it is found by.
    """
    kernel = facts.snapshot.kernel
    module = kernel.nvidia.version if kernel and kernel.nvidia else None
    listing = driver_of(facts).libraries
    if module is None or listing is None:
        return None
    right = {library.soname for library in listing.items if library.version == module}
    for name in (CUDA, NVML, *_FOR_CODE):
        library = first_met(name, facts)
        if library is None or library.version in (None, module) or library.kind != "driver":
            continue
        if name in right or library.found_by in _BY_VARIABLE:
            return library, name
    return None


def _jit_of_another_release(_snapshot: Snapshot, facts: Facts) -> bool:
    return nvml_answers(facts) or cuda_answers(facts)


@rule(layer="driver", scope="container", arises=_jit_of_another_release)
def driver_compiler_mismatch(_snapshot: Snapshot, facts: Facts) -> Outcome | None:
    """The driver's compiler library has a different version than the driver.

    What it checks
        Checks that the libnvidia-ptxjitcompiler.so.1 and libnvidia-nvvm.so.4 that the loader finds have
        the kernel module's version.

    Why it matters
        libcuda opens them by name to compile PTX for the GPU, with the same search as any library.
        NVIDIA supports only driver libraries of one version. Programs with code built for this GPU are
        not affected.

    How to fix
        Remove the folder with the other version from LD_LIBRARY_PATH or from the loader cache.

    Sources
        Linux manual, the dynamic loader: https://man7.org/linux/man-pages/man8/ld.so.8.html
        CUDA compatibility: https://docs.nvidia.com/deploy/cuda-compatibility/
    """
    found = stranger(facts)
    if found is None or found[1] not in _FOR_CODE:
        return None
    library, name = found
    kernel = facts.snapshot.kernel
    module = kernel.nvidia.version if kernel and kernel.nvidia else ""
    return Outcome(
        status="warn",
        title=f"{name} is of release {library.version}, the driver of {module}",
        message=f"The loader takes {library.path}. Code that the driver compiles when a program starts may not load.",
        evidence=(
            Evidence(what=name, value=f"{library.path} (found by {library.found_by or 'the loader'})", source="file"),
            Evidence(what="kernel module", value=module or "", source="procfs"),
        ),
        decided_by="declared",
        fixes=take_off(library, name, facts),
    )
