"""JAX, jaxlib and the CUDA plug-ins, which must be of one release."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from envcheck.checks import STATUSES, Evidence, Fix, Source, Status
from envcheck.compat.package_needs import admits, bounds_on, release_fits
from envcheck.compat.specifier import parse_version
from envcheck.rules.api import Facts, Outcome, passed, rule, seen
from envcheck.rules.fits import by_confidence
from envcheck.rules.framework_facts import machine, of
from envcheck.rules.install import How, install
from envcheck.rules.trial_facts import ran_on_gpu
from envcheck.snapshot import Distribution, Environment

_PART = re.compile(r"jax|jaxlib|jax-cuda(\d{2})-(?:plugin|pjrt)")
_OF_JAX = re.compile(r"jax(?:lib|-cuda\d{2}-\w+)?")
_PLUGIN = re.compile(r"jax-cuda(\d{2})-plugin")


class _Wrong(NamedTuple):
    reason: str
    evidence: tuple[Evidence, ...]
    status: Status
    sources: tuple[Source, ...] = ()


def _parts(environment: Environment) -> dict[str, Distribution]:
    found: dict[str, Distribution] = {}
    for each in environment.distributions or ():
        if _PART.fullmatch(each.name):
            found.setdefault(each.name, each)
    return found


def _several_parts(environment: Environment, _facts: Facts) -> bool:
    return len(_parts(environment)) > 1


def _install_together(facts: Facts) -> tuple[Fix, ...]:
    return _together(_parts(facts.environment) if facts.environment else {}, facts)


@rule(
    layer="framework",
    scope="env",
    per="environment",
    arises=_several_parts,
    remedy=_install_together,
    explains=(
        "cpu-only-build",
        "requirement-broken",
        "cuda-major-mismatch",
        "cuda-library-missing",
        "library-not-found",
        "cudnn-missing",
        "nccl-missing",
    ),
)
def jax_plugin_mismatch(environment: Environment, facts: Facts) -> Outcome | None:
    """JAX's CUDA plug-in, jaxlib and jax do not belong together.

    What it checks
        The versions of jax, jaxlib, jax-cudaNN-plugin and jax-cudaNN-pjrt against each other: by what
        their metadata requires, else by what is known of the releases; and whether there are plug-ins
        for two major versions of CUDA.

    Why it matters
        JAX leaves out a plug-in that was built for another jaxlib, and computes on the CPU after a
        warning ("it is not compatible with the installed jaxlib version"), or fails at the first call
        of a kernel. Of two plug-ins only one can register itself as `cuda`.

    How to fix
        Install them in one command, by the extra: `pip install -U "jax[cuda13]"`; of two plug-ins
        remove the one for the CUDA that is not used.

    Sources
        JAX, Installation: https://docs.jax.dev/en/latest/installation.html
        JAX, Change log: https://docs.jax.dev/en/latest/changelog.html
    """
    parts = _parts(environment)
    wrong = [*_pairs(parts, facts), *_two_plugins(parts)]
    if not wrong:
        fit = ", ".join(f"{each.name} {each.version}" for each in parts.values())
        known = any(part.requires is not None for part in parts.values())
        return passed(f"{fit}", decided_by="declared") if known else None
    found = sorted(wrong, key=lambda each: STATUSES.index(each.status))
    works = any(each.name.startswith("jax") and ran_on_gpu(each) for each in of(environment))
    return Outcome(
        status="note" if works else found[0].status,
        title="JAX's packages do not belong together" if _PAIR in found[0].reason else "Two CUDA plug-ins of JAX",
        message=" ".join(f"{each.reason}." for each in found),
        evidence=tuple(dict.fromkeys(part for each in found for part in each.evidence)),
        sources=tuple(dict.fromkeys(source for each in found for source in each.sources)),
        decided_by="declared",
        fixes=_together(parts, facts),
        frameworks=tuple(each.name for each in of(environment) if _OF_JAX.fullmatch(each.name)),
    )


_PAIR = ", and this is "


def _pairs(parts: dict[str, Distribution], facts: Facts) -> Iterator[_Wrong]:
    for name, part in parts.items():
        for other, there in parts.items():
            found = _pair(name, part, other, there, facts) if name != other else None
            if found:
                yield found


def _pair(name: str, part: Distribution, other: str, there: Distribution, facts: Facts) -> _Wrong | None:
    evidence = (seen(name, part, "version"), seen(other, there, "version"))
    # jax names its plug-ins only as extras: what an extra asks for holds where the plug-in is there.
    worst: Status = "warn" if name == "jax" and other != "jaxlib" else "fail"
    bounds = bounds_on(part.requires or (), other, facts.marks)
    if bounds:
        if admits(bounds, there.version) is not False:
            return None
        line = Evidence(what=f"{name} {part.version} requires", value=f"{other}{bounds}", source=part.source)
        return _Wrong(f"{name} {part.version} requires {other}{bounds}{_PAIR}{there.version}", (line, *evidence), worst)
    fit = release_fits(facts.tables, name, part.version, other, there.version, facts.driver_os, machine(facts))
    if fit is not None and fit.bad:
        status = by_confidence(worst, fit)
        return _Wrong(fit.reason, evidence, status, fit.sources)
    if fit is None and _PLUGIN.fullmatch(name) and other == "jaxlib" and _differ(part.version, there.version):
        reason = f"{name} {part.version} is built for jaxlib of its own version{_PAIR}{there.version}"
        return _Wrong(reason, evidence, "warn")
    return None


def _differ(one: str, other: str) -> bool:
    own, its = parse_version(one), parse_version(other)
    return own is not None and its is not None and own.numbers[:3] != its.numbers[:3]


def _two_plugins(parts: dict[str, Distribution]) -> Iterator[_Wrong]:
    plugins = [part for name, part in parts.items() if _PLUGIN.fullmatch(name)]
    if len(plugins) > 1:
        names = " and ".join(part.name for part in plugins)
        yield _Wrong(f"{names} are both installed", tuple(seen(part.name, part, "version") for part in plugins), "warn")


def _together(parts: dict[str, Distribution], facts: Facts) -> tuple[Fix, ...]:
    """All of one release, with the plug-in that is there (of two, the newer CUDA's)."""
    majors = sorted({match[1] for name in parts if (match := _PLUGIN.fullmatch(name))}, reverse=True)
    jax = parts.get("jax")
    version = f"=={jax.version}" if jax and re.fullmatch(r"[0-9][0-9.]{1,30}", jax.version) else ""
    wanted = f"jax[cuda{majors[0]}]{version}" if majors else f"jax{version}"
    others = [name for name in parts if majors[1:] and re.fullmatch(rf"jax-cuda(?:{'|'.join(majors[1:])})-\w+", name)]
    return install(facts, (wanted,), "Install jax, jaxlib and the plug-in of one release", How(), remove=others)
