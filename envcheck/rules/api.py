"""What a rule consists of: its declaration, the facts it judges by, and the outcomes it may return.

A rule judges one subject by the facts. The name of its function, with dashes, is the name of the problem.

    @rule(layer="gpu", needs=("gpu.row_remap.pending",))
    def row_remap_pending(gpu: Gpu, facts: Facts) -> Outcome | None:
        '''Row remapping is waiting for a reset.'''
        …

Its page is ``docs/rules/row-remap-pending.md``. It returns an ``Outcome``, or ``None`` if the question does not arise.
It never sees a missing need: the evaluator answers ``unknown`` or ``skipped`` first. Where that answer would be noise
(a CPU build has no CUDA version to miss), ``arises`` returns False before the needs are checked. ``matrix/errors.toml``
holds the error lines that name the problem: ``Rule.says``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Literal, TypeAlias, TypeVar

import msgspec

from envcheck.knowledge.load import load_matrix
from envcheck.knowledge.relations.fit import Fit
from envcheck.knowledge.tables.messages import ErrorRow
from envcheck.model.checks import Confidence, DecidedBy, Evidence, Figure, Fix, Layer, Missing, Scope, Source, Status
from envcheck.model.snapshot import Record
from envcheck.rules.documentation import page_of, sources_of, title_and_sections
from envcheck.rules.known_facts import DRIVERS_FOR_GUESTS as DRIVERS_FOR_GUESTS  # noqa: PLC0414  part of this interface
from envcheck.rules.known_facts import Facts as Facts  # noqa: PLC0414  part of this interface
from envcheck.rules.known_facts import KnownGpus as KnownGpus  # noqa: PLC0414  part of this interface
from envcheck.rules.known_facts import MeasurementSubject as MeasurementSubject  # noqa: PLC0414  part of this interface
from envcheck.rules.known_facts import Subject as Subject  # noqa: PLC0414  part of this interface

Per: TypeAlias = Literal["machine", "gpu", "environment", "framework", "measurement"]
Action: TypeAlias = Literal["none", "reset", "reboot", "drain", "replace"]


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What a rule concludes for one subject."""

    status: Status
    title: str = ""  # Left out, that of the problem
    message: str = ""
    evidence: tuple[Evidence | None, ...] = ()  # What decided it; None in the place of a fact that is not known
    figure: Figure | None = None  # The measured figure that it judges
    fixes: tuple[Fix, ...] = ()
    sources: tuple[Source, ...] = ()
    decided_by: DecidedBy | None = None  # Left out, what decides the rule's outcomes; of an open one, inference
    confidence: Confidence = "high"
    action: Action = "none"
    missing: tuple[Missing, ...] = ()  # The facts that would decide an ``unknown`` or ``skipped`` outcome
    frameworks: tuple[str, ...] = ()  # Names of the affected frameworks, if not all of the environment are
    layer: Layer | None = None  # The layer that it is about, if not the rule's


def passed(
    title: str, *evidence: Evidence | None, decided_by: DecidedBy | None = None, figure: Figure | None = None
) -> Outcome:
    return Outcome(status="pass", title=title, evidence=evidence, decided_by=decided_by, figure=figure)


failure = partial(Outcome, status="fail")
warning = partial(Outcome, status="warn")
note = partial(Outcome, status="note")


def evidence_of(what: str, record: Record, field: str) -> Evidence:
    value = getattr(record, field)
    if isinstance(value, tuple) and all(isinstance(part, str) for part in value):
        value = " ".join(value)
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return Evidence(what, text, record.source_of(field))


def if_known(what: str, record: Record | None, field: str) -> Evidence | None:
    """The same where the record is there and has the field."""
    return evidence_of(what, record, field) if record is not None and getattr(record, field) is not None else None


S = TypeVar("S", bound=Subject)
RuleFunction: TypeAlias = Callable[[Any, Facts], Outcome | None]
Condition: TypeAlias = Callable[[Any, Facts], bool]
Remedy: TypeAlias = Callable[[Facts], tuple[Fix, ...]]
Doubt: TypeAlias = Callable[[Facts], Outcome | None]

EVERYTHING = ("*",)  # ``explains`` of a rule whose finding accounts for every other finding about its environment


def never(_subject: object, _facts: Facts) -> bool:
    """``arises`` of a rule that only error lines can prove."""
    return False


def elsewhere(_subject: object, _facts: Facts) -> bool:
    """``arises`` of the page of findings that ``envcheck/pipeline`` makes: of a plan, an option, a configuration."""
    return False


_SCOPES: dict[Layer, Scope] = {
    "gpu": "node", "kernel": "node", "driver": "node", "fabric": "node", "container": "container",
}  # fmt: skip
"""The scope of a layer; of any other ``env``."""
_PER: dict[str, Per] = {
    "Snapshot": "machine", "Gpu": "gpu", "Environment": "environment", "Framework": "framework",
    "MeasurementSubject": "measurement",
}  # fmt: skip
"""By the type of a function's first argument, as it is written: annotations are not evaluated."""
FIRST_RELEASE = "0.1"  # The rules of this minor release were never new to anybody


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """A rule's declaration; as a decorator it takes the function that judges a subject."""

    layer: Layer
    scope: Scope = ""  # type: ignore[assignment]
    """Which ``--scope`` selects it; left out, that of its layer."""
    per: Per = "machine"  # What its subject is; of a decorated function, by the type of the first argument
    decided_by: DecidedBy = "inferred"  # What decides its outcomes, unless one says it itself, or is open
    ground: str = ""
    """What the verdict stands on that this rule judges: ``GPUs``, ``driver``, ``framework`` (each by its name). While
    it cannot be decided, only a failure is a verdict. Empty: the verdict does not wait for it."""
    on_request: bool = False
    """Whether it answers what an option asked for (``--deep``): while it is unknown there is no verdict, not even a
    warning. That it passed decides nothing."""
    always: bool = False  # Whether it runs whatever scopes and rules are selected: it tells what others could not see
    by_variable: Condition | None = None
    """Whether a variable of the user's leads to what it would find about the machine; such a finding is in the scope
    ``env`` too."""
    symptom: bool = False
    """Whether it finds an effect and not a cause: any failure of the same framework or its environment, and whatever
    keeps CUDA from starting, explains it."""

    since: str = FIRST_RELEASE
    """The minor release of envcheck that brought it. Until the next one its failures are warnings, so that an update
    breaks no pipeline."""

    arises: Condition | None = None  # Whether the question arises for a subject; checked first
    proof: RuleFunction | None = None  # An observation that decides the question before the needs are checked
    needs: tuple[str, ...] = ()
    """Paths that must be known: ``driver.release``, ``gpu.ecc`` (of the subject), ``framework.gpu_code``."""
    doubt: Doubt | None = None
    """The outcome of an error line that names the problem without proving it; None where it does prove it."""
    remedy: Remedy | tuple[Fix, ...] = ()  # The fixes where the outcome has none, or a function that gives them

    explains: tuple[str, ...] = ()  # Names of the rules whose findings are consequences of this one's
    explains_failing: tuple[str, ...] = ()  # Further consequences of its failures, but not of its warnings
    told_by: tuple[str, ...] = ()
    """The rules that report the same fault more fully; they explain it where they name the same packages (or files)."""
    yields_to: tuple[str, ...] = ()
    """Names of the rules whose findings on the same subject, or the machine, suppress its own; ``EVERYTHING``: any."""

    name: str = ""
    title: str = ""  # The problem in a sentence, without a full stop
    function: RuleFunction = lambda _subject, _facts: None

    def __post_init__(self) -> None:
        if not str(self.scope):
            msgspec.structs.force_setattr(self, "scope", _SCOPES.get(self.layer, "env"))

    def __call__(self, function: Callable[[S, Facts], Outcome | None]) -> Rule:
        """The rule that the function judges for, by its name and title (``python -OO`` drops the docstring)."""
        name = function.__name__.replace("_", "-")
        title = (function.__doc__ or title_and_sections(page_of(name))[0]).rstrip(".")
        per = _PER[next(iter(function.__annotations__.values()))]
        return msgspec.structs.replace(self, name=name, title=title, per=per, function=function)

    def remedies(self, facts: Facts) -> tuple[Fix, ...]:
        """The fixes for an outcome that has none of its own."""
        return self.remedy(facts) if callable(self.remedy) else self.remedy

    def is_in_scope(self, scopes: frozenset[Scope]) -> bool:
        return self.always or self.scope in scopes

    def may_be_asked(self, scopes: frozenset[Scope]) -> bool:
        """Whether there are facts by which it is in scope."""
        return self.is_in_scope(scopes) or (self.by_variable is not None and "env" in scopes)

    def is_asked(self, scopes: frozenset[Scope], facts: Facts) -> bool:
        """Whether these facts put it in scope."""
        by_variable = self.by_variable if "env" in scopes else None
        return self.is_in_scope(scopes) or (by_variable is not None and by_variable(facts.snapshot, facts))

    @property
    def required(self) -> bool:
        """Whether the verdict waits for it."""
        return bool(self.ground)

    @property
    def says(self) -> tuple[ErrorRow, ...]:
        """The rows of the matrix with the error lines, codes and kernel events that name this problem."""
        return tuple(row for row in load_matrix().errors if row.problem == self.name)

    @property
    def sources(self) -> tuple[Source, ...]:
        """What its page cites."""
        return tuple(Source(title=title, address=address) for title, address in sources_of(self.name))


def sentence(reason: str) -> str:
    """A Fit's reason as a full sentence."""
    return f"{reason[:1].upper()}{reason[1:]}."


def not_known(title: str, fit: Fit) -> Outcome:
    """The outcome where the matrix does not say whether the components fit."""
    return Outcome(status="unknown", title=title, message=fit.reason)


def limit_by_confidence(worst: Status, fit: Fit) -> Status:
    """``worst``, lowered from a failure to a warning where the deciding row is weak."""
    return "warn" if worst == "fail" and fit.confidence == "weak" else worst


def incompatible(
    title: str,
    fit: Fit,
    *,
    evidence: tuple[Evidence | None, ...],
    fixes: tuple[Fix, ...],
    worst: Status = "fail",
    more: str = "",
    decided_by: DecidedBy | None = None,
) -> Outcome:
    """The outcome for components that do not fit: ``worst``, or a warning at most where the deciding rows are weak."""
    return Outcome(
        status=limit_by_confidence(worst, fit),
        title=title,
        message=f"{sentence(fit.reason)}{more}",
        evidence=evidence,
        fixes=fixes,
        sources=fit.sources,
        confidence=fit.confidence,
        decided_by=decided_by,
    )


rule = Rule
