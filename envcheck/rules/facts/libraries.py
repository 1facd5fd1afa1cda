"""The libraries that a framework loads: which are missing and why, and which copies exist."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePosixPath

from envcheck.compat.package_needs import holds, read_requirement
from envcheck.knowledge.error_lines import matches_fragment
from envcheck.knowledge.relations.libraries import cuda_majors, row_of
from envcheck.model.checks import Evidence, Status
from envcheck.model.snapshot import Framework, Library, Load
from envcheck.rules.api import Facts
from envcheck.rules.facts.library_names import LibraryName, lines_requiring, name_of

_SHOWN = 8

VARIABLES = ("LD_LIBRARY_PATH", "LD_PRELOAD")  # Variables that put other copies before a framework's own


def loads_are_known(framework: Framework, facts: Facts) -> bool:
    """Whether the loads of a CUDA build are known."""
    return loads_are_followed(framework, facts) and not framework.cpu_only


def loads_are_followed(framework: Framework, facts: Facts) -> bool:
    """Whether the loads of a build for CUDA or the CPU are known. For an extension, the framework that it extends must
    also be intact: that one loads most libraries, and its own missing ones belong to other rules.
    """
    if framework.extends is not None and not can_load(facts.framework(framework.extends)):
        return False
    return framework.loads is not None and not framework.hip


def can_load(framework: Framework | None) -> bool:
    """Whether a framework is there, with all its files, and none of its libraries is refused."""
    loads = (framework.loads if framework else None) or ()
    refused = any(load.refused and not load.optional for load in loads)
    return framework is not None and not framework.incomplete and not refused


def loads_of(framework: Framework, *families: str) -> tuple[Load, ...]:
    """The libraries of these families that it requests and gets, each file once."""
    there = (load for load in framework.loads or () if load.path and not load.refused)
    return tuple({load.path: load for load in there if is_of_family(load, families)}.values())


def is_of_family(load: Load, families: tuple[str, ...]) -> bool:
    name = name_of(load.name)
    return name is not None and name.family in families


def parts_loaded(framework: Framework, kind: str) -> list[Load]:
    """The libraries of a product that it gets and whose releases are known, each file once."""
    known = ((name_of(load.name), load) for load in framework.loads or () if load.path and load.version)
    return list({load.path: load for name, load in known if name and name.kind == kind}.values())


def own_loads(framework: Framework, facts: Facts, *families: str) -> tuple[Load, ...]:
    """The libraries that it loads itself, without those that the framework it extends loads from the same file."""
    base = facts.framework(framework.extends)
    known = {(load.name, load.path) for load in (base.loads if base else None) or ()}
    loads = (load for load in framework.loads or () if (load.name, load.path) not in known)
    return tuple(load for load in loads if not families or is_of_family(load, families))


def missing(framework: Framework, facts: Facts, *, for_gpu: bool = False) -> tuple[Load, ...]:
    """The required libraries that the loader does not find or cannot load; none where it ran on the GPU.

    With ``for_gpu``, also those that it opens only where there is a GPU, whether this machine has one or not.
    """
    if framework.ran_on_gpu:
        return ()
    needed = [load for load in own_loads(framework, facts) if load.path is None or load.refused]
    named = (load for load in needed if name_of(load.name) or _is_linked_in_vain(load, framework))
    return tuple({load.name: load for load in named if _is_required(load, framework, facts, for_gpu=for_gpu)}.values())


def _is_linked_in_vain(load: Load, framework: Framework) -> bool:
    """Whether a library that is neither CUDA's nor the driver's is needed and certainly not loaded."""
    absent = framework.loads_complete and not matches_fragment("driver-library", load.name)
    return not load.optional and (load.refused is not None or absent)


def _is_required(load: Load, framework: Framework, facts: Facts, *, for_gpu: bool) -> bool:
    if not load.optional:
        return True
    name = name_of(load.name)
    lines = map(read_requirement, lines_requiring(framework, name.family) if name else ())
    if any(asked is not None and holds(asked, facts.markers) for asked in lines):
        return True  # the framework requires it, without an extra, but opens it late: cuSOLVER of PyTorch
    row = row_of(name.family) if name else None
    if name is None or row is None or name.family not in row.opened_first:
        return False
    falls_back = facts.matrix.has_trait(framework.name, "falls-back-to-cpu")
    built_for_cuda = bool(framework.cuda or facts.matrix.has_trait(framework.name, "part-for-cuda"))
    return falls_back and built_for_cuda and (for_gpu or facts.may_have_gpus)


def are_opened_late(found: Iterable[Load], framework: Framework, facts: Facts) -> bool:
    """Whether the framework works until it first calls one of these, instead of falling back to the CPU."""
    return all(load.optional for load in found) and not facts.matrix.has_trait(framework.name, "falls-back-to-cpu")


def problem_of_missing(wanted: LibraryName, *, installed: bool, other_major: bool) -> str:
    """The rule for a library that was not found, by what was found instead.

    ``installed``: a copy exists where the loader does not look. ``other_major``: copies exist, all of another major
    version.
    """
    if installed:
        return "library-not-found"
    if other_major and wanted.kind in ("cudnn", "cuda"):
        return f"{wanted.kind}-major-mismatch"
    return "cuda-library-missing" if wanted.kind == "cuda" else f"{wanted.kind}-missing"


def missing_because(rule: str, framework: Framework, facts: Facts) -> tuple[Load, ...]:
    """The missing libraries that belong to this rule."""
    found = []
    for load in missing(framework, facts):
        name, problem = name_of(load.name), "library-not-found"
        if name is not None:
            installed = bool(load.unfound or load.refused)
            other_major = not installed and any(_other_major(library, name) for library in facts.libraries)
            if other_major and name.kind != "cudnn":  # unless a copy is of a CUDA major version that has the library
                majors = {str(major) for major in cuda_majors(facts.matrix, name.family, name.number)}
                there = {(library.cuda or "").partition(".")[0] for library in facts.libraries if not library.stub}
                other_major = not majors & there
            problem = problem_of_missing(name, installed=installed, other_major=other_major)
        if problem == rule:
            found.append(load)
    return tuple(found)


def _other_major(library: Library, wanted: LibraryName) -> bool:
    name = name_of(library.soname or library.path)
    same = name is not None and (name.family == wanted.family or name.kind == wanted.kind == "cudnn")
    other = name is not None and not f"{name.number}.".startswith(f"{wanted.number}.")
    return same and other and bool(wanted.number) and not library.stub  # no number matches any major


def copies_of_other_majors(load: Load, facts: Facts) -> tuple[Library, ...]:
    """Copies of a missing library in another major version."""
    name = name_of(load.name)
    return tuple(library for library in facts.libraries if name and _other_major(library, name))[:_SHOWN]


def folder_of(path: str | None) -> str:
    return str(PurePosixPath(path or "").parent)


def copy_at(path: str | None, facts: Facts) -> Library | None:
    return next((library for library in facts.libraries if library.path == path), None) if path else None


def version_at(path: str, facts: Facts) -> str | None:
    """The version of a copy: what its version call returned or its file says, else its package's version."""
    library = copy_at(path, facts)
    if library is None:
        return None
    own, stated = library.on_disk, library.declared or ""
    return library.loaded or (stated if own and stated.startswith(f"{own}.") else own) or library.declared


def missing_status(framework: Framework, facts: Facts) -> Status:
    """The status for a missing library: a warning where other frameworks of the environment still use the GPU."""
    absent = [load for load in framework.loads or () if not load.optional and (load.path is None or load.refused)]
    if any(load.refused or name_of(load.name) or _is_linked_in_vain(load, framework) for load in absent):
        if framework.extends is None or facts.importance(framework) == 0:
            return "fail"  # programs are written against it
        if not facts.provides_gpu_support(framework):
            return "warn"
    return "warn" if facts.other_cuda_builds(framework) else "fail"


def load_evidence(loads: Iterable[Load]) -> tuple[Evidence, ...]:
    """Which file requests which library, and what was found."""
    found = []
    for load in tuple(loads)[:_SHOWN]:
        version = f" ({load.version})" if load.version else ""
        copy = f"{load.path}{version}, found{f' by {load.found_by}' if load.found_by else ''}"
        if load.refused:
            copy = f"{load.path}: {load.refused}"
        elif load.path is None:
            copy = "not on the loader's search path"
        what = f"{load.name} is needed by {load.needed_by}"
        found.append(Evidence(what, copy, load.source or f"elf {load.needed_by}"))
    return tuple(found)


def copy_evidence(libraries: Iterable[Library]) -> tuple[Evidence, ...]:
    """Copies of a library, each with its version, path and owner."""
    found = []
    for library in tuple(libraries)[:_SHOWN]:
        version = library.on_disk or library.declared or "of unknown version"
        place = f"{library.path} of {library.owner}" if library.owner else library.path
        found.append(Evidence(f"{library.family} {version}", place, library.source))
    return tuple(found)
