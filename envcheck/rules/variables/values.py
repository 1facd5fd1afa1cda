"""Environment variables that keep CUDA from starting, lead nowhere, or cost every program speed or precision."""

from __future__ import annotations

from collections.abc import Sequence

from envcheck.checks import Status
from envcheck.compat.relations.variables import effects, reads, shown
from envcheck.compat.tables import VariableEffect
from envcheck.rules.api import Facts, Outcome, rule
from envcheck.rules.facts.frameworks import frameworks_in
from envcheck.rules.facts.machine import driver_of
from envcheck.rules.facts.variables import (
    Fault,
    SetVariable,
    as_set,
    fault,
    of_everything,
    set_variables,
    titled,
    unset,
)
from envcheck.rules.messages.driver import shown as shown_call
from envcheck.snapshot import Framework, Snapshot

_SHOWN = 8


def _any_is_set(_snapshot: Snapshot, facts: Facts) -> bool:
    return any(True for _ in set_variables(facts))


def that_stop_cuda(facts: Facts) -> tuple[Fault, ...]:
    """The variables with which cuInit fails."""
    driver = driver_of(facts)
    failed = next((call for call in (driver.cuda_init, driver.cuda_device_count) if call and call.code != 0), None)
    if failed is None and driver.cuda_init is not None:
        return ()
    found = [fault(each, facts) for each in set_variables(facts) if each.row.invalid == "start"]
    codes = () if failed is None else (failed.code,)
    return tuple(each for each in found if each and (not codes or set(codes) & set(each.variable.row.codes)))


@rule(
    layer="container",
    scope="container",
    arises=_any_is_set,
    explains=("gpu-hidden", "gpu-init-failed", "no-gpu-visible"),
)
def variable_stops_cuda(_snapshot: Snapshot, facts: Facts) -> Outcome | None:
    """An environment variable keeps CUDA from starting.

    What it checks
        The variables that the driver reads when CUDA starts, against the values that it accepts, where
        cuInit fails with the status that an invalid value leads to, or was not called.
        CUDA_VISIBLE_DEVICES has a rule of its own: gpu-hidden.

    Why it matters
        With an invalid value cuInit fails in every program, as if the GPU or the driver were broken.

    How to fix
        Unset the variable, or set it to a valid value.

    Sources
        CUDA environment variables:
            https://docs.nvidia.com/cuda/cuda-programming-guide/05-appendices/environment-variables.html
    """
    found = that_stop_cuda(facts)
    if not found:
        return None
    driver = driver_of(facts)
    names = [each.variable.name for each in found]
    return Outcome(
        status="fail",
        title=titled("", names, _verb(names, " keeps", " keep") + " CUDA from starting"),
        message=_sentences(found),
        evidence=(
            *(as_set(each.variable) for each in found),
            *((shown_call(driver.cuda_init),) if driver.cuda_init is not None else ()),
        ),
        decided_by="driver-answered" if driver.cuda_init is not None else "inferred",
        sources=facts.tables.cite(*(each.variable.row for each in found)),
        fixes=unset([each.variable for each in found]),
    )


def _sentences(found: Sequence[Fault]) -> str:
    return " ".join(f"{each.variable.name}: {each.text}." for each in found)


@rule(layer="library", scope="env", arises=_any_is_set)
def variable_leads_nowhere(_snapshot: Snapshot, facts: Facts) -> Outcome | None:
    """An environment variable leads to a file, folder or program that does not exist.

    What it checks
        The variables that name a toolkit, a compiler, a library or a folder of modules (CUDA_HOME,
        LD_PRELOAD, PYTHONPATH …): that what they name exists and is of the right kind. Where that
        stops a framework, it is a finding about the framework (variable-stops-framework). Folders of
        PATH and LD_LIBRARY_PATH may be missing, and caches that are created when needed.

    Why it matters
        Programs look there first. Some then fail to compile or to load, some fall back to another
        copy, of another version, without a word.

    How to fix
        Correct the path, or unset the variable.

    Sources
        Linux manual, the dynamic loader: https://man7.org/linux/man-pages/man8/ld.so.8.html
        Python, environment variables: https://docs.python.org/3/using/cmdline.html
    """
    found = [each for variable in of_everything(facts) if (each := _lost(variable, facts))]
    once = list({each.variable.name: each for each in found}.values())
    if not once:
        return None
    names = [each.variable.name for each in once]
    worst: Status = "warn" if any(each.variable.row.weight == "warn" for each in once) else "note"
    return Outcome(
        status=worst,
        title=titled("", names, _verb(names, " leads", " lead") + " nowhere"),
        message=_sentences(once),
        evidence=tuple(as_set(each.variable) for each in once[:_SHOWN]),
        decided_by="declared",
        sources=facts.tables.cite(*(each.variable.row for each in once)),
        fixes=unset([each.variable for each in once]),
    )


def _lost(variable: SetVariable, facts: Facts) -> Fault | None:
    """A path that leads nowhere, unless a rule about the framework that it stops says so."""
    row = variable.row
    if row.invalid != "ignored" and any(reads(row, each.name) for each in _found(facts)):
        return None
    found = fault(variable, facts)
    return found if found and (row.leads_to or any(option.leads_to for option in row.options)) else None


def _found(facts: Facts) -> tuple[Framework, ...]:
    return frameworks_in(facts.environment)


@rule(layer="library", scope="env", arises=_any_is_set)
def variable_costs_speed(_snapshot: Snapshot, facts: Facts) -> Outcome | None:
    """An environment variable makes programs slower.

    What it checks
        The variables of the driver, CUDA's libraries and the frameworks here, against what is known of
        their values: debug switches, disabled caches and transports, serialized launches. Variables
        about several GPUs count only where several are visible.

    Why it matters
        Such a variable is often left over from debugging. Everything works, only slower, and nothing
        says so.

    How to fix
        Unset it, unless it is meant.

    Sources
        CUDA environment variables:
            https://docs.nvidia.com/cuda/cuda-programming-guide/05-appendices/environment-variables.html
        NCCL, environment variables: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html
    """
    return _told(facts, ("speed", "memory", "output"), (" can slow programs down",) * 2)


@rule(layer="library", scope="env", arises=_any_is_set)
def variable_changes_results(_snapshot: Snapshot, facts: Facts) -> Outcome | None:
    """An environment variable changes what programs compute.

    What it checks
        The variables of the driver, CUDA's libraries and the frameworks here, against what is known of
        their values: another precision of matrix products, checks that are switched off.

    Why it matters
        Results differ from those of the same program elsewhere, and no error is raised.

    How to fix
        Unset it, unless it is meant.

    Sources
        CUDA environment variables:
            https://docs.nvidia.com/cuda/cuda-programming-guide/05-appendices/environment-variables.html
    """
    return _told(
        facts, ("precision", "correctness"), (" changes what programs compute", " change what programs compute")
    )


def _verb(names: Sequence[str], one: str, several: str) -> str:
    return one if len(set(names)) == 1 else several


def _told(facts: Facts, kinds: Sequence[str], does: tuple[str, str]) -> Outcome | None:
    pairs = [(each, effect) for each in of_everything(facts) for effect in effects(each.row, each.value, kinds)]
    found = list({(each.name, effect.text): (each, effect) for each, effect in pairs}.values())
    found.sort(key=lambda pair: pair[1].status != "warn")
    if not found:
        return None
    status: Status = "warn" if any(effect.status == "warn" for _, effect in found) else "note"
    worst = [each for each, effect in found if effect.status == status]
    names = [f"{each.name}={shown(each.value)}" for each in worst]
    return Outcome(
        status=status,
        title=titled("", names, _verb(names, *does)),
        message=" ".join(dict.fromkeys(_sentence(each, effect) for each, effect in found)),
        evidence=tuple(as_set(each) for each, _ in found[:_SHOWN]),
        decided_by="declared",
        sources=facts.tables.cite(*(each.row for each, _ in found)),
        fixes=unset(worst) if status == "warn" else (),
    )


def _sentence(variable: SetVariable, effect: VariableEffect) -> str:
    return f"{variable.name}={shown(variable.value)}: {effect.text}."
