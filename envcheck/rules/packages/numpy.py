"""NumPy, whose C interface and functions differ between releases."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from envcheck.compat.package_needs import admits, bounds_on
from envcheck.knowledge.matrix import Matrix
from envcheck.knowledge.specifier import parse_version
from envcheck.model.checks import Evidence, Fix, Status
from envcheck.model.snapshot import Distribution, Environment, Framework, frameworks_in
from envcheck.rules.api import Facts, FrameworkSubject, Outcome, evidence_of, passed, rule
from envcheck.rules.facts.frameworks import fit_of_release, full_name, installed
from envcheck.rules.facts.machine import title_of_first
from envcheck.rules.facts.trials import imported, ran_on_gpu
from envcheck.rules.fixes.install import How, install, install_release_for
from envcheck.rules.fixes.outcomes import Misfit, incompatible_packages, limit_by_confidence, worst_first
from envcheck.rules.packages.redirected import imported_from

_NUMPY = "numpy"


def _match_numpy(facts: Facts) -> tuple[Fix, ...]:
    """If only an error line is known: newer releases of the failed packages, else an older NumPy if allowed."""
    environment = facts.environment
    numpy = installed(environment, _NUMPY)
    there = parse_version(numpy.version) if numpy else None
    if environment is None or numpy is None or there is None:
        return (
            Fix(text="Install a NumPy of the major version that the package was built for, or upgrade the package"),
        )
    about = {
        name for each in frameworks_in(environment) if each.name in facts.about for name in (each.name, each.extends)
    }
    names = sorted(each.name for each in environment.distributions or () if each.name in about)
    text, newest = f"Upgrade {' and '.join(names)}, for NumPy {numpy.version}", How(newest=True)
    newer = install(facts, names, text, newest) if names else ()
    asked = _one_bound(_bounds_on_numpy(environment, facts))
    before = f"{there.numbers[0] - 1}.999"
    least = (part for part in asked.split(",") if part.startswith((">", "=", "~")))
    if there.numbers[0] == 0 or any(admits(part, before) is False for part in least):
        return newer or (Fix(text=f"Upgrade the package that the error names to a release for NumPy {numpy.version}"),)
    bounds = ",".join(filter(None, (asked, f"<{there.numbers[0]}")))
    return (*newer, *install(facts, (f"{_NUMPY}{bounds}",), "Install a NumPy that the packages support"))


def _one_bound(bounds: Iterable[str]) -> str:
    """Join these bounds into one specifier."""
    parts = (part.strip() for each in bounds for part in each.split(","))
    return ",".join(dict.fromkeys(part for part in parts if part and "|" not in part))


@rule(layer="framework", per="environment", remedy=_match_numpy, explains=("requirement-broken",))
def numpy_abi_mismatch(environment: Environment, facts: Facts) -> Outcome | None:
    """A package was built for a different NumPy version."""
    numpy = installed(environment, _NUMPY)
    if numpy is None:
        return None
    frameworks = {each.name: each for each in frameworks_in(environment) if each.version}
    judged = {*frameworks, *(("pytorch",) if "torch" in frameworks else ())}
    listed = (each for each in environment.distributions or () if each.name not in judged)
    records: list[Framework | Distribution] = [*frameworks.values(), *listed]
    wrong = worst_first(found for record in records if (found := _misfit(record, numpy, facts)))
    if not wrong:
        known = any(bounds_on(each.requires, _NUMPY, {}) is not None for each in frameworks_in(environment))
        title = f"The frameworks support NumPy {numpy.version}"
        return passed(title, evidence_of(_NUMPY, numpy, "version"), decided_by="declared") if known else None
    # A NumPy that all requirements admit, or releases of the packages for the installed NumPy.
    bounds = _one_bound((*_bounds_on_numpy(environment, facts), *(each.wanted for each in wrong)))
    names = list(dict.fromkeys(each.name for each in wrong))
    newer = (fix for name in names for fix in install_release_for(name, _NUMPY, environment, facts))
    return incompatible_packages(
        wrong,
        title_of_first(f"{wrong[0].name} does not support NumPy {numpy.version}", wrong),
        (*install(facts, (f"{_NUMPY}{bounds}",), f"Install a NumPy that {' and '.join(names)} can use"), *newer),
        evidence_of(_NUMPY, numpy, "version"),
        frameworks=tuple(names),
    )


def does_not_work_with_numpy(subject: FrameworkSubject) -> str | None:
    """The title that a framework does not work with this NumPy; None if NumPy's version is unknown."""
    numpy = installed(subject.environment, _NUMPY)
    return f"{full_name(subject.framework)[:44]} does not work with NumPy {numpy.version[:12]}" if numpy else None


def _misfit(record: Framework | Distribution, numpy: Distribution, facts: Facts) -> Misfit | None:
    name, version, there = record.name, record.version or "", numpy.version
    framework = record if isinstance(record, Framework) else None
    bounds = bounds_on(record.requires or (), _NUMPY, facts.markers)
    if bounds:
        if admits(bounds, there) is not False:
            return None
        line = Evidence(what=f"{name} {version} requires", value=f"numpy{bounds}", source=record.source_of("requires"))
        redirected = imported_from(numpy).removeprefix(", ")
        reason = f"{name} {version} requires numpy{bounds}, but {there} is {redirected or 'installed'}"
        return Misfit(name, reason, (line,), _status(name, bounds, there, framework, facts.matrix), wanted=bounds)
    fit = fit_of_release(facts, name, version, _NUMPY, there)
    if fit is None or not fit.bad:
        return None
    wanted = fit.nearest_change.removeprefix(_NUMPY)
    status = limit_by_confidence(_status(name, wanted, there, framework, facts.matrix), fit)
    return Misfit(name, fit.reason, (evidence_of(name, record, "version"),), status, fit.sources, wanted)


def _status(name: str, wanted: str, there: str, framework: Framework | None, matrix: Matrix) -> Status:
    """A failure where another major is wanted, or the package refuses; less for what was seen to work."""
    if framework is not None and ran_on_gpu(framework):
        return "note"
    if framework is not None and imported(framework) is False:
        return "fail"
    if matrix.has_trait(name, "distributes-torch"):
        return "warn"  # only converting arrays fails
    # Another major version is wanted where neither the first nor the last possible release of this one is admitted.
    own = parse_version(there)
    ends = (f"{own.numbers[0]}.0.0", f"{own.numbers[0]}.999.0") if own else ()
    other_major = bool(ends) and not any(admits(wanted.replace("|", ","), end) for end in ends)
    return "fail" if matrix.has_trait(name, "refuses-other-numpy") or other_major else "warn"


def _bounds_on_numpy(environment: Environment, facts: Facts) -> Iterator[str]:
    """The bounds on NumPy in all metadata that was read."""
    records: list[Framework | Distribution] = [*frameworks_in(environment), *(environment.distributions or ())]
    for each in records:
        bounds = bounds_on(each.requires or (), _NUMPY, facts.markers)
        if bounds:
            yield bounds
