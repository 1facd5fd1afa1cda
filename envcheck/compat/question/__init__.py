"""Questions about compatibility: components by the names people use, answered by the relations and their rows."""

from __future__ import annotations

from collections.abc import Sequence

from envcheck.compat.fit import Fit, FitVerdict
from envcheck.compat.question.answer import Answer, Reason
from envcheck.compat.question.engine import ASSUMED as ENGINE_ASSUMED
from envcheck.compat.question.engine import NAME as ENGINE
from envcheck.compat.question.forward import NAME as FORWARD
from envcheck.compat.question.judgement import Judgement, overall
from envcheck.compat.question.judging import judge
from envcheck.compat.question.names import PLATFORM, canonical
from envcheck.compat.question.question import Question
from envcheck.compat.question.reading import read_question
from envcheck.compat.question.suggest import suggest, superseded
from envcheck.compat.question.torch import NAME as TORCH
from envcheck.compat.question.torch import build_on_pypi
from envcheck.compat.tables import Tables
from envcheck.components import Bound, Component

_ORDER: tuple[FitVerdict, ...] = ("incompatible", "unknown", "compatible")


def ask(tables: Tables, components: Sequence[Component]) -> Answer:
    """Whether ``components`` fit together; raise UsageError for what no question can be made of."""
    question = read_question(tables, components)
    judgements = judge(tables, question)
    objections = [judgement for judgement in judgements if judgement.fit.bad]
    if overall(judgement.fit for judgement in judgements) == "compatible":
        left_out, objections = _without_one(tables, question, components)
        judgements += [Judgement(about, _doubt(fit, left_out)) for about, fit in objections]
    build = build_on_pypi(tables, question)
    fits = [judgement.fit for judgement in judgements]
    reasons = [Reason(verdict=fit.verdict, message=fit.reason, sources=fit.sources) for fit in fits]
    return Answer(
        verdict=overall(fits),
        reasons=tuple(sorted(dict.fromkeys(reasons), key=lambda reason: _ORDER.index(reason.verdict))),
        suggestions=(*suggest(tables, components, question, objections), *superseded(tables, question)),
        assumed=_assumed(question, build),
    )


def _assumed(question: Question, build: str | None) -> dict[str, str]:
    """What was taken for granted, by component."""
    assumed = dict(question.assumed)
    if build:
        assumed[TORCH] = build
    if ENGINE in question.versions:
        assumed[ENGINE] = ENGINE_ASSUMED
    return assumed


def _without_one(tables: Tables, question: Question, components: Sequence[Component]) -> tuple[str, list[Judgement]]:
    """A component without which the rest does not fit: naming it chose another build than the one that is meant.

    A further component can only narrow a question, save for the package of forward compatibility.
    """
    if FORWARD in question.labels:
        return "", []
    platform = [Component("os", (Bound("==", question.os),)), Component("machine", (Bound("==", question.machine),))]
    named = [component for component in components if canonical(component.name) not in PLATFORM]
    for place in range(len(named) if len(named) > 2 else 0):
        rest = [*named[:place], *named[place + 1 :], *platform]
        objections = [judgement for judgement in judge(tables, read_question(tables, rest)) if judgement.fit.bad]
        if objections:
            return str(named[place]), objections
    return "", []


def _doubt(fit: Fit, left_out: str) -> Fit:
    reason = f"were it not for {left_out}, another build would be meant, which does not fit: {fit.reason}"
    return Fit(verdict="unknown", reason=reason, rows=fit.rows, sources=fit.sources)
