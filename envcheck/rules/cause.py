"""Tell causes from consequences: which finding explains which, and which one is the root cause."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from envcheck.checks import LAYERS, Check, Subject
from envcheck.rules.api import Rule

_BAD = ("fail", "warn")
_OBSERVED = ("driver-answered", "framework-ran", "measured")


def explain(found: Sequence[Check], rules: Sequence[Rule]) -> tuple[Check, ...]:
    """Set ``explained_by`` on every check that another one accounts for."""
    consequences = {rule.name: frozenset(rule.explains) for rule in rules}
    causes = sorted((check for check in found if check.status in _BAD), key=_rank)
    return tuple(_explained(check, causes, consequences) for check in found)


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


def _related(cause: Subject, consequence: Subject) -> bool:
    """Whether what ails ``cause`` can ail ``consequence``: the machine all, a GPU or environment what is in it."""
    if "machine" in (cause.kind, consequence.kind) or cause.key == consequence.key:
        return True
    if cause.kind == consequence.kind == "gpu":
        return cause.pci_bus_id is not None and cause.pci_bus_id == consequence.pci_bus_id
    if cause.kind == "gpu":
        return consequence.kind in ("environment", "framework")
    return cause.kind == "environment" and consequence.environment == cause.environment
