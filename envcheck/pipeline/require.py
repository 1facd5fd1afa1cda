"""``--require``: compare stated bounds with the facts; each becomes a check of the rule ``requirement-not-met``."""

from __future__ import annotations

from collections.abc import Sequence

from envcheck.bounds import capability_holds, names_capability, parse_version, same_words, sentence, version_holds
from envcheck.checks import Check, Evidence, Missing, Scope, Status, Subject
from envcheck.compat.matrix import Matrix
from envcheck.components import Bound, Component
from envcheck.errors import UsageError
from envcheck.rules.api import Facts
from envcheck.snapshot import Gpu, Snapshot

RULE = "requirement-not-met"

_NODE = frozenset({"gpu", "gpus", "driver", "cuda"})


def require(snapshot: Snapshot, matrix: Matrix, components: Sequence[Component]) -> tuple[Check, ...]:
    """One check for each component: pass, fail, or unknown when the fact is not known."""
    facts = Facts(snapshot, matrix)
    return tuple(_check(component, facts) for component in components)


def validate(components: Sequence[Component]) -> None:
    """Raise UsageError for a bound that can never be judged."""
    for component in components:
        for bound in component.bounds:
            if component.name != "gpu" and parse_version(bound.value) is None:
                raise UsageError(f"--require {component}: {bound.value!r} is not a version")
            by_name = component.name == "gpu" and not names_capability(bound)
            if by_name and bound.operator not in ("==", "!="):
                raise UsageError(f"--require {component}: a GPU is named with == or !=, its capability as in >=sm_90")
            if component.name == "gpu" and bound.operator == "~=":
                raise UsageError(f"--require {component}: a compute capability is compared with >=, not with ~=")


def _check(component: Component, facts: Facts) -> Check:
    found, source, missing = _found(component.name, facts)
    if (
        found
        and any(_capability(name, facts) is None for name in found)
        and any(map(names_capability, component.bounds))
    ):
        found, missing = None, "gpus.compute_capability"
    if found is None:
        status: Status = "unknown"
    else:
        held = all(_holds(bound, value, facts) for bound in component.bounds for value in found) and bool(found)
        status = "pass" if held else "fail"
    scope: Scope = "node" if component.name in _NODE else "env"
    return Check(
        id=f"{RULE}@{component}",
        rule=RULE,
        scope=scope,
        layer="request",
        subject=Subject(key=str(component)),
        status=status,
        title=f"Required: {component}" if status == "pass" else f"Not as required: {component}",
        message=sentence(component, found),
        evidence=tuple(
            Evidence(what=component.name, value=value, source=source) for value in dict.fromkeys(found or ())
        ),
        decided_by="declared",
        missing=(Missing(fact=missing),) if found is None else (),
    )


def _found(name: str, facts: Facts) -> tuple[tuple[str, ...] | None, str, str]:
    """What is here of that name (None when nobody knows), where it was read, and the path of the fact."""
    driver, listing, environment = facts.snapshot.driver, facts.snapshot.gpus, facts.environment
    if name == "gpus":
        usable = facts.usable_gpus
        known = listing is not None and (listing.complete or bool(usable))
        return ((str(len(usable)),) if known else None), "gpus", "gpus"
    if name == "gpu":
        names = tuple(gpu.name or gpu.compute_capability or "?" for gpu in facts.usable_gpus)
        return (names if listing is not None and (names or listing.complete) else None), "gpus", "gpus"
    if name in ("driver", "cuda"):
        field = "release" if name == "driver" else "cuda"
        value = getattr(driver, field) if driver else None
        source = driver.source_of(field) if driver else ""
        return ((value,) if value else None), source, f"driver.{field}"
    if environment is None:
        return None, "", "environments"
    if name == "python":
        return ((environment.python,) if environment.python else None), environment.source, "environment.python"
    versions = tuple(found.version for found in environment.distributions or () if found.name == name)[:1]
    known = bool(versions) or environment.distributions_complete
    return (versions if known else None), environment.key, "environment.distributions"


def _holds(bound: Bound, value: str, facts: Facts) -> bool:
    if names_capability(bound):
        return capability_holds(bound, _capability(value, facts))
    found, wanted = parse_version(value), parse_version(bound.value)
    if found is None or wanted is None:
        return _same_gpu(bound.value, value, facts) is (bound.operator == "==")
    return version_holds(bound.operator, found, wanted)


def _capability(name: str, facts: Facts) -> str | None:
    """The compute capability of the GPU of this name, which may be its capability where it has no name."""
    gpu: Gpu | None = next((gpu for gpu in facts.usable_gpus if name in (gpu.name, gpu.compute_capability)), None)
    return gpu.compute_capability if gpu else None


def _same_gpu(wanted: str, name: str, facts: Facts) -> bool:
    """Whether a GPU of this name is the wanted model."""
    model = facts.matrix.find_gpu(wanted)
    actual = facts.matrix.find_gpu(name)
    if model is not None and actual is not None and model.name == actual.name:
        return True
    return same_words(wanted, name)
