"""The system's C and C++ libraries, which must be as new as those that a package was built with."""

from __future__ import annotations

from collections.abc import Iterator

from envcheck.model.checks import Evidence, Fix, Status
from envcheck.model.snapshot import Load
from envcheck.rules.api import Facts, FrameworkSubject, Outcome, passed, rule
from envcheck.rules.facts.frameworks import full_name
from envcheck.rules.facts.trials import imported
from envcheck.rules.fixes.commands import conda_command

_GLIBC = ("GLIBC_",)
_LIBSTDCXX = ("GLIBCXX_", "CXXABI_", "GCC_")
_SHOWN = 6


def _searched(subject: FrameworkSubject, _facts: Facts) -> bool:
    return bool(subject.framework.loads)


_BUILD_FOR_THIS_SYSTEM = (
    Fix(text="Install a release built for this glibc, compile the package here, or use a newer system or container"),
)


_NEWER_LIBRARY = (
    Fix(
        text="Remove the older copy that the error names from LD_LIBRARY_PATH, or put a newer libstdc++.so.6 before it "
        "(conda: libstdcxx-ng)"
    ),
)


@rule(
    layer="library",
    per="framework",
    arises=_searched,
    remedy=_BUILD_FOR_THIS_SYSTEM,
    explains=("libstdcxx-too-old", "library-not-found", "cuda-library-missing"),
)
def glibc_too_old(subject: FrameworkSubject, _facts: Facts) -> Outcome | None:
    """The system's glibc is older than a framework needs."""
    found = list(_lacking(subject, _GLIBC))
    if not found:
        return _new_enough(subject, "libc.so.6", "glibc")
    wanted = _newest_needed(found, _GLIBC)
    title = f"needs {wanted}, newer than this system's glibc"
    return _lacks(subject, found, title, _GLIBC, *_BUILD_FOR_THIS_SYSTEM)


@rule(
    layer="library",
    per="framework",
    arises=_searched,
    remedy=_NEWER_LIBRARY,
    explains=("library-not-found", "cuda-library-missing"),
)
def libstdcxx_too_old(subject: FrameworkSubject, _facts: Facts) -> Outcome | None:
    """The loaded C++ library is older than a framework needs."""
    found = list(_lacking(subject, _LIBSTDCXX))
    if not found:
        return _new_enough(subject, "libstdc++.so.6", "libstdc++")
    wanted = _newest_needed(found, _LIBSTDCXX)
    title = f"needs {wanted}, but the loaded library is older"
    return _lacks(subject, found, title, _LIBSTDCXX, _fix(found[0], subject))


def _lacking(subject: FrameworkSubject, kinds: tuple[str, ...]) -> Iterator[Load]:
    """The libraries that lack symbol versions of a kind, those that the framework requires first."""
    loads = subject.framework.loads or ()
    found = [load for load in loads if any(version.startswith(kinds) for version in load.lacks)]
    yield from sorted(found, key=lambda load: load.optional)


def _newest_needed(found: list[Load], kinds: tuple[str, ...]) -> str:
    return [version for version in found[0].lacks if version.startswith(kinds)][-1]


def _new_enough(subject: FrameworkSubject, name: str, called: str) -> Outcome | None:
    """A pass if the library was found and everything was checked."""
    framework = subject.framework
    load = next((each for each in framework.loads or () if each.name == name and each.path), None)
    if load is None or not framework.loads_complete:
        return None
    version = f" ({load.version})" if load.version else ""
    evidence = Evidence(what=name, value=f"{load.path}{version}", source=load.source or "elf")
    return passed(f"{called} is new enough for {full_name(framework)}", evidence)


def _lacks(subject: FrameworkSubject, found: list[Load], what: str, kinds: tuple[str, ...], fix: Fix) -> Outcome:
    framework = subject.framework
    needed = any(not load.optional for load in found)
    worst: Status = "fail" if needed else "note"
    shown = [part for load in found[:_SHOWN] for part in _evidence(load, kinds)]
    first = found[0]
    versions = ", ".join(version for version in first.lacks if version.startswith(kinds))
    there = f", which has up to {first.offers}" if first.offers else ""
    return Outcome(
        status="note" if imported(framework) else worst,
        title=f"{full_name(framework)} {what}",
        message=f"{first.needed_by} needs {versions} of {first.name}; the loader finds {first.path}{there}.",
        evidence=tuple(shown),
        decided_by="declared",
        fixes=(fix,),
    )


def _evidence(load: Load, kinds: tuple[str, ...]) -> tuple[Evidence, ...]:
    lacking = " ".join(version for version in load.lacks if version.startswith(kinds))
    place = f"{load.path} (found by {load.found_by})" if load.found_by else load.path or "not found"
    return (
        Evidence(what=f"{load.needed_by} needs from {load.name}", value=lacking, source=load.source or "elf"),
        Evidence(what=f"loaded {load.name}", value=place, source=load.source or "elf"),
        *(
            (Evidence(what="newest version in it", value=load.offers, source=f"elf {load.path}"),)
            if load.offers
            else ()
        ),
    )


def _fix(load: Load, subject: FrameworkSubject) -> Fix:
    environment = subject.environment
    if load.found_by in ("LD_LIBRARY_PATH", "LD_PRELOAD"):
        return Fix(text=f"Remove the folder of {load.path} from {load.found_by}: the loader may then find a newer copy")
    if environment.manager == "conda" and environment.prefix and (load.path or "").startswith(environment.prefix):
        command = conda_command(environment, ("libstdcxx-ng",))
        return Fix(text="Update the C++ library of the conda environment", command=command)
    return Fix(
        text="Install a build of the package for this system, or use a newer system; a newer libstdc++.so.6 (conda's "
        "libstdcxx-ng, a newer GCC's) may precede the old one"
    )
