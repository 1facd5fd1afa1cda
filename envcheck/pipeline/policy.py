"""What a configuration decides about findings: other severities, ignored and forbidden problems, least shares.

It comes after the rules, so that what they found and linked is known. A finding that is set aside or made milder no
longer explains others: what follows from it is then a finding of its own.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from msgspec.structs import replace

from envcheck.knowledge.matrix import Matrix
from envcheck.knowledge.performance.expected import HEADROOM, expectation
from envcheck.knowledge.performance.quantities import selected
from envcheck.model.checks import (
    BELOW_MINIMUM,
    EXPIRED,
    FORBIDDEN,
    PLAN,
    Check,
    Evidence,
    Ignored,
    Report,
    Status,
    Subject,
)
from envcheck.model.snapshot import Gpu, Measurement, Snapshot, items_in
from envcheck.pipeline.request import Ignoring, Policy
from envcheck.rules.api import MeasurementSubject
from envcheck.rules.engine.evaluate import describe
from envcheck.rules.facts.measurements import measurement_name
from envcheck.rules.speed.trust import why_not_judged

GRACE_DAYS = 14  # How long an expired ignore warns and still holds

_FOUND: tuple[Status, ...] = ("fail", "warn", "note")
_OPEN: tuple[Status, ...] = ("unknown", "skipped")


def decide(
    found: Iterable[Check],
    policy: Policy,
    put: Collection[str],
    snapshot: Snapshot,
    matrix: Matrix,
    accepted: Report | None = None,
) -> tuple[Check, ...]:
    """``found`` as the policy sees it, and the policy's own checks; ``put`` are the names of the rules that ran.

    What the report ``accepted`` found likewise, with the same versions in its title, is set aside.
    """
    known = {(check.id, check.title, check.status) for check in accepted.checks} if accepted else set()
    today = policy.today or dt.datetime.now(dt.timezone.utc).date()
    judged = []
    for check_of_rule in found:
        check = check_of_rule
        wanted = "fail" if check.rule in policy.forbid else policy.severity.get(check.rule)
        if wanted is not None and check.status in _FOUND and check.status != wanted:
            check = replace(check, status=wanted, judged=check.judged or check.status)
        rules = (each for each in policy.ignore if _is_about(each, check) and _days_past(each, today) <= GRACE_DAYS)
        if ignoring := next(rules, None):
            reason = Ignored(reason=ignoring.reason, until=ignoring.until.isoformat())
            check = replace(check, ignored=reason)
        elif accepted and _may_be_ignored(check) and (check.id, check.title, check.status) in known:
            reason = Ignored(reason=f"the accepted report of {accepted.created[:10]} has it")
            check = replace(check, ignored=reason)
        judged.append(check)
    own = [
        *(_forbidden(name, judged, put) for name in policy.forbid),
        *(_expiry(each, judged, today) for each in policy.ignore),
        *_shares(policy, snapshot, matrix),
    ]
    return tuple(
        replace(check, location=policy.places.get(check.subject.key)) if check.layer == "request" else check
        for check in (*_unlinked(judged), *own)
    )


def _may_be_ignored(check: Check) -> bool:
    """Whether the check is a finding, or what a plan leaves open: a private image stays open in every run."""
    return check.status in _FOUND or (check.rule == PLAN and check.status == "unknown")


def _is_about(each: Ignoring, check: Check) -> bool:
    return _may_be_ignored(check) and each.problem in (check.rule, check.id)


def _days_past(each: Ignoring, today: dt.date) -> int:
    return (today - each.until).days


def _unlinked(found: Sequence[Check]) -> list[Check]:
    """Drop links to causes that are ignored, or milder than what follows from them."""
    causes = {check.id: check for check in found}

    def explains(check: Check) -> bool:
        cause = causes.get(check.explained_by or "")
        if cause is None or cause.ignored:
            return False
        return cause.status in ("fail", check.status)

    return [
        replace(check, explained_by=None)
        if check.explained_by and check.status in ("fail", "warn") and not explains(check)
        else check
        for check in found
    ]


def _decided(rule: str, key: str, status: Status, title: str, message: str, **more: Any) -> Check:
    made: dict[str, Any] = {"scope": "node", "layer": "request", "subject": Subject(key=key), "decided_by": "declared"}
    return Check(id=f"{rule}@{key}", rule=rule, status=status, title=title, message=message, **made | more)


def _forbidden(name: str, judged: Sequence[Check], put: Collection[str]) -> Check:
    about = [check for check in judged if check.rule == name and not check.ignored]
    bad = [check for check in about if check.status == "fail"]
    pending = [check for check in about if check.status in _OPEN]
    if bad:
        message = f"The configuration forbids it; found: {bad[0].title}"
        return _decided(FORBIDDEN, name, "fail", f"Forbidden: {name}", message, explained_by=bad[0].id)
    if name not in put:
        return _decided(FORBIDDEN, name, "unknown", f"Forbidden, not checked: {name}", f"The rule {name} did not run.")
    if pending:
        message = f"The configuration forbids it, and it was not judged: {pending[0].message or pending[0].title}"
        title = f"Forbidden, not checked: {name}"
        return _decided(FORBIDDEN, name, "unknown", title, message, missing=pending[0].missing)
    return _decided(FORBIDDEN, name, "pass", f"Absent, as required: {name}", "")


def _expiry(each: Ignoring, judged: Sequence[Check], today: dt.date) -> Check:
    about = [check for check in judged if _is_about(each, check)]
    matched = f"{len(about)} finding{'' if len(about) == 1 else 's'}"
    past = _days_past(each, today)
    reason = f"Reason given: {each.reason}"
    if past <= 0:
        title = f"Ignored until {each.until}: {each.problem}"
        return _decided(EXPIRED, each.problem, "pass", title, f"It sets aside {matched}. {reason}")
    if past <= GRACE_DAYS:
        last = each.until + dt.timedelta(days=GRACE_DAYS)
        title = f"Ignored until {each.until}, expired: {each.problem}"
        text = f"It still sets aside {matched}, and fails after {last}: fix the problem, or set a later day. {reason}"
        return _decided(EXPIRED, each.problem, "warn", title, text)
    title = f"No longer ignored, expired on {each.until}: {each.problem}"
    text = f"It sets nothing aside any more ({matched}): delete the entry, or set a later day. {reason}"
    return _decided(EXPIRED, each.problem, "fail", title, text)


def _shares(policy: Policy, snapshot: Snapshot, matrix: Matrix) -> list[Check]:
    """One check for each figure of a quantity with a least share; a skipped one where none was measured."""
    gpus = {gpu.uuid: gpu for gpu in items_in(snapshot.gpus) if gpu.uuid}
    asked = {
        name: word for word in sorted(policy.shares, key=len) for name in selected([word])
    }  # the closest word wins
    found = []
    for word, least in policy.shares.items():
        measured = [each for each in snapshot.measurements if asked.get(each.name) == word and each.gpu in gpus]
        found += [_share(least, gpus[each.gpu or ""], each, snapshot, matrix) for each in measured]
        if not measured:
            message = "It was not measured; use envcheck bench, or check --bench."
            found.append(_decided(BELOW_MINIMUM, word, "skipped", f"Share of {word}: not measured", message))
    return found


def _share(least: float, gpu: Gpu, measured: Measurement, snapshot: Snapshot, matrix: Matrix) -> Check:
    name = f"{gpu.title}: {measurement_name(measured)}"
    gpus = items_in(snapshot.gpus)
    result = why_not_judged(gpus, measured) or expectation(matrix, gpu, measured, gpus, snapshot.fabric)
    if isinstance(result, str) or result.share > HEADROOM:
        why = result if isinstance(result, str) else "it is more than the ceiling, a measurement error"
        status: Status = "unknown"
        title, message = f"{name}: share not known", f"At least {least:.0%} is required, and {why}."
        evidence: tuple[Evidence, ...] = ()
    else:
        status = "pass" if result.share >= least else "fail"
        why = "as required" if status == "pass" else f"below {least:.0%}"
        title = f"{name}: {result.share:.1%} of the ceiling, {why}"
        message = f"The configuration requires at least {least:.0%}."
        evidence = (Evidence(what="share of the ceiling", value=f"{result.share:.3f}", source=result.basis),)
    subject = describe(MeasurementSubject(gpu, measured))
    more = {"subject": subject, "evidence": evidence, "decided_by": "measured"}
    return _decided(BELOW_MINIMUM, subject.key, status, title, message, **more)
