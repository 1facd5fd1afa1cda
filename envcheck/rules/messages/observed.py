"""Problems that error lines and statuses of the driver's libraries name: they are more certain than inferences."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import NamedTuple

from envcheck.knowledge.error_lines import ErrorLine, event, matches_fragment, named_beside
from envcheck.knowledge.load import load_matrix
from envcheck.knowledge.relations.variables import said_by
from envcheck.knowledge.tables.messages import AnswerRow
from envcheck.model.checks import STATUSES, Evidence
from envcheck.model.snapshot import ApiResult, Incident, KernelMessage, ObservedError
from envcheck.rules.api import Facts
from envcheck.rules.messages.refine import refine
from envcheck.text.lazy import lazy_pattern

NOT_LOADABLE = -1  # The code of a call that failed because its library could not be loaded
_NOT_LOADED = AnswerRow(
    source=(), api="cuda", code=NOT_LOADABLE, problem="driver-not-installed", meaning="its library cannot be loaded"
)


def meaning_of(result: ApiResult) -> AnswerRow | None:
    """The meaning of a failed call; None for success and for a status that the matrix does not know."""
    if result.code == NOT_LOADABLE:
        return _NOT_LOADED
    return _by_status().get(("nvml" if result.call.lower().startswith("nvml") else "cuda", result.code))


@cache
def _by_status() -> dict[tuple[str, int], AnswerRow]:
    return {(row.api, row.code): row for row in load_matrix().answers}


def answers(facts: Facts) -> tuple[ApiResult, ...]:
    """The results of initializing the driver's libraries and counting devices."""
    given = (facts.driver.cuda_init, facts.driver.cuda_device_count, facts.driver.nvml)
    return tuple(result for result in given if result is not None)


def results_naming(problem: str, results: Iterable[ApiResult]) -> tuple[ApiResult, ...]:
    """The failed calls that ``problem`` explains."""
    return tuple(result for result in results if (error := meaning_of(result)) and error.problem == problem)


def refusals(problem: str, facts: Facts) -> tuple[Evidence, ...]:
    """The failures of initializing the driver's libraries that ``problem`` explains, as evidence."""
    return tuple(map(call_evidence, results_naming(problem, answers(facts))))


def call_evidence(result: ApiResult) -> Evidence:
    status = " ".join(part for part in (str(result.code), result.name) if part) if result.code else "0"
    return Evidence(result.call, status, result.library or result.source)


_SHOWN = 160  # Characters of an error line that are quoted
_RAISED = lazy_pattern(r"\s{0,8}(?:[A-Za-z_][\w.]{0,80}\.)?[A-Z]\w{0,60}(?:Error|Exception|Warning)\b: ")


class ObservedProblem(NamedTuple):
    """A problem that error lines name."""

    line: ErrorLine
    evidence: tuple[Evidence, ...]


def observed_problems(facts: Facts, *, refined: bool = False) -> tuple[ObservedProblem, ...]:
    """The problems that lines of pasted text name, each once with its lines.

    Where ``refined``, a missing library is distinguished from one for another CUDA version. Of exceptions that Python
    chains, those after the first that names a problem are its consequences.
    """
    found: dict[str, tuple[ErrorLine, list[Evidence]]] = {}
    consequence = False
    texts = [each.text for each in facts.snapshot.observed_errors]
    for error in facts.snapshot.observed_errors:
        if matches_fragment("exception-chained", error.text):
            consequence = bool(found)
            continue
        line = named_beside(error.text, texts)
        if line is None and refined:  # a framework may have rejected the value of a variable
            row = next((row for row in facts.matrix.variables if said_by(row, error.text, is_set=False)), None)
            line = ErrorLine("variable-stops-framework", row.name, "framework-ran") if row else None
        if line is None:
            continue
        if consequence and _RAISED.match(error.text) and line.problem not in found:
            continue
        line = refine(line, error.text, facts) if refined else line
        if line is None:
            continue
        if line.costs_speed and line.status == "note" and facts.complains_of_speed:
            line = line._replace(status="warn")
        shown = line_evidence(error)
        known, evidence = found.setdefault(line.problem, (line, []))
        if STATUSES.index(line.status) < STATUSES.index(known.status):
            found[line.problem] = (line, evidence)
        if shown not in evidence:
            evidence.append(shown)
    aside = any(matches_fragment("fails-otherwise", text) for text in texts)
    problems = []
    for line, evidence in found.values():
        if not found.keys() & {*line.after}:
            # Beside another failure it is only a remark, where nothing but the runtime's log speaks of it.
            logged = aside and all(matches_fragment("logged-without-gpu", each.value) for each in evidence)
            problems.append(ObservedProblem(line._replace(status="note") if logged else line, tuple(evidence)))
    return tuple(problems)


def tells_of(facts: Facts, *problems: str) -> bool:
    """Whether a line of the text names one of the problems."""
    return any(observed.line.problem in problems for observed in observed_problems(facts))


_FRAME = lazy_pattern(r'\bFile "[^"]{0,300}[/\\](?:site|dist)-packages[/\\](\w{1,60})[/\\]')
"""A line of a traceback that lies in an installed package, by the name that is imported."""


def ends_in(facts: Facts) -> str | None:
    """The package in which the last traceback of the text ends."""
    frames = [error.text for error in facts.snapshot.observed_errors if _FRAME.search(error.text)]
    own = [text for text in frames if not matches_fragment("call-passed-on", text)] or frames
    return _FRAME.findall(own[-1])[-1] if own else None


def at_fault(facts: Facts) -> str:
    """What needs a library that the installed PyTorch does not bring."""
    package = ends_in(facts)
    return (
        f"{package}, in which the traceback ends," if package not in (None, "torch") else "the package in the traceback"
    )


def line_evidence(error: ObservedError, what: str = "error line") -> Evidence:
    place = f"{error.source or 'pasted text'}{f', line {error.line}' if error.line else ''}"
    return Evidence(what, (error.as_written or error.text).strip()[:_SHOWN], place)


def kernel_messages(problem: str, facts: Facts) -> tuple[KernelMessage, ...]:
    """The lines of the kernel log and DCGM's incidents that name ``problem``; they may predate the machine's present
    state.
    """
    log, dcgm = facts.kernel.log, facts.snapshot.dcgm
    messages = (*(log.messages if log else ()), *((dcgm.incidents or ()) if dcgm else ()))
    texts = [message.text for message in messages]
    found = []
    for message in messages:
        row = event(message.xid) if message.xid is not None else None
        named = row if row is not None and row.action != "see-text" else named_beside(message.text, texts)
        if named is not None and named.problem == problem:
            found.append(message)
    return tuple(found)


def kernel_evidence(message: KernelMessage) -> Evidence:
    """A line of the kernel log, or an incident of DCGM, as evidence."""
    return Evidence(
        "DCGM" if isinstance(message, Incident) else "kernel log",
        message.text.strip()[:_SHOWN],
        message.source or "kernel log",
    )
