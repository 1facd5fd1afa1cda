"""From checks to a report: the grounds of the verdict, the verdict, root cause, headline, what to ask next, and exit
code.

A ground is a thing that had to be read or judged. A report without a failure has a verdict only where every ground
holds (``checks.Report``): a probe that died and a question that stayed open end in no verdict, with the reason as its
headline.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timezone

import msgspec

from envcheck import __version__
from envcheck.collect.catalog import all_probes
from envcheck.errors import ExitCode
from envcheck.knowledge.load import matrix_date
from envcheck.model.checks import (
    ASSUMED,
    ASSUMPTION,
    EXPIRED,
    FORBIDDEN,
    LAYERS,
    LONGEST_HEADLINE,
    PLAN,
    STATUSES,
    Check,
    Ground,
    Report,
    Scope,
    Summary,
    Tool,
    Verdict,
    ignored,
    pressing,
    shortened,
    ways_in_order,
)
from envcheck.model.snapshot import (
    PASTED_TITLE,
    Driver,
    Framework,
    Listing,
    ProbeRun,
    Snapshot,
    frameworks_in,
    items_in,
)
from envcheck.pipeline.assume import assumes_machine
from envcheck.pipeline.request import Request
from envcheck.pipeline.timing import Timing
from envcheck.rules.api import Rule
from envcheck.rules.engine.cause import Importance, primary
from envcheck.rules.facts.frameworks import TRIAL_RULES
from envcheck.rules.facts.machine import why_missing
from envcheck.rules.facts.measurements import coverage, nothing_measured, only_measured
from envcheck.rules.facts.measurements import headline as measured_headline
from envcheck.rules.known_facts import LEAST_IMPORTANT, release_in
from envcheck.rules.speed.siblings import across_gpus

_MOST_NAMED = 3
_MOST_ASKED = 10
_LONGEST_ASIDE = LONGEST_HEADLINE * 2 // 3


def conclude(
    snapshot: Snapshot,
    checks: Sequence[Check],
    rules: Iterable[Rule],
    request: Request,
    *,
    importance: Importance | None = None,
    timing: Timing | None = None,
) -> Report:
    """Build the report on ``checks``; ``rules`` are those that were put, ``importance`` ranks the frameworks."""
    put = tuple(rules)
    required = frozenset(rule.name for rule in put if rule.required or rule.on_request)
    ordered = tuple(sorted(checks, key=lambda check: (STATUSES.index(check.status), bool(check.explained_by))))
    needs_machine = any(rule.scope == "node" for rule in put)
    grounds = grounds_of(snapshot, ordered, put, machine_assumed=assumes_machine(request.assume))
    decision = verdict(ordered, grounds)
    cause = primary(ordered, importance, frozenset(rule.name for rule in put if rule.symptom))
    headline = _headline(decision, cause, ordered, grounds, snapshot, importance or {}, needs_machine=needs_machine)
    left_out = ignored(ordered)
    aside = f" ({shortened(left_out, _LONGEST_ASIDE)})" if left_out else ""
    allowed = request.allow_unknown and decision == "unknown"
    aside += " (unknown allowed)" if allowed else ""
    bad = ("fail",) if request.fail_on == "fail" else ("fail", "warn")
    exit_code = ExitCode.FOUND if decision in bad else ExitCode.UNKNOWN if decision == "unknown" else ExitCode.OK
    # What would settle what is still open, required checks first.
    pending = [check for check in ordered if check.status in ("unknown", "skipped") and not check.explained_by]
    pending.sort(key=lambda check: (check.status != "unknown", check.rule not in required, LAYERS.index(check.layer)))
    ask = dict.fromkeys(missing.fact for check in pending for missing in check.missing)
    return Report(
        tool=Tool(version=__version__, matrix=matrix_date()),
        created=datetime.now(timezone.utc).isoformat(timespec="seconds"),
        duration_s=round(timing.seconds, 3) if timing else 0.0,
        host=snapshot.platform.host if snapshot.platform else None,
        headline=shortened(headline, LONGEST_HEADLINE - len(aside)) + aside,
        exit_code=ExitCode.OK if allowed else exit_code,
        verdict=decision,
        unknown_allowed=allowed,
        primary=cause.rule if cause else None,
        primary_check=cause.id if cause else None,
        fix=next(iter(ways_in_order(cause.fixes)), ()) if cause else (),
        summary=Summary.of(ordered),
        assumed={component.name: component.exact or "" for component in request.assume},
        grounds=grounds,
        ask=tuple(ask)[:_MOST_ASKED],
        checks=ordered,
        measurements=snapshot.measurements,
        across_gpus=across_gpus(items_in(snapshot.gpus), snapshot.measurements),
        snapshot=msgspec.structs.replace(snapshot, runs=(), measurements=()),
        probes=snapshot.runs,
        timing=timing.stages if timing else (),
        configuration=request.configuration,
        overlays=request.overlays,
        overlays_unread=request.overlays_unread,
    )


def with_checks(report: Report, checks: Sequence[Check]) -> Report:
    """The report on the same checks with other fixes."""
    found = (ways_in_order(each.fixes) for each in checks if each.id == report.primary_check and each.fixes)
    return msgspec.structs.replace(report, checks=tuple(checks), fix=next(found, [()])[0])


def verdict(checks: Sequence[Check], grounds: Sequence[Ground]) -> Verdict:
    """Fail if any check fails, else unknown unless every ground holds, else warn if any warns, else pass.

    A failure that is certain stays one, whatever else could not be read. A warning is no answer to what was asked.
    """
    statuses = {check.status for check in checks if not check.ignored}
    if "fail" in statuses:
        return "fail"
    if not all(ground.holds for ground in grounds):
        return "unknown"
    return "warn" if "warn" in statuses else "pass"


def _headline(
    decision: Verdict,
    cause: Check | None,
    checks: Sequence[Check],
    grounds: Sequence[Ground],
    snapshot: Snapshot,
    importance: Importance,
    *,
    needs_machine: bool,
) -> str:
    if decision == "unknown":
        first = pressing(grounds)[0]
        noted = (check for check in checks if check.status == "note" and check.fixes and check.decided_by != "inferred")
        first_note = next(noted, None) if _is_text(snapshot) else None
        text = f"no verdict: {f'{first.what}: {first.detail}' if first.status == 'not-read' else first.detail}"
        # What the error of a text means is more to the point than what the text lacks.
        text = f"no verdict: {first_note.title}" if first_note else text
    elif cause is not None:
        text = cause.title
    elif only_measured(checks):
        gpus = items_in(snapshot.gpus)
        text = measured_headline(checks, coverage(gpus, snapshot.measurements, snapshot.runs))
    elif not needs_machine and (compared := _not_compared(snapshot, importance)):
        text = compared
    elif any(
        check.subject.kind == "framework" and (check.status == "pass" or (check.status, check.rule) == ("note", PLAN))
        for check in checks
    ):
        text = f"GPU, driver and frameworks {_how_far_tried(frameworks_in(snapshot.judged_environment))}"
    elif needs_machine and any(ground.status == "judged" for ground in grounds):
        absent = _not_known(snapshot)
        text = f"No fault found; no {absent} is known" if absent else "GPU and driver fit; no framework was judged"
    else:
        text = "Environment is consistent"
    return text


def _not_compared(snapshot: Snapshot, importance: Importance) -> str:
    """The headline where the machine is out of scope and a GPU or driver to compare with was not found; else empty."""
    absent = _not_known(snapshot)
    if not absent:
        return ""
    chosen = {key.rpartition(":")[2] for key, weight in importance.items() if weight < LEAST_IMPORTANT}
    leading = [found for found in frameworks_in(snapshot.judged_environment) if found.name in chosen]
    if leading and all(found.cpu_only for found in leading):
        names = ", ".join(found.name for found in leading)
        return f"Environment is consistent; {names} {'is a CPU build' if len(leading) == 1 else 'are CPU builds'}"
    return f"Environment is consistent; not compared with a {absent}"


def _not_known(snapshot: Snapshot) -> str:
    """What of GPU and driver was not found: without both, they were not compared."""
    gpu = any(gpu.compute_capability for gpu in items_in(snapshot.gpus))
    driver = release_in(snapshot) is not None
    return " or ".join(what for what, known in (("GPU", gpu), ("driver", driver)) if not known)


def _how_far_tried(frameworks: Sequence[Framework]) -> str:
    worked = [found for found in frameworks if found.trial and found.trial.ran_on_gpu is not None]
    ran = [found.name for found in worked if found.trial and found.trial.ran_on_gpu]
    if not ran:
        return "look compatible"
    if len(ran) == sum(not found.cpu_only for found in worked):
        return "fit, and ran"
    return f"fit; {len(ran)} of {len(worked)} ran" if len(ran) > _MOST_NAMED else f"fit; {', '.join(ran)} ran"


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
    unfinished = [  # trials and measurements that did not end well, though what they sent before may be judged
        Ground(
            what=" of ".join(filter(None, (run.title or run.name, run.framework))),
            status="not-judged",
            source=run.name,
            detail=f"{run.title}: {run.detail or run.status}",
        )
        for run in filter(_tries, _died(snapshot.runs, scopes))
    ]
    named: dict[str, Ground] = {}
    for ground in (*read, *judged, *unfinished):
        if ground.what not in named or named[ground.what].holds > ground.holds:
            named[ground.what] = ground
    whole = tuple(named.values())
    passes = any(check.status in ("pass", "note") and not check.ignored for check in checks)
    decisive = whole if "node" not in scopes and passes else judged
    if any(ground.status == "judged" for ground in decisive) or not all(ground.holds for ground in whole):
        return whole
    environment, by_name = snapshot.judged_environment, {rule.name: rule for rule in rules}
    unusable = f"{environment.key}: {environment.problem}" if environment and environment.problem else ""
    skipped = (each.message for each in checks if each.status == "skipped" and _decides(each, by_name.get(each.rule)))
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
            why = "none that was found is the one to judge"
            yield Ground(what="Python environments", status="not-read", detail=why)
        elif environment.planned is None and environment.source != ASSUMED:
            what = f"packages of {environment.key}"
            if environment.distributions is None or not (environment.frameworks and environment.frameworks.complete):
                why = environment.problem or "the list of its packages is not complete"
                yield Ground(what=what, status="not-read", source=environment.source, detail=why)
            else:
                yield Ground(what=what, status="judged", source=environment.source)


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
    detail = reason if missing.probe else "not checked"
    return Ground(what=what, status="not-read", source=missing.probe or "", detail=detail)


# What had to be judged.


def _judged(checks: Sequence[Check], rules: Sequence[Rule]) -> tuple[Ground, ...]:
    """One ground for each thing that decisive checks are about; one that is open outranks one that is not."""
    by_name = {rule.name: rule for rule in rules}
    any_decides = not any(rule.ground for rule in rules)
    needs_machine = any(rule.scope == "node" for rule in rules)
    found: dict[str, Ground] = {}
    for check in checks:
        rule = by_name.get(check.rule)
        what = _decides(check, rule) or (check.rule if any_decides else "")
        if not what or check.ignored or check.status == "skipped":
            continue
        roots = {missing.fact.partition(".")[0] for missing in check.missing}
        if not needs_machine and check.status == "unknown" and roots and roots <= _MACHINE:
            continue  # it is open for want of a GPU or driver alone
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


def _decides(check: Check, rule: Rule | None) -> str:
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
