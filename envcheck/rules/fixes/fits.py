"""What rules say of a Fit, the answer of a relation."""

from __future__ import annotations

from envcheck.checks import DecidedBy, Evidence, Fix, Status
from envcheck.compat.relations.fit import Fit
from envcheck.rules.api import Outcome


def sentence(reason: str) -> str:
    """A Fit's reason as a sentence of its own."""
    return f"{reason[:1].upper()}{reason[1:]}."


def not_known(title: str, fit: Fit) -> Outcome:
    """The matrix does not say whether the components fit."""
    return Outcome(status="unknown", title=title, message=fit.reason)


def by_confidence(worst: Status, fit: Fit) -> Status:
    """``worst``, of which a weak row leaves no more than a warning; it never makes anything worse."""
    return "warn" if worst == "fail" and fit.confidence == "weak" else worst


def does_not_fit(
    title: str,
    fit: Fit,
    *,
    evidence: tuple[Evidence, ...],
    fixes: tuple[Fix, ...],
    worst: Status = "fail",
    more: str = "",
    decided_by: DecidedBy = "inferred",
) -> Outcome:
    """The components do not fit: ``worst``, or at most a warning where the rows that say so are weak."""
    return Outcome(
        status=by_confidence(worst, fit),
        title=title,
        message=f"{sentence(fit.reason)}{more}",
        evidence=evidence,
        fixes=fixes,
        sources=fit.sources,
        confidence=fit.confidence,
        decided_by=decided_by,
    )
