"""Packages whose releases must match, and the outcome that lists what does not: JAX with jaxlib and its CUDA plug-ins,
NumPy with what was built for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import msgspec

from envcheck.compat.package_needs import admits, bounds_on, requirement_name
from envcheck.compat.wheels import published
from envcheck.knowledge.matrix import Matrix
from envcheck.knowledge.specifier import parse_version
from envcheck.model.checks import STATUSES, Evidence, Fix, Source, Status
from envcheck.model.snapshot import Distribution, Environment, Framework
from envcheck.model.versions import CudaVersion
from envcheck.rules.api import Facts, Outcome, evidence_of, limit_by_confidence, passed, rule
from envcheck.rules.facts.machine import title_of_first
from envcheck.rules.fixes.frameworks import HALF_OF_PLUGIN, keep_plugin
from envcheck.rules.fixes.install import How, install, install_release_for, is_newest, one_bound
from envcheck.rules.packages.redirected import imported_from
from envcheck.text.lazy import lazy_pattern

_SHOWN = 8


class Misfit(NamedTuple):
    """A package that does not work with another installed package."""

    name: str
    reason: str
    evidence: tuple[Evidence, ...]
    status: Status
    sources: tuple[Source, ...] = ()
    wanted: str = ""  # The versions of the other package that it works with


def worst_first(found: Iterable[Misfit]) -> list[Misfit]:
    return sorted(found, key=lambda each: STATUSES.index(each.status))


def incompatible_packages(
    found: Sequence[Misfit],
    title: str,
    fixes: tuple[Fix, ...],
    *about: Evidence,
    status: Status | None = None,
    frameworks: tuple[str, ...] = (),
) -> Outcome:
    """The outcome for packages that do not work together, worst first; it has the status of the worst."""
    shown = found[:_SHOWN]
    return Outcome(
        status=status or found[0].status,
        title=title,
        message=" ".join(f"{each.reason}." for each in shown),
        evidence=tuple(dict.fromkeys((*about, *(part for each in shown for part in each.evidence)))),
        sources=tuple(dict.fromkeys(source for each in found for source in each.sources)),
        decided_by="declared",
        fixes=fixes,
        frameworks=frameworks,
    )


_PART = lazy_pattern(r"jax|jaxlib|jax-cuda(\d{2})-(?:plugin|pjrt)")
_OF_JAX = lazy_pattern(r"jax(?:lib|-cuda\d{2}-\w+)?")
_PLUGIN = lazy_pattern(r"jax-cuda(\d{2})-plugin")
_OTHER_HALF = {"plugin": "pjrt", "pjrt": "plugin"}
_COMPILER = "/xla_cuda_plugin.so"  # The file of ``jax-cudaNN-pjrt`` among the plug-in's binaries


def _parts(environment: Environment) -> dict[str, Distribution]:
    found: dict[str, Distribution] = {}
    for each in environment.distributions or ():
        if _PART.fullmatch(each.name):
            found.setdefault(each.name, each)
    return found


@rule(layer="framework", remedy=lambda facts: _install_together(_parts(facts.environment), facts))
def jax_plugin_mismatch(environment: Environment, facts: Facts) -> Outcome | None:
    """JAX's CUDA plug-in, jaxlib and jax do not belong together."""
    parts = _parts(environment)
    if len(parts) < 2:
        return None
    halves = _missing_halves(parts, facts)
    both = ((name, part, other, there) for name, part in parts.items() for other, there in parts.items())
    pairs = [found for each in both if each[0] != each[2] and (found := _pair(*each, facts))]
    wrong = list(pairs)
    plugins = [parts.get(f"jax-cuda{each}-plugin") or parts[f"jax-cuda{each}-pjrt"] for each in _majors(parts)]
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
    works = any(each.name.startswith("jax") and each.ran_on_gpu for each in facts.frameworks)
    missing = " and ".join(map(requirement_name, halves.values()))
    title = "JAX's packages do not match" if pairs else "Two CUDA plug-ins of JAX are installed"
    lines = tuple(halves.values())
    return incompatible_packages(
        worst_first(wrong),
        title if unmatched else f"JAX cannot use the GPU: {missing} is missing",
        _install_together(parts, facts) if unmatched else install(facts, lines, f"Install {missing}, which is missing"),
        status="note" if works else None,
        frameworks=tuple(each.name for each in facts.frameworks if _OF_JAX.fullmatch(each.name)),
    )


def _missing_halves(parts: dict[str, Distribution], facts: Facts) -> dict[str, str]:
    """Plug-in packages without their counterpart, and the requirement line that installs it.

    conda splits its packages differently, and nothing is called missing from an incomplete list.
    """
    if not facts.environment.distributions_complete or any(part.channel == "conda" for part in parts.values()):
        return {}
    by_files = {each.name for each in facts.frameworks if each.path is not None}
    for each in facts.frameworks:
        if _PLUGIN.fullmatch(each.name) and any(path.endswith(_COMPILER) for path in each.binaries or ()):
            by_files.add(each.name.replace("plugin", "pjrt"))
    found: dict[str, str] = {}
    there = {*parts, *by_files}
    whole = any({f"jax-cuda{major}-plugin", f"jax-cuda{major}-pjrt"} <= there for major in _majors(parts))
    for name, part in parts.items():
        half = HALF_OF_PLUGIN.fullmatch(name)
        if half and whole:  # half of another one is too much, not too little
            continue
        other = f"jax-cuda{half[1]}-{_OTHER_HALF[half[2]]}" if half else name
        if other not in there and part.version:
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
        line = Evidence(f"{name} {part.version} requires", f"{other}{bounds}", part.source)
        reason = f"{name} {part.version} requires {other}{bounds}, and this is {there.version}"
        return Misfit(name, reason, (line, *evidence), worst)
    fit = facts.fit_of_release(name, part.version, other, there.version)
    if fit is not None and fit.bad:
        return Misfit(name, fit.reason, evidence, limit_by_confidence(worst, fit), fit.sources)
    own, its = parse_version(part.version), parse_version(there.version)
    differ = own is not None and its is not None and own.numbers[:3] != its.numbers[:3]
    if fit is None and _PLUGIN.fullmatch(name) and other == "jaxlib" and differ:
        reason = f"{name} {part.version} needs jaxlib in its own version, and this is {there.version}"
        return Misfit(name, reason, evidence, "warn")
    return None


def _majors(parts: Iterable[str]) -> list[str]:
    """The CUDA major versions for which plug-ins, or halves of one, are installed: the newest first."""
    return sorted({match[1] for name in parts if (match := HALF_OF_PLUGIN.fullmatch(name))}, reverse=True)


def _install_together(parts: dict[str, Distribution], facts: Facts) -> tuple[Fix, ...]:
    """Requirements of one release, with the installed plug-in.

    Of two, the one stays for the newest CUDA version that the driver runs, unless another framework needs what the
    other one brought.
    """
    jax, majors = parts.get("jax"), _majors(parts)
    version = f"=={jax.version}" if jax and re.fullmatch(r"[0-9][0-9.]{1,30}", jax.version) else ""
    text = f"Install jax, jaxlib and the plug-in{' for one CUDA' if majors[1:] else ''} in the same release"
    if not majors and not facts.environment.distributions_complete:
        # ``pip install jax`` leaves a plug-in behind.
        text = "Bring jax, jaxlib and the plug-in to one release: jax[cuda13] where pip list has jax-cuda13-plugin"
        return install(facts, (f"jax[cuda12]{version}",), text, How(newest=not version))
    if not majors:
        # Older releases of jax require jaxlib only by an extra: pip leaves it as it is.
        lib = parts.get("jaxlib") if jax and bounds_on(jax.requires or (), "jaxlib", facts.markers) is None else None
        fit = facts.fit_of_release("jax", jax.version, "jaxlib", lib.version) if jax and lib else None
        named = (fit.nearest_change,) if fit and fit.bad and fit.nearest_change.startswith("jaxlib") else ()
        return install(facts, (f"jax{version}", *named), text)
    running = [major for major in majors if facts.runs_builds_for(CudaVersion(int(major), 0))] or majors
    ways = [keep_plugin(major, facts) for major in running]
    way = next((each for each in ways if not each.needed), ways[0])
    together = install(facts, (f"jax[cuda{way.major}]{version}", *way.again), text, remove=way.removed)
    # The extra may pin another jaxlib than that of the plug-in which it admits.
    plugin = parts.get(f"jax-cuda{way.major}-plugin")
    own = plugin is not None and "jaxlib" in parts and plugin.version != parts["jaxlib"].version
    return (*together, *(install(facts, (f"jaxlib=={plugin.version}",), text) if plugin and own else ()))


_NUMPY = "numpy"
_MOST_ROUNDS = 4  # In which a newest NumPy is held against all packages, each time with what the last did not suit


def _match_numpy(facts: Facts) -> tuple[Fix, ...]:
    """If only an error line is known: a newer release of what failed, else an older NumPy if allowed."""
    numpy = facts.installed(_NUMPY)
    there = parse_version(numpy.version) if numpy else None
    if numpy is None or there is None:
        return (Fix("Install a NumPy of the major version that the package was built for, or upgrade the package"),)
    failed = [each for each in facts.frameworks if each.name in facts.about]
    raised_in = {owner.partition("==")[0] for each in failed if (owner := _raised_in(each))}
    about = raised_in or {name for each in failed for name in (each.name, each.extends or each.name)}
    names = sorted(each.name for each in facts.distributions if each.name in about)
    older = [name for name in names if not is_newest(facts, name)]
    text, newest = f"Upgrade {' and '.join(older)}, for NumPy {numpy.version}", How(newest=True)
    newer = install(facts, older, text, newest) if older else ()
    asked = one_bound(dict(_bounds_on_numpy(facts)).values())
    least = [part for part in asked.split(",") if part.startswith((">", "=", "~"))]
    major, minor = (*there.numbers, 0)[:2]
    before = ((f"{major}", f"{major - 1}.999"), (f"{major}.{minor}", f"{major}.{minor - 1}.999"))
    for end, last in before[:1] if newer else before:  # without a newer package, the last minor release may have it yet
        if "-" not in last and all(admits(part, last) is not False for part in least):
            wanted = f"{_NUMPY}{one_bound((asked, f'<{end}'))}"
            return (*newer, *install(facts, (wanted,), "Install a NumPy that the packages support"))
    return newer or (Fix(f"Upgrade the package that the error names to a release for NumPy {numpy.version}"),)


def _raised_in(framework: Framework) -> str | None:
    """The package, with its release, in whose file the trial's error was raised, or which asked NumPy for it."""
    frames = (file.owner for file in (framework.trial and framework.trial.files) or () if file.role == "frame")
    return next((owner for owner in frames if owner and owner.partition("==")[0] != _NUMPY), None)


@rule(layer="framework", remedy=_match_numpy)
def numpy_abi_mismatch(_environment: Environment, facts: Facts) -> Outcome | None:
    """A package was built for a different NumPy version."""
    numpy = facts.installed(_NUMPY)
    if numpy is None:
        return None
    torch = facts.framework("torch")
    again = "pytorch" if torch and torch.version else ""  # as conda calls it
    records = [each for each in facts.versions if each.name != again]
    wrong = worst_first(found for record in records if (found := _misfit(record, numpy, facts)))
    if not wrong:
        known = any(bounds_on(each.requires, _NUMPY, {}) is not None for each in facts.frameworks)
        title = f"The frameworks support NumPy {numpy.version}"
        return passed(title, evidence_of(_NUMPY, numpy, "version"), decided_by="declared") if known else None
    names = list(dict.fromkeys(each.name for each in wrong))
    newer = (fix for name in names for fix in install_release_for(name, _NUMPY, facts))
    return incompatible_packages(
        wrong,
        title_of_first(f"{wrong[0].name} does not support NumPy {numpy.version}", wrong),
        (*_install_numpy_for(records, wrong, numpy, facts), *newer),
        evidence_of(_NUMPY, numpy, "version"),
        frameworks=tuple(names),
    )


def _install_numpy_for(
    records: Sequence[Framework | Distribution], wrong: Sequence[Misfit], numpy: Distribution, facts: Facts
) -> tuple[Fix, ...]:
    """The newest NumPy that all packages support, with other releases of those that no such NumPy suits."""
    listed = [str(each) for each in reversed(published(facts.matrix, _NUMPY))]
    declared = dict(_bounds_on_numpy(facts))
    names = {misfit.name for misfit in wrong}
    bounds = one_bound(each for name, each in declared.items() if name not in names)
    suited, others, newest = dict[str, None](), dict[str, None](), ""
    for _ in range(_MOST_ROUNDS):
        for each in wrong:
            own = one_bound((bounds, each.wanted, declared.get(each.name, "")))
            if listed and not any(admits(own, release) for release in listed):
                others[each.name] = None
            else:
                bounds = own
                suited[each.name] = None
        newest = next((release for release in listed if admits(bounds, release)), "")
        after = msgspec.structs.replace(numpy, version=newest)
        left = (each for each in records if newest and each.name not in others)
        wrong = [found for each in left if (found := _misfit(each, after, facts))]
        if not wrong:
            break
    if others and admits(bounds, numpy.version):
        return ()  # the releases of those for the installed NumPy suffice
    lines = [f"{name}{facts.bounds_for(name, _NUMPY, newest, python=facts.python)}" for name in others]
    also = f", and {' and '.join(others)} for it" if others else ""
    text = f"Install a NumPy that {' and '.join(suited or ['the others'])} can use{also}"
    return install(facts, (f"{_NUMPY}{bounds}", *lines), text, How(newest=bool(others)))


def does_not_work_with_numpy(framework: Framework, facts: Facts) -> str | None:
    """The title that a framework does not work with this NumPy; None if NumPy's version is unknown."""
    numpy = facts.installed(_NUMPY)
    name = (_raised_in(framework) or framework.title).replace("==", " ")
    return f"{name[:44]} does not work with NumPy {numpy.version[:12]}" if numpy else None


def _misfit(record: Framework | Distribution, numpy: Distribution, facts: Facts) -> Misfit | None:
    name, version, there = record.name, record.version or "", numpy.version
    framework = record if isinstance(record, Framework) else None
    bounds = bounds_on(record.requires or (), _NUMPY, facts.markers)
    if bounds and admits(bounds, there) is False:
        line = Evidence(f"{name} {version} requires", f"numpy{bounds}", record.source_of("requires"))
        redirected = imported_from(numpy).removeprefix(", ")
        reason = f"{name} {version} requires numpy{bounds}, but {there} is {redirected or 'installed'}"
        return Misfit(name, reason, (line,), _status(name, bounds, there, framework, facts.matrix), wanted=bounds)
    fit = facts.fit_of_release(name, version, _NUMPY, there)
    if fit is None or not fit.bad:
        return None
    wanted = fit.nearest_change.removeprefix(_NUMPY)
    status = limit_by_confidence(_status(name, wanted, there, framework, facts.matrix), fit)
    return Misfit(name, fit.reason, (evidence_of(name, record, "version"),), status, fit.sources, wanted)


def _status(name: str, wanted: str, there: str, framework: Framework | None, matrix: Matrix) -> Status:
    """A failure where another major is wanted, or the package refuses; less for what was seen to work."""
    if framework is not None and framework.ran_on_gpu:
        return "note"
    if framework is not None and framework.imported is False:
        return "fail"
    if matrix.has_trait(name, "distributes-torch"):
        return "warn"  # only converting arrays fails
    # Another major version is wanted where neither the first nor the last possible release of this one is admitted.
    own = parse_version(there)
    ends = (f"{own.numbers[0]}.0.0", f"{own.numbers[0]}.999.0") if own else ()
    other_major = bool(ends) and not any(admits(wanted.replace("|", ","), end) for end in ends)
    return "fail" if matrix.has_trait(name, "refuses-other-numpy") or other_major else "warn"


def _bounds_on_numpy(facts: Facts) -> Iterator[tuple[str, str]]:
    """Each package and its bounds on NumPy, in all metadata that was read."""
    records: list[Framework | Distribution] = [*facts.frameworks, *facts.distributions]
    for each in records:
        bounds = bounds_on(each.requires or (), _NUMPY, facts.markers)
        if bounds:
            yield each.name, bounds
