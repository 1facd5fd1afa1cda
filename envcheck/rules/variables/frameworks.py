"""Environment variables whose value breaks a framework."""

from __future__ import annotations

from collections.abc import Iterator

from envcheck.knowledge.relations.variables import effects, said_by
from envcheck.model.checks import Evidence, Fix
from envcheck.model.snapshot import Framework
from envcheck.rules.api import Facts, FrameworkSubject, Outcome, rule
from envcheck.rules.facts.frameworks import built_for_cuda, full_name, is_main_framework
from envcheck.rules.facts.trials import ERROR_FROM, SHOWN, failed, ran_on_gpu
from envcheck.rules.facts.variables import (
    SetVariable,
    VariableFault,
    find_fault,
    framework_variables,
    setting_evidence,
    title_listing,
    unset,
)

_DOES: dict[str, str] = {
    "start": "cannot start CUDA",
    "import": "cannot be imported",
    "first-use": "fails at its first use of the GPU",
    "cpu": "runs on the CPU",
}


def _reads_some(subject: FrameworkSubject, facts: Facts) -> bool:
    return built_for_cuda(subject, facts) and any(True for _ in framework_variables(subject.framework, facts))


_UNSET = Fix(text="Unset the variable that the error names, or correct its value", command=("envcheck", "check"))


@rule(
    layer="framework",
    per="framework",
    arises=_reads_some,
    remedy=lambda _facts: (_UNSET,),
    explains=("cpu-only-build", "framework-cannot-use-gpu", "framework-import-fails", "gpu-code-missing"),
)
def variable_stops_framework(subject: FrameworkSubject, facts: Facts) -> Outcome | None:
    """The value of an environment variable breaks a framework."""
    framework = subject.framework
    if ran_on_gpu(framework) and not failed(framework):
        return None
    met = list(_met(subject, facts))
    named_in_trial = [each for each, quoted in met if quoted]
    found = named_in_trial or [each for each, _ in met]
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
        evidence=(*(setting_evidence(each) for each in variables), *(line for _, quoted in met for line in quoted)),
        decided_by="framework-ran" if tried else "declared",
        sources=facts.matrix.cite(*(each.row for each in variables)),
        fixes=unset(variables),
    )


def _unknown_flag(variable: SetVariable, framework: Framework) -> VariableFault | None:
    """A flag that the framework's libraries do not know."""
    words = variable.value.split()
    unknown = [flag for flag in framework.unknown_flags or () if any(word.partition("=")[0] == flag for word in words)]
    return VariableFault(variable, f"{full_name(framework)} has no flag {unknown[0]}") if unknown else None


def _met(subject: FrameworkSubject, facts: Facts) -> Iterator[tuple[VariableFault, tuple[Evidence, ...]]]:
    """The variables whose values are wrong, or that the framework's output names; with that line."""
    framework = subject.framework
    trial = framework.trial
    lines = [line for line in (trial.error, *trial.warnings) if line] if trial and failed(framework) else []
    for variable in framework_variables(framework, facts):
        row = variable.row
        found = find_fault(variable, facts, framework.version) if row.invalid in _DOES else None
        found = found or _unknown_flag(variable, framework)
        for effect in () if found else effects(row, variable.value, ("gpu",)):
            found = VariableFault(variable, effect.text, stops=False)
        decided = found is None and bool(row.pattern) and not (row.options or row.open_values)
        line = next((line for line in lines if not decided and said_by(row, line)), None)
        if line is not None:
            quoted = Evidence(what=f"{ERROR_FROM} {framework.name}", value=line[:SHOWN], source="trial")
            yield found or VariableFault(variable, f"the framework does not accept {variable.value!r}"[:200]), (quoted,)
        elif found is not None:
            yield found, ()
