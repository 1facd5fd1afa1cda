"""``--require``: compare stated bounds with the facts; each becomes a check of the rule ``requirement-not-met``."""

from __future__ import annotations

from collections.abc import Sequence

from packaging.version import Version

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
            if component.name != "gpu" and _version(bound.value) is None:
                raise UsageError(f"--require {component}: {bound.value!r} is not a version")
            if component.name == "gpu" and bound.operator not in ("==", "!="):
                raise UsageError(f"--require {component}: a GPU is named with == or !=")


def _check(component: Component, facts: Facts) -> Check:
    found, source, missing = _found(component.name, facts)
    if found is None:
        status: Status = "unknown"
        message = f"{component} is required, but the installed version is not known"
    else:
        held = all(_holds(bound, value, facts) for bound in component.bounds for value in found) and bool(found)
        status = "pass" if held else "fail"
        message = f"{component} is required; found {', '.join(dict.fromkeys(found)) or 'none'}"
    scope: Scope = "node" if component.name in _NODE else "env"
    return Check(
        id=f"{RULE}@{component}",
        rule=RULE,
        scope=scope,
        layer="request",
        subject=Subject(key=str(component)),
        status=status,
        title=f"Required: {component}" if status == "pass" else f"Not as required: {component}",
        message=message,
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
    found, wanted = _version(value), _version(bound.value)
    if found is None or wanted is None:
        return _same_gpu(bound.value, value, facts) is (bound.operator == "==")
    if not wanted.local:
        found = Version(found.public)
    if bound.operator in ("==", "!="):
        return _is_of(found, wanted) is (bound.operator == "==")
    if bound.operator == "~=":
        return found >= wanted and found.release[: len(wanted.release) - 1] == wanted.release[:-1]
    return {">=": found >= wanted, "<=": found <= wanted, ">": found > wanted, "<": found < wanted}[bound.operator]


def _is_of(found: Version, wanted: Version) -> bool:
    """Whether ``found`` is the wanted version or, where a short one is wanted (``535``), of its family."""
    if wanted.pre or wanted.local or wanted.dev is not None:
        return found == wanted
    return found.release[: len(wanted.release)] == wanted.release


def _same_gpu(wanted: str, name: str, facts: Facts) -> bool:
    """Whether a GPU of this name is the wanted model, or has the wanted capability (``sm_90``)."""
    if wanted.lower().startswith("sm_"):
        gpu: Gpu | None = next((gpu for gpu in facts.usable_gpus if gpu.name == name), None)
        capability = gpu.compute_capability if gpu else None
        return capability is not None and wanted.lower() == f"sm_{capability.replace('.', '')}"
    model = facts.matrix.find_gpu(wanted)
    actual = facts.matrix.find_gpu(name)
    if model is not None and actual is not None and model.name == actual.name:
        return True
    asked, shown = _words(wanted), _words(name)
    return asked <= shown and not (shown - asked) & _OTHER_MODEL


_OTHER_MODEL = frozenset({"ti", "super", "laptop", "mobile", "max", "ada", "pro", "blackwell", "d"})
"""Words that make another model of a name: an RTX 3060 is no RTX 3060 Ti, while an H100 80GB HBM3 is an H100."""


def _words(name: str) -> frozenset[str]:
    return frozenset(name.lower().replace("-", " ").split())


def _version(text: str) -> Version | None:
    try:
        return Version(text)
    except ValueError:  # no version, or one of more digits than Python reads
        return None
