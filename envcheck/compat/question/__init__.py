"""Questions about compatibility: components by the names people use, answered by the relations and their rows."""

from __future__ import annotations

from collections.abc import Sequence

from envcheck.compat.question.answer import Answer, Reason
from envcheck.compat.question.judgement import overall
from envcheck.compat.question.judging import judge
from envcheck.compat.question.reading import read_question
from envcheck.compat.question.suggest import suggest, superseded
from envcheck.compat.tables import Tables
from envcheck.components import Component

_ORDER = ("incompatible", "unknown", "compatible")


def ask(tables: Tables, components: Sequence[Component]) -> Answer:
    """Whether ``components`` fit together; raise UsageError for what no question can be made of."""
    question = read_question(tables, components)
    judgements = judge(tables, question)
    fits = [judgement.fit for judgement in judgements]
    verdict = overall(fits)
    changes = suggest(tables, components, question, judgements) if verdict == "incompatible" else ()
    reasons = [Reason(verdict=fit.verdict, message=fit.reason, sources=fit.sources) for fit in fits]
    return Answer(
        verdict=verdict,
        reasons=tuple(sorted(dict.fromkeys(reasons), key=lambda reason: _ORDER.index(reason.verdict))),
        suggestions=(*changes, *superseded(tables, question)),
        assumed=dict(question.assumed),
    )
