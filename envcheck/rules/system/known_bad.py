"""Releases of the driver, of Windows, frameworks and libraries that are known to be broken."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from typing import NamedTuple

from envcheck.enrich.stated import first_of
from envcheck.knowledge.error_lines import nccl_releases
from envcheck.knowledge.names import scheme
from envcheck.knowledge.relations.gpu_code import has_flaw, read_targets
from envcheck.knowledge.specifier import parse_specifier, parse_version, speaks_of
from envcheck.knowledge.tables.software import FlawRow
from envcheck.model.checks import STATUSES, Evidence, Fix, Layer
from envcheck.model.snapshot import PASTED, Framework, Snapshot
from envcheck.rules.api import Facts, Outcome, evidence_of, passed, rule
from envcheck.rules.facts.frameworks import code_targets, gpus_proven
from envcheck.rules.facts.library_names import wheel_of

_BUNDLED = ("nccl", "cudnn", "tensorrt")  # Libraries whose versions a framework reports
_LIBRARY: Layer = "library"
_FRAMEWORK: Layer = "framework"


class Present(NamedTuple):
    """An installed component, by the name that rows use."""

    name: str
    version: str
    evidence: Evidence
    layer: Layer
    cuda: str = ""  # The CUDA that a framework was built with
    framework: Framework | None = None


@rule(layer="driver", scope="env")
def known_bad_release(_snapshot: Snapshot, facts: Facts) -> Outcome | None:
    """A release in use is known to be broken."""
    present: dict[tuple[str, str], Present] = {}
    for each in _present(facts):
        present.setdefault((each.name, each.version), each)
    flawed = {row.name for row in facts.matrix.flaws}
    pairs = ((row, each) for each in present.values() if each.name in flawed for row in facts.matrix.flaws)
    broken = [(row, each) for row, each in pairs if _is_in(row, each, facts) and _is_beside(row, present)]
    if not present or not facts.matrix.flaws:
        return None
    if not broken:
        return passed("No release in use is known to be broken")
    row, item = min(broken, key=lambda found: STATUSES.index(found[0].status))
    flaw = row.problem.partition(":")[0].rstrip(".")
    return Outcome(
        status=row.status,
        title=f"{item.name} {item.version}" + (f": {flaw}" if row.status == "note" else " is known to be broken"),
        message=" ".join(each.problem for each, _ in broken),
        evidence=tuple(each.evidence for _, each in broken),
        decided_by="declared",
        confidence=row.confidence,
        fixes=tuple(Fix(each.change) for each, _ in broken),
        sources=facts.matrix.cite(*(each for each, _ in broken)),
        layer=item.layer,
    )


def _is_in(row: FlawRow, item: Present, facts: Facts) -> bool:
    if row.name != item.name or (row.os and facts.driver_os not in row.os) or row.confidence == "weak":
        return False
    cuda = parse_version(item.cuda)
    if row.cuda and (cuda is None or parse_specifier(row.cuda).cover(cuda) != "all"):
        return False
    version, framework = parse_version(item.version, scheme(item.name)), item.framework
    proven = gpus_proven(framework, facts) if framework and row.only_ptx else ()
    capabilities = [capability for gpu, capability in facts.gpus_with_capability if gpu not in proven]
    if version is None:
        return False
    # The GPU code of a framework; where its files were not read, what its release is known to hold.
    record = framework or facts.framework(item.name)
    if record and record.gpu_code is not None:
        code = code_targets(record)
    else:
        rows = facts.rows_of_release(item.name, first_of(item.version))
        code = read_targets(target for each in rows for target in each.targets)
    return has_flaw(facts.matrix, row, version, capabilities, code)


def _is_beside(row: FlawRow, present: Collection[tuple[str, str]]) -> bool:
    """Whether every release that is there of each component beside it is one with which it matters."""
    for name, versions in row.beside.items():
        found = [parse_version(version, scheme(name)) for other, version in present if other == name]
        if not found or any(each is None or speaks_of(versions, each) != "all" for each in found):
            return False
    return True


def _present(facts: Facts) -> Iterator[Present]:
    """Windows, the driver, frameworks with what they bundle, and distributions."""
    platform = facts.platform
    if platform.windows_build:
        evidence = evidence_of("Windows", platform, "windows_build")
        yield Present("windows", platform.windows_build, evidence, "driver")
    driver = facts.release_text
    if driver:
        yield Present("driver", driver, Evidence("driver", driver, facts.driver.source_of("release")), "driver")
        # How many there are is the version of a model.
        for name, count in Counter(gpu.name.removeprefix("NVIDIA ") for gpu in facts.usable_gpus if gpu.name).items():
            yield Present(name, str(count), Evidence(name, str(count), facts.gpus[0].source), "gpu")
    for release in nccl_releases(facts.snapshot.observed_errors):  # as its log says
        evidence = Evidence("NCCL's log", release, PASTED)
        yield Present("nccl", release, evidence, _LIBRARY)
    for framework in facts.frameworks:
        versions = {framework.name: framework.version, **{name: getattr(framework, name) for name in _BUNDLED}}
        for name, version in versions.items():
            if version:
                what = name if name == framework.name else f"{name} of {framework.name}"
                evidence = Evidence(what, version, framework.source)
                own = name == framework.name
                layer = _FRAMEWORK if own else _LIBRARY
                yield Present(name, version, evidence, layer, framework.cuda or "", framework if own else None)
    for item in facts.distributions:
        wheel = wheel_of(item.name)
        evidence = Evidence(item.name, item.version, item.source)
        name, layer = (wheel.name, _LIBRARY) if wheel else (item.name, _FRAMEWORK)
        yield Present(name, item.version, evidence, layer)
