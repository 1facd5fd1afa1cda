"""Why a library that a program does not find is missing: it is nowhere, where the loader does not look, or only of
another major version. The copies, toolkits and packages that were found or pasted decide which.
"""

from __future__ import annotations

from collections.abc import Iterator

from envcheck.compat.package_needs import admits
from envcheck.knowledge.error_lines import fragment_in, matches_fragment, named_by
from envcheck.knowledge.matrix import Matrix
from envcheck.knowledge.relations.libraries import cuda_majors, row_of, same_major
from envcheck.model.snapshot import Distribution, Environment, Framework, Library, Snapshot, frameworks_in, items_in
from envcheck.rules.facts.libraries import problem_of_missing
from envcheck.rules.facts.library_names import LibraryName, cuda_of_wheel, family_of_wheel, name_of, names_in

LONGEST_NUMBER = 9
"""Most digits of a number; Python refuses to parse thousands."""


def why_missing(problem: str, text: str, snapshot: Snapshot, matrix: Matrix) -> str:
    """The problem of a library that a line does not find; ``problem`` where nothing more is known of it."""
    about_path = (error.text for error in snapshot.observed_errors if "LD_LIBRARY_PATH" in error.text)
    if any((line := named_by(each)) and line.problem == "library-not-found" for each in about_path):
        return "library-not-found"  # the text says that it was found once LD_LIBRARY_PATH led to it
    # The missing library; of several in a line, the one that the message is about.
    _, cause, after = text.partition(" due to ")
    head, refused, _ = text.partition(": cannot open")
    names = names_in(head)
    wanted = next(iter((names_in(after) if cause else ()) or (reversed(names) if refused else names)), None)
    libraries = items_in(snapshot.libraries)
    if wanted is None and (asked := fragment_in("versions-of-onnxruntime", text)):
        # The major version that a program asks for and this machine does not have, of CUDA before cuDNN.
        majors = frozenset(_majors(snapshot, matrix, frozenset({int(asked["cuda"])})))
        if majors and int(asked["cuda"]) not in majors:
            return "cuda-major-mismatch"
        found_cudnn = list(versions_of("cudnn", snapshot))
        other = bool(found_cudnn) and not any(same_major(version, asked["cudnn"]) for version in found_cudnn)
        return "cudnn-major-mismatch" if other else problem
    if wanted is None:
        links = [each.path for each in libraries if each.family == "nvJitLink" and not each.stub]
        # From outside any environment.
        foreign = any("/nvidia/" not in path or ("site-packages" not in path and "hpc_sdk" in path) for path in links)
        return "nvjitlink-mismatch" if foreign and matches_fragment("of-cusparse", text) else problem
    installed, other_major = any(_is_copy(library, wanted) for library in libraries), False
    if wanted.kind == "cudnn":
        stated = [each.declared for each in libraries if each.stated and each.family == "cudnn"]
        installed = installed or any(version and same_major(version, wanted.number) for version in stated)
        found_cudnn = [version for version in versions_of("cudnn", snapshot) if version]
        same = any(same_major(version, wanted.number) for version in found_cudnn)
        other_major = bool(wanted.number and found_cudnn) and not same
    elif wanted.kind == "cuda" and not matches_fragment("own-part", text):
        # The release of a library that looks for a part of its own is there: it speaks.
        other_major = _other_cuda(wanted, snapshot, matrix)
    found = problem_of_missing(wanted, installed=installed, other_major=other_major)
    # "Not found by the loader" proves no more than that, unless another major version is there.
    return problem if problem == "library-not-found" and not other_major else found


def _is_copy(library: Library, wanted: LibraryName) -> bool:
    """Whether a copy has this name, as far as both have version numbers."""
    name = name_of(library.path)
    if library.stub or name is None or name.family != wanted.family or library.stated:
        return False
    if not wanted.number or not name.number:
        return not wanted.number or library.soname == wanted.file
    return f"{name.number}.".startswith(f"{wanted.number}.") or library.soname == wanted.file


def _other_cuda(wanted: LibraryName, snapshot: Snapshot, matrix: Matrix) -> bool:
    """Whether CUDA is there, but no major version with this library."""
    majors = cuda_majors(matrix, wanted.family, wanted.number)
    there = frozenset(_majors(snapshot, matrix, majors))
    if not majors & there or wanted.number.count(".") != 1:
        return bool(majors and there) and not majors & there
    # It may have the library under another name, usually that of its own minor version.
    stated = [library.cuda for library in items_in(snapshot.libraries) if library.cuda and library.stated]
    toolkits = [item.version for item in items_in(snapshot.toolkits) if item.version]
    known = [version for version in (*stated, *toolkits) if "." in version]
    row = row_of(wanted.family)
    having = (row.shared.get(wanted.file) if row else None) or f"=={wanted.number}.*"
    return bool(known) and not any(admits(having, version) for version in known)


def _majors(snapshot: Snapshot, matrix: Matrix, wanted: frozenset[int]) -> Iterator[int]:
    """The CUDA major versions of toolkits, library copies, wheels and frameworks; ``wanted`` are those looked for."""
    for toolkit in items_in(snapshot.toolkits):
        yield from _major(toolkit.version)
    for library in items_in(snapshot.libraries):
        name = name_of(library.path)
        if library.cuda:
            yield from _major(library.cuda)
        elif name and name.kind == "cuda" and name.number:
            majors = cuda_majors(matrix, name.family, name.number)
            yield from majors if len(majors) == 1 else ()
    for distribution in distributions_in(snapshot):
        yield from _major(cuda_of_wheel(distribution))
    for framework in judged_frameworks(snapshot):
        # What a release is known to be built for may be what it does not find, and is no sign that it is there.
        of_row = framework.is_inferred("cuda")
        yield from (major for major in _major(framework.cuda) if not (of_row and major in wanted))


def _major(version: str | None) -> Iterator[int]:
    head = (version or "").partition(".")[0]
    if head.isascii() and head.isdigit() and len(head) <= LONGEST_NUMBER:
        yield int(head)


def versions_of(family: str, snapshot: Snapshot) -> Iterator[str]:
    for library in items_in(snapshot.libraries):
        name = name_of(library.path)
        if library.family == family or (family == "cudnn" and name is not None and name.kind == family):
            version = library.loaded or library.on_disk or library.declared or (name.number if name else "")
            if version:
                yield version
    for distribution in wheels_of(family, snapshot):
        yield distribution.version


def wheels_of(family: str, snapshot: Snapshot) -> Iterator[Distribution]:
    return (each for each in distributions_in(snapshot) if family_of_wheel(each.name) == family)


def _judged_environments(snapshot: Snapshot) -> tuple[Environment, ...]:
    items = items_in(snapshot.environments)
    return tuple(item for item in items if item.judged)


def judged_frameworks(snapshot: Snapshot) -> tuple[Framework, ...]:
    """The frameworks of what is judged."""
    return tuple(framework for each in _judged_environments(snapshot) for framework in frameworks_in(each))


def distributions_in(snapshot: Snapshot) -> Iterator[Distribution]:
    for environment in _judged_environments(snapshot):
        yield from environment.distributions or ()
