"""What needs one of several packages: whether any of them fits everything that was named."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec

from envcheck.compat.names import scheme
from envcheck.compat.question.candidates import Candidate, release_candidates
from envcheck.compat.question.question import Question, listed, overall, summary
from envcheck.compat.question.software import candidate_fits
from envcheck.compat.question.wheels import gpu_is_asked
from envcheck.compat.relations.fit import Fit
from envcheck.compat.specifier import parse_specifier
from envcheck.compat.tables import ReleaseRow


class _Member(NamedTuple):
    """One of the packages, in the newest release that would do."""

    name: str
    label: str
    fits: Sequence[Fit]


def one_of_fits(question: Question, candidate: Candidate) -> Iterator[Fit]:
    """For each group of which one package is enough: what the one says that fits best, and why others do not.

    A package that is named itself is asked as every other component, and stands for its group.
    """
    if not gpu_is_asked(question):
        return
    for row in candidate.rows:
        for group in row.one_of:
            if not set(group) & question.versions.keys():
                yield from _group_fits(question, candidate, row, group)


def _group_fits(question: Question, candidate: Candidate, row: ReleaseRow, group: Sequence[str]) -> Iterator[Fit]:
    members = [member for name in group if (member := _member(question, row, name)) and member.fits]
    if not members:
        return
    best = min(members, key=lambda member: _rank(member.fits))
    others = [member for member in members if member is not best and overall(member.fits) == "incompatible"]
    if overall(best.fits) == "incompatible":
        reasons = "; ".join(dict.fromkeys(_refusal(member).reason for member in members))
        reason = f"{candidate.label} needs {listed([member.label for member in members], 'or')}: {reasons}"
        refusal = _refusal(best)
        joined = summary("incompatible", reason, [_refusal(member) for member in members])
        yield msgspec.structs.replace(
            joined, nearest_change=refusal.nearest_change, about=_about(candidate, best, refusal)
        )
        return
    for number, fit in enumerate(best.fits):
        reason = f"{candidate.label} with {best.label}: {fit.reason}"
        if others and not number:
            reason += "".join(f"; not with {other.label}: {_refusal(other).reason}" for other in others)
        yield msgspec.structs.replace(fit, reason=reason, about=_about(candidate, best, fit))


def _member(question: Question, row: ReleaseRow, name: str) -> _Member | None:
    spec = parse_specifier(row.needs[name])
    known = [version for version in question.matrix.known_versions(name) if spec.cover(version) == "all"]
    if not known:
        return None
    version = known[-1]._replace(scheme=scheme(name))
    found = [(one.label, candidate_fits(question, one)) for one in release_candidates(question, name, version)]
    label, fits = min(found, key=lambda item: _rank(item[1]), default=("", []))
    return _Member(name, label, fits) if label else None


def _rank(fits: Sequence[Fit]) -> tuple[int, int]:
    verdicts = [fit.verdict for fit in fits]
    return verdicts.count("incompatible"), verdicts.count("unknown")


def _refusal(member: _Member) -> Fit:
    return next(fit for fit in member.fits if fit.bad)


def _about(candidate: Candidate, member: _Member, fit: Fit) -> tuple[str, ...]:
    return tuple(dict.fromkeys(candidate.name if name == member.name else name for name in fit.about))
