"""``--require``: compare stated bounds with the facts; each becomes a check of the rule ``requirement-not-met``."""

from __future__ import annotations

from collections.abc import Sequence
from operator import eq, ge, gt, le, lt, ne

from envcheck.errors import UsageError
from envcheck.knowledge.matrix import Matrix
from envcheck.knowledge.names import is_within, unreadable
from envcheck.model.bounds import OF_THE_MACHINE, capability_holds, names_capability, parse_size, same_words, sentence
from envcheck.model.checks import Check, Evidence, Missing, Scope, Status, Subject
from envcheck.model.components import Bound, Component
from envcheck.model.snapshot import Gpu, Snapshot
from envcheck.rules.api import Facts

RULE = "requirement-not-met"

_MODELS = "|"  # Separates the GPU models of which any will do


def require(snapshot: Snapshot, matrix: Matrix, components: Sequence[Component]) -> tuple[Check, ...]:
    """One check for each component: pass, fail, or unknown when the fact is not known."""
    facts = Facts(snapshot, matrix)
    return tuple(_check(component, facts) for component in components)


def validate(components: Sequence[Component]) -> None:
    """Raise UsageError for a bound that can never be judged."""
    for component in components:
        for bound in component.bounds:
            if component.name == "gpu-memory":
                if parse_size(bound.value) is None or bound.operator == "~=":
                    raise UsageError(f"--require {component}: write a size, as in gpu-memory>=79GiB")
            elif component.name != "gpu" and (why := unreadable(bound)):
                raise UsageError(f"--require {component}: {why}")
            by_name = component.name == "gpu" and not names_capability(bound)
            if by_name and bound.operator not in ("==", "!="):
                raise UsageError(f"--require {component}: a GPU is named with == or !=, its capability as in >=sm_90")
            if component.name == "gpu" and bound.operator == "~=":
                raise UsageError(f"--require {component}: a compute capability is compared with >=, not with ~=")


def _check(component: Component, facts: Facts) -> Check:
    name = component.name
    found, source, missing = _installed(name, facts)
    by_capability = any(map(names_capability, component.bounds))
    if found and by_capability and any(_capability(each, facts) is None for each in found):
        found, missing = None, "gpus.compute_capability"
    sizes = found if name == "gpu-memory" else None
    shown = tuple(f"{int(count) / 2**30:.1f} GiB" for count in sizes) if sizes else found
    satisfied = found and all(_holds(name, bound, value, facts) for bound in component.bounds for value in found)
    status: Status = "unknown" if found is None else "pass" if satisfied else "fail"
    scope: Scope = "node" if name in OF_THE_MACHINE else "env"
    return Check(
        id=f"{RULE}@{component}",
        rule=RULE,
        scope=scope,
        layer="request",
        subject=Subject(key=str(component)),
        status=status,
        title=f"Required: {component}" if status == "pass" else f"Not as required: {component}",
        message=sentence(component, shown) + ("" if status == "pass" else _misspelt(name, facts.matrix)),
        evidence=tuple(Evidence(what=name, value=value, source=source) for value in dict.fromkeys(shown or ())),
        decided_by="declared",
        missing=(Missing(fact=missing),) if found is None else (),
    )


def _misspelt(name: str, matrix: Matrix) -> str:
    """The name that is meant, where nothing is called so; a package that the matrix does not know has its own."""
    if name in OF_THE_MACHINE or name == "python" or matrix.knows(name):
        return ""
    near = matrix.similar_name(name)
    return f": did you mean {near!r}?" if near else ""


def _installed(name: str, facts: Facts) -> tuple[tuple[str, ...] | None, str, str]:
    """What is here of that name (None when it is not known), where it was read, and the path of the fact."""
    if name in OF_THE_MACHINE:
        return _on_the_node(name, facts)
    environment = facts.snapshot.judged_environment
    if environment is None:
        return None, "", "environments"
    if name == "python":
        return ((environment.python,) if environment.python else None), environment.source, "environment.python"
    versions = tuple(found.version for found in environment.distributions or () if found.name == name)[:1]
    known = bool(versions) or environment.distributions_complete
    return (versions if known else None), environment.key, "environment.distributions"


def _on_the_node(name: str, facts: Facts) -> tuple[tuple[str, ...] | None, str, str]:
    driver, listing, gpus = facts.snapshot.driver, facts.snapshot.gpus, facts.usable_gpus
    if name in ("driver", "cuda"):
        field = "release" if name == "driver" else "cuda"
        value = getattr(driver, field) if driver else None
        source = driver.source_of(field) if driver else ""
        return ((value,) if value else None), source, f"driver.{field}"
    known = listing is not None and (listing.complete or bool(gpus))
    if name == "gpus":
        return ((str(len(gpus)),) if known else None), "gpus", "gpus"
    if name == "gpu":
        return (tuple(gpu.name or gpu.compute_capability or "?" for gpu in gpus) if known else None), "gpus", "gpus"
    totals = tuple(str(gpu.memory.total) for gpu in gpus if gpu.memory and gpu.memory.total is not None)
    return (totals if known and len(totals) == len(gpus) else None), "gpus", "gpus.memory"


def _holds(name: str, bound: Bound, value: str, facts: Facts) -> bool:
    size = parse_size(bound.value)
    if size is not None:
        compare = {">=": ge, "<=": le, ">": gt, "<": lt, "==": eq, "!=": ne}[bound.operator]
        return bool(compare(int(value), size))
    if name != "gpu":
        return is_within(bound, name, value)
    if names_capability(bound):
        return capability_holds(bound, _capability(value, facts))
    actual, here = facts.matrix.find_gpu(value), False
    for wanted in map(str.strip, bound.value.split(_MODELS)):
        model = facts.matrix.find_gpu(wanted)
        here |= bool(model and actual and model.name == actual.name) or same_words(wanted, value)
    return here is (bound.operator == "==")


def _capability(name: str, facts: Facts) -> str | None:
    """The compute capability of the GPU of this name, which may be its capability where it has no name."""
    gpu: Gpu | None = next((gpu for gpu in facts.usable_gpus if name in (gpu.name, gpu.compute_capability)), None)
    return gpu.compute_capability if gpu else None
