"""Run every rule on every subject: a Snapshot and the matrix in, checks out. Pure.

Rules conclude from facts. Error lines count as findings of the rule that they name: they confirm its findings, or
become a finding about the machine. An error of a trial is about the framework that was tried.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import product

import msgspec

from envcheck import __version__
from envcheck.knowledge.matrix import Matrix
from envcheck.knowledge.relations.libraries import row_of
from envcheck.knowledge.tables.packages import ProductRow
from envcheck.model import checks
from envcheck.model.checks import STATUSES, Check, Layer, Scope, Source, shortened
from envcheck.model.snapshot import Environment, Framework, Gpu, Snapshot
from envcheck.rules.api import EVERYTHING, FIRST_RELEASE, Facts, MeasurementSubject, Outcome, Rule, Subject
from envcheck.rules.engine.cause import explain
from envcheck.rules.facts.machine import lookup, refused, unanswered
from envcheck.rules.facts.measurements import measurement_key
from envcheck.rules.fixes.remedies import remedy_of, suited
from envcheck.rules.messages.observed import ObservedProblem, observed_problems
from envcheck.rules.packages.matching import does_not_work_with_numpy
from envcheck.rules.trials.errors import trial_problems
from envcheck.text.lazy import lazy_pattern

_BAD = ("fail", "warn")
_OPEN = ("unknown", "skipped")
_NUMPY_RULE = "numpy-abi-mismatch"
_REMEDIED = "torch"  # The framework that general remedies of rules are written for
_MACHINE: frozenset[Layer] = frozenset({"gpu", "kernel", "driver", "container"})

_LIBRARY = lazy_pattern(r"\blib[A-Za-z][\w+]*")
_CALLED = {"libstdcxx": "libstdc++", "glibc": "libc.so"}
"""Library names for rules that are not named after their library, by the first word of the rule's name."""


def evaluate(facts: Facts, rules: Iterable[Rule], scopes: frozenset[Scope]) -> tuple[Check, ...]:
    """Judge ``facts`` by the ``rules`` within ``scopes``, and link consequences to their causes.

    Failures of rules that this minor release brought are warnings.
    """
    chosen = [rule for rule in rules if rule.is_asked(scopes, facts)]
    found = [check for rule in chosen for subject in _subjects(rule, facts) if (check := _found(rule, subject, facts))]
    found = _apply_errors(found, chosen, facts)
    release = __version__.rpartition(".")[0]
    new = {rule.name for rule in chosen if rule.since == release != FIRST_RELEASE}
    yields = {rule.name: rule.yields_to for rule in chosen}
    bad = {(check.rule, check.subject.key) for check in found if check.status in _BAD}
    kept = []
    for check in found:
        # A remark must not contradict a failure of the same subject, or of the machine.
        rivals = {*product(yields[check.rule], (check.subject.key, "machine"))}
        if bad and (yields[check.rule] == EVERYTHING or not rivals.isdisjoint(bad)):
            continue
        warned = check.rule in new and check.status == "fail"
        kept.append(msgspec.structs.replace(check, status="warn", judged="fail") if warned else check)
    return explain(kept, chosen)


def _subjects(rule: Rule, facts: Facts) -> Iterator[Subject]:
    if rule.per == "measurement":
        by_name = {name: gpu for gpu in facts.gpus for name in gpu.identities()}  # a text may tell no UUIDs
        measured = (found for found in facts.snapshot.measurements if found.gpu in by_name)
        yield from (MeasurementSubject(by_name[found.gpu], found) for found in measured if found.gpu)
    elif rule.per == "machine":
        yield facts.snapshot
    elif rule.per == "gpu":
        yield from facts.own_gpus
    elif rule.per == "framework":
        yield from facts.frameworks
    elif facts.snapshot.judged_environment is not None:
        yield facts.environment


def _found(rule: Rule, subject: Subject, facts: Facts) -> Check | None:
    """What the rule finds; each is asked once, however often the same facts are evaluated."""
    if isinstance(subject, MeasurementSubject):  # made for each question
        return _judge(rule, subject, facts)
    key = (rule.name, id(subject))
    if key not in facts.judged:
        facts.judged[key] = _judge(rule, subject, facts)
    return facts.judged[key]


def _judge(rule: Rule, subject: Subject, facts: Facts) -> Check | None:
    if rule.arises is not None and not rule.arises(subject, facts):
        return None
    proven = rule.proof(subject, facts) if rule.proof else None
    if proven is not None:
        return _check(rule, subject, proven, facts)
    for need in rule.needs:
        if refused(need, subject):
            return None
        if lookup(need, subject, facts.snapshot) is None:
            return _check(rule, subject, unanswered(need, rule.title, facts.snapshot), facts)
    found = rule.function(subject, facts)
    return _check(rule, subject, found, facts) if found else None


def _apply_errors(found: Sequence[Check], rules: Sequence[Rule], facts: Facts) -> list[Check]:
    """Apply observed error lines to the rules that they name."""
    by_name = {rule.name: rule for rule in rules}
    checks = list(found)
    for observed in observed_problems(facts, refined=True):
        rule = by_name.get(observed.line.problem)
        if rule is None:
            continue
        if any(check.rule == rule.name and check.status in ("fail", "warn") for check in checks):
            # It confirms the rule's findings.
            checks = [
                _add_lines(check, observed, raised=STATUSES.index(observed.line.status) < STATUSES.index(check.status))
                if check.rule == rule.name
                else check
                for check in checks
            ]
            continue
        # Where the rule has none, a finding about the machine replaces its other checks.
        check = _check(rule, facts.snapshot, _outcome_of_lines(rule, observed, facts), facts)
        program = next(filter(None, (observed.line.program_of(line.value) for line in observed.evidence)), "")
        if program and check.sources == rule.sources:
            check = msgspec.structs.replace(check, sources=pages_about(rule, program, facts.matrix))
        checks = [*(other for other in checks if other.rule != rule.name), check]
    for framework, observed in trial_problems(facts):
        if rule := by_name.get(observed.line.problem):
            checks = _apply_trial_error(checks, rule, framework, observed, facts)
    return checks


def _apply_trial_error(
    found: Sequence[Check], rule: Rule, framework: Framework, observed: ObservedProblem, facts: Facts
) -> list[Check]:
    """Apply an error of a trial: confirm the rule's finding about that framework, or add one.

    A framework's error about the machine counts only where the machine itself has no failure. For an extension it is a
    warning.
    """
    subjects: dict[str, Subject] = {"framework": framework, "environment": facts.environment}
    subject = subjects.get(rule.per, facts.snapshot)
    about_machine = isinstance(subject, Snapshot)
    if not about_machine and not facts.is_main_framework(framework):
        observed = observed._replace(line=observed.line._replace(status="warn"))
    outcome = _outcome_of_lines(rule, observed, facts)
    if isinstance(subject, Environment):
        outcome = msgspec.structs.replace(outcome, frameworks=(framework.name,))
    check = _check(rule, subject, outcome, facts)
    if isinstance(subject, Environment):
        title = does_not_work_with_numpy(framework, facts) if rule.name == _NUMPY_RULE else None
        check = msgspec.structs.replace(check, title=title or check.title)
    if rule.per == "framework" and framework.name != _REMEDIED:
        check = msgspec.structs.replace(check, fixes=())
    same = [other for other in found if other.rule == rule.name and (about_machine or other.id == check.id)]
    if any(other.status in _BAD for other in same):
        confirmed = {other.id: _add_lines(other, observed, raised=True) for other in same}
        for key, other in confirmed.items():
            if other.frameworks and framework.name not in other.frameworks:
                confirmed[key] = msgspec.structs.replace(other, frameworks=(*other.frameworks, framework.name))
        return [confirmed.get(other.id, other) for other in found]
    failed = (other for other in found if other.status == "fail" and other.subject.kind in ("machine", "gpu"))
    if about_machine and any(other.layer in _MACHINE for other in failed):
        return list(found)
    known = _finding_about_library(found, rule, framework, observed, facts)
    if known is not None:
        confirming = msgspec.structs.replace(_add_lines(known, observed), status=known.status)
        return [confirming if other is known else other for other in found if other not in same or other is known]
    return [*(other for other in found if other not in same), check]


def _finding_about_library(
    found: Sequence[Check], rule: Rule, framework: Framework, observed: ObservedProblem, facts: Facts
) -> Check | None:
    """A finding from files about the library that the error names: it has the file, and how it was found."""
    if rule.layer != "library":
        return None
    family = {framework.name, framework.extends}
    family |= {each.name for each in facts.frameworks if each.extends in family - {None}}
    keys = {f"{facts.environment.key}:{name}" for name in family}
    text = " ".join(line.value for line in observed.evidence)
    words = {word.lower() for word in _LIBRARY.findall(text)}
    start = rule.name.partition("-")[0]
    row = row_of(start)
    known = f"lib{start}" if row and row.kind != "driver" and row.name.lower() == start else _CALLED.get(start)
    words |= {known} if known else set()
    for check in sorted(found, key=lambda each: each.status != "fail"):
        if check.status not in _BAD or check.layer != "library" or check.subject.environment != facts.environment.key:
            continue
        if any(line.source == "trial" and len(check.evidence) == 1 for line in check.evidence):
            continue
        shown = " ".join((check.title, check.message, *(f"{line.what} {line.value}" for line in check.evidence)))
        same_file = any(path in text for path in re.findall(r"/[^\s,()]{1,400}\.so[.\d]*", shown))
        about = check.subject.key in keys and any(word in shown.lower() for word in words)
        if about or (same_file and check.rule == rule.name):
            return check
    return None


def _outcome_of_lines(rule: Rule, observed: ObservedProblem, facts: Facts) -> Outcome:
    """The outcome that the lines alone prove: the problem, unless the rule knows other causes on such a machine."""
    line, evidence = observed.line, observed.evidence
    instead = rule.doubt(facts) if rule.doubt else None
    if instead is not None:
        return msgspec.structs.replace(instead, evidence=evidence, decided_by=line.said_by)
    return Outcome(status=line.status, title=rule.title, evidence=evidence, decided_by=line.said_by)


def _add_lines(check: Check, observed: ObservedProblem, *, raised: bool = False) -> Check:
    """The check with the lines as evidence, and with their status if it was weak or ``raised`` is set."""
    if check.status not in _BAD:
        return check
    return msgspec.structs.replace(
        check,
        status=observed.line.status if raised or check.confidence == "weak" else check.status,
        evidence=tuple(dict.fromkeys((*observed.evidence, *check.evidence))),  # the rule may have read the line too
        decided_by=observed.line.said_by,
        confidence="high",
    )


def _check(rule: Rule, subject: Subject, outcome: Outcome, facts: Facts) -> Check:
    bad, telling = outcome.status in ("fail", "warn"), outcome.status in ("fail", "warn", "note")
    described = describe(subject, facts.environment.key)
    about = (subject.name,) if isinstance(subject, Framework) else outcome.frameworks
    facts = msgspec.structs.replace(facts, about=about)
    both: tuple[str, ...] = ()
    if bad and isinstance(subject, Framework) and facts.provides_gpu_support(subject):
        # A plug-in and the framework that uses the GPU only through it: a fault of one is a fault of both.
        both = tuple(filter(None, (subject.name, subject.extends)))
    sources, fixes, title, message = outcome.sources, outcome.fixes, outcome.title or rule.title, outcome.message
    evidence = tuple(each for each in outcome.evidence if each is not None)
    # A row's command says more than a rule's sentence. A remark needs no fix, unless it explains an error.
    remedy = remedy_of(rule.name, evidence, facts) if telling and not any(fix.command for fix in fixes) else None
    more = remedy is not None and (not fixes or any(fix.command for fix in remedy.fixes))
    if remedy is not None and more and (bad or remedy.message):
        fixes, sources = remedy.fixes, (*remedy.sources, *sources)
        title, message = (remedy.title if title == rule.title else "") or title, message or remedy.message
    elif bad and not fixes:
        fixes = rule.remedies(facts)
    if telling and not any(source.address.startswith("https://") for source in sources):
        sources = (*sources, *pages(rule, subject, facts.matrix))  # what is cited cannot be opened: only metadata
    return Check(
        id=f"{rule.name}@{described.key}",
        rule=rule.name,
        scope=rule.scope,
        layer=outcome.layer or rule.layer,
        subject=described,
        frameworks=outcome.frameworks or both,
        status=outcome.status,
        title=shortened(title),
        message=message,
        evidence=evidence,
        figure=outcome.figure,
        decided_by=outcome.decided_by or ("inferred" if outcome.status in _OPEN else rule.decided_by),
        confidence=outcome.confidence,
        missing=outcome.missing,
        fixes=suited(fixes, facts),
        action=outcome.action,
        sources=sources,
    )


def framework_importance(facts: Facts) -> dict[str, int]:
    """The importance of each framework of the judged environment, by the key of its subject, most important first."""
    ranks = {each.name: facts.importance(each) for each in facts.frameworks}
    rows = (*facts.matrix.roles, None)  # of the same importance, in the order of their roles
    names = sorted(ranks, key=lambda name: (ranks[name], rows.index(facts.matrix.role_of(name))))
    return {f"{facts.environment.key}:{name}": ranks[name] for name in names}


def describe(subject: Subject, environment: str = "") -> checks.Subject:
    """The subject in the form that reports use; ``environment``: the key of the one that a framework is in."""
    if isinstance(subject, Gpu):
        return checks.Subject(
            kind="gpu", key=subject.key, index=subject.index, uuid=subject.uuid, pci_bus_id=subject.pci_bus_id
        )
    if isinstance(subject, Environment):
        return checks.Subject(kind="environment", key=subject.key, path=subject.prefix, environment=subject.key)
    if isinstance(subject, MeasurementSubject):
        gpu = describe(subject.gpu)
        return msgspec.structs.replace(gpu, key=f"{gpu.key}:{measurement_key(subject.measurement)}")
    if isinstance(subject, Framework):
        key = f"{environment}:{subject.name}"
        return checks.Subject(kind="framework", key=key, path=subject.path, environment=environment)
    return checks.Subject()


def pages(rule: Rule, subject: Subject, matrix: Matrix) -> tuple[Source, ...]:
    """The rule's own pages, without those of other frameworks than the one that ``subject`` is.

    Of an extension the pages of what it extends serve too. Where only pages of others were left out, the framework's
    page on installing it stands in; where there is none, the rule's pages stay as they are.
    """
    if not isinstance(subject, Framework):
        return rule.sources
    return pages_about(rule, subject.name, matrix, base=subject.extends or subject.name)


def pages_about(rule: Rule, name: str, matrix: Matrix, *, base: str = "") -> tuple[Source, ...]:
    """The same for a program by its name; ``base`` is what it extends."""
    own = [row for row in matrix.products if name.startswith(row.frameworks)]
    of_base = [row for row in matrix.products if (base or name).startswith(row.frameworks)]
    kept = tuple(source for source in rule.sources if _product(source, matrix) in (None, *own, *of_base))
    if not any(_product(source, matrix) for source in kept) and len(kept) < len(rule.sources):
        kept = (*kept, *matrix.cite(*(own or of_base)))
    return kept or rule.sources


def _product(source: Source, matrix: Matrix) -> ProductRow | None:
    """The product that a page's title names first."""
    named = ((source.title.find(name), row) for row in matrix.products for name in row.names)
    return min((each for each in named if each[0] >= 0), key=lambda each: each[0], default=(0, None))[1]
