"""TensorRT: that it is installed, all of one release, and matches the engines."""

from __future__ import annotations

import re

from envcheck.knowledge.relations.libraries import same_version
from envcheck.model.checks import Evidence, Fix
from envcheck.model.snapshot import Distribution, Environment, Load, frameworks_in
from envcheck.rules.api import Facts, FrameworkSubject, Outcome, passed, rule
from envcheck.rules.facts.frameworks import full_name
from envcheck.rules.facts.libraries import loads_are_known, missing_because
from envcheck.rules.facts.library_names import name_of
from envcheck.rules.facts.trials import imported
from envcheck.rules.fixes.install import How, install
from envcheck.rules.fixes.libraries import install_tensorrt
from envcheck.rules.libraries.missing import not_installed

_PACKAGE = re.compile(r"tensorrt(?:-cu[0-9]{2})?(?:-bindings|-libs)?")
_NUMBERS = 4


@rule(
    layer="library",
    per="framework",
    arises=loads_are_known,
    explains=("framework-import-fails",),
    remedy=install_tensorrt,
    told_by=("damaged-distribution",),
)
def tensorrt_missing(subject: FrameworkSubject, facts: Facts) -> Outcome | None:
    """TensorRT is not installed."""
    found = missing_because("tensorrt-missing", subject, facts)
    return not_installed(subject, found, facts) if found else None


@rule(layer="library", per="environment", explains=("framework-import-fails",), remedy=install_tensorrt)
def tensorrt_mixed_versions(environment: Environment, facts: Facts) -> Outcome | None:
    """The parts of TensorRT have different versions."""
    packages = [each for each in environment.distributions or () if _PACKAGE.fullmatch(each.name)]
    loaded = _loaded(environment)
    if len(packages) < 2 and not loaded:
        return None
    wrong = [(one, other) for one in packages for other in packages if _differ(one, other)]
    if wrong:
        return _mixed_packages(wrong[0], facts)
    for name, loads in loaded.items():
        other = next(
            (load for load in loads if same_version(load.version, loads[0].version, _NUMBERS - 1) is False), None
        )
        if other is not None:
            return _mixed_libraries(name, loads[0], other)
    return passed("All parts of TensorRT have the same version")


def _differ(one: Distribution, other: Distribution) -> bool:
    """Whether two packages of one tool for the same CUDA version have different releases."""
    if one.name >= other.name or one.channel != other.channel:
        return False
    plain = [name.replace("-bindings", "").replace("-libs", "") for name in (one.name, other.name)]
    return plain[0] == plain[1] and same_version(one.version, other.version, _NUMBERS) is False


def _mixed_packages(pair: tuple[Distribution, Distribution], facts: Facts) -> Outcome:
    newest = max(pair, key=lambda each: each.name.count("-") == 0)
    wanted = f"{newest.name}=={newest.version}"
    return Outcome(
        status="warn",
        title=f"{pair[0].name} {pair[0].version} does not match {pair[1].name} {pair[1].version}",
        message="The bindings and the libraries of TensorRT must have the same version.",
        evidence=tuple(Evidence(what=each.name, value=each.version, source=each.source) for each in pair),
        fixes=install(facts, (wanted,), f"Install {wanted} again, with its parts", How(again=True)),
        decided_by="declared",
    )


def _loaded(environment: Environment) -> dict[str, list[Load]]:
    """The parts of TensorRT that each framework would load, if there are several."""
    found: dict[str, list[Load]] = {}
    for framework in frameworks_in(environment):
        if imported(framework):
            continue
        loads = {
            load.path: load
            for load in framework.loads or ()
            if load.path and load.version and (name := name_of(load.name)) and name.kind == "tensorrt"
        }
        if len(loads) > 1:
            found[full_name(framework)] = list(loads.values())
    return found


def _mixed_libraries(name: str, one: Load, other: Load) -> Outcome:
    return Outcome(
        status="warn",
        title=f"{name} would load parts of TensorRT {one.version} and {other.version}",
        message=f"{one.path} is version {one.version}, {other.path} is version {other.version}.",
        evidence=tuple(
            Evidence(what=load.name, value=f"{load.path} ({load.version})", source=load.source) for load in (one, other)
        ),
        fixes=(Fix(text=f"Install {other.name} and {one.name} in one release, or remove one from the loader's path"),),
    )
