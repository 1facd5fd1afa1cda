"""``envcheck plan --repair``: the nearest releases with which what is installed fits, as commands for that environment.

What the matrix knows of the environment is judged as a plan, whose releases move as ``--fix-plan`` moves them. The
commands are simulated on the whole environment before they are told: none brings a failure, or breaks a requirement.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from envcheck.compat.question import Reason
from envcheck.compat.requirements import declared
from envcheck.errors import UsageError
from envcheck.knowledge.matrix import Matrix
from envcheck.knowledge.names import canonical
from envcheck.model.checks import Check, Fix, Report
from envcheck.model.snapshot import Environment, Planned, Snapshot
from envcheck.pipeline.planned.checks import machine_of
from envcheck.pipeline.planned.repair import Judge, NearestSet, nearest_set
from envcheck.pipeline.planned.solution import ChosenRelease, Solution
from envcheck.pipeline.planned.solve import labelled
from envcheck.plans.settle import as_environment
from envcheck.rules.api import Facts
from envcheck.rules.catalog import all_rules
from envcheck.rules.engine.evaluate import evaluate
from envcheck.rules.engine.resolve import requirements_broken
from envcheck.rules.engine.simulate import simulate, without_trials
from envcheck.rules.fixes.frameworks import INDEX
from envcheck.rules.fixes.install import How, in_steps, install, is_conda_package

_TORCH = "torch"


def repair_installed(report: Report, matrix: Matrix, judge: Judge) -> Solution:
    """What to install over the judged environment of ``report``; ``judge`` says what is found of a plan.

    Raises UsageError where there is no environment, or conda installed what does not fit.
    """
    facts = Facts(report.snapshot or Snapshot(), matrix)
    environment = facts.environment
    if environment is None or environment.distributions is None:
        raise UsageError("--repair: there is no Python environment to repair; name one: --repair ENVIRONMENT")
    plan, before, failing = _judged(facts, environment, judge)
    machine = {part.name: part.exact or "" for part in machine_of(facts)} | {"environment": environment.key}
    if not failing:
        others = [check for check in _failing(report.checks) if check.scope == "env"]
        reasons = tuple(Reason(verdict="unknown", message=each.title, sources=each.sources) for each in others)
        return Solution(verdict="unknown" if others else "compatible", machine=machine, reasons=reasons)
    there = {each.name: each for each in environment.distributions}
    by_conda = [name for name in map(_name, failing) if name in there and is_conda_package(there[name])]
    if by_conda:
        raise UsageError(f"--repair: conda installed {by_conda[0]}, and chooses its releases: see envcheck check")
    found = nearest_set(before, plan, matrix, judge)
    steps = _steps(found, facts) if found else ()
    worse = [*_worse(steps, report, facts)]
    if found is None or worse:
        causes = [f"{each.title}: {each.message}" for each in failing]
        messages = [*causes, *worse] if found else causes
        sources = failing[0].sources
        reasons = tuple(Reason(verdict="incompatible", message=each, sources=sources) for each in messages)
        return Solution(verdict="incompatible", machine=machine, reasons=reasons)
    titles = {_name(each): each.title for each in failing}
    packages = tuple(
        ChosenRelease(
            name=name,
            version=labelled(name, version, found.tag, matrix),
            given_up=f"{there[name].version} is installed: {titles.get(name, 'it does not go with the rest')}",
        )
        for name, version in found.moved.items()
    )
    commands = tuple(step.command for step in steps)
    return Solution(verdict="compatible", machine=machine, packages=packages, tag=found.tag, steps=commands)


def nearest_way(facts: Facts, judge: Judge) -> tuple[Fix, ...]:
    """The steps to the nearest releases with which the environment fits; nothing where it does, or none is near."""
    environment = facts.environment
    if environment is None or environment.distributions is None or environment.planned is not None:
        return ()
    plan, before, failing = _judged(facts, environment, judge)
    found = nearest_set(before, plan, facts.matrix, judge) if failing else None
    return in_steps(_steps(found, facts)) if found else ()


def _judged(facts: Facts, environment: Environment, judge: Judge) -> tuple[Environment, Report, list[Check]]:
    """What the matrix knows of the environment as a plan, its report, and the packages that fail."""
    plan = as_environment([*_installed(facts, environment)], [environment.key], facts.matrix)
    before = judge(plan)
    return plan, before, _failing(before.checks)


def _installed(facts: Facts, environment: Environment) -> Iterator[Planned]:
    """What the matrix knows of it, pinned; what PyTorch requires moves with it."""
    matrix, there = facts.matrix, environment.distributions or ()
    torch = next((each.version.partition("+")[0] for each in there if each.name == _TORCH), "")
    follows = declared(matrix, _TORCH, torch, facts.markers) if torch else {}
    for each in there:
        known = matrix.rows_of(canonical(each.name)) or matrix.has_trait(each.name, "distributes-torch")
        if known and each.version and each.name not in follows:
            yield Planned(
                source=environment.key,
                name=each.name,
                asked=f"{each.name}=={each.version}",
                bounds=f"=={each.version}",
                version=each.version,
                build=each.version.partition("+")[2] if each.name == _TORCH else "",
                conda=each.build or "" if is_conda_package(each) else None,
                file=environment.key,
                together=environment.key,
            )


def _failing(checks: Sequence[Check]) -> list[Check]:
    return [check for check in checks if check.status == "fail" and check.subject.kind == "framework"]


def _name(check: Check) -> str:
    """The package that a check is about."""
    return check.subject.key.rpartition(":")[2].partition(" ")[0]


def _steps(found: NearestSet, facts: Facts) -> tuple[Fix, ...]:
    """PyTorch with what its index serves, then the rest."""
    matrix, moved = facts.matrix, found.moved
    served = [name for name in moved if name == _TORCH or matrix.has_trait(name, "on-torch-index")]
    indexed = How(index=f"{INDEX}{found.tag}", torch_backend=found.tag) if found.tag else How()
    steps: list[Fix] = []
    for how, names in ((indexed, served), (How(), [name for name in moved if name not in served])):
        lines = [f"{name}=={labelled(name, moved[name], found.tag, matrix)}" for name in names]
        steps += install(facts, lines, f"Install {' and '.join(lines)}", how) if lines else ()
    return tuple(steps)


def _worse(steps: Sequence[Fix], report: Report, facts: Facts) -> Iterator[str]:
    """What would be wrong after the steps that is right now."""
    snapshot = without_trials(facts.snapshot, facts.matrix)
    after = simulate(snapshot, [step.changes for step in steps if step.changes], facts.matrix)
    there = requirements_broken(facts)
    broken = requirements_broken(Facts(after.snapshot, facts.matrix))
    yield from (f"then {owner} lacks {asked}, which it requires" for owner, asked in sorted(broken - there))
    yield from (f"no release meets {asked}" for asked in after.impossible)
    known = {check.id for check in report.checks if check.status == "fail"}
    for check in evaluate(after.snapshot, facts.matrix, all_rules(), frozenset({"env"})):
        if check.status == "fail" and check.id not in known:
            yield f"then {check.title}"
