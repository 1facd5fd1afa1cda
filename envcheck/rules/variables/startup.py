"""Environment variables that code in an environment sets at every start of its interpreter."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from envcheck.knowledge.relations.variables import hides_all, holds_for, reads
from envcheck.model.checks import Evidence, Fix
from envcheck.model.snapshot import Environment, Framework, StartupVariable, frameworks_in
from envcheck.rules.api import Facts, Outcome, rule
from envcheck.rules.facts.frameworks import is_known_cuda_build
from envcheck.rules.facts.machine import title_of_first
from envcheck.rules.facts.trials import failed, tried_frameworks
from envcheck.rules.facts.variables import SetVariable, find_fault
from envcheck.rules.variables.visible_devices import VISIBLE

_MOST = 6


class _Found(NamedTuple):
    """A variable that is set, and what that does."""

    variable: StartupVariable
    effect: str = ""
    """Why a program fails, or runs on the CPU, because of it; empty: it is not known to."""
    stopped: tuple[str, ...] = ()
    """The frameworks that read it and failed when they were tried."""


@rule(
    layer="framework",
    per="environment",
    explains_failing=("cpu-only-build", "framework-cannot-use-gpu", "framework-import-fails", "no-gpu-visible"),
)
def startup_sets_variable(environment: Environment, facts: Facts) -> Outcome | None:
    """Code that runs at every start of Python sets an environment variable."""
    known = {row.name for row in facts.matrix.variables} | {VISIBLE}
    found = [_judged(each, environment, facts) for each in environment.startup_variables or () if each.name in known]
    if not found:
        return None
    found.sort(key=lambda each: (not each.stopped, not each.effect))
    first = found[0]
    file = first.variable.path.rpartition("/")[2]
    stopped = tuple(dict.fromkeys(name for each in found for name in each.stopped))
    return Outcome(
        status="fail" if stopped else "warn" if first.effect else "note",
        title=title_of_first(f"{file} sets {_setting(first.variable)} at every start of Python", found),
        message=" ".join(map(_as_sentence, found[:_MOST])),
        evidence=tuple(_evidence(each.variable) for each in found[:_MOST]),
        decided_by="framework-ran" if stopped else "declared",
        fixes=tuple(dict.fromkeys(_fix(each.variable) for each in found[:_MOST])),
        frameworks=stopped or (file,),
    )


def _judged(variable: StartupVariable, environment: Environment, facts: Facts) -> _Found:
    value = variable.value
    if value is None:
        return _Found(variable)
    readers = [each for each in frameworks_in(environment) if is_known_cuda_build(each)]
    effect = "it hides every GPU" if variable.name == VISIBLE and hides_all(value) else ""
    if not effect:
        faults = list(_faults(variable.name, value, readers, facts))
        readers, effect = [each for each, _ in faults], next((text for _, text in faults), "")
    if not effect or facts.driver.cuda_devices == 0:
        return _Found(variable, effect)  # a GPU that no program sees has another reason
    tried = {each.name for each in tried_frameworks(environment) if failed(each)}
    return _Found(variable, effect, tuple(each.name for each in readers if each.name in tried))


def _faults(name: str, value: str, frameworks: list[Framework], facts: Facts) -> Iterator[tuple[Framework, str]]:
    """The frameworks that fail, or run on the CPU, by this value, and why."""
    for row in facts.matrix.variables:
        if row.name != name or row.invalid == "ignored":
            continue
        for each in frameworks:
            if any(reads(row, reader) for reader in (each.name, "cuda")) and holds_for(row.versions, each.version):
                fault = find_fault(SetVariable(row, value), facts, each.version)
                if fault is not None:
                    yield each, fault.text


def _setting(variable: StartupVariable) -> str:
    return f"{variable.name}={variable.value[:40]!r}" if variable.value is not None else variable.name


def _as_sentence(found: _Found) -> str:
    variable = found.variable
    where = f"{variable.path} runs {variable.module}, which" if variable.module else variable.path
    return f"{where} sets {_setting(variable)}{f': {found.effect}' if found.effect else ''}."


def _evidence(variable: StartupVariable) -> Evidence:
    value = "a computed value" if variable.value is None else variable.value or "(empty)"
    return Evidence(what=variable.name, value=value, source=variable.source or f"file {variable.path}")


def _fix(variable: StartupVariable) -> Fix:
    return Fix(text=f"Remove what sets {variable.name} from {variable.module or variable.path}, unless it is intended")
