"""The environment variables that the matrix knows: which are set, to what, and what is wrong."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from envcheck.knowledge.relations.variables import effects, holds_for, leads_to, reads, shown, wrong
from envcheck.knowledge.tables.environment import VariableEffect, VariableRow
from envcheck.model.checks import DecidedBy, Evidence, Fix, Status
from envcheck.model.snapshot import Measurement
from envcheck.rules.api import Facts, Outcome
from envcheck.rules.facts.machine import and_more
from envcheck.text.lazy import lazy_pattern

VISIBLE = "CUDA_VISIBLE_DEVICES"
EVERYTHING = ("cuda", "nccl", "loader", "python")  # Readers of variables that are not frameworks
_WORDS = {"file": "a file", "folder": "a folder", "program": "a program"}
_SERVES: dict[str, tuple[str, ...]] = {"file": ("file", "program"), "folder": ("folder",), "program": ("program",)}
_MASK = "***"
_NAME = lazy_pattern(r"[A-Za-z_][A-Za-z0-9_]{0,80}")

_LONGEST_TITLE = 80
BY_VARIABLE = ("variable-costs-speed", "variable-changes-results")
"""The rules whose findings explain a low figure that names a variable which is set."""


class SetVariable(NamedTuple):
    """A variable that is set, with a row about it."""

    row: VariableRow
    value: str

    @property
    def name(self) -> str:
        return self.row.name

    @property
    def evidence(self) -> Evidence:
        return setting_evidence(self.name, shown(self.value))


class VariableFault(NamedTuple):
    """A problem of a variable's value."""

    variable: SetVariable
    text: str
    stops: bool = True  # Whether the reader fails because of it; otherwise the value is valid and hides the GPU from it


def set_variables(facts: Facts) -> Iterator[SetVariable]:
    """The variables that are set and that the matrix knows, each once for every row about it."""
    values = facts.variables.values
    for row in facts.matrix.variables:
        value = values.get(row.name)
        if value is not None and value != _MASK:
            yield SetVariable(row, value)


def relevant_variables(facts: Facts) -> Iterator[SetVariable]:
    """The set variables that any program reads, or a framework of the judged environment."""
    frameworks = facts.frameworks
    counted = facts.driver.cuda_devices
    gpus, listing = max(1, len(facts.own_gpus) if counted is None else counted), facts.snapshot.gpus
    for variable in set_variables(facts):
        row = variable.row
        uncounted = facts.complains_of_speed and not (listing and listing.complete)
        general = any(reads(row, name) for name in EVERYTHING)
        mine = any(reads(row, each.name) and holds_for(row.versions, each.version) for each in frameworks)
        mine |= uncounted and not frameworks  # a text that names no framework does not tell that none is there
        if (general or mine) and (gpus >= row.gpus or uncounted):
            yield variable


def find_fault(variable: SetVariable, facts: Facts, version: str | None = None) -> VariableFault | None:
    """What is wrong with the value, or with the file or folder that it names."""
    text = wrong(variable.row, variable.value, version)
    if text:
        return VariableFault(variable, text)
    there = {path.path: path.leads_to for path in facts.variables.paths or ()}
    for path, wanted in leads_to(variable.row, variable.value):
        found = there.get(path, "unknown")
        if found == "nothing":
            return VariableFault(variable, f"there is nothing at {path}")
        if found != "unknown" and found not in _SERVES[wanted]:
            return VariableFault(variable, f"{path} is not {_WORDS[wanted]}")
    return None


def setting_evidence(name: str, value: str) -> Evidence:
    return Evidence(name, value or "(empty)", "environment")


def title_listing(names: Sequence[str], after: str) -> str:
    """A title with as many names as fit, and the number of the rest; a name that is too long is shortened."""
    once = list(dict.fromkeys(names))
    for number in range(len(once), 0, -1):
        rest = and_more(once, number)
        title = f"{', '.join(once[:number])}{rest}{after}"
        if len(title) <= _LONGEST_TITLE:
            return title
    first, equals, _ = once[0].partition("=")
    rest = and_more(once)
    room = _LONGEST_TITLE - len(rest) - len(after)
    short = f"{first}{equals}…" if equals else first
    kept = short if len(short) <= room else f"{first[: max(1, room - 1)]}…"
    title = f"{kept}{rest}{after}"
    return title if len(title) <= _LONGEST_TITLE else f"{title[: _LONGEST_TITLE - 1].rpartition(' ')[0]}…"


def unset(variables: Sequence[SetVariable]) -> tuple[Fix, ...]:
    """How to change each, and a command that starts a program without them."""
    names = list(dict.fromkeys(each.name for each in variables if _NAME.fullmatch(each.name)))
    changes = dict.fromkeys(each.row.change for each in variables if each.row.change)
    words = [word for name in names for word in ("-u", name)]
    return (Fix(" ".join(changes) or f"Unset {', '.join(names)}", command=("env", *words, "python")),) if names else ()


def finding(
    status: Status,
    title: str,
    found: Sequence[VariableFault],
    facts: Facts,
    *more: Evidence | None,
    decided_by: DecidedBy = "declared",
) -> Outcome:
    """The outcome for variables that are set, each with what is wrong with it or what it does."""
    variables = [each.variable for each in found]
    return Outcome(
        status=status,
        title=title,
        message=" ".join(f"{each.variable.name}: {each.text}." for each in found),
        evidence=(*(each.evidence for each in variables), *more),
        decided_by=decided_by,
        sources=facts.matrix.cite(*(each.row for each in variables)),
        fixes=unset(variables),
    )


def slowing_variables(measured: Measurement, facts: Facts) -> tuple[tuple[SetVariable, VariableEffect], ...]:
    """The variables that can explain a low figure."""
    figures = {measured.name, f"{measured.name}/{measured.precision}" if measured.precision else measured.name}
    # Each variable of NCCL that lowers speed lowers that of all its operations.
    return tuple(
        (variable, effect)
        for variable in relevant_variables(facts)
        for effect in effects(variable.row, variable.value, ("speed", "precision"))
        if figures & set(effect.figures)
        or (measured.collective is not None and effect.on == "speed" and "nccl" in variable.row.reader)
    )
