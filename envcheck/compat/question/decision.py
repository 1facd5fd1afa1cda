"""What a question comes to: what the relations say, families narrowed to releases, and no build chosen by accident."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from envcheck.compat.fit import Fit, FitVerdict
from envcheck.compat.question.families import MOST_WORK, choose
from envcheck.compat.question.forward import NAME as FORWARD
from envcheck.compat.question.judgement import Judgement, overall, summary
from envcheck.compat.question.judging import judge
from envcheck.compat.question.names import PLATFORM, canonical
from envcheck.compat.question.question import Question
from envcheck.compat.question.reading import read_question
from envcheck.compat.tables import Tables
from envcheck.components import Bound, Component


class Decision(NamedTuple):
    """Everything that was judged, and what it makes together."""

    question: Question
    judgements: tuple[Judgement, ...]
    objections: tuple[Judgement, ...] = ()
    """What speaks against it, and a change would have to mend."""
    members: Mapping[str, str] = MappingProxyType({})
    """Of families, the members with which it fits, by canonical name."""

    @property
    def verdict(self) -> FitVerdict:
        return overall(judgement.fit for judgement in self.judgements)


def decide(tables: Tables, components: Sequence[Component], most: int = MOST_WORK) -> Decision:
    """Judge a question; raise UsageError for what no question can be made of.

    ``most`` is what may be spent on trying members of families.
    """
    decision = _narrowed(tables, components, most)
    if decision.verdict != "compatible":
        return decision
    left_out, objections = _without_one(tables, decision.question, components, most)
    doubts = [Judgement(about, _doubt(fit, left_out)) for about, fit in objections]
    return decision._replace(judgements=(*decision.judgements, *doubts), objections=objections)


def _narrowed(tables: Tables, components: Sequence[Component], most: int) -> Decision:
    question = read_question(tables, components)
    judgements = tuple(judge(tables, question))
    decision = Decision(question, judgements, _objections(judgements))
    choice = choose(tables, components, question, judgements, most) if decision.verdict == "unknown" else None
    if choice is None:
        return decision
    narrowed = read_question(tables, choice.components)
    return Decision(narrowed, choice.judgements, _objections(choice.judgements), choice.members)


def _objections(judgements: Sequence[Judgement]) -> tuple[Judgement, ...]:
    return tuple(judgement for judgement in judgements if judgement.fit.bad)


def _without_one(
    tables: Tables, question: Question, components: Sequence[Component], most: int
) -> tuple[str, tuple[Judgement, ...]]:
    """A component without which the rest does not fit: naming it chose another build than the one that is meant.

    A further component can only narrow a question, save for the package of forward compatibility.
    """
    if FORWARD in question.labels:
        return "", ()
    platform = [Component("os", (Bound("==", question.os),)), Component("machine", (Bound("==", question.machine),))]
    named = [component for component in components if canonical(component.name) not in PLATFORM]
    for place in range(len(named) if len(named) > 2 else 0):
        objections = _narrowed(tables, [*named[:place], *named[place + 1 :], *platform], most).objections
        if objections:
            return str(named[place]), objections
    return "", ()


def _doubt(fit: Fit, left_out: str) -> Fit:
    return summary(
        "unknown", f"were it not for {left_out}, another build would be meant, which does not fit: {fit.reason}", [fit]
    )
