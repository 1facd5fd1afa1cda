"""Copies of CUDA's libraries that are loaded instead of the right ones: older releases and link-time stubs."""

from __future__ import annotations

from typing import NamedTuple

from envcheck.compat.package_needs import names_extra
from envcheck.knowledge.relations.libraries import cuda_majors, cudnn_serves, is_older, same_major
from envcheck.model.checks import Evidence, Fix, Status
from envcheck.model.snapshot import Framework, Library, Load
from envcheck.model.versions import CudaVersion
from envcheck.rules.api import Facts, Outcome, failure, rule
from envcheck.rules.facts.libraries import (
    VARIABLES,
    copy_at,
    copy_evidence,
    folder_of,
    load_evidence,
    loads_are_known,
    own_loads,
    version_at,
)
from envcheck.rules.facts.library_names import family_of_wheel, name_of
from envcheck.rules.fixes.libraries import drop_from_variable, search_without_variable
from envcheck.rules.libraries.stated import install_or_locate_library
from envcheck.rules.libraries.symbols import judge_jitlink, use_right_copy
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


@rule(layer="library", arises=loads_are_known, remedy=search_without_variable)
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
    installed = {each.name for each in facts.distributions}
    plug_in = facts.matrix.has_trait(framework.name, "part-for-cuda")
    for line in framework.requires:
        match = _LEAST.match(line)
        family = family_of_wheel(match["name"]) if match else None
        # Extras may be alternatives for each CUDA version: they count if their wheel is installed, and for JAX's
        # plug-ins, which check the versions of their libraries themselves, whatever their origin.
        counts = match and (not names_extra(line) or match["name"] in installed or plug_in)
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


@rule(layer="library", arises=loads_are_known, remedy=search_without_variable)
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
