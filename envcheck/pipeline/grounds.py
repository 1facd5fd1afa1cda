"""What a verdict stands on: each thing that had to be read and judged, and whether it was.

A report without a failure has a verdict only where every ground holds (``checks.Report``). So what nobody looked at, a
probe that died and a question that stayed open all end in one way: no verdict, with the reason as its headline.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from envcheck.checks import ASSUMED, ASSUMPTION, EXPIRED, FORBIDDEN, PLAN, Check, Ground, Scope
from envcheck.collect.catalog import all_probes
from envcheck.rules.api import Rule
from envcheck.rules.facts.measurements import nothing_measured
from envcheck.rules.facts.needs import why_missing
from envcheck.rules.facts.trials import TRIAL_RULES
from envcheck.snapshot import PASTED_TITLE, Driver, Environment, Listing, ProbeRun, Snapshot, items_in

_DIED = ("failed", "crashed", "timed-out")
_MACHINE = frozenset({"driver", "gpu", "gpus", "kernel"})
"""The roots of facts that only a machine with a GPU and driver can supply."""


def grounds_of(
    snapshot: Snapshot, checks: Sequence[Check], rules: Sequence[Rule], *, machine_assumed: bool = False
) -> tuple[Ground, ...]:
    """The grounds of a verdict by ``checks``, the outcomes of ``rules``; where ``machine_assumed``, what was assumed of
    GPUs and driver is all that is asked about them.
    """
    scopes = {rule.scope for rule in rules if not rule.always}
    read = tuple(_read(snapshot, scopes, machine_assumed=machine_assumed))
    judged = _judged(checks, rules)
    named_cause = next((check for check in checks if check.status in ("fail", "warn") and not check.ignored), None)
    if named_cause is not None and _is_text(snapshot):  # which is what a text was asked for
        judged = (*judged, Ground(what="text", status="judged", source=named_cause.rule))
    named: dict[str, Ground] = {}
    for ground in (*read, *judged, *_unfinished(snapshot.runs, scopes)):
        if ground.what not in named or named[ground.what].holds > ground.holds:
            named[ground.what] = ground
    whole = tuple(named.values())
    passes = any(check.status in ("pass", "note") and not check.ignored for check in checks)
    decisive = whole if "node" not in scopes and passes else judged
    if any(ground.status == "judged" for ground in decisive) or not all(ground.holds for ground in whole):
        return whole
    environment, by_name = snapshot.judged_environment, {rule.name: rule for rule in rules}
    unusable = f"{environment.key}: {environment.problem}" if environment and environment.problem else ""
    skipped = (check.message for check in checks if check.status == "skipped" and _what(check, by_name.get(check.rule)))
    why = next(skipped, "") or unusable or nothing_measured(snapshot.runs) or "nothing could be checked"
    return (*whole, Ground(what="GPUs, driver and frameworks", status="not-judged", detail=why))


def _is_text(snapshot: Snapshot) -> bool:
    """Whether the facts are those of a pasted text alone: it names what it is about, and rules ask whether that
    suffices.
    """
    pasted = any(run.title.startswith(PASTED_TITLE) for run in snapshot.runs)
    return pasted and not any(run.fills for run in snapshot.runs)  # as those of probes have


# What had to be read.


def _read(snapshot: Snapshot, scopes: set[Scope], *, machine_assumed: bool) -> Iterator[Ground]:
    for run in _died(snapshot.runs, scopes):
        if not _tries(run):
            yield Ground(what=run.title or run.name, status="not-read", source=run.name, detail=run.detail)
    if _is_text(snapshot):
        return
    if "node" in scopes and not machine_assumed:
        yield _section("GPUs", "gpus", snapshot)
        yield _section("driver", "driver", snapshot)
    if "env" in scopes:
        environment = snapshot.judged_environment
        if environment is None and not items_in(snapshot.environments):
            yield _section("Python environments", "environments", snapshot)
        elif environment is None:
            yield Ground(
                what="Python environments", status="not-read", detail="none that was found is the one to judge"
            )
        elif environment.planned is None and environment.source != ASSUMED:
            yield _packages(environment)


def _died(runs: Sequence[ProbeRun], scopes: set[Scope]) -> list[ProbeRun]:
    """The probes, and the readers of a text, that did not get through."""
    dead = [run for run in runs if run.status in _DIED or (run.status == "skipped" and run.cut_short)]
    needed_by = {spec.name: spec.scopes for spec in all_probes()} if dead else {}
    return [run for run in dead if scopes.intersection(needed_by.get(run.name, scopes))]


def _tries(run: ProbeRun) -> bool:
    return run.name.startswith("bench.") or run.framework is not None


def _section(what: str, section: str, snapshot: Snapshot) -> Ground:
    found = getattr(snapshot, section)
    if found is not None:
        records = found.items if isinstance(found, Listing) else (found,)
        empty = not records or (isinstance(found, Driver) and found.installed is False)
        source = ", ".join(dict.fromkeys(record.source for record in records))
        if not records and not found.complete:
            return Ground(what=what, status="not-read", detail="none was found, and not every place was read")
        return Ground(what=what, status="absent" if empty else "judged", source=source)
    _, missing, reason = why_missing(section, snapshot)
    return Ground(
        what=what, status="not-read", source=missing.probe or "", detail=reason if missing.probe else "not checked"
    )


def _packages(environment: Environment) -> Ground:
    what = f"packages of {environment.key}"
    if environment.distributions is None or environment.frameworks is None or not environment.frameworks.complete:
        why = environment.problem or "the list of its packages is not complete"
        return Ground(what=what, status="not-read", source=environment.source, detail=why)
    return Ground(what=what, status="judged", source=environment.source)


# What had to be judged.


def _unfinished(runs: Sequence[ProbeRun], scopes: set[Scope]) -> Iterator[Ground]:
    """The trials and measurements that did not end well, though what they sent before may be judged."""
    for run in filter(_tries, _died(runs, scopes)):
        what = " of ".join(filter(None, (run.title or run.name, run.framework)))
        detail = f"{run.title}: {run.detail or run.status}"
        yield Ground(what=what, status="not-judged", source=run.name, detail=detail)


def _judged(checks: Sequence[Check], rules: Sequence[Rule]) -> tuple[Ground, ...]:
    """One ground for each thing that decisive checks are about; one that is open outranks one that is not."""
    by_name = {rule.name: rule for rule in rules}
    any_decides = not any(rule.ground for rule in rules)
    needs_machine = any(rule.scope == "node" for rule in rules)
    found: dict[str, Ground] = {}
    for check in checks:
        rule = by_name.get(check.rule)
        what = _what(check, rule) or (check.rule if any_decides else "")
        if not what or check.ignored or check.status == "skipped" or (not needs_machine and _lacks_a_machine(check)):
            continue
        if check.status == "unknown":
            detail = check.message or check.title
            if what not in found or found[what].holds:
                found[what] = Ground(what=what, status="not-judged", source=check.rule, detail=detail)
        elif what not in found and not (rule and rule.ground and check.status == "pass" and check.only_assumed):
            found[what] = Ground(what=what, status="judged", source=check.rule)
    set_aside = next((check for check in checks if check.ignored and check.status == "unknown"), None)
    judged = any(check.subject.kind == "framework" and check.status == "pass" for check in checks if not check.ignored)
    if set_aside is not None and not judged:
        found["plan"] = Ground(what="plan", status="not-judged", detail=set_aside.message or set_aside.title)
    return tuple(found.values())


def _what(check: Check, rule: Rule | None) -> str:
    """What a check decides that the verdict waits for; empty where it does not wait."""
    if check.rule in (EXPIRED, FORBIDDEN) and check.status == "pass":
        return ""  # that nothing expired, or a problem is absent, does not show that anything works
    name = check.subject.key.removeprefix(f"{check.subject.environment}:")
    if check.rule == PLAN:
        return next((part.value for part in check.evidence), name)
    if check.rule == ASSUMPTION or check.layer == "request":
        return check.subject.key
    if check.rule in TRIAL_RULES and check.status == "unknown" and check.missing:
        return name  # the framework of a text says that it does not work, and nothing says why
    if rule is None:
        return ""
    if rule.on_request and check.status == "unknown":
        return f"trial of {name}"
    if rule.ground in ("environment", "machine") and check.status != "unknown":
        return ""  # that it could be read shows nothing else
    if rule.ground == "framework":
        return f"{name} in {check.subject.environment}"
    return rule.ground


def _lacks_a_machine(check: Check) -> bool:
    """Whether the check is open for want of a GPU or driver alone."""
    roots = {missing.fact.partition(".")[0] for missing in check.missing}
    return check.status in ("unknown", "skipped") and bool(roots) and roots <= _MACHINE
