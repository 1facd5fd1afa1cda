"""JAX, jaxlib and the CUDA plug-ins, which must have the same release."""

from __future__ import annotations

import re

from envcheck.compat.package_needs import admits, bounds_on, requirement_name
from envcheck.knowledge.specifier import parse_version
from envcheck.model.checks import Evidence, Fix, Status
from envcheck.model.snapshot import Distribution, Environment, frameworks_in
from envcheck.rules.api import Facts, Outcome, evidence_of, passed, rule
from envcheck.rules.facts.frameworks import fit_of_release
from envcheck.rules.facts.trials import ran_on_gpu
from envcheck.rules.fixes.install import install
from envcheck.rules.fixes.outcomes import Misfit, incompatible_packages, limit_by_confidence, worst_first

_PART = re.compile(r"jax|jaxlib|jax-cuda(\d{2})-(?:plugin|pjrt)")
_OF_JAX = re.compile(r"jax(?:lib|-cuda\d{2}-\w+)?")
_PLUGIN = re.compile(r"jax-cuda(\d{2})-plugin")
_HALF = re.compile(r"(jax-cuda\d{2})-(plugin|pjrt)")
_OTHER_HALF = {"plugin": "pjrt", "pjrt": "plugin"}
_COMPILER = "/xla_cuda_plugin.so"
"""The file of ``jax-cudaNN-pjrt`` among the plug-in's binaries."""


def _parts(environment: Environment) -> dict[str, Distribution]:
    found: dict[str, Distribution] = {}
    for each in environment.distributions or ():
        if _PART.fullmatch(each.name):
            found.setdefault(each.name, each)
    return found


@rule(
    layer="framework",
    per="environment",
    remedy=lambda facts: _install_together(_parts(facts.environment) if facts.environment else {}, facts),
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
    """JAX's CUDA plug-in, jaxlib and jax do not belong together."""
    parts = _parts(environment)
    if len(parts) < 2:
        return None
    halves = _missing_halves(parts, environment, facts)
    both = ((name, part, other, there) for name, part in parts.items() for other, there in parts.items())
    pairs = [found for each in both if each[0] != each[2] and (found := _pair(*each, facts))]
    plugins = [part for name, part in parts.items() if _PLUGIN.fullmatch(name)]
    wrong = list(pairs)
    if len(plugins) > 1:
        names = " and ".join(part.name for part in plugins)
        versions = tuple(evidence_of(part.name, part, "version") for part in plugins)
        wrong.append(Misfit(names, f"{names} are both installed", versions, "warn"))
    unmatched = bool(wrong)
    for name, line in halves.items():
        half = parts[name]
        needs = "has no CUDA backend" if _PLUGIN.fullmatch(half.name) else "has a CUDA backend without kernels"
        reason = f"{half.name} {half.version} needs {line}, which is not installed: JAX {needs}"
        wrong.append(Misfit(half.name, reason, (evidence_of(half.name, half, "version"),), "fail"))
    if not wrong:
        fit = ", ".join(f"{each.name} {each.version}" for each in parts.values())
        known = any(part.requires is not None for part in parts.values())
        return passed(f"JAX's packages match: {fit}", decided_by="declared") if known else None
    works = any(each.name.startswith("jax") and ran_on_gpu(each) for each in frameworks_in(environment))
    missing = " and ".join(map(requirement_name, halves.values()))
    title = "JAX's packages do not match" if pairs else "Two CUDA plug-ins of JAX are installed"
    lines = tuple(halves.values())
    return incompatible_packages(
        worst_first(wrong),
        title if unmatched else f"JAX cannot use the GPU: {missing} is missing",
        _install_together(parts, facts) if unmatched else install(facts, lines, f"Install {missing}, which is missing"),
        status="note" if works else None,
        frameworks=tuple(each.name for each in frameworks_in(environment) if _OF_JAX.fullmatch(each.name)),
    )


def _missing_halves(parts: dict[str, Distribution], environment: Environment, facts: Facts) -> dict[str, str]:
    """Plug-in packages without their counterpart, and the requirement line that installs it.

    conda splits its packages differently, and nothing is called missing from an incomplete list.
    """
    if not environment.distributions_complete or any(part.channel == "conda" for part in parts.values()):
        return {}
    by_files = {each.name for each in frameworks_in(environment) if each.path is not None}
    for each in frameworks_in(environment):
        if _PLUGIN.fullmatch(each.name) and any(path.endswith(_COMPILER) for path in each.binaries or ()):
            by_files.add(each.name.replace("plugin", "pjrt"))
    found = {}
    for name, part in parts.items():
        half = _HALF.fullmatch(name)
        other = f"{half[1]}-{_OTHER_HALF[half[2]]}" if half else name
        if other not in parts and other not in by_files and part.version:
            bounds = bounds_on(part.requires or (), other, facts.markers)
            if bounds is None and half and half[2] == "plugin":  # of one that a fix would install, not all is known
                continue
            found[name] = f"{other}{bounds or f'=={part.version}'}"
    return found


def _pair(name: str, part: Distribution, other: str, there: Distribution, facts: Facts) -> Misfit | None:
    evidence = (evidence_of(name, part, "version"), evidence_of(other, there, "version"))
    # jax names its plug-ins only as extras: what an extra asks for holds where the plug-in is there.
    worst: Status = "warn" if name == "jax" and other != "jaxlib" else "fail"
    bounds = bounds_on(part.requires or (), other, facts.markers)
    if bounds:
        if admits(bounds, there.version) is not False:
            return None
        line = Evidence(what=f"{name} {part.version} requires", value=f"{other}{bounds}", source=part.source)
        reason = f"{name} {part.version} requires {other}{bounds}, and this is {there.version}"
        return Misfit(name, reason, (line, *evidence), worst)
    fit = fit_of_release(facts, name, part.version, other, there.version)
    if fit is not None and fit.bad:
        status = limit_by_confidence(worst, fit)
        return Misfit(name, fit.reason, evidence, status, fit.sources)
    own, its = parse_version(part.version), parse_version(there.version)
    differ = own is not None and its is not None and own.numbers[:3] != its.numbers[:3]
    if fit is None and _PLUGIN.fullmatch(name) and other == "jaxlib" and differ:
        reason = f"{name} {part.version} needs jaxlib in its own version, and this is {there.version}"
        return Misfit(name, reason, evidence, "warn")
    return None


def _install_together(parts: dict[str, Distribution], facts: Facts) -> tuple[Fix, ...]:
    """Requirements of one release, with the installed plug-in (of two, the one for the newer CUDA version)."""
    majors = sorted({match[1] for name in parts if (match := _PLUGIN.fullmatch(name))}, reverse=True)
    jax = parts.get("jax")
    version = f"=={jax.version}" if jax and re.fullmatch(r"[0-9][0-9.]{1,30}", jax.version) else ""
    wanted = f"jax[cuda{majors[0]}]{version}" if majors else f"jax{version}"
    others = [name for name in parts if majors[1:] and re.fullmatch(rf"jax-cuda(?:{'|'.join(majors[1:])})-\w+", name)]
    return install(facts, (wanted,), "Install jax, jaxlib and the plug-in in the same release", remove=others)
