"""Environment variables that stop CUDA, name missing files, or change the speed, results or libraries of programs."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from envcheck.knowledge.error_lines import lines_with
from envcheck.knowledge.relations.variables import effects, reads, shown
from envcheck.model.checks import Evidence, Fix, Status
from envcheck.model.snapshot import ApiResult, Snapshot, frameworks_in
from envcheck.rules.api import Facts, Outcome, rule
from envcheck.rules.facts.variables import (
    VariableFault,
    find_fault,
    relevant_variables,
    set_variables,
    setting_evidence,
    title_listing,
    unset,
)
from envcheck.rules.messages.observed import call_evidence

_NAME = "LD_LIBRARY_PATH"
_ABSOLUTE = ("/", "$ORIGIN", "${ORIGIN}")


def _relative(_subject: Snapshot, facts: Facts) -> tuple[str, ...]:
    entries = (facts.variable(_NAME) or "/").replace(";", ":").split(":")
    return tuple(entry for entry in entries if not entry.startswith(_ABSOLUTE))


@rule(layer="library", arises=lambda subject, facts: bool(_relative(subject, facts)))
def loader_path_relative(snapshot: Snapshot, facts: Facts) -> Outcome | None:
    """LD_LIBRARY_PATH has an empty or relative entry."""
    entries = _relative(snapshot, facts)
    source = snapshot.variables.source if snapshot.variables else ""
    return Outcome(
        status="note",
        title="LD_LIBRARY_PATH has an empty or relative entry",
        message="Programs search the folder they are started in for libraries. envcheck queried the driver without it.",
        evidence=tuple(Evidence(what="entry", value=entry or "(empty)", source=source) for entry in entries[:3]),
        decided_by="declared",
        fixes=(Fix(text="Use only absolute paths in LD_LIBRARY_PATH; an empty entry means the current folder"),),
    )


_SHOWN = 8


def _any_is_set(_snapshot: Snapshot, facts: Facts) -> bool:
    return any(True for _ in set_variables(facts))


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


@rule(layer="container", arises=_any_is_set, explains=("gpu-hidden", "gpu-init-failed", "no-gpu-visible"))
def variable_stops_cuda(_snapshot: Snapshot, facts: Facts) -> Outcome | None:
    """An environment variable prevents CUDA from starting."""
    found, started = cuda_stopping_faults(facts), facts.driver.cuda_init
    if not found:
        return None
    names = [each.variable.name for each in found]
    return Outcome(
        status="fail",
        title=title_listing(names, _verb(names, " prevents", " prevent") + " CUDA from starting"),
        message=_sentences(found),
        evidence=(
            *(setting_evidence(each.variable) for each in found),
            *((call_evidence(started),) if started is not None else ()),
        ),
        decided_by="driver-answered" if started is not None else "inferred",
        sources=facts.matrix.cite(*(each.variable.row for each in found)),
        fixes=unset([each.variable for each in found]),
    )


def _sentences(found: Sequence[VariableFault]) -> str:
    return " ".join(f"{each.variable.name}: {each.text}." for each in found)


@rule(
    layer="library",
    arises=_any_is_set,
    remedy=(Fix(text="Correct the path that the variable names, or unset the variable"),),
)
def variable_leads_nowhere(_snapshot: Snapshot, facts: Facts) -> Outcome | None:
    """An environment variable names a file, folder or program that does not exist."""
    frameworks, found = frameworks_in(facts.environment), {}
    for variable in relevant_variables(facts):
        row = variable.row
        if row.invalid != "ignored" and any(reads(row, each.name) for each in frameworks):
            continue  # it stops a framework, whose rule reports it
        fault = find_fault(variable, facts)
        if fault and (row.leads_to or any(option.leads_to for option in row.options)):
            found[variable.name] = fault
    once = list(found.values())
    if not once:
        return None
    names = [each.variable.name for each in once]
    worst: Status = "warn" if any(each.variable.row.weight == "warn" for each in once) else "note"
    return Outcome(
        status=worst,
        title=title_listing(names, _verb(names, " names a missing path", " name missing paths")),
        message=_sentences(once),
        evidence=tuple(setting_evidence(each.variable) for each in once[:_SHOWN]),
        decided_by="declared",
        sources=facts.matrix.cite(*(each.variable.row for each in once)),
        fixes=unset([each.variable for each in once]),
    )


@rule(layer="library", arises=_any_is_set)
def variable_costs_speed(snapshot: Snapshot, facts: Facts) -> Outcome | None:
    """An environment variable slows programs down."""
    found = _with_effects(facts, ("speed", "memory", "output"), (" can slow programs down",) * 2)
    if found and lines_with("place-looked-for", snapshot.observed_errors):  # debugging, with the switches for it
        return msgspec.structs.replace(found, status="note", fixes=())
    return found


@rule(layer="library", arises=_any_is_set)
def variable_changes_results(_snapshot: Snapshot, facts: Facts) -> Outcome | None:
    """An environment variable changes numerical results."""
    return _with_effects(
        facts, ("precision", "correctness"), (" changes numerical results", " change numerical results")
    )


def _verb(names: Sequence[str], one: str, several: str) -> str:
    return one if len(set(names)) == 1 else several


def _with_effects(facts: Facts, kinds: Sequence[str], does: tuple[str, str]) -> Outcome | None:
    pairs = [(each, effect) for each in relevant_variables(facts) for effect in effects(each.row, each.value, kinds)]
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
        evidence=tuple(setting_evidence(each) for each, _ in found[:_SHOWN]),
        decided_by="declared",
        sources=facts.matrix.cite(*(each.row for each, _ in found)),
        fixes=unset(worst) if status == "warn" else (),
    )
