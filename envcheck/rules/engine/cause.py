"""Link consequences to causes, and choose the root cause."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from envcheck.model.checks import LAYERS, Check, Layer
from envcheck.model.snapshot import PASTED
from envcheck.rules.api import EVERYTHING, Rule
from envcheck.rules.facts.frameworks import ERROR_FROM
from envcheck.rules.known_facts import LEAST_IMPORTANT

Importance = Mapping[str, int]
"""Key of a framework's subject → its importance, from 0; among equals, the first in order counts. Empty: not known."""

_BAD = ("fail", "warn")
_OBSERVED = ("driver-answered", "framework-ran", "measured")
_MACHINE: frozenset[Layer] = frozenset({"gpu", "kernel", "driver", "fabric", "container"})
_LONGEST_CHAIN = 16


def explain(found: Sequence[Check], rules: Sequence[Rule]) -> tuple[Check, ...]:
    """Set ``explained_by`` on every check that another one explains; a cause gets the status of what it explains."""
    by_name = {rule.name: rule for rule in rules}
    causes = sorted((check for check in found if check.status in _BAD), key=_rank)
    linked = []
    for check in found:
        rule, cause = by_name.get(check.rule), None
        if rule is not None and check.status in _BAD:
            cause = _with_details(check, rule, causes)
        if rule is not None and not (cause or check.explained_by) and check.status in (*_BAD, "unknown"):
            cause = _cause(check, rule, causes, by_name) or _nearest(check, rule, causes, by_name)
        linked.append(msgspec.structs.replace(check, explained_by=cause.id) if cause else check)
    # Causes have the worst status that they explain, so that no headline is milder than the verdict.
    by_id = {check.id: check for check in linked}
    failing: set[str] = set()
    for check in linked:
        following = by_id.get(check.explained_by or "") if check.status == "fail" else None
        while following is not None and following.id not in failing:
            failing.add(following.id)
            following = by_id.get(following.explained_by or "")
    return tuple(
        msgspec.structs.replace(check, status="fail") if check.id in failing and check.status == "warn" else check
        for check in linked
    )


def primary(
    found: Sequence[Check], importance: Importance | None = None, symptoms: frozenset[str] = frozenset()
) -> Check | None:
    """The root cause among unexplained findings; ``symptoms`` are names of rules that report what users see.

    Failures come before warnings; findings about the machine before those about software, but not what is inferred
    of it in a text that quotes the error of a program, for which it is no reason; those that stop important
    frameworks before those that stop their helpers; faults before symptoms; those that stop many frameworks before
    those that stop one; observations before inferences; lower layers before higher ones.
    """
    importance = importance or {}
    by_id, stopped = {each.id: each for each in found}, defaultdict[str, set[str]](set)
    for check in (each for each in found if each.status in _BAD and each.subject.key in importance):
        following: Check | None = check
        for _ in range(_LONGEST_CHAIN):
            if following is None or not following.explained_by:
                break
            stopped[following.explained_by].add(check.subject.key)
            following = by_id.get(following.explained_by)
    unexplained = [check for check in found if check.status in _BAD and not check.explained_by and not check.ignored]
    # Somebody pasted the error in which a program ended, and nothing that is inferred of the machine is its reason.
    errors = (check for check in unexplained if check.status == "fail" and check.decided_by == "framework-ran")
    ended = any(map(_is_quoted, errors))
    places = {key: place for place, key in enumerate(importance)}

    def order(cause: Check) -> tuple[Any, ...]:
        own = (cause.subject.key,) if cause.subject.kind == "framework" else ()
        concerned = stopped[cause.id] | {*(_concerned_frameworks(cause) or own)}
        weight = min((importance.get(key, LEAST_IMPORTANT) for key in concerned), default=0) if importance else 0
        others = len(stopped[cause.id] - {cause.subject.key})
        first = min((places[key] for key in concerned if key in places), default=0)
        status, *rest, name = _rank(cause)
        of_machine = cause.subject.kind in ("machine", "gpu") and cause.layer in _MACHINE
        of_machine &= not (ended and cause.decided_by == "inferred" and not _is_quoted(cause))
        return (status, not of_machine, weight, cause.rule in symptoms, -others, *rest, first, name)

    return min(unexplained, key=order, default=None)


def _rank(check: Check) -> tuple[int, bool, int, str]:
    return (_BAD.index(check.status), check.decided_by not in _OBSERVED, LAYERS.index(check.layer), check.id)


def _is_quoted(check: Check) -> bool:
    """Whether a text shows what was found, by itself."""
    return any(evidence.source.startswith(PASTED) for evidence in check.evidence)


def _concerned_frameworks(cause: Check) -> tuple[str, ...]:
    """Keys of the frameworks that a finding names."""
    return tuple(f"{cause.subject.environment}:{name}" for name in cause.frameworks)


def _with_details(check: Check, rule: Rule, causes: Sequence[Check]) -> Check | None:
    """A finding that tells more of the same packages, or that an error line or variable of it names."""
    packages = {found.what.partition("==")[0] for found in check.evidence if "==" in found.what}
    named = packages or {found.value.partition(": ")[0] for found in check.evidence}
    for cause in causes:
        if cause.rule not in rule.told_by:
            continue
        texts = [cause.title, cause.message, *(text for found in cause.evidence for text in (found.what, found.value))]
        words = {word.partition("==")[0].strip(".,;:()") for text in texts for word in text.split()}
        if (named and named <= words) or _shared(check) & _shared(cause):
            return cause
    return None


def _shared(check: Check) -> set[tuple[str, str]]:
    """The error lines and variables that a finding rests on."""
    rests_on = (each for each in check.evidence if each.what == "error line" or each.source == "environment")
    return {(each.what, each.value) for each in rests_on}


def _cause(check: Check, rule: Rule, causes: Sequence[Check], rules: Mapping[str, Rule]) -> Check | None:
    """The first finding of a rule that lists the check's among its consequences, and can affect its subject."""
    for cause in causes:
        other = rules[cause.rule]
        if other.explains == EVERYTHING:
            follows = check.rule != other.name and check.subject.environment == cause.subject.environment
        else:
            listed = check.rule in other.explains or (cause.status == "fail" and check.rule in other.explains_failing)
            follows = listed and _can_affect(cause, check)
        if follows and cause.rule not in rule.told_by:
            return cause
    return None


_NEAREST_FIRST = ("framework", "environment", "gpu", "machine")
_CUDA_STARTS = frozenset({"gpu-init-failed", "no-gpu-visible"})


def _nearest(check: Check, rule: Rule, causes: Sequence[Check], rules: Mapping[str, Rule]) -> Check | None:
    """The finding that explains a symptom: one that its own error names, else the nearest."""
    if not rule.symptom:
        return None
    return min(
        [cause for cause in causes if cause.rule in rules and _can_explain(cause, rules[cause.rule], check)],
        key=lambda each: (not _is_named_by_error(each, check), _NEAREST_FIRST.index(each.subject.kind), _rank(each)),
        default=None,
    )


def _can_explain(cause: Check, rule: Rule, symptom: Check) -> bool:
    if rule.symptom or cause.decided_by == "measured":
        return False
    beside = cause.subject.environment is not None and cause.subject.environment == symptom.subject.environment
    if _is_named_by_error(cause, symptom) and (beside or _can_affect(cause, symptom)):
        return True  # even where the finding is about another package that provides the framework's libraries
    if not _can_affect(cause, symptom):
        return False
    if cause.subject.kind in ("machine", "gpu"):
        return bool(_CUDA_STARTS & {rule.name, *rule.explains})
    return cause.status == "fail"


def _is_named_by_error(cause: Check, symptom: Check) -> bool:
    """Whether the framework of the symptom named the cause in its own error."""
    name = symptom.subject.key.rpartition(":")[2]
    return any(found.what == f"{ERROR_FROM} {name}" for found in cause.evidence)


def _can_affect(cause: Check, consequence: Check) -> bool:
    """Whether ``cause`` can affect the subject of ``consequence``: one of the machine affects everything, one of a GPU
    or an environment what uses it, one about some frameworks no others.
    """
    concerned = set(_concerned_frameworks(cause))
    if cause.subject.kind == "framework":
        concerned.add(cause.subject.key)
    if concerned and consequence.subject.kind == "framework":
        return consequence.subject.key in concerned
    if concerned and consequence.subject.kind == "environment":
        return bool(consequence.frameworks) and concerned >= set(_concerned_frameworks(consequence))
    own, other = cause.subject, consequence.subject
    if "machine" in (own.kind, other.kind) or own.key == other.key:
        return True
    if own.kind == other.kind == "gpu":
        return own.pci_bus_id is not None and own.pci_bus_id == other.pci_bus_id
    if own.kind == "gpu":
        return other.kind in ("environment", "framework")
    return own.kind == "environment" and other.environment == own.environment
