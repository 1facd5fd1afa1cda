"""What a relation said about some of the named components, and how several such answers make one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import NamedTuple

import msgspec

from envcheck.compat.fit import WEAKEST_FIRST, Fit, FitVerdict, conclude
from envcheck.compat.tables import Row, Tables

_FEW = 2


class Judgement(NamedTuple):
    """A Fit, and the names of the components that it is about."""

    about: tuple[str, ...]
    """Two or more for a relation; one where a component itself is not known."""
    fit: Fit


def overall(fits: Iterable[Fit]) -> FitVerdict:
    """Incompatible if any is, else unknown if any is or there is none, else compatible."""
    verdicts = {fit.verdict for fit in fits}
    if "incompatible" in verdicts:
        return "incompatible"
    return "compatible" if verdicts == {"compatible"} else "unknown"


def agree(members: Sequence[tuple[str, Fit]], what: str) -> Fit:
    """One answer for all members of a family: theirs where they agree, else unknown with those that fit.

    ``what`` is the family as it was written: ``cuda==12``.
    """
    fits = [fit for _, fit in members]
    verdicts = {fit.verdict for fit in fits}
    if len(verdicts) == 1:
        return fits[-1]
    groups = (("yes for", "compatible"), ("no for", "incompatible"), ("not known for", "unknown"))
    parts = [f"{word} {_listed(members, verdict)}" for word, verdict in groups if verdict in verdicts]
    return summary("unknown", f"{what} leaves it open: {'; '.join(parts)}", fits)


def summary(verdict: FitVerdict, reason: str, fits: Iterable[Fit]) -> Fit:
    """One answer that rests on several, and cites what they cite."""
    resting = list(fits)
    return Fit(
        verdict=verdict,
        reason=reason,
        rows=tuple(dict.fromkeys(row for fit in resting for row in fit.rows)),
        sources=tuple(dict.fromkeys(source for fit in resting for source in fit.sources)),
    )


def _listed(members: Sequence[tuple[str, Fit]], verdict: FitVerdict) -> str:
    """The labels of a verdict; of those that follow each other, the ends."""
    runs = (
        [label for label, _ in run] for held, run in groupby(members, lambda item: item[1].verdict) if held == verdict
    )
    return ", ".join(f"{run[0]} to {run[-1]}" if len(run) > _FEW else ", ".join(run) for run in runs)


def soften(fit: Fit) -> Fit:
    """A weak source decides nothing."""
    if fit.confidence != "weak" or fit.verdict == "unknown":
        return fit
    reason = f"only a weak source says so, which decides nothing: {fit.reason}"
    return msgspec.structs.replace(fit, verdict="unknown", reason=reason)


def retell(tables: Tables, fit: Fit, reason: str, *rows: Row | None) -> Fit:
    """``fit`` in other words: as sure as it and as ``rows``, and citing both."""
    own = conclude(tables, fit.verdict, reason, *rows, change=fit.nearest_change)
    return msgspec.structs.replace(
        own,
        rows=tuple(dict.fromkeys((*own.rows, *fit.rows))),
        sources=tuple(dict.fromkeys((*own.sources, *fit.sources))),
        confidence=min(own.confidence, fit.confidence, key=WEAKEST_FIRST.index),
    )
