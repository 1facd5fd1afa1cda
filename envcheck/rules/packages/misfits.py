"""Packages that do not work together, and the outcome that lists them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from envcheck.model.checks import STATUSES, Evidence, Fix, Source, Status
from envcheck.rules.api import Outcome

_SHOWN = 8


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
