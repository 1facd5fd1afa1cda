"""Tell causes from consequences: which finding explains which, and which one is the root cause."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from envcheck.checks import LAYERS, Check, Subject
from envcheck.rules.api import Rule
from envcheck.rules.trial_errors import SAID_HERE

_BAD = ("fail", "warn")
_OBSERVED = ("driver-answered", "framework-ran", "measured")


def explain(found: Sequence[Check], rules: Sequence[Rule]) -> tuple[Check, ...]:
    """Set ``explained_by`` on every check that another one accounts for."""
    consequences = {rule.name: frozenset(rule.explains) for rule in rules}
    by_name = {rule.name: rule for rule in rules}
    causes = sorted((check for check in found if check.status in _BAD), key=_rank)
    explained = (_explained(check, causes, consequences) for check in found)
    return tuple(_accounted(check, causes, by_name) for check in explained)


def primary(found: Sequence[Check]) -> Check | None:
    """The root cause: a fail before a warn, unexplained, observed before inferred, from the lowest layer."""
    open_findings = [check for check in found if check.status in _BAD and not check.explained_by and not check.ignored]
    return min(open_findings, key=_rank, default=None)


def _rank(check: Check) -> tuple[int, bool, int, str]:
    return (_BAD.index(check.status), check.decided_by not in _OBSERVED, LAYERS.index(check.layer), check.id)


def _explained(check: Check, causes: Sequence[Check], consequences: dict[str, frozenset[str]]) -> Check:
    if check.status not in ("fail", "warn", "unknown"):
        return check
    for cause in causes:
        if check.rule in consequences[cause.rule] and _related(cause.subject, check.subject):
            return msgspec.structs.replace(check, explained_by=cause.id)
    return check


_CUDA_STARTS = frozenset({"gpu-init-failed", "no-gpu-visible"})


def _accounted(check: Check, causes: Sequence[Check], rules: Mapping[str, Rule]) -> Check:
    """A symptom with the finding that accounts for it: one that its own error names, else the nearest."""
    rule = rules.get(check.rule)
    if rule is None or not rule.symptom or check.explained_by or check.status not in ("fail", "warn", "unknown"):
        return check
    found = [cause for cause in causes if cause.rule in rules and _accounts(cause, rules[cause.rule], check)]
    nearest = min(
        found, key=lambda cause: (not _said_by(cause, check), _distance(cause.subject), _rank(cause)), default=None
    )
    return msgspec.structs.replace(check, explained_by=nearest.id) if nearest else check


def _accounts(cause: Check, rule: Rule, symptom: Check) -> bool:
    if rule.symptom or cause.decided_by == "measured" or not _related(cause.subject, symptom.subject):
        return False
    if _said_by(cause, symptom):
        return True
    if cause.subject.kind in ("machine", "gpu"):
        return bool(_CUDA_STARTS & {rule.name, *rule.explains})
    return cause.status == "fail"


def _said_by(cause: Check, symptom: Check) -> bool:
    """Whether the framework that the symptom is about itself named the cause."""
    name = symptom.subject.key.rpartition(":")[2]
    return any(found.what == f"{SAID_HERE} {name}" for found in cause.evidence)


def _distance(subject: Subject) -> int:
    return ("framework", "environment", "gpu", "machine").index(subject.kind)


def _related(cause: Subject, consequence: Subject) -> bool:
    """Whether what ails ``cause`` can ail ``consequence``: the machine all, a GPU or environment what is in it."""
    if "machine" in (cause.kind, consequence.kind) or cause.key == consequence.key:
        return True
    if cause.kind == consequence.kind == "gpu":
        return cause.pci_bus_id is not None and cause.pci_bus_id == consequence.pci_bus_id
    if cause.kind == "gpu":
        return consequence.kind in ("environment", "framework")
    return cause.kind == "environment" and consequence.environment == cause.environment
