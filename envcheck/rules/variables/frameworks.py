"""Environment variables that break a framework, and those that code sets at every start of its interpreter."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from envcheck.knowledge.relations.variables import effects, hides_all, holds_for, reads, said_by
from envcheck.model.checks import Evidence, Fix
from envcheck.model.snapshot import Environment, Framework, StartupVariable, frameworks_in
from envcheck.rules.api import Facts, FrameworkSubject, Outcome, rule
from envcheck.rules.facts.frameworks import built_for_cuda, full_name, is_known_cuda_build, is_main_framework
from envcheck.rules.facts.machine import title_of_first
from envcheck.rules.facts.trials import ERROR_FROM, SHOWN, failed, ran_on_gpu, tried_frameworks
from envcheck.rules.facts.variables import (
    SetVariable,
    VariableFault,
    find_fault,
    framework_variables,
    setting_evidence,
    title_listing,
    unset,
)
from envcheck.rules.variables.visible_devices import VISIBLE

_DOES: dict[str, str] = {
    "start": "cannot start CUDA",
    "import": "cannot be imported",
    "first-use": "fails at its first use of the GPU",
    "cpu": "runs on the CPU",
}


@rule(
    layer="framework",
    per="framework",
    arises=lambda subject, facts: (
        built_for_cuda(subject, facts) and any(True for _ in framework_variables(subject.framework, facts))
    ),
    remedy=(Fix(text="Unset the variable that the error names, or correct its value", command=("envcheck", "check")),),
    explains=("cpu-only-build", "framework-cannot-use-gpu", "framework-import-fails", "gpu-code-missing"),
)
def variable_stops_framework(subject: FrameworkSubject, facts: Facts) -> Outcome | None:
    """The value of an environment variable breaks a framework."""
    framework = subject.framework
    if ran_on_gpu(framework) and not failed(framework):
        return None
    suspected = list(_suspected(subject, facts))
    named_in_trial = [each for each, quoted in suspected if quoted]
    found = named_in_trial or [each for each, _ in suspected]
    if not found:
        return None
    variables = [each.variable for each in found]
    names = [each.name for each in variables]
    does = min((_DOES[each.variable.row.invalid] for each in found if each.stops), default=_DOES["cpu"])
    tried = failed(framework)
    return Outcome(
        status="fail"
        if is_main_framework(framework, facts.matrix) and (tried or any(each.stops for each in found))
        else "warn",
        title=title_listing(names, f": {full_name(framework)} {does}"),
        message=" ".join(f"{each.variable.name}: {each.text}." for each in found),
        evidence=(
            *(setting_evidence(each) for each in variables),
            *(line for _, quoted in suspected for line in quoted),
        ),
        decided_by="framework-ran" if tried else "declared",
        sources=facts.matrix.cite(*(each.row for each in variables)),
        fixes=unset(variables),
    )


def _suspected(subject: FrameworkSubject, facts: Facts) -> Iterator[tuple[VariableFault, tuple[Evidence, ...]]]:
    """The variables whose values are wrong, or that the framework's output names; with that line."""
    framework = subject.framework
    trial = framework.trial
    lines = [line for line in (trial.error, *trial.warnings) if line] if trial and failed(framework) else []
    for variable in framework_variables(framework, facts):
        row = variable.row
        found = find_fault(variable, facts, framework.version) if row.invalid in _DOES else None
        flags = {word.partition("=")[0] for word in variable.value.split()}
        unknown = [flag for flag in framework.unknown_flags or () if flag in flags]
        if found is None and unknown:
            found = VariableFault(variable, f"{full_name(framework)} has no flag {unknown[0]}")
        for effect in () if found else effects(row, variable.value, ("gpu",)):
            found = VariableFault(variable, effect.text, stops=False)
        decided = found is None and bool(row.pattern) and not (row.options or row.open_values)
        line = next((line for line in lines if not decided and said_by(row, line)), None)
        if line is not None:
            quoted = Evidence(what=f"{ERROR_FROM} {framework.name}", value=line[:SHOWN], source="trial")
            yield found or VariableFault(variable, f"the framework does not accept {variable.value!r}"[:200]), (quoted,)
        elif found is not None:
            yield found, ()


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
    sentences, evidence, fixes = [], [], []
    for variable, effect, _ in found[:_MOST]:
        where = f"{variable.path} runs {variable.module}, which" if variable.module else variable.path
        sentences.append(f"{where} sets {_setting(variable)}{f': {effect}' if effect else ''}.")
        value = "a computed value" if variable.value is None else variable.value or "(empty)"
        source = variable.source or f"file {variable.path}"
        evidence.append(Evidence(what=variable.name, value=value, source=source))
        origin = variable.module or variable.path
        fixes.append(Fix(text=f"Remove what sets {variable.name} from {origin}, unless it is intended"))
    return Outcome(
        status="fail" if stopped else "warn" if first.effect else "note",
        title=title_of_first(f"{file} sets {_setting(first.variable)} at every start of Python", found),
        message=" ".join(sentences),
        evidence=tuple(evidence),
        decided_by="framework-ran" if stopped else "declared",
        fixes=tuple(dict.fromkeys(fixes)),
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
