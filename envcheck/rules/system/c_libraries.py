"""The system's C and C++ libraries, which must be as new as those that a package was built with."""

from __future__ import annotations

from envcheck.model.checks import Evidence, Fix
from envcheck.model.snapshot import Framework, Load
from envcheck.rules.api import Facts, Outcome, passed, rule
from envcheck.rules.fixes.install import conda_command

_GLIBC = ("GLIBC_",)
_LIBSTDCXX = ("GLIBCXX_", "CXXABI_", "GCC_")
_SHOWN = 6


_BUILD_FOR_THIS_SYSTEM = (
    Fix("Install a release built for this glibc, compile the package here, or use a newer system or container"),
)


@rule(layer="library", remedy=_BUILD_FOR_THIS_SYSTEM)
def glibc_too_old(framework: Framework, _facts: Facts) -> Outcome | None:
    """The system's glibc is older than a framework needs."""
    found = _lacking(framework, _GLIBC)
    if not found:
        return _new_enough(framework, "libc.so.6", "glibc")
    return _lacks(framework, found, "needs {wanted}, newer than this system's glibc", _GLIBC, *_BUILD_FOR_THIS_SYSTEM)


@rule(layer="library")
def libstdcxx_too_old(framework: Framework, facts: Facts) -> Outcome | None:
    """The loaded C++ library is older than a framework needs."""
    found = _lacking(framework, _LIBSTDCXX)
    if not found:
        return _new_enough(framework, "libstdc++.so.6", "libstdc++")
    load, environment = found[0], facts.environment
    if load.found_by in ("LD_LIBRARY_PATH", "LD_PRELOAD"):
        fix = Fix(f"Remove the folder of {load.path} from {load.found_by}: the loader may then find a newer copy")
    elif environment.manager == "conda" and environment.prefix and (load.path or "").startswith(environment.prefix):
        command = conda_command(facts, ("libstdcxx-ng",))
        fix = Fix("Update the C++ library of the conda environment", command=command)
    else:
        fix = Fix(
            "Install a build of the package for this system, or use a newer system; a newer libstdc++.so.6 "
            "(conda's libstdcxx-ng, a newer GCC's) may precede the old one"
        )
    return _lacks(framework, found, "needs {wanted}, but the loaded library is older", _LIBSTDCXX, fix)


def _lacking(framework: Framework, kinds: tuple[str, ...]) -> list[Load]:
    """The libraries that lack symbol versions of a kind, those that the framework requires first."""
    loads = framework.loads or ()
    found = [load for load in loads if any(version.startswith(kinds) for version in load.lacks)]
    return sorted(found, key=lambda load: load.optional)


def _new_enough(framework: Framework, name: str, called: str) -> Outcome | None:
    """A pass if the library was found and everything was checked."""
    load = next((each for each in framework.loads or () if each.name == name and each.path), None)
    if load is None or not framework.loads_complete:
        return None
    version = f" ({load.version})" if load.version else ""
    evidence = Evidence(name, f"{load.path}{version}", load.source or "elf")
    return passed(f"{called} is new enough for {framework.title}", evidence)


def _lacks(framework: Framework, found: list[Load], what: str, kinds: tuple[str, ...], fix: Fix) -> Outcome:
    first, evidence = found[0], []
    needed = any(not load.optional for load in found)
    for load in found[:_SHOWN]:
        lacking = " ".join(version for version in load.lacks if version.startswith(kinds))
        place = f"{load.path} (found by {load.found_by})" if load.found_by else load.path or "not found"
        source = load.source or "elf"
        evidence.append(Evidence(f"{load.needed_by} needs from {load.name}", lacking, source))
        evidence.append(Evidence(f"loaded {load.name}", place, source))
        if load.offers:
            evidence.append(Evidence("newest version in it", load.offers, f"elf {load.path}"))
    versions = [version for version in first.lacks if version.startswith(kinds)]
    there = f", which has up to {first.offers}" if first.offers else ""
    return Outcome(
        status="note" if framework.imported or not needed else "fail",
        title=f"{framework.title} {what.format(wanted=versions[-1])}",
        message=f"{first.needed_by} needs {', '.join(versions)} of {first.name}; the loader finds {first.path}{there}.",
        evidence=tuple(evidence),
        decided_by="declared",
        fixes=(fix,),
    )
