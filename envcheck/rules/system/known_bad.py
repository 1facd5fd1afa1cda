from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from envcheck.compat.package_needs import release_rows
from envcheck.enrich.stated import first_of
from envcheck.knowledge.relations.gpu_code import has_flaw, read_targets
from envcheck.knowledge.specifier import parse_specifier, parse_version
from envcheck.knowledge.tables import FlawRow
from envcheck.model.checks import STATUSES, Evidence, Fix, Layer
from envcheck.model.snapshot import Environment, Framework, Platform, Snapshot, frameworks_in
from envcheck.model.versions import CodeTarget, ComputeCapability
from envcheck.rules.api import Facts, Outcome, passed, rule
from envcheck.rules.facts.frameworks import code_targets, machine
from envcheck.rules.facts.library_names import wheel_of
from envcheck.rules.facts.machine import release_text
from envcheck.rules.facts.trials import gpus_proven

_BUNDLED = ("nccl", "cudnn", "tensorrt")
"""Libraries whose versions a framework reports."""
_LIBRARY: Layer = "library"
_FRAMEWORK: Layer = "framework"


class Present(NamedTuple):
    """An installed component, by the name that rows use."""

    name: str
    version: str
    evidence: Evidence
    layer: Layer
    cuda: str = ""
    """The CUDA that a framework was built with."""
    framework: Framework | None = None


@rule(
    layer="driver",
    scope="env",
    arises=lambda _subject, facts: bool(facts.matrix.flaws) and next(_present(facts), None) is not None,
    explains=("driver-not-loaded", "gpu-init-failed", "no-gpu-visible", "wsl-libcuda-shadowed"),
    remedy=(Fix(text="Move to a release without the flaw, usually the next one"),),
)
def known_bad_release(_snapshot: Snapshot, facts: Facts) -> Outcome | None:
    """A release in use is known to be broken."""
    met = [(row, item) for item in _present(facts) for row in facts.matrix.flaws if _is_in(row, item, facts)]
    if not met:
        return passed("No release in use is known to be broken")
    row, item = min(met, key=lambda found: STATUSES.index(found[0].status))
    return Outcome(
        status=row.status,
        title=f"{item.name} {item.version} is known to be broken",
        message=" ".join(each.problem for each, _ in met),
        evidence=tuple(each.evidence for _, each in met),
        decided_by="declared",
        confidence=row.confidence,
        fixes=tuple(Fix(text=each.change) for each, _ in met),
        sources=facts.matrix.cite(*(each for each, _ in met)),
        layer=item.layer,
    )


def _is_in(row: FlawRow, item: Present, facts: Facts) -> bool:
    if row.name != item.name or (row.os and facts.driver_os not in row.os) or row.confidence == "weak":
        return False
    if row.cuda and not _covers(row.cuda, item.cuda):
        return False
    version, framework = parse_version(item.version), item.framework
    proven = gpus_proven(framework, facts) if framework and row.only_ptx else ()
    texts = (gpu.compute_capability for gpu in facts.usable_gpus if gpu not in proven)
    capabilities = [capability for text in texts if (capability := ComputeCapability.parse(text))]
    return version is not None and has_flaw(facts.matrix, row, version, capabilities, _code(item, facts))


def _code(item: Present, facts: Facts) -> tuple[CodeTarget, ...]:
    """The GPU code of a framework; where its files were not read, what its release is known to hold."""
    same = (found for found in frameworks_in(facts.environment) if found.name == item.name)
    framework = item.framework or next(same, None)
    if framework and framework.gpu_code is not None:
        return code_targets(framework)
    rows = release_rows(facts.matrix, item.name, first_of(item.version), facts.driver_os, machine(facts))
    return read_targets(target for each in rows for target in each.targets)


def _covers(specifier: str, text: str | None) -> bool:
    version = parse_version(text) if text else None
    return version is not None and parse_specifier(specifier).cover(version) == "all"


def _present(facts: Facts) -> Iterator[Present]:
    platform = facts.snapshot.platform or Platform()
    if platform.windows_build:
        build = platform.windows_build
        source = platform.source_of("windows_build")
        yield Present("windows", build, Evidence(what="Windows", value=build, source=source), "driver")
    driver = release_text(facts)
    if driver:
        source = facts.driver.source_of("release")
        yield Present("driver", driver, Evidence(what="driver", value=driver, source=source), "driver")
    if facts.environment is not None:
        yield from _in_environment(facts.environment)


def _in_environment(environment: Environment) -> Iterator[Present]:
    """Frameworks with what they bundle, and distributions; each component and version once."""
    met: set[tuple[str, str]] = set()
    for found in _components(environment):
        if (found.name, found.version) not in met:
            met.add((found.name, found.version))
            yield found


def _components(environment: Environment) -> Iterator[Present]:
    for framework in frameworks_in(environment):
        versions = {framework.name: framework.version, **{name: getattr(framework, name) for name in _BUNDLED}}
        for name, version in versions.items():
            if version:
                what = name if name == framework.name else f"{name} of {framework.name}"
                evidence = Evidence(what=what, value=version, source=framework.source)
                layer = _FRAMEWORK if name == framework.name else _LIBRARY
                yield Present(
                    name, version, evidence, layer, framework.cuda or "", framework if name == framework.name else None
                )
    for item in environment.distributions or ():
        wheel = wheel_of(item.name)
        evidence = Evidence(what=item.name, value=item.version, source=item.source)
        name, layer = (wheel.name, _LIBRARY) if wheel else (item.name, _FRAMEWORK)
        yield Present(name, item.version, evidence, layer)
