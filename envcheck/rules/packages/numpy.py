"""NumPy, whose C interface and whose functions differ between releases."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from envcheck.checks import STATUSES, Evidence, Fix, Source, Status
from envcheck.compat.question.package_needs import admits, bounds_on, release_fits
from envcheck.compat.specifier import parse_version
from envcheck.rules.api import Facts, FrameworkSubject, Outcome, passed, rule, seen
from envcheck.rules.facts.frameworks import machine, named, of
from envcheck.rules.facts.trials import imported, ran_on_gpu
from envcheck.rules.fixes.fits import by_confidence
from envcheck.rules.fixes.install import How, install, install_release_for
from envcheck.rules.packages.redirected import imported_from
from envcheck.snapshot import Distribution, Environment, Framework

_NUMPY = "numpy"
_REFUSES = frozenset({"numba"})
"""What compares NumPy's version itself, and stops."""
_GOES_ON = frozenset({"torch", "pytorch"})
"""What works without NumPy, but for arrays that go in and out."""


class _Wrong(NamedTuple):
    name: str
    reason: str
    wanted: str
    evidence: tuple[Evidence, ...]
    status: Status
    sources: tuple[Source, ...] = ()


def _numpy(environment: Environment) -> Distribution | None:
    return next((each for each in environment.distributions or () if each.name == _NUMPY and each.version), None)


def _has_numpy(environment: Environment, _facts: Facts) -> bool:
    return _numpy(environment) is not None


def _match_numpy(facts: Facts) -> tuple[Fix, ...]:
    """Where only an error line is known: newer releases of what failed, else an older NumPy if nothing forbids it."""
    environment = facts.environment
    numpy = _numpy(environment) if environment else None
    met = parse_version(numpy.version) if numpy else None
    if environment is None or numpy is None or met is None:
        return (
            Fix(text="Install a NumPy of the major version that the package was built for, or upgrade the package"),
        )
    about = {name for each in of(environment) if each.name in facts.about for name in (each.name, each.extends)}
    named = sorted(each.name for each in environment.distributions or () if each.name in about)
    text, newest = f"Upgrade {' and '.join(named)}, for NumPy {numpy.version}", How(newest=True)
    newer = install(facts, named, text, newest) if named else ()
    asked = _one_bound(_bounds_on_numpy(environment, facts))
    before = f"{met.numbers[0] - 1}.999"
    least = (part for part in asked.split(",") if part.startswith((">", "=", "~")))
    if met.numbers[0] == 0 or any(admits(part, before) is False for part in least):
        return newer or (Fix(text=f"Upgrade the package that the error names to a release for NumPy {numpy.version}"),)
    bounds = ",".join(filter(None, (asked, f"<{met.numbers[0]}")))
    return (*newer, *install(facts, (f"{_NUMPY}{bounds}",), "Install a NumPy that the packages were built for"))


def _one_bound(bounds: Iterable[str]) -> str:
    """All of these in one specifier."""
    parts = (part.strip() for each in bounds for part in each.split(","))
    return ",".join(dict.fromkeys(part for part in parts if part and "|" not in part))


@rule(
    layer="framework",
    scope="env",
    per="environment",
    arises=_has_numpy,
    remedy=_match_numpy,
    explains=("requirement-broken",),
)
def numpy_abi_mismatch(environment: Environment, facts: Facts) -> Outcome | None:
    """A package was built for a different NumPy version.

    What it checks
        NumPy's version against what the frameworks and their packages require in their metadata,
        else against what is known of their releases: above all whether something that was compiled
        with NumPy 1 meets NumPy 2.

    Why it matters
        What was compiled with NumPy 1 cannot be used with NumPy 2 ("A module that was compiled using
        NumPy 1.x cannot be run in NumPy 2", "_ARRAY_API not found"): the import fails, or PyTorch goes
        on without NumPy ("Numpy is not available"). What was compiled with a newer NumPy than is there
        says "numpy.dtype size changed" or "module compiled against API version". And functions that
        a release removed are missed by older packages.

    How to fix
        Install a NumPy that all of them admit (often `numpy<2`), or releases of the packages that
        were made for this NumPy.

    Sources
        NumPy 2.0 migration guide: https://numpy.org/doc/stable/numpy_2_0_migration_guide.html
        NumPy, for downstream package authors: https://numpy.org/doc/stable/dev/depending_on_numpy.html
    """
    numpy = _numpy(environment)
    if numpy is None:
        return None
    wrong = sorted(_wrong(environment, numpy, facts), key=lambda each: STATUSES.index(each.status))
    if not wrong:
        known = any(_asks(framework) for framework in of(environment))
        title = f"NumPy {numpy.version} is one that the frameworks here admit"
        return passed(title, seen(_NUMPY, numpy, "version"), decided_by="declared") if known else None
    first = wrong[0]
    more = f" (and for {len(wrong) - 1} more)" if len(wrong) > 1 else ""
    return Outcome(
        status=first.status,
        title=f"NumPy {numpy.version} is not one that {first.name} was made for"[: 80 - len(more)] + more,
        message=" ".join(f"{each.reason}{imported_from(numpy)}." for each in wrong[:8]),
        evidence=(seen(_NUMPY, numpy, "version"), *(part for each in wrong[:8] for part in each.evidence)),
        sources=tuple(dict.fromkeys(source for each in wrong for source in each.sources)),
        decided_by="declared",
        fixes=_fixes(wrong, environment, facts),
        frameworks=tuple(dict.fromkeys(each.name for each in wrong)),
    )


def does_not_work_with_numpy(subject: FrameworkSubject) -> str | None:
    """Which framework does not work with which NumPy, where NumPy's version is known."""
    numpy = _numpy(subject.environment)
    return f"{named(subject.framework)[:44]} does not work with NumPy {numpy.version[:12]}" if numpy else None


def _asks(framework: Framework) -> bool:
    return bounds_on(framework.requires, _NUMPY, {}) is not None


def _wrong(environment: Environment, numpy: Distribution, facts: Facts) -> Iterator[_Wrong]:
    frameworks = {each.name: each for each in of(environment) if each.version}
    for each in frameworks.values():
        found = _held(each, numpy, each, facts)
        if found:
            yield found
    for listed in environment.distributions or ():
        if listed.name not in frameworks and not (listed.name == "pytorch" and "torch" in frameworks):
            found = _held(listed, numpy, None, facts)
            if found:
                yield found


def _held(
    record: Framework | Distribution,
    numpy: Distribution,
    framework: Framework | None,
    facts: Facts,
) -> _Wrong | None:
    name, version, there = record.name, record.version or "", numpy.version
    bounds = bounds_on(record.requires or (), _NUMPY, facts.marks)
    if bounds:
        if admits(bounds, there) is not False:
            return None
        line = Evidence(what=f"{name} {version} requires", value=f"numpy{bounds}", source=record.source_of("requires"))
        reason = f"{name} {version} requires numpy{bounds}, and this is {there}"
        return _Wrong(name, reason, bounds, (line,), _weight(name, bounds, there, framework))
    fit = release_fits(facts.tables, name, version, _NUMPY, there, facts.driver_os, machine(facts))
    if fit is None or not fit.bad:
        return None
    wanted = fit.nearest_change.removeprefix(_NUMPY)
    status = by_confidence(_weight(name, wanted, there, framework), fit)
    return _Wrong(name, fit.reason, wanted, (seen(name, record, "version"),), status, fit.sources)


def _weight(name: str, wanted: str, there: str, framework: Framework | None) -> Status:
    """A failure where another major is wanted, or the package refuses; less for what was seen to work."""
    if framework is not None and ran_on_gpu(framework):
        return "note"
    if framework is not None and imported(framework) is False:
        return "fail"
    if name in _GOES_ON:
        return "warn"
    return "fail" if name in _REFUSES or _other_major(wanted, there) else "warn"


def _other_major(wanted: str, there: str) -> bool:
    """Whether no release of the same major is admitted: the first and the last that there could be are not."""
    met = parse_version(there)
    if met is None:
        return False
    ends = (f"{met.numbers[0]}.0.0", f"{met.numbers[0]}.999.0")
    return not any(admits(wanted.replace("|", ","), end) for end in ends)


def _fixes(wrong: list[_Wrong], environment: Environment, facts: Facts) -> tuple[Fix, ...]:
    """The NumPy that all who ask for one admit; else releases of the packages for the NumPy that is there."""
    bounds = _one_bound((*_bounds_on_numpy(environment, facts), *(each.wanted for each in wrong)))
    names = list(dict.fromkeys(each.name for each in wrong))
    text = f"Install a NumPy that {' and '.join(names)} can use"
    newer = (fix for name in names for fix in install_release_for(name, _NUMPY, environment, facts))
    return (*install(facts, (f"{_NUMPY}{bounds}",), text), *newer)


def _bounds_on_numpy(environment: Environment, facts: Facts) -> Iterator[str]:
    """Which NumPy is asked for, by all metadata that was read."""
    records: list[Framework | Distribution] = [*of(environment), *(environment.distributions or ())]
    for each in records:
        bounds = bounds_on(each.requires or (), _NUMPY, facts.marks)
        if bounds:
            yield bounds
