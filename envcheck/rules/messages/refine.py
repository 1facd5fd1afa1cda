"""Refine the problem that a line names, by what else is known of the machine: above all why a library is missing."""

from __future__ import annotations

import re
from collections.abc import Iterator

from envcheck.compat.package_needs import admits, needed_of, pinned_by, requirement_name
from envcheck.knowledge.error_lines import ErrorLine, fragment_in, matches_fragment, named_by, nccl_releases
from envcheck.knowledge.relations.driver import known_cuda_of
from envcheck.knowledge.relations.gpu_code import runs_natively
from envcheck.knowledge.relations.libraries import cuda_majors, is_older, row_of, same_major
from envcheck.knowledge.specifier import parse_version
from envcheck.model.snapshot import PASTED, Distribution, Library, items_in
from envcheck.model.versions import CodeTarget, ComputeCapability, CudaVersion, CudnnVersion, DriverRelease
from envcheck.rules.api import Facts
from envcheck.rules.facts.libraries import problem_of_missing
from envcheck.rules.facts.library_names import (
    LibraryName,
    contains_library,
    cuda_of_wheel,
    family_of_wheel,
    name_of,
    names_in,
)
from envcheck.text.lazy import lazy_pattern

LONGEST_NUMBER = 9  # Most digits of a number; Python refuses to parse thousands


def _problem_of_not_found(problem: str, text: str, facts: Facts) -> str:
    """The problem of a library that a line does not find; ``problem`` where nothing more is known of it."""
    about_path = (error.text for error in facts.snapshot.observed_errors if "LD_LIBRARY_PATH" in error.text)
    if any((line := named_by(each)) and line.problem == "library-not-found" for each in about_path):
        return "library-not-found"  # the text says that it was found once LD_LIBRARY_PATH led to it
    wanted = name_not_found(text)
    libraries = facts.libraries
    if wanted is None and (asked := fragment_in("versions-of-onnxruntime", text)):
        # The major version that a program asks for and this machine does not have, of CUDA before cuDNN.
        majors = frozenset(_majors(facts, frozenset({int(asked["cuda"])})))
        if majors and int(asked["cuda"]) not in majors:
            return "cuda-major-mismatch"
        found_cudnn = list(versions_of("cudnn", facts))
        other = bool(found_cudnn) and not any(same_major(version, asked["cudnn"]) for version in found_cudnn)
        return "cudnn-major-mismatch" if other else problem
    if wanted is None:
        families = facts.matrix.families if problem in MISSING else ()
        named = [row.name for row in families if row.name.lower() in text.lower()]
        if any(True for family in named for _ in wheels_of(family, facts)):
            return "library-not-found"  # its wheel is listed
        links = [each.path for each in libraries if each.family == "nvJitLink" and not each.stub]
        # From outside any environment.
        foreign = any("/nvidia/" not in path or ("site-packages" not in path and "hpc_sdk" in path) for path in links)
        return "nvjitlink-mismatch" if foreign and matches_fragment("of-cusparse", text) else problem
    wheels = (each for each in facts.distributions if each.channel != "conda")
    installed = any(_is_copy(library, wanted) for library in libraries)
    installed = installed or any(contains_library(each, wanted, facts.matrix) for each in wheels if wanted.number)
    other_major = False
    if wanted.kind == "cudnn":
        stated = [each.declared for each in libraries if each.stated and each.family == "cudnn"]
        installed = installed or any(version and same_major(version, wanted.number) for version in stated)
        own = required_by_torch("nvidia-cudnn-cu", facts)
        found_cudnn = [*versions_of("cudnn", facts)] or [pin for pin in (pinned_by(own or ""),) if pin]
        same = any(same_major(version, wanted.number) for version in found_cudnn)
        other_major = bool(wanted.number and found_cudnn) and not same
    elif wanted.kind == "cuda" and not matches_fragment("own-part", text):
        # The release of a library that looks for a part of its own is there: it speaks.
        other_major = _other_cuda(wanted, facts)
    found = problem_of_missing(wanted, installed=installed, other_major=other_major)
    # "Not found by the loader" proves no more than that, unless another major version is there.
    return problem if problem == "library-not-found" and not other_major else found


def name_not_found(text: str) -> LibraryName | None:
    """The missing library of a line; of several, the one that the message is about."""
    _, cause, after = text.partition(" due to ")
    head, refused, _ = text.partition(": cannot open")
    names = names_in(head)
    return next(iter((names_in(after) if cause else ()) or (reversed(names) if refused else names)), None)


def _is_copy(library: Library, wanted: LibraryName) -> bool:
    """Whether a copy has this name, as far as both have version numbers."""
    name = name_of(library.path)
    if library.stub or name is None or name.family != wanted.family or library.stated:
        return False
    if not wanted.number or not name.number:
        return not wanted.number or library.soname == wanted.file
    return f"{name.number}.".startswith(f"{wanted.number}.") or library.soname == wanted.file


def _other_cuda(wanted: LibraryName, facts: Facts) -> bool:
    """Whether CUDA is there, but no major version with this library."""
    majors = cuda_majors(facts.matrix, wanted.family, wanted.number)
    there = frozenset(_majors(facts, majors))
    if not majors & there or wanted.number.count(".") != 1:
        return bool(majors and there) and not majors & there
    # It may have the library under another name, usually that of its own minor version.
    stated = [library.cuda for library in facts.libraries if library.cuda and library.stated]
    toolkits = [item.version for item in items_in(facts.snapshot.toolkits) if item.version]
    known = [version for version in (*stated, *toolkits) if "." in version]
    row = row_of(wanted.family)
    having = (row.shared.get(wanted.file) if row else None) or f"=={wanted.number}.*"
    return bool(known) and not any(admits(having, version) for version in known)


def _majors(facts: Facts, wanted: frozenset[int]) -> Iterator[int]:
    """The CUDA major versions of toolkits, library copies, wheels and frameworks; ``wanted`` are those looked for."""
    for toolkit in items_in(facts.snapshot.toolkits):
        yield from _major(toolkit.version)
    for library in facts.libraries:
        name = name_of(library.path)
        if library.cuda:
            yield from _major(library.cuda)
        elif name and name.kind == "cuda" and name.number:
            majors = cuda_majors(facts.matrix, name.family, name.number)
            yield from majors if len(majors) == 1 else ()
    for distribution in facts.distributions:
        yield from _major(cuda_of_wheel(distribution))
    for framework in facts.frameworks:
        # What a release is known to be built for may be what it does not find, and is no sign that it is there.
        of_row = framework.is_inferred("cuda")
        yield from (major for major in _major(framework.cuda) if not (of_row and major in wanted))


def _major(version: str | None) -> Iterator[int]:
    head = (version or "").partition(".")[0]
    if head.isascii() and head.isdigit() and len(head) <= LONGEST_NUMBER:
        yield int(head)


def versions_of(family: str, facts: Facts) -> Iterator[str]:
    for library in facts.libraries:
        name = name_of(library.path)
        if library.family == family or (family == "cudnn" and name is not None and name.kind == family):
            version = library.loaded or library.on_disk or library.declared or (name.number if name else "")
            if version:
                yield version
    for distribution in wheels_of(family, facts):
        yield distribution.version


def required_by_torch(wheel: str, facts: Facts) -> str | None:
    """The requirement line of PyTorch's release for a wheel of NVIDIA, by the beginning of its name."""
    releases = (each.version for each in facts.frameworks if each.name == "torch" and each.version)
    lines = (line for release in releases for line in needed_of(facts.matrix, "torch", release))
    return next((line for line in lines if requirement_name(line).startswith(wheel)), None)


def wheels_of(family: str, facts: Facts) -> Iterator[Distribution]:
    return (each for each in facts.distributions if family_of_wheel(each.name) == family)


MISSING = frozenset({"cuda-library-missing", "cudnn-missing", "tensorrt-missing", "nccl-missing", "library-not-found"})
OF_OTHER_MAJOR = frozenset({"cuda-major-mismatch", "cudnn-major-mismatch"})
_SHARED_OBJECT = lazy_pattern(r"\blib\w+\.so\b")
"""A library as Linux names it: a build that looks for one on Windows has no CUDA there."""

_NO_GPU = frozenset({"no-gpu-visible", "gpu-hidden"})
_OF_DRIVER = frozenset({"driver-not-installed", "driver-not-loaded"})
_WITHOUT_GPU = _NO_GPU | _OF_DRIVER
_TAG = lazy_pattern(
    r"\bmanylinux_2_(?P<minor>[0-9]{1,2})_|\b(?P<old>manylinux(?:1|20[0-9]{2}))_|\b(?P<any>linux)_(?:x86_64|aarch64)"
)
"""What a wheel's name says of the C library that it needs (PEP 600); older names stand for older ones."""
_ASIDE = lazy_pattern(r"\([^()]{1,60}\)")  # What a program says beside a version: the one that it is compatible with
_MACHINE = lazy_pattern(r"linux\w{0,40}_(?P<machine>x86_64|aarch64)\b")


def refine(line: ErrorLine, text: str, facts: Facts) -> ErrorLine | None:
    """The line with the problem that it names on this machine; None where it names none here."""
    if line.problem == "jit-compiler-too-old" and (compared := fragment_in("versions-compared", text)):
        # Some programs compare versions as texts, and call a release older than one that it is not older than.
        own, least = parse_version(compared["own"]), parse_version(compared["least"])
        if own is not None and least is not None and own.numbers >= least.numbers:
            return None
    if line.problem in MISSING and matches_fragment("library-wanted", text):
        # Which library a program looks for: a fault where another major version is there, and none where that one is,
        # or the toolkit that has it.
        found = _problem_of_not_found(line.problem, text, facts)
        if found in OF_OTHER_MAJOR:
            return line._replace(problem=found, status="fail")
        stated = any(each.stated and each.cuda for each in facts.libraries) or bool(facts.snapshot.toolkits)
        is_there = found == "library-not-found" or (found == "cuda-library-missing" and stated)
        return None if is_there or line.status == "note" else line._replace(problem=found)
    if _is_no_fault(line, text, facts):
        return line._replace(status="note")
    another = _another_problem(line, text, facts)
    if another:
        return line._replace(problem=another)
    if line.problem in MISSING:
        return line._replace(problem=_problem_of_not_found(line.problem, text, facts))
    if line.problem in _NO_GPU | {"cpu-only-build"}:
        return _refine_build(line, text, facts)
    if line.problem == "python-unsupported":
        return _refine_wheel(line, text, facts)
    return _refine_driver(line, text, facts) if line.problem in _OF_DRIVER else line


def _is_no_fault(line: ErrorLine, text: str, facts: Facts) -> bool:
    """Whether the rest of the text shows that what a line tells stops nothing."""
    if line.problem in _WITHOUT_GPU:
        return facts.misses_no_gpu
    if line.problem == "toolkit-missing" and matches_fragment("shell-lacks-nvcc", text):
        # A report asked nvcc for its version: its framework works, and nothing speaks of a build.
        return _uses_gpu(facts) and not facts.lines_with("build-fails")
    if line.problem != "gpu-code-missing" or not matches_fragment("code-listed-by-torch", text):
        return False
    # Whether the build's code, as the text lists it, runs on every GPU of the text.
    codes = [each.gpu_code for each in facts.frameworks if each.name == "torch"]
    targets = [target for text in (codes[0] if len(codes) == 1 else None) or () if (target := CodeTarget.parse(text))]
    gpus = [ComputeCapability.parse(gpu.compute_capability) for gpu in facts.gpus]
    return bool(gpus and targets) and all(
        gpu is not None and any(runs_natively(facts.matrix, target, gpu) for target in targets) for gpu in gpus
    )


def _uses_gpu(facts: Facts) -> bool:
    """Whether a framework says that it finds the GPU."""
    return any(framework.gpu_available for framework in facts.frameworks)


def _another_problem(line: ErrorLine, text: str, facts: Facts) -> str | None:
    """The problem that a line names only on such a machine as this."""
    on_windows = facts.os == "windows" and not facts.platform.wsl
    if on_windows and line.problem in MISSING | {"driver-not-installed"} and _SHARED_OBJECT.search(text):
        return "windows-gpu-unsupported"
    refused = line.problem == "library-not-found" and matches_fragment("dll-load-failed", text)
    if refused and _has_cpu_builds_only(facts):
        return "system-library-missing"
    if line.problem in ("cuda-library-too-old", "cudnn-too-old") and _is_shadowed(text, facts):
        return "library-shadowed"
    in_mig_mode = any(gpu.mig and gpu.mig.enabled for gpu in facts.gpus)
    if in_mig_mode and matches_fragment("asked-for-permission", text):
        return "mig-permission"
    if line.problem == "jit-compiler-too-old":  # ptxas may be too new instead: later toolkits dropped the GPU
        undefined = fragment_in("target-undefined", text)
        newest = facts.matrix.cuda_rows[max(facts.matrix.toolkits)] if facts.matrix.toolkits else None
        if undefined is not None and newest is not None and undefined["target"] not in newest.targets:
            return "toolkit-lacks-gpu"
    if line.problem != "nccl-version-mismatch":
        return _another_by_driver(line, text, facts)
    # Without two releases, processes do not understand one another for another reason.
    if matches_fragment("nccl-message-truncated", text) and len(nccl_releases(facts.snapshot.observed_errors)) < 2:
        return "nodes-not-connected"
    return "nvidia-wheel-conflict" if len(list(wheels_of("nccl", facts))) > 1 else None


def _another_by_driver(line: ErrorLine, text: str, facts: Facts) -> str | None:
    """The problem of a line that a missing or an older driver causes too."""
    if line.problem == "driver-too-old" and not facts.snapshot.driver and facts.told.other_gpu:
        return "no-nvidia-gpu"  # CUDA's runtime says the same where there is no driver at all
    if line.problem != "gpu-code-missing":
        return None
    # The driver runs what a framework brings, and not what it compiles with a newer toolkit that is there.
    frameworks, compilers = facts.frameworks, []
    by_xla = facts.lines_with("compiled-by-xla")
    if by_xla or any(facts.matrix.has_trait(each.name, "compiles-at-run-time") for each in frameworks):
        stated = (each.cuda for each in facts.libraries if each.stated)
        compilers = [*filter(None, (*stated, *(each.version for each in items_in(facts.snapshot.toolkits))))]
    if not compilers and not matches_fragment("image-refused", text):
        return None
    driver = DriverRelease.stated(facts.driver.release)
    newest = known_cuda_of(facts.matrix, driver) if driver else None
    compiling = [CudaVersion.parse(cuda) for cuda in (*(each.cuda for each in frameworks), *compilers)]
    behind = newest is not None and any(cuda is not None and cuda > newest for cuda in compiling)
    return "driver-too-old" if behind else None


def _refine_driver(line: ErrorLine, text: str, facts: Facts) -> ErrorLine:
    """A line about the driver, where another part of the text shows one that runs: the line is from where it does not
    reach, such as a container, a container engine in a virtual machine of its own, or a loader without its folder.
    """
    if line.problem == "driver-not-loaded" and facts.platform.started_without_gpu:
        return line._replace(problem="container-without-gpu")
    inside, warned = facts.in_container, (line.problem, line.status) == ("driver-not-installed", "warn")
    refused = any(framework.gpu_available is False and not framework.cpu_only for framework in facts.frameworks)
    if warned and inside and refused and not facts.snapshot.gpus:
        return line._replace(problem="container-without-gpu", status="fail", after=())
    is_there = any("/libcuda.so." in library.path for library in facts.libraries)
    if is_there and matches_fragment("driver-by-linker-name", text):
        return line._replace(problem="library-not-found")
    # Whether the rest of the text shows a running driver; a branch may be that of a package, which need not run. A
    # Jetson has no nvidia-smi, and its driver no number.
    driver, module = facts.driver, facts.module
    runs = driver.names_release or (driver.cuda is not None and not driver.is_inferred("cuda"))
    loaded = module.loaded is True and module.version is not None
    if not (runs or loaded or facts.on_tegra or _uses_gpu(facts)):
        return line
    by_loader = matches_fragment("loader-lacks-driver", text)
    if line.status == "warn" and not by_loader:
        return line._replace(status="note")
    if line.problem != "driver-not-installed":
        return line
    if matches_fragment("container-cli", text):
        return line._replace(problem="container-toolkit-missing")
    if inside and (by_loader or matches_fragment("framework-lacks-driver", text)):
        return line._replace(problem="container-without-gpu")
    return line._replace(problem="library-not-found") if by_loader else line


def _has_cpu_builds_only(facts: Facts) -> bool:
    """Whether all frameworks of a text are known to be builds for the CPU, which list no GPU on any machine."""
    known = facts.frameworks
    return bool(known) and all(each.cpu_only and each.source == PASTED for each in known if each.extends is None)


def _refine_build(line: ErrorLine, text: str, facts: Facts) -> ErrorLine:
    """A line about a build without CUDA, or what such a build says of GPUs.

    With both packages of ONNX Runtime, one overwrote the other; a program that prints its build without being asked
    says little where no GPU is spoken of.
    """
    if line.problem in _NO_GPU:
        by_build = _has_cpu_builds_only(facts) and not matches_fragment("not-of-cpu-build", text)
        return line._replace(problem="cpu-only-build", status="fail") if by_build else line
    if matches_fragment("cuda-provider", text):
        names = {each.name for each in facts.distributions}
        own = [name for name in names if "onnxruntime" in facts.matrix.projects(name, "shares-its-folder")]
        if len({facts.matrix.has_trait(name, "has-cuda-provider") for name in own}) > 1:
            return line._replace(problem="onnxruntime-cpu-and-gpu")
    told = facts.lines_with("layers-wanted") or facts.lines_with("gpu-told")
    if not (told or facts.snapshot.gpus or facts.snapshot.driver) and matches_fragment("built-without-gpu", text):
        return line._replace(status="note")
    return line


def _refine_wheel(line: ErrorLine, text: str, facts: Facts) -> ErrorLine:
    """A line about wheels that do not fit: by their processor, their C library, or the interpreter."""
    platform = facts.platform
    machines = {found["machine"] for found in _MACHINE.finditer(text)}
    own = "aarch64" if platform.on_arm else platform.machine
    if own is not None and machines and own not in machines:
        return line._replace(problem="library-of-other-architecture")
    libc = re.match(r"glibc 2\.([0-9]{1,3})$", platform.libc or "")
    running = fragment_in("system-by-uv", text)
    there = int(running["minor"]) if running else int(libc[1]) if libc else None
    tags = list(_TAG.finditer(text.replace(running[0], " ") if running else text))
    needed = [int(found["minor"]) for found in tags if found["minor"]]
    too_old = there is not None and needed and len(needed) == len(tags) and min(needed) > there
    return line._replace(problem="glibc-too-old") if too_old else line


def _is_shadowed(text: str, facts: Facts) -> bool:
    """Whether a sufficient copy is there, so that an older one was loaded instead; or the library that lacks a symbol,
    or the one that needs it, lies in a folder of LD_LIBRARY_PATH.
    """
    named = (facts.variable("LD_LIBRARY_PATH") or "").split(":")
    folders = [each.rstrip("/") for each in named if "cuda" in each]
    by_variable = any(f"{folder}/" in text for folder in folders) and matches_fragment("undefined-symbol", text)
    if by_variable or matches_fragment("symbol-of-partner", text):
        return True
    lowered = text.lower()
    row = next((row for row in facts.matrix.families if row.version_unit and row.name in lowered), None)
    if row is None:
        return False
    # The version that the framework was built with, from its error line: ``8.6``, or ``120304`` for 12.3.
    words = [word.strip(".,;:()") for word in _ASIDE.sub(" ", text).replace("version", "version ").split()]
    numbers = [word for word in words if re.fullmatch(r"[0-9][0-9.]*", word)]
    if len(numbers) < 2 or ("." not in numbers[1] and len(numbers[1]) > LONGEST_NUMBER):
        return False
    wanted, unit = numbers[1], row.version_unit
    if "." not in wanted:
        value = int(wanted)
        wanted = str(CudnnVersion.decode(value)) if row.kind == "cudnn" else f"{value // unit}.{value % unit // 100}"
    versions = (version for version in versions_of(row.name, facts) if same_major(version, wanted))
    return any(is_older(version, wanted) is False for version in versions)
