"""Answer questions about compatibility: components by the names people use, and the relations with their rows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import islice

from envcheck.compat.matrix import Matrix
from envcheck.compat.names import canonical, scheme
from envcheck.compat.question.candidates import TORCH, build_on_pypi, release_candidates
from envcheck.compat.question.choose import OFFERED_ONE_BY_ONE, Result, alternatives, evaluate, replaced, work
from envcheck.compat.question.fits import ENGINE, ENGINE_ASSUMED
from envcheck.compat.question.hardware import NAME as FORWARD
from envcheck.compat.question.question import Answer, Question, Reason, readable
from envcheck.compat.question.reading import read_question
from envcheck.compat.question.short import told_apart
from envcheck.compat.relations.fit import FitVerdict
from envcheck.compat.relations.torch import builds, tag_of
from envcheck.compat.specifier import parse_version
from envcheck.components import Component
from envcheck.sources import Source

_ORDER = ("incompatible", "unknown", "compatible")
_MOST_TRIED = 40
"""Changes of one component that are tried, nearest first."""
_LEAST_TRIED = 4
_MOST_WORK = 1000
"""What may be spent on all of them, as families count it: a question that names majors is asked for all releases."""
_MOST_NARROWED = 60
"""The part of it that may be spent on the families of each change."""


def ask(matrix: Matrix, components: Sequence[Component], *, suggest: bool = True) -> Answer:
    """Whether ``components`` fit together; raise UsageError for what no question can be made of.

    Suggestions take most of the time where they do not fit: each is a question of its own.
    """
    result = evaluate(matrix, components)
    question = result.question
    told = list(told_apart(matrix, components, result))
    told_fully = len(result.members) == 1 and result.members.keys() <= {each.name for each in told}
    fits = [*(each.fit for each in told), *result.fits[told_fully:]]  # the first tells of the member that fits alone
    reasons: dict[tuple[FitVerdict, str], dict[Source, None]] = defaultdict(dict)
    for fit in fits:
        reasons[fit.verdict, fit.reason] |= dict.fromkeys(fit.sources)  # rows of several kinds may say the same
    assumed = {**question.assumed, **{each.name: each.fitting for each in told}, **result.members}
    build = build_on_pypi(question)
    if build:
        assumed[TORCH] = build
    if ENGINE in question.versions:
        assumed[ENGINE] = ENGINE_ASSUMED
    suggestions = [*_suggestions(matrix, components, result), *_superseded(question)] if suggest else []
    return Answer(
        verdict=result.verdict,
        reasons=tuple(
            Reason(verdict=verdict, message=message, sources=tuple(sources))
            for (verdict, message), sources in sorted(reasons.items(), key=lambda item: _ORDER.index(item[0][0]))
        ),
        suggestions=tuple(dict.fromkeys(suggestions)),
        assumed=assumed,
    )


def _suggestions(matrix: Matrix, components: Sequence[Component], result: Result) -> Iterator[str]:
    """Single changes that make the answer compatible, for each component that all objections concern.

    Each was asked before it is suggested.
    """
    question, objections = result.question, result.objections
    shared = set.intersection(*(set(objection.about) for objection in objections)) if objections else set()
    hints = [objection.nearest_change for objection in objections]
    each = work(components, read_question(matrix, components)) * max(len(shared), 1)
    most = min(_MOST_TRIED, max(_MOST_WORK // each, _LEAST_TRIED))
    no_such_build = result.verdict == "unknown" and any(
        fit.verdict == "unknown" and fit.about == (TORCH,) and fit.nearest_change for fit in result.fits
    )
    for place, component in enumerate(components):
        name = canonical(component.name)
        if name == TORCH and no_such_build:
            yield from _published_builds(components, question, place)
        if name not in shared:
            continue
        if name == FORWARD and _fits(matrix, [*components[:place], *components[place + 1 :]]):
            yield f"no {FORWARD}"
            continue
        tried = islice(alternatives(question, name, hints), most)
        fitting = next((value for value in tried if _fits(matrix, replaced(components, place, value))), None)
        if fitting is not None:
            yield _in_words(question, components, place, fitting)


def _published_builds(components: Sequence[Component], question: Question, place: int) -> Iterator[str]:
    """The builds of the named release with which everything fits; all of them, where nothing else is named."""
    version = question.versions[TORCH][-1]
    own = [row for row in question.matrix.torch if row.version == str(version)]
    for build in (build for row in own for build in builds(row, question.os, question.machine)):
        value = f"{version}+{tag_of(build.cuda)}"
        if len(components) == 1 or _fits(question.matrix, replaced(components, place, value)):
            yield f"{TORCH} {value}"


def _superseded(question: Question) -> Iterator[str]:
    """For projects that ended: the last stack that works, as their rows state it."""
    for name, versions in question.versions.items():
        for candidate in (found for version in versions for found in release_candidates(question, name, version)):
            yield from (row.superseded for row in (*candidate.rows, *candidate.partial) if row.superseded)


def _fits(matrix: Matrix, components: Sequence[Component]) -> bool:
    return evaluate(matrix, components, _MOST_NARROWED).verdict == "compatible"


def _in_words(question: Question, components: Sequence[Component], place: int, value: str) -> str:
    """A change in words: ``cudnn >=9.7, <9.11`` where one row covers these; a driver as a minimum where the newest
    known branch fits too.
    """
    matrix, name = question.matrix, canonical(components[place].name)
    if name == "kernel-module":
        return f"the {value} kernel module"
    if name != "driver":
        version = parse_version(value, scheme(name))
        rows = matrix.rows_for(name, version) if version else []
        ranged = len(rows) == 1 and name not in OFFERED_ONE_BY_ONE and "," in rows[0].versions
        return readable(name, rows[0].versions) if ranged else f"{name} {value}"
    value = value.removesuffix(".00")
    kind = "windows" if question.windows_driver else "linux"
    newest = max((row.until or row.branch for row in matrix.drivers if row.os == kind), default=0)
    if _fits(matrix, replaced(components, place, str(newest))):
        return f"driver >= {value}"
    return f"driver {value}" if "." in value else f"driver R{value}"
