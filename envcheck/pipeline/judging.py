"""Complete the facts, apply every rule to them, and conclude: facts in, Report out."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from importlib import import_module

from msgspec.structs import replace

from envcheck.enrich.complete import complete, join_loads, observed_loads
from envcheck.errors import ExitCode, UsageError
from envcheck.knowledge.load import load_matrix
from envcheck.knowledge.matrix import Matrix
from envcheck.model.checks import ASSUMPTION, PLAN, Check, Fix, Layer, Report, Target
from envcheck.model.components import Component
from envcheck.model.events import Judged, OnEvent, ignore
from envcheck.model.snapshot import Environment, Listing, Snapshot, frameworks_in, items_in
from envcheck.pipeline.assume import as_planned, assume, assumed_fit, merged_components
from envcheck.pipeline.request import Machine, Policy, Request
from envcheck.pipeline.require import require, validate
from envcheck.pipeline.timing import Timing
from envcheck.pipeline.verdict import conclude, with_checks
from envcheck.rules.api import Facts, Rule, elsewhere
from envcheck.rules.catalog import all_rules, refuse_unselectable
from envcheck.rules.engine.evaluate import evaluate, framework_importance
from envcheck.rules.facts.variables import BY_VARIABLE
from envcheck.rules.packages.environment import without_false_absence

_CAUSES: tuple[Layer, ...] = ("library", "framework")  # Layers of the rules that can tell why a library fails
_CAUSES_TOGETHER: tuple[Layer, ...] = ("fabric", "container")
"""Besides, layers of those that can tell why several GPUs do not work together."""


def get_ready(request: Request) -> None:
    """Load the rules and the matrix that judging for ``request`` needs, which takes about as long as judging."""
    all_rules()
    _ = load_matrix(request.overlays).gpus_by_name
    if request.assume or request.targets:
        import_module("envcheck.compat.answer")  # whether what is assumed fits together


def judge(
    snapshot: Snapshot,
    request: Request,
    on_event: OnEvent = ignore,
    *,
    timing: Timing | None = None,
    interrupted: bool = False,
) -> Report:
    """Judge facts that were gathered within ``timing``, or before.

    With targets, the report is that for the worst, the first of equals; ``targets`` has the judgement for each.
    """
    check_request(request)
    timing = timing or Timing()
    accepted = dict(request.accepted.by_target()) if request.accepted else {}
    machines = request.targets or (None,)
    plans = [(machine and machine.planned) or request.planned for machine in machines]

    def judged(machine: Machine | None, planned: Environment | None, timing: Timing, *, tried: bool) -> Report:
        facts, assumed = snapshot, merged_components(request.assume, machine.assume) if machine else request.assume
        agreed = accepted.get(machine.name if machine else "", accepted.get(""))
        if planned is not None:
            listed = Listing(items=(planned,))
            facts = replace(snapshot, environments=listed, toolkits=None, libraries=None)
        return _report(facts, replace(request, assume=assumed, targets=(), accepted=agreed, tried=tried), timing)

    reports = [
        judged(machine, plan, timing, tried=request.tried) for machine, plan in zip(machines, plans, strict=True)
    ]
    found = (check for report in reports for check in report.checks) if any(plans) and not request.tried else ()
    if any(check.status == "fail" and check.subject.environment for check in found):
        from envcheck.pipeline.planned.repair import with_edits  # noqa: PLC0415  few plans fail

        def again(place: int, chosen: Environment) -> Report:
            return judged(machines[place], chosen, Timing(), tried=True)

        reports = with_edits(reports, plans, load_matrix(request.overlays), again)
    if any(plans) and not request.tried:
        reports = [_with_fixes(report, request) for report in reports]
        timing.end("repair")
    fields = [field for field in Target.__struct_fields__ if field != "name"]
    targets = tuple(
        Target(name=machine.name, **{field: getattr(report, field) for field in fields})
        for machine, report in zip(request.targets, reports, strict=False)
    )
    worst = replace(reports[0], targets=targets).worst
    report = reports[targets.index(worst) if worst else 0]
    report = replace(report, targets=targets, duration_s=reports[-1].duration_s, timing=timing.stages)
    if interrupted:
        report = replace(report, exit_code=ExitCode.INTERRUPTED)
    on_event(Judged(report))
    return report


def _report(snapshot: Snapshot, request: Request, timing: Timing) -> Report:
    knowledge = load_matrix(request.overlays)
    if request.assume:
        of_caches = (name for row in knowledge.caches for name in row.variables)
        snapshot = assume(snapshot, request.assume, {*(row.name for row in knowledge.variables), *of_caches})
    snapshot = join_loads(observed_loads(complete(snapshot, knowledge)))
    timing.end("enrich")
    if request.baseline:
        snapshot = replace(snapshot, baseline=request.baseline)
    facts, rules = Facts(snapshot, knowledge), _chosen_rules(request, snapshot)
    found = without_false_absence(evaluate(facts, rules, request.scopes), snapshot)
    if request.only:  # whether a variable can cost speed was not asked, unless a figure is low for it
        explaining = {check.explained_by for check in found}
        beside = {name for name in BY_VARIABLE if name not in request.only}
        found = tuple(check for check in found if check.rule not in beside or check.id in explaining)
    chosen = {rule.name for rule in rules}
    planned = any(env.planned is not None for env in items_in(snapshot.environments))
    if not (planned or request.tried):
        found = _offered(found, facts, request)
    more = require(snapshot, knowledge, request.require)
    if planned:
        from envcheck.pipeline.planned.judge import judge_plan  # noqa: PLC0415  most checks have no plan
        from envcheck.pipeline.planned.releases import with_places  # noqa: PLC0415

        found = with_places(found, snapshot, knowledge)
        lines = {check.id: {part.source for part in check.evidence} for check in found if check.status == "fail"}
        of_plan = judge_plan(snapshot, knowledge, tried=request.tried) if PLAN in chosen else ()
        more = (*more, *(_beside_rules(check, lines) for check in of_plan))
    elif request.assume and PLAN in chosen:
        more = (*more, *_judge_assumed(snapshot, request.assume, knowledge))
    assumed = assumed_fit(knowledge, request.assume) if ASSUMPTION in chosen else ()
    found = (*found, *more, *assumed)
    seen = {check.rule for check in found}
    in_scope = (rule for rule in rules if rule.is_in_scope(request.scopes))
    put = [rule for rule in in_scope if rule.arises is not elsewhere or rule.name in seen]
    if request.policy or request.accepted:
        from envcheck.pipeline.policy import decide  # noqa: PLC0415  few have a configuration

        names = {rule.name for rule in put}
        found = decide(found, request.policy or Policy(), names, snapshot, knowledge, request.accepted)
    importance = framework_importance(facts)
    timing.end("judge")
    return conclude(snapshot, found, put, request, importance=importance, timing=timing)


def _with_fixes(report: Report, request: Request) -> Report:
    """A plan's report with only those fixes of rules that pass the simulation; the lines to change have passed."""
    if report.snapshot is None:
        return report
    checks: list[Check] = []
    for check in _offered(report.checks, Facts(report.snapshot, load_matrix(request.overlays)), request):
        # Commands act on an environment, and here is none.
        fixes = (replace(fix, command=(), risk="") if fix.changes else fix for fix in check.fixes)
        checks.append(replace(check, fixes=tuple(fixes)) if check.location else check)
    return with_checks(report, checks)


def _offered(checks: tuple[Check, ...], facts: Facts, request: Request) -> tuple[Check, ...]:
    """The ``checks`` of ``facts`` with only those fixes that pass the simulation."""
    failing = (check for check in checks if check.status in ("fail", "warn"))
    if not any(fix.changes for check in failing for fix in check.fixes):
        return checks
    from envcheck.rules.engine.offered import offer  # noqa: PLC0415  a healthy environment needs no fix

    return offer(checks, facts, all_rules(), lambda then: _nearest(then, request))


def _beside_rules(check: Check, failing: Mapping[str, Collection[str]]) -> Check:
    """The check of a plan; two lines that go against each other follow from a rule's failure about both, by the lines
    of each that is ``failing``.
    """
    lines = {part.source for part in check.evidence}
    cause = next(
        (key for key, its in failing.items() if check.status == "fail" and len(lines) > 1 and lines <= {*its}), None
    )
    return replace(check, explained_by=check.explained_by or cause)


def _nearest(facts: Facts, request: Request) -> tuple[Fix, ...]:
    """The steps to the nearest releases with which an environment fits."""
    from envcheck.pipeline.planned.repair import nearest_way  # noqa: PLC0415  few environments need it

    machine = replace(facts.snapshot, environments=None)
    asked = replace(request, assume=(), targets=(), only=(), skip=(), require=(), policy=None, tried=True)

    def judged(plan: Environment) -> Report:
        chosen = replace(asked, planned=plan)
        return judge(machine, chosen)

    return nearest_way(facts, judged)


def _judge_assumed(snapshot: Snapshot, assumed: Sequence[Component], matrix: Matrix) -> Iterator[Check]:
    """What a plan of the assumed distributions would yield; beside frameworks of an environment, nothing of others."""
    items, environment = as_planned(assumed), snapshot.judged_environment
    if not items or environment is None:
        return
    from envcheck.pipeline.planned.judge import judge_plan  # noqa: PLC0415  few assume distributions

    planned = replace(environment, planned=items)
    only = replace(snapshot, environments=Listing(items=(planned,), complete=True))
    for check in judge_plan(only, matrix):
        if check.subject.kind == "framework":
            evidence = tuple(replace(part, what="assumed") for part in check.evidence)
            yield replace(check, location=None, evidence=evidence)
        elif not frameworks_in(environment):  # else those are judged, beside a package that says nothing of GPUs
            names = ", ".join(item.asked for item in items)
            title = f"Whether {names} fits is not known"
            why = "the matrix knows no framework or library for GPUs of this name"
            similar = (matrix.similar_name(item.name) for item in items if not matrix.knows(item.name))
            near = next((f": did you mean {name!r}?" for name in similar if name), ".")
            yield replace(check, location=None, title=title, message=f"{names}: {why}{near}")


def check_request(request: Request) -> None:
    """Raise UsageError where ``request`` asks for a rule that does not exist, or for what can never be judged."""
    validate(request.require)
    if request.targets and (request.deep or request.bench):
        raise UsageError("--deep and --bench try this machine, and --target describes another one: use one of them")
    for name in (*request.only, *request.skip):
        refuse_unselectable(name)
    asked = (rule for rule in _chosen_rules(request) if rule.name in request.only or not rule.always)
    if not request.require and not any(rule.may_be_asked(request.scopes) for rule in asked):
        raise UsageError("--skip or --scope removes every rule that --only selects; drop one of them")


def _chosen_rules(request: Request, snapshot: Snapshot | None = None) -> list[Rule]:
    """The rules that were asked for; beside them, where something was measured, those that can name a cause."""
    causes: tuple[Layer, ...] = ()
    if snapshot is not None:
        died = any(run.status == "crashed" and run.name.startswith("bench.") for run in snapshot.runs)
        if died or any(found.failed for found in snapshot.measurements):
            causes = _CAUSES
        if any(found.collective and (found.failed or found.collective.log) for found in snapshot.measurements):
            causes = (*_CAUSES, *_CAUSES_TOGETHER)
    slow = BY_VARIABLE if snapshot is not None and snapshot.measurements else ()
    return [
        rule
        for rule in all_rules()
        if (not request.only or rule.name in request.only or rule.always or rule.layer in causes or rule.name in slow)
        and rule.name not in request.skip
    ]
