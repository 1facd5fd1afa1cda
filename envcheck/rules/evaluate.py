"""Put every rule to every subject: a Snapshot and the matrix in, checks out. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from envcheck import checks
from envcheck.checks import Check, Scope
from envcheck.compat.tables import Tables
from envcheck.rules.api import Facts, FrameworkSubject, Outcome, Rule, Subject
from envcheck.rules.cause import explain
from envcheck.rules.needs import lookup, refused, why_missing
from envcheck.snapshot import Environment, Gpu, Snapshot


def evaluate(snapshot: Snapshot, tables: Tables, rules: Iterable[Rule], scopes: frozenset[Scope]) -> tuple[Check, ...]:
    """Judge ``snapshot`` by the ``rules`` within ``scopes``, and link consequences to their causes."""
    facts = Facts(snapshot, tables)
    chosen = [rule for rule in rules if rule.scope in scopes]
    found = [check for rule in chosen for subject in _subjects(rule, facts) if (check := _judge(rule, subject, facts))]
    return explain(found, chosen)


def _subjects(rule: Rule, facts: Facts) -> Iterator[Subject]:
    environment = facts.environment
    if rule.per == "machine":
        yield facts.snapshot
    elif rule.per == "gpu":
        yield from facts.gpus
    elif environment is not None and rule.per == "environment":
        yield environment
    elif environment is not None and environment.frameworks is not None:
        for framework in environment.frameworks.items:
            yield FrameworkSubject(environment, framework)


def _judge(rule: Rule, subject: Subject, facts: Facts) -> Check | None:
    for need in rule.needs:
        if refused(need, subject):
            return None
        if lookup(need, subject, facts.snapshot) is None:
            status, missing, reason = why_missing(need, facts.snapshot)
            outcome = Outcome(status=status, title=rule.title, message=reason)
            return _check(rule, subject, outcome, missing=(missing,))
    found = rule.function(subject, facts)
    return _check(rule, subject, found) if found else None


def _check(rule: Rule, subject: Subject, outcome: Outcome, missing: tuple[checks.Missing, ...] = ()) -> Check:
    described = describe(subject)
    return Check(
        id=f"{rule.name}@{described.key}",
        rule=rule.name,
        scope=rule.scope,
        layer=rule.layer,
        subject=described,
        status=outcome.status,
        title=outcome.title,
        message=outcome.message,
        evidence=outcome.evidence,
        decided_by=outcome.decided_by,
        confidence=outcome.confidence,
        missing=missing,
        fixes=outcome.fixes,
        action=outcome.action,
        sources=outcome.sources,
    )


def describe(subject: Subject) -> checks.Subject:
    """The subject as the report names it."""
    if isinstance(subject, Gpu):
        return checks.Subject(
            kind="gpu",
            key=subject.key,
            index=subject.index,
            uuid=subject.uuid,
            pci_bus_id=subject.pci_bus_id,
        )
    if isinstance(subject, Environment):
        return checks.Subject(kind="environment", key=subject.key, path=subject.prefix, environment=subject.key)
    if isinstance(subject, FrameworkSubject):
        return checks.Subject(
            kind="framework",
            key=f"{subject.environment.key}:{subject.framework.name}",
            path=subject.framework.path,
            environment=subject.environment.key,
        )
    return checks.Subject()
