"""Questions about compatibility: components by the names people use, answered by the relations and their rows."""

from __future__ import annotations

from collections.abc import Sequence

from envcheck.compat.matrix import Matrix
from envcheck.compat.question.candidates import TORCH, build_on_pypi
from envcheck.compat.question.decision import Decision, decide
from envcheck.compat.question.judging import ASSUMED as ENGINE_ASSUMED
from envcheck.compat.question.judging import ENGINE
from envcheck.compat.question.question import Answer, Reason
from envcheck.compat.question.suggest import suggest, superseded
from envcheck.compat.relations.fit import FitVerdict
from envcheck.components import Component

_ORDER: tuple[FitVerdict, ...] = ("incompatible", "unknown", "compatible")


def ask(matrix: Matrix, components: Sequence[Component]) -> Answer:
    """Whether ``components`` fit together; raise UsageError for what no question can be made of."""
    decision = decide(matrix, components)
    fits = [judgement.fit for judgement in decision.judgements]
    reasons = [Reason(verdict=fit.verdict, message=fit.reason, sources=fit.sources) for fit in fits]
    return Answer(
        verdict=decision.verdict,
        reasons=tuple(sorted(dict.fromkeys(reasons), key=lambda reason: _ORDER.index(reason.verdict))),
        suggestions=(*suggest(matrix, components, decision), *superseded(matrix, decision.question)),
        assumed=_assumed(matrix, decision),
    )


def _assumed(matrix: Matrix, decision: Decision) -> dict[str, str]:
    """What was taken for granted, by component."""
    question = decision.question
    assumed = {**question.assumed, **decision.members}
    build = build_on_pypi(matrix, question)
    if build:
        assumed[TORCH] = build
    if ENGINE in question.versions:
        assumed[ENGINE] = ENGINE_ASSUMED
    return assumed
