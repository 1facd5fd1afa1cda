"""Copies of libraries that are loaded and are not the right ones: older ones, link-time stubs, and those that lack
functions which others need, CUDA's as well as the system's C and C++ libraries.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import NamedTuple

from envcheck.compat.package_needs import names_extra
from envcheck.knowledge.relations.fit import Fit
from envcheck.knowledge.relations.libraries import cuda_majors, cudnn_serves, is_older, nvjitlink_serves, same_major
from envcheck.model.checks import Evidence, Fix, Status
from envcheck.model.snapshot import Framework, Library, Load
from envcheck.model.versions import CudaVersion
from envcheck.rules.api import Facts, Outcome, failure, incompatible, passed, rule
from envcheck.rules.facts.libraries import (
    VARIABLES,
    copy_at,
    copy_evidence,
    folder_of,
    load_evidence,
    loads_are_known,
    loads_of,
    missing_status,
    own_loads,
    version_at,
)
from envcheck.rules.facts.library_names import family_of_wheel, name_of
from envcheck.rules.facts.machine import and_more
from envcheck.rules.fixes.install import conda_command
from envcheck.rules.fixes.libraries import drop_from_variable, install_library_again, show_loader_search
from envcheck.rules.libraries.stated import install_or_locate_library
from envcheck.text.lazy import lazy_pattern

_LEAST = lazy_pattern(
    r"(?P<name>nvidia-[a-z0-9-]{1,80})(?:\[[^\]]{0,200}\])?[^;]{0,200}?(?:>=|==|~=)\s*(?P<version>[0-9][0-9.]*)"
)


class _Shadowing(NamedTuple):
    """A loaded copy, and the environment's newer one that it shadows."""

    load: Load
    version: str
    bundled: Library
    bundled_version: str


def _search_without_variable(facts: Facts) -> tuple[Fix, ...]:
    """For another copy that comes first, where only an error line is known: start without what mostly leads to it."""
    if facts.driver_os == "windows":
        return show_loader_search(facts)
    text = "Start the program without LD_LIBRARY_PATH, which most often leads to the other copy"
    start = Fix(text, command=("env", "-u", "LD_LIBRARY_PATH", facts.interpreter))
    return (start, *show_loader_search(facts)[:1])


@rule(layer="library", arises=loads_are_known, remedy=_search_without_variable)
def library_shadowed(framework: Framework, facts: Facts) -> Outcome | None:
    """An older copy of a library is loaded instead of the framework's own."""
    key = facts.environment.key
    own, found = [copy for copy in facts.libraries if copy.environment == key], []
    for load in own_loads(framework, facts):
        if load.found_by not in VARIABLES or load.path is None or load.refused:
            continue
        passed_over = (copy.path for copy in own if copy.soname == load.name and copy.path != load.path)
        for path in (*load.others, *passed_over):
            bundled, version = copy_at(path, facts), version_at(path, facts)
            is_worse = load.missing_symbols != ()  # where its version does not tell
            if load.version is not None and not load.missing_symbols:
                is_worse = bool(is_older(load.version, version))
            if bundled is not None and bundled.environment == key and version and is_worse:
                found.append(_Shadowing(load, load.version or "of unknown version", bundled, version))
                break
    if not found:
        return None
    worst = next((each for each in found if _is_refused(each, framework, facts)), found[0])
    first, variable = worst.load, worst.load.found_by or VARIABLES[0]
    bad: Status = "fail" if _is_refused(worst, framework, facts) else "warn"
    others = [each.load for each in found if each.load.found_by == variable]
    kind = "an older" if first.version else "another"
    return Outcome(
        status="note" if framework.ran_on_gpu else bad,
        title=f"{variable} gives {framework.name} {kind} {first.name}",
        message=f"{variable} leads to {first.path} ({worst.version}), before {worst.bundled.path} "
        f"({worst.bundled_version}) of {worst.bundled.owner or 'the environment'}.",
        evidence=(*load_evidence(each.load for each in found), *copy_evidence(each.bundled for each in found)),
        fixes=drop_from_variable(others, facts),
    )


def _is_refused(taken: _Shadowing, framework: Framework, facts: Facts) -> bool:
    """Whether the framework is known to fail with the older copy."""
    if taken.load.missing_symbols:
        return True
    name = name_of(taken.load.name)
    if name is None:
        return False
    if name.family == "cudnn" and framework.cudnn:
        return cudnn_serves(facts.matrix, framework.name, taken.version, framework.cudnn).bad
    if name.family == "nvJitLink":
        return any(fit.bad for _, fit in judge_jitlink(framework, facts))
    return same_major(taken.version, taken.bundled_version) is False


@rule(layer="library", arises=loads_are_known, remedy=install_or_locate_library)
def cuda_library_too_old(framework: Framework, facts: Facts) -> Outcome | None:
    """A library of CUDA is older than what the framework was built with."""
    wanted = dict[str, str]()
    plug_in = facts.matrix.has_trait(framework.name, "part-for-cuda")
    for line in framework.requires:
        match = _LEAST.match(line)
        family = family_of_wheel(match["name"]) if match else None
        # Extras may be alternatives for each CUDA version: they count if their wheel is installed, and for JAX's
        # plug-ins, which check the versions of their libraries themselves, whatever their origin.
        counts = match and (not names_extra(line) or facts.installed(match["name"]) or plug_in)
        if match and counts and family not in (None, "cupti"):  # which has its own numbering
            wanted.setdefault(str(family), match["version"])
    own, old = CudaVersion.parse(framework.cuda), []
    for load in own_loads(framework, facts):
        name = name_of(load.name)
        if name is None or name.kind != "cuda":
            continue
        # JAX's plug-ins also preload libraries of another CUDA major where they are installed, and never use them.
        majors = cuda_majors(facts.matrix, name.family, name.number)
        least = wanted.get(name.family, "") if not own or not majors or own.major in majors else ""
        if load.path and least and is_older(load.version, least):
            old.append((load, least))
    if not old:
        return None
    first, least = old[0]
    asked = Evidence("asked for", least, framework.source_of("requires"))
    return Outcome(
        status="note" if framework.ran_on_gpu else "warn",
        title=f"{framework.title} loads a {first.name} that is too old",
        message=f"It requires {least} or newer, but would load {first.version}: {first.path}.",
        evidence=(*load_evidence(load for load, _ in old), asked),
        fixes=use_right_copy(first, framework, facts),
    )


@rule(layer="library", arises=loads_are_known, remedy=_search_without_variable)
def stub_library_loaded(framework: Framework, facts: Facts) -> Outcome | None:
    """A link-time stub of a toolkit would be loaded instead of a library."""
    stubs = {library.path for library in facts.libraries if library.stub}
    paths = ((load, load.path) for load in own_loads(framework, facts))
    found = [load for load, path in paths if path and (path in stubs or "stubs" in path.split("/"))]
    if not found:
        return None
    first = found[0]
    text = f"Remove {folder_of(first.path)} from the loader's configuration (/etc/ld.so.conf.d), then run ldconfig"
    return failure(
        title=f"{framework.title} would load a link-time stub: {first.name}",
        message=f"{first.path} is for linking only: none of its functions works.",
        evidence=load_evidence(found),
        fixes=drop_from_variable([first], facts) or (Fix(text, who="root"),),
    )


@rule(layer="library", decided_by="declared", arises=loads_are_known, remedy=show_loader_search)
def library_lacks_symbols(framework: Framework, facts: Facts) -> Outcome | None:
    """A loaded library lacks functions that the framework needs."""
    found = [load for load in own_loads(framework, facts) if load.missing_symbols]
    if not found:
        return None
    first = next((load for load in found if not load.optional), found[0])
    symbols = first.missing_symbols or ()
    lacking = (Evidence(f"not in {load.path}", " ".join(load.missing_symbols or ()), load.source) for load in found)
    needs = f"{PurePosixPath(first.needed_by).name} needs {symbols[0]}{and_more(symbols)}"
    release = f" ({first.version})" if first.version else ""
    return Outcome(
        status="note" if framework.ran_on_gpu else missing_status(framework, facts),
        title=f"{framework.title} loads a {first.name} that lacks functions",
        message=f"{needs}, which {first.path}{release} lacks.",
        evidence=(*load_evidence(found), *lacking),
        fixes=use_right_copy(first, framework, facts),
    )


def use_right_copy(load: Load, framework: Framework, facts: Facts) -> tuple[Fix, ...]:
    """Make the loader find the right copy: remove this one from a variable, move it away, or reinstall it."""
    if away := drop_from_variable([load], facts):
        return away
    if load.path and load.owner is None and load.others:
        text = f"Move {load.name} out of {folder_of(load.path)}: no package owns it, and it hides"
        return (Fix(f"{text} {load.others[0]}", command=("mv", load.path, f"{load.path}.unused")),)
    name = name_of(load.name)
    return install_library_again(name.family if name else "", framework, facts)


_LINKS = ("cusparse", "cusolver")


@rule(layer="library", arises=loads_are_known, remedy=_search_without_variable)
def nvjitlink_mismatch(framework: Framework, facts: Facts) -> Outcome | None:
    """LibnvJitLink is older than the CUDA library that links with it."""
    fits = list(judge_jitlink(framework, facts)) if own_loads(framework, facts, "nvJitLink") else []
    wrong = [(load, fit) for load, fit in fits if fit.bad]
    if not fits or framework.ran_on_gpu:
        return None
    if not wrong:
        return passed("libnvJitLink is new enough for what links with it") if all(fit.ok for _, fit in fits) else None
    load, fit = wrong[0]
    jitlink = loads_of(framework, "nvJitLink")[0]
    return incompatible(
        f"{framework.title} loads an older libnvJitLink",
        fit,
        evidence=load_evidence([jitlink, load]),
        fixes=use_right_copy(jitlink, framework, facts),
    )


def judge_jitlink(framework: Framework, facts: Facts) -> Iterator[tuple[Load, Fit]]:
    """Whether its libnvJitLink fits each library that links with it and has a known CUDA release."""
    # Of each CUDA major one may be loaded, by another name: what links with one is not served by the other.
    there = [load.version for load in loads_of(framework, "nvJitLink") if load.version]
    for load in loads_of(framework, *_LINKS) if there else ():
        name = name_of(load.name)
        if name and load.version and load.version.count("."):
            fits = [nvjitlink_serves(facts.matrix, each, name.family, load.version) for each in there]
            yield load, next((fit for fit in fits if not fit.bad), fits[0])


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
    found = [load for load in framework.loads or () if any(version.startswith(kinds) for version in load.lacks)]
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
