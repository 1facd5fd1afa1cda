"""Libraries that are loaded under the right name and lack functions that others need of them."""

from __future__ import annotations

from pathlib import PurePosixPath

from envcheck.checks import Evidence, Fix
from envcheck.rules.api import Facts, FrameworkSubject, Outcome, rule
from envcheck.rules.framework_facts import named
from envcheck.rules.libraries_facts import VARIABLES, asked, followed, name_in, own_loads, weight
from envcheck.rules.libraries_fixes import install_declared, install_framework_again, see_loader, without_variable
from envcheck.rules.trial_facts import ran_on_gpu
from envcheck.snapshot import Load


@rule(
    layer="library",
    scope="env",
    per="framework",
    arises=followed,
    explains=("framework-import-fails", "framework-cannot-use-gpu"),
    remedy=see_loader,
)
def library_lacks_symbols(subject: FrameworkSubject, facts: Facts) -> Outcome | None:
    """A library that is loaded lacks functions that the framework needs.

    What it checks
        For each of CUDA's libraries that is found by a variable or in the system's folders, or in place
        of a copy of the environment: every symbol that the files linked against it ask of it, against
        those that it and the other libraries of the process define.

    Why it matters
        A copy of another release has the right name, and the loader takes it. It stops at the first
        function that is missing: "undefined symbol: __nvJitLinkComplete_12_4, version
        libnvJitLink.so.12".

    How to fix
        Take the copy off the search path, so that the framework's own is found, or install the release
        that the framework asks for.

    Sources
        Linux manual, the dynamic loader: https://man7.org/linux/man-pages/man8/ld.so.8.html
        PyTorch, a libnvJitLink from LD_LIBRARY_PATH:
            https://github.com/pytorch/pytorch/issues/152783
    """
    found = [load for load in own_loads(subject) if load.missing_symbols]
    if not found:
        return None
    first = next((load for load in found if not load.optional), found[0])
    symbols = first.missing_symbols or ()
    more = f" and {len(symbols) - 1} more" if len(symbols) > 1 else ""
    release = f" ({first.version})" if first.version else ""
    return Outcome(
        status="note" if ran_on_gpu(subject.framework) else weight(subject, facts),
        title=f"{named(subject.framework)} is given a {first.name} that lacks functions",
        message=f"{PurePosixPath(first.needed_by).name} needs {symbols[0]}{more}, which {first.path}{release} lacks.",
        evidence=(*asked(found), *(_lacking(load) for load in found)),
        decided_by="declared",
        fixes=take_away(first, subject, facts),
    )


def _lacking(load: Load) -> Evidence:
    return Evidence(what=f"not in {load.path}", value=" ".join(load.missing_symbols or ()), source=load.source)


def take_away(load: Load, subject: FrameworkSubject, facts: Facts) -> tuple[Fix, ...]:
    """Let the right copy be found: take this one off a variable, or a stray one out of the way, else install it."""
    if load.path and load.found_by in VARIABLES:
        return without_variable(load.found_by, [str(PurePosixPath(load.path).parent)], facts)
    if load.path and load.owner is None and load.others:
        text = f"Move {load.name} out of {PurePosixPath(load.path).parent}: no package owns it, and it hides"
        return (Fix(text=f"{text} {load.others[0]}", command=("mv", load.path, f"{load.path}.unused")),)
    name = name_in(load)
    declared = install_declared(subject.framework, name.family, facts) if name else ()
    return declared or install_framework_again(subject, facts)
