"""Environment variables that stop CUDA or a framework, name missing files, or change speed, results or libraries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from envcheck.knowledge.relations.variables import effects, hides_all, holds_for, reads, said_by, shown
from envcheck.model.checks import DecidedBy, Evidence, Fix, Status
from envcheck.model.snapshot import ApiResult, Environment, Framework, Snapshot, StartupVariable
from envcheck.rules.api import Facts, Outcome, note, rule
from envcheck.rules.facts.frameworks import ERROR_FROM, SHOWN, built_for_cuda
from envcheck.rules.facts.machine import title_of_first
from envcheck.rules.facts.variables import (
    VISIBLE,
    SetVariable,
    VariableFault,
    find_fault,
    finding,
    relevant_variables,
    set_variables,
    title_listing,
    unset,
)
from envcheck.rules.messages.observed import call_evidence, observed_problems

_DOES: dict[str, str] = {
    "start": "cannot start CUDA",
    "import": "cannot be imported",
    "first-use": "fails at its first use of the GPU",
    "cpu": "runs on the CPU",
}


@rule(layer="framework")
def variable_stops_framework(framework: Framework, facts: Facts) -> Outcome | None:
    """The value of an environment variable breaks a framework."""
    if not built_for_cuda(framework, facts) or (framework.ran_on_gpu and not framework.failed):
        return None
    # The variables whose values are wrong, or that the framework's output names; with that line.
    tried, trial = framework.failed, framework.trial
    lines = [line for line in (trial.error, *trial.warnings) if line] if trial and tried else []
    quoted: list[Evidence] = []
    named, suspected = list[VariableFault](), list[VariableFault]()
    for variable in set_variables(facts):
        row = variable.row
        if not (reads(row, framework.name) and holds_for(row.versions, framework.version)):
            continue
        fault = find_fault(variable, facts, framework.version) if row.invalid in _DOES else None
        flags = {word.partition("=")[0] for word in variable.value.replace(",", " ").split()}
        unknown = [flag for flag in framework.unknown_flags or () if flag in flags]
        if fault is None and unknown:
            fault = VariableFault(variable, f"{framework.title} does not know {unknown[0]}")
        for effect in () if fault else effects(row, variable.value, ("gpu",)):
            fault = VariableFault(variable, effect.text, stops=False)
        decided = fault is None and bool(row.pattern) and not (row.options or row.open_values)
        line = next((line for line in lines if not decided and said_by(row, line)), None)
        if line is not None:
            quoted.append(Evidence(f"{ERROR_FROM} {framework.name}", line[:SHOWN], "trial"))
            named.append(fault or VariableFault(variable, f"the framework does not accept {variable.value!r}"[:200]))
        elif fault is not None:
            suspected.append(fault)
    found = named or suspected
    if not found:
        return None
    does = min((_DOES[each.variable.row.invalid] for each in found if each.stops), default=_DOES["cpu"])
    title = title_listing([each.variable.name for each in found], f": {framework.title} {does}")
    breaks = facts.is_main_framework(framework) and (tried or any(each.stops for each in found))
    how: DecidedBy = "framework-ran" if tried else "declared"
    return finding("fail" if breaks else "warn", title, found, facts, *quoted, decided_by=how)


_MOST = 6


class _Found(NamedTuple):
    """A variable that is set, and what that does."""

    variable: StartupVariable
    effect: str = ""  # Why a program fails, or runs on the CPU, because of it; empty: it is not known to
    stops: bool = False  # Whether no program of a framework can use the GPU with it
    stopped: tuple[str, ...] = ()  # The frameworks that read it and failed when they were tried


@rule(layer="framework")
def startup_sets_variable(environment: Environment, facts: Facts) -> Outcome | None:
    """Code that runs at every start of Python sets an environment variable."""
    known = {row.name for row in facts.matrix.variables} | {VISIBLE}
    found = [_judged(each, facts) for each in environment.startup_variables or () if each.name in known]
    if not found:
        return None
    found.sort(key=lambda each: (not each.stopped, not each.stops, not each.effect))
    first = found[0]
    file = first.variable.path.rpartition("/")[2]
    stopped = tuple(dict.fromkeys(name for each in found for name in each.stopped))
    sentences, evidence, fixes = [], [], []
    for variable, effect, *_ in found[:_MOST]:
        where = f"{variable.path} runs {variable.module}, which" if variable.module else variable.path
        sentences.append(f"{where} sets {_setting(variable)}{f': {effect}' if effect else ''}.")
        value = "a computed value" if variable.value is None else variable.value or "(empty)"
        evidence.append(Evidence(variable.name, value, variable.source or f"file {variable.path}"))
        origin = variable.module or variable.path
        fixes.append(Fix(f"Remove what sets {variable.name} from {origin}, unless it is intended"))
    return Outcome(
        status="fail" if stopped or first.stops else "warn" if first.effect else "note",
        title=title_of_first(f"{file} sets {_setting(first.variable)} at every start of Python", found),
        message=" ".join(sentences),
        evidence=tuple(evidence),
        decided_by="framework-ran" if stopped else "declared",
        fixes=tuple(dict.fromkeys(fixes)),
        frameworks=stopped or (file,),
    )


def _judged(variable: StartupVariable, facts: Facts) -> _Found:
    value = variable.value
    if value is None:
        return _Found(variable)
    readers = [each for each in facts.frameworks if each.is_known_cuda_build]
    effect = "it hides every GPU" if variable.name == VISIBLE and hides_all(value) else ""
    stops = bool(effect and readers)
    if not effect:  # the frameworks that fail, or run on the CPU, by this value, and why
        faults = [
            (each, fault)
            for row in facts.matrix.variables
            if row.name == variable.name and row.invalid != "ignored"
            for each in readers
            if any(reads(row, reader) for reader in (each.name, "cuda")) and holds_for(row.versions, each.version)
            if (fault := find_fault(SetVariable(row, value), facts, each.version))
        ]
        readers, effect = [each for each, _ in faults], next((fault.text for _, fault in faults), "")
        stops = any(fault.stops and facts.is_main_framework(each) for each, fault in faults)
    if not effect or facts.driver.cuda_devices == 0:
        return _Found(variable, effect)  # a GPU that no program sees has another reason
    tried = {each.name for each in facts.tried_frameworks if each.failed}
    failed = tuple(each.name for each in readers if each.name in tried)
    return _Found(variable, effect, stops and variable.always and not any(each.ran_on_gpu for each in readers), failed)


def _setting(variable: StartupVariable) -> str:
    return f"{variable.name}={variable.value[:40]!r}" if variable.value is not None else variable.name


_NAME = "LD_LIBRARY_PATH"
_ABSOLUTE = ("/", "$ORIGIN", "${ORIGIN}")


@rule(layer="library", decided_by="declared")
def loader_path_relative(_snapshot: Snapshot, facts: Facts) -> Outcome | None:
    """LD_LIBRARY_PATH has an empty or relative entry."""
    named = (facts.variable(_NAME) or "/").replace(";", ":").split(":")
    entries = [entry for entry in named if not entry.startswith(_ABSOLUTE)]
    if not entries:
        return None
    source = facts.variables.source
    return note(
        message="Programs search the folder they are started in for libraries. envcheck queried the driver without it.",
        evidence=tuple(Evidence("entry", entry or "(empty)", source) for entry in entries[:3]),
        fixes=(Fix("Use only absolute paths in LD_LIBRARY_PATH; an empty entry means the current folder"),),
    )


_SHOWN = 8


def failed_start(facts: Facts) -> ApiResult | None:
    """The first call that failed while CUDA was initialized."""
    calls = (facts.driver.cuda_init, facts.driver.cuda_device_count)
    return next((call for call in calls if call and call.code != 0), None)


def cuda_stopping_faults(facts: Facts) -> tuple[VariableFault, ...]:
    """The variables that make cuInit fail."""
    failed = failed_start(facts)
    if failed is None and facts.driver.cuda_init is not None:
        return ()
    found = [find_fault(each, facts) for each in set_variables(facts) if each.row.invalid == "start"]
    return tuple(each for each in found if each and (failed is None or failed.code in each.variable.row.codes))


@rule(layer="container")
def variable_stops_cuda(_snapshot: Snapshot, facts: Facts) -> Outcome | None:
    """An environment variable prevents CUDA from starting."""
    found, started = cuda_stopping_faults(facts), facts.driver.cuda_init
    if not found:
        return None
    names = [each.variable.name for each in found]
    title = title_listing(names, _verb(names, " prevents", " prevent") + " CUDA from starting")
    how: DecidedBy = "driver-answered" if started is not None else "inferred"
    call = call_evidence(started) if started is not None else None
    return finding("fail", title, found, facts, call, decided_by=how)


@rule(layer="library")
def variable_leads_nowhere(_snapshot: Snapshot, facts: Facts) -> Outcome | None:
    """An environment variable names a file, folder or program that does not exist."""
    frameworks, found = facts.frameworks, {}
    for variable in relevant_variables(facts):
        row = variable.row
        if row.invalid != "ignored" and any(reads(row, each.name) for each in frameworks):
            continue  # it stops a framework, whose rule reports it
        fault = find_fault(variable, facts)
        if fault and row.leads_to:
            found[variable.name] = fault
    once = list(found.values())
    if not once:
        return None
    names = [each.variable.name for each in once]
    worst: Status = "warn" if any(each.variable.row.weight == "warn" for each in once) else "note"
    title = title_listing(names, _verb(names, " names a missing path", " name missing paths"))
    outcome = finding(worst, title, once, facts)
    return msgspec.structs.replace(outcome, evidence=outcome.evidence[:_SHOWN])


@rule(layer="library")
def variable_costs_speed(_snapshot: Snapshot, facts: Facts) -> Outcome | None:
    """An environment variable slows programs down."""
    # What costs speed by design is the first suspect where a text says that a program is slow, and names nothing else.
    suspect = bool(facts.variables.values) and facts.complains_of_speed and not observed_problems(facts)
    found = _with_effects(facts, ("speed", "memory", "output"), (" can slow programs down",) * 2, suspect=suspect)
    if found and facts.lines_with("place-looked-for"):  # debugging, with the switches for it
        return msgspec.structs.replace(found, status="note", fixes=())
    return found


@rule(layer="library")
def variable_changes_results(_snapshot: Snapshot, facts: Facts) -> Outcome | None:
    """An environment variable changes numerical results."""
    return _with_effects(facts, ("precision", "correctness"), (" can change results or stop programs",) * 2)


def _verb(names: Sequence[str], one: str, several: str) -> str:
    return one if len(set(names)) == 1 else several


def _with_effects(
    facts: Facts, kinds: Sequence[str], does: tuple[str, str], *, suspect: bool = False
) -> Outcome | None:
    pairs = [
        (each, msgspec.structs.replace(effect, status="warn") if suspect and effect.on == "speed" else effect)
        for each in relevant_variables(facts)
        for effect in effects(each.row, each.value, kinds)
    ]
    found = list({(each.name, effect.text): (each, effect) for each, effect in pairs}.values())
    found.sort(key=lambda pair: pair[1].status != "warn")
    if not found:
        return None
    status: Status = "warn" if any(effect.status == "warn" for _, effect in found) else "note"
    worst = [each for each, effect in found if effect.status == status]
    names = [f"{each.name}={shown(each.value)}" for each in worst]
    return Outcome(
        status=status,
        title=title_listing(names, _verb(names, *does)),
        message=" ".join(f"{each.name}={shown(each.value)}: {effect.text}." for each, effect in found),
        evidence=tuple(each.evidence for each, _ in found[:_SHOWN]),
        decided_by="declared",
        sources=facts.matrix.cite(*(each.row for each, _ in found)),
        fixes=unset(worst) if status == "warn" else (),
    )
