"""Turn a Fit, the answer of a relation, into an outcome, and packages that do not work together into one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from envcheck.knowledge.relations.fit import Fit
from envcheck.model.checks import STATUSES, DecidedBy, Evidence, Fix, Source, Status
from envcheck.rules.api import Outcome

_SHOWN = 8


def sentence(reason: str) -> str:
    """A Fit's reason as a full sentence."""
    return f"{reason[:1].upper()}{reason[1:]}."


def not_known(title: str, fit: Fit) -> Outcome:
    """The outcome where the matrix does not say whether the components fit."""
    return Outcome(status="unknown", title=title, message=fit.reason)


def limit_by_confidence(worst: Status, fit: Fit) -> Status:
    """``worst``, lowered from a failure to a warning where the deciding row is weak."""
    return "warn" if worst == "fail" and fit.confidence == "weak" else worst


class Misfit(NamedTuple):
    """A package that does not work with another installed package."""

    name: str
    reason: str
    evidence: tuple[Evidence, ...]
    status: Status
    sources: tuple[Source, ...] = ()
    wanted: str = ""
    """The versions of the other package that it works with."""


def worst_first(found: Iterable[Misfit]) -> list[Misfit]:
    return sorted(found, key=lambda each: STATUSES.index(each.status))


def incompatible_packages(
    found: Sequence[Misfit],
    title: str,
    fixes: tuple[Fix, ...],
    *about: Evidence,
    status: Status | None = None,
    frameworks: tuple[str, ...] = (),
) -> Outcome:
    """The outcome for packages that do not work together, worst first; it has the status of the worst."""
    shown = found[:_SHOWN]
    return Outcome(
        status=status or found[0].status,
        title=title,
        message=" ".join(f"{each.reason}." for each in shown),
        evidence=tuple(dict.fromkeys((*about, *(part for each in shown for part in each.evidence)))),
        sources=tuple(dict.fromkeys(source for each in found for source in each.sources)),
        decided_by="declared",
        fixes=fixes,
        frameworks=frameworks,
    )


def incompatible(
    title: str,
    fit: Fit,
    *,
    evidence: tuple[Evidence, ...],
    fixes: tuple[Fix, ...],
    worst: Status = "fail",
    more: str = "",
    decided_by: DecidedBy = "inferred",
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
