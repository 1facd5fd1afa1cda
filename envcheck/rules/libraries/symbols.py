"""Libraries with the right name that lack functions which others need."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath

from envcheck.knowledge.relations.fit import Fit
from envcheck.knowledge.relations.libraries import nvjitlink_serves
from envcheck.model.checks import Evidence, Fix
from envcheck.model.snapshot import Framework, Load
from envcheck.rules.api import Facts, Outcome, incompatible, passed, rule
from envcheck.rules.facts.libraries import (
    folder_of,
    load_evidence,
    loads_are_known,
    loads_of,
    missing_status,
    own_loads,
)
from envcheck.rules.facts.library_names import name_of
from envcheck.rules.facts.machine import and_more
from envcheck.rules.fixes.libraries import (
    drop_from_variable,
    install_library_again,
    search_without_variable,
    show_loader_search,
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


# libnvJitLink, whose functions carry the number of their release in their names.


_LINKS = ("cusparse", "cusolver")


@rule(layer="library", arises=loads_are_known, remedy=search_without_variable)
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
