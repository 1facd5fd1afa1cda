"""TensorRT: that it is installed, all of one release, and matches the engines."""

from __future__ import annotations

import re

from envcheck.knowledge.relations.libraries import same_version
from envcheck.model.checks import Evidence, Fix
from envcheck.model.snapshot import Distribution, Environment, Load, frameworks_in
from envcheck.rules.api import Facts, FrameworkSubject, Outcome, passed, rule
from envcheck.rules.facts.frameworks import full_name
from envcheck.rules.facts.libraries import loads_are_known
from envcheck.rules.facts.library_names import name_of
from envcheck.rules.facts.trials import imported
from envcheck.rules.fixes.install import How, install
from envcheck.rules.fixes.libraries import INSTALL_TENSORRT
from envcheck.rules.libraries.missing import not_installed

_PACKAGE = re.compile(r"tensorrt(?:-cu[0-9]{2})?(?:-bindings|-libs)?")
_NUMBERS = 4


@rule(
    layer="library",
    per="framework",
    arises=loads_are_known,
    explains=("framework-import-fails",),
    remedy=INSTALL_TENSORRT,
    told_by=("damaged-distribution",),
)
def tensorrt_missing(subject: FrameworkSubject, facts: Facts) -> Outcome | None:
    """TensorRT is not installed."""
    return not_installed("tensorrt-missing", subject, facts)


@rule(layer="library", per="environment", explains=("framework-import-fails",), remedy=INSTALL_TENSORRT)
def tensorrt_mixed_versions(environment: Environment, facts: Facts) -> Outcome | None:
    """The parts of TensorRT have different versions."""
    packages = [each for each in environment.distributions or () if _PACKAGE.fullmatch(each.name)]
    loaded = _loaded(environment)
    if len(packages) < 2 and not loaded:
        return None
    for one in packages:
        for other in (other for other in packages if one.name < other.name and one.channel == other.channel):
            # Packages of one tool for the same CUDA version.
            plain = {name.replace("-bindings", "").replace("-libs", "") for name in (one.name, other.name)}
            if len(plain) == 1 and same_version(one.version, other.version, _NUMBERS) is False:
                return _mixed_packages((one, other), facts)
    for name, loads in loaded.items():
        first = loads[0]
        differs = (load for load in loads if same_version(load.version, first.version, _NUMBERS - 1) is False)
        if second := next(differs, None):
            text = f"Install {second.name} and {first.name} in one release, or remove one from the loader's path"
            return Outcome(
                status="warn",
                title=f"{name} would load parts of TensorRT {first.version} and {second.version}",
                message=f"{first.path} is version {first.version}, {second.path} is version {second.version}.",
                evidence=tuple(
                    Evidence(what=load.name, value=f"{load.path} ({load.version})", source=load.source)
                    for load in (first, second)
                ),
                fixes=(Fix(text=text),),
            )
    return passed("All parts of TensorRT have the same version")


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
