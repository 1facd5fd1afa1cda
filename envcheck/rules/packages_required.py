"""What frameworks require of other packages, in their own metadata."""

from __future__ import annotations

from collections.abc import Iterator

from envcheck.checks import Evidence
from envcheck.compat.package_needs import admits, bounds_on, marks_of, requirement_name
from envcheck.rules.api import Facts, FrameworkSubject, Outcome, passed, rule, seen
from envcheck.rules.framework_facts import named, of
from envcheck.rules.install import How, install
from envcheck.rules.packages_beside_torch import FAMILY
from envcheck.rules.trial_facts import ran_on_gpu
from envcheck.snapshot import Distribution

_SPOKEN_OF = FAMILY | {"torch", "numpy", "jax", "jaxlib"}
"""Packages about which another rule has more to say."""
_SPOKEN_OF_STARTS = ("nvidia-", "jax-cuda", "cuda-toolkit")
_SHOWN = 8


def _declares(subject: FrameworkSubject, _facts: Facts) -> bool:
    complete = subject.environment.distributions_complete
    return complete and any(True for _ in _asked(subject))


def _asked(subject: FrameworkSubject) -> Iterator[str]:
    names = dict.fromkeys(map(requirement_name, subject.framework.requires))
    yield from (name for name in names if name not in _SPOKEN_OF and not name.startswith(_SPOKEN_OF_STARTS))


@rule(layer="framework", scope="env", per="framework", arises=_declares)
def requirement_broken(subject: FrameworkSubject, facts: Facts) -> Outcome | None:
    """A framework's own requirements are not met.

    What it checks
        The versions of the packages that a framework requires in its metadata, and without which it
        cannot use the GPU (llvmlite, cuda-bindings, cuda-core, flashinfer, xformers …), against those
        that are installed. Extras are left out. PyTorch's family, NumPy, JAX's parts and NVIDIA's
        libraries have rules of their own.

    Why it matters
        The framework was built and tested with other versions than those it meets. It comes about
        when another package is installed later, and the installer only warns.

    How to fix
        Install the version that is required, or all of them anew in one command, so that the
        installer sees what contradicts itself; keep what cannot live together in two environments.

    Sources
        pip, dependency resolution: https://pip.pypa.io/en/stable/topics/dependency-resolution/
        Dependency specifiers, PyPA:
            https://packaging.python.org/en/latest/specifications/dependency-specifiers/
    """
    framework = subject.framework
    broken = [found for name in _asked(subject) if (found := _broken(subject, name, facts))]
    if not broken:
        return passed(f"What {named(framework)} requires is there", decided_by="declared")
    wanted = [f"{name}{bounds}" for name, bounds, _ in broken]
    said = "; ".join(
        f"{name}{bounds}, and {f'{there.version} is there' if there else 'it is not there'}"
        for name, bounds, there in broken[:_SHOWN]
    )
    source = framework.source_of("requires")
    lines = (Evidence(what=f"{framework.name} requires", value=line, source=source) for line in wanted[:_SHOWN])
    there = (seen(found.name, found, "version") for _, _, found in broken[:_SHOWN] if found)
    text = f"Install what {named(framework)} requires"
    return Outcome(
        status="note" if ran_on_gpu(framework) else "warn",
        title=f"What {named(framework)} requires is not met"[:80],
        message=f"{named(framework)} requires {said}.",
        evidence=(*lines, *there),
        decided_by="declared",
        fixes=install(facts, wanted, text, How(risk="other packages may want the versions that are there")),
    )


def _broken(subject: FrameworkSubject, name: str, facts: Facts) -> tuple[str, str, Distribution | None] | None:
    """A requirement that is not met. Of conda's packages, which have names of their own, none is called missing."""
    environment, platform = subject.environment, facts.snapshot.platform
    marks = marks_of(environment.python, facts.os, platform.machine if platform else None)
    bounds = bounds_on(subject.framework.requires, name, marks)
    if bounds is None:
        return None
    there = next((each for each in environment.distributions or () if each.name == name), None)
    if there is None:
        by_conda = any(each.channel == "conda" for each in environment.distributions or ())
        imported = any(each.name == name for each in of(environment))
        return None if by_conda or imported else (name, bounds, None)
    return (name, bounds, there) if bounds and admits(bounds, there.version) is False else None
