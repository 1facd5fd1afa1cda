"""Answer questions about compatibility, and say which releases of a short version fit where they differ.

``python==3.10`` stands for every 3.10.x, ``nvcc==12.2`` for 12.2.0 to 12.2.2, ``driver==570`` for any of R570. Bounds
that rows set within such a version are its seams: between two of them nothing changes, so one release of each piece is
asked.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import groupby, islice, pairwise
from typing import TypeAlias

import msgspec

from envcheck.compat.candidates import TORCH, build_on_pypi, release_candidates
from envcheck.compat.choose import (
    OFFERED_ONE_BY_ONE,
    Result,
    alternatives,
    evaluate,
    families_of,
    narrowed,
    replaced,
    required_torch_fits,
    work,
)
from envcheck.compat.fits import ENGINE, ENGINE_ASSUMED
from envcheck.compat.hardware import NAME as FORWARD
from envcheck.compat.question import Answer, BranchHead, Question, Reason, listed, readable, summary
from envcheck.compat.reading import read_question
from envcheck.compat.wheels import covering, published, releases_covering, requirements_covering
from envcheck.knowledge.matrix import Matrix
from envcheck.knowledge.names import canonical, scheme
from envcheck.knowledge.relations.fit import Fit, FitVerdict
from envcheck.knowledge.relations.torch import builds, tag_of
from envcheck.knowledge.specifier import Version, numbers_in, parse_specifier, parse_version
from envcheck.knowledge.tables.software import ReleaseRow, RequirementRow
from envcheck.model.components import Component
from envcheck.model.versions import CudaVersion, DriverRelease
from envcheck.sources import Source

_ORDER = ("incompatible", "unknown", "compatible")
_MOST_TRIED = 40  # Changes of one component that are tried, nearest first
_LEAST_TRIED = 4
_MOST_WORK = 1000
"""What may be spent on all of them, as families count it: a question that names majors is asked for all releases."""
_MOST_NARROWED = 60  # The part of it that may be spent on the families of each change
_TOOLKITS = ("cuda", "nvcc")
_MOST_MEMBERS_TRIED = 40
"""Releases of a family that are asked one by one; of a larger one, only that which fits is told."""
_MOST_MEMBER_WORK = 200  # What may be spent on the families beside each, as families count it
_RUN = 2  # Releases that are listed one by one; of more that follow each other, the ends
_WORDS: dict[FitVerdict, tuple[str, str]] = {
    "compatible": ("fits", "fit"),
    "incompatible": ("does not", "do not"),
    "unknown": ("is not known", "are not known"),
}

_Numbers: TypeAlias = tuple[int, ...]


def ask(
    matrix: Matrix,
    components: Sequence[Component],
    *,
    suggest: bool = True,
    tell_apart: bool = True,
    is_all: bool = True,
) -> Answer:
    """Whether ``components`` fit together; raise UsageError for what no question can be made of.

    Suggestions take most of the time where they do not fit, and telling apart the releases of short versions where they
    do: each is a question of its own. Where these are not all, as of a plan, another PyTorch may be there.
    """
    result = evaluate(matrix, components)
    if is_all and result.verdict != "incompatible":
        refusals = tuple(required_torch_fits(result.question, components))
        result = result._replace(fits=(*result.fits, *refusals), objections=(*result.objections, *refusals))
    question = result.question
    short = list(told_apart(matrix, components, result)) if tell_apart else []
    told_fully = len(result.members) == 1 and result.members.keys() <= {each.name for each in short}
    fits = [*(each.fit for each in short), *result.fits[told_fully:]]  # the first tells of the member that fits alone
    reasons: dict[tuple[FitVerdict, str], dict[Source, None]] = defaultdict(dict)
    for fit in fits:
        reasons[fit.verdict, fit.reason] |= dict.fromkeys(fit.sources)  # rows of several kinds may say the same
    assumed = {**question.assumed, **{each.name: each.fitting for each in short}, **result.members}
    build = build_on_pypi(question)
    if build:
        assumed[TORCH] = build
    if ENGINE in question.versions:
        assumed[ENGINE] = ENGINE_ASSUMED
    suggestions = list(_suggestions(matrix, components, result)) if suggest else []
    for name, versions in question.versions.items() if suggest else ():
        for candidate in (found for version in versions for found in release_candidates(question, name, version)):
            suggestions += [row.superseded for row in (*candidate.rows, *candidate.partial) if row.superseded]
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
    each = work(families_of(components, read_question(matrix, components))) * max(len(shared), 1)
    most = min(_MOST_TRIED, max(_MOST_WORK // each, _LEAST_TRIED))
    no_such_build = result.verdict == "unknown" and any(
        fit.verdict == "unknown" and fit.about == (TORCH,) and fit.nearest_change for fit in result.fits
    )
    for place, component in enumerate(components):
        name = canonical(component.name)
        if name == TORCH and no_such_build:
            # The builds of the named release with which everything fits; all of them, where nothing else is named.
            version = question.versions[TORCH][-1]
            own = [row for row in matrix.torch if row.version == str(version)]
            for build in (build for row in own for build in builds(row, question.os, question.machine)):
                value = f"{version}+{tag_of(build.cuda)}"
                if len(components) == 1 or _fits(matrix, replaced(components, place, value)):
                    yield f"{TORCH} {value}"
        if name not in shared:
            continue
        if name == FORWARD and _fits(matrix, [*components[:place], *components[place + 1 :]]):
            yield f"no {FORWARD}"
            continue
        tried = islice(alternatives(question, name, hints), most)
        fitting = next((value for value in tried if _fits(matrix, replaced(components, place, value))), None)
        if fitting is not None:
            yield _in_words(question, components, place, fitting)


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


class ShortVersion(msgspec.Struct, frozen=True):
    """What is told of one short version."""

    name: str
    fitting: str  # The releases that fit
    fit: Fit


class _Piece(msgspec.Struct, frozen=True):
    """Releases that are alike for everything that was named."""

    asked: str  # One of them
    releases: tuple[str, ...] = ()  # All of them, where they are known
    low: str = ""  # The first, where it is not the first that the version stands for
    high: str = ""  # The first behind them


def told_apart(matrix: Matrix, components: Sequence[Component], result: Result) -> Iterator[ShortVersion]:
    """Of each short version in a question that is compatible, which releases fit, where some do not."""
    if result.verdict != "compatible":
        return
    asked = read_question(matrix, components) if result.members else result.question
    members = {family.name: family.members for family in families_of(components, asked)}
    for place, component in enumerate(components):
        name = canonical(component.name)
        pieces: list[_Piece]
        if name in result.members:
            known = members.get(name, ())
            pieces = [_Piece(one, (one,)) for one in reversed(known)] if len(known) <= _MOST_MEMBERS_TRIED else []
        else:
            pieces = _pieces(result.question, name, component)
        answers = [
            (piece, narrowed(matrix, replaced(result.components, place, piece.asked), _MOST_MEMBER_WORK))
            for piece in (pieces if len(pieces) > 1 else ())
        ]
        if {other.verdict for _, other in answers} > {"compatible"}:
            beside = [f"{other} {member}" for other, member in result.members.items() if other != name]
            parts, fitting = _in_runs(answers)
            refused = next(other for _, other in answers if other.verdict != "compatible")
            allowed = next(other for _, other in answers if other.verdict == "compatible")
            reason = f"{component} stands for several releases: {parts}{f' beside {listed(beside)}' if beside else ''}"
            why = next(fit for fit in refused.fits if fit.verdict == refused.verdict)
            resting = [why, *(fit for fit in allowed.fits if name in fit.about)]
            whole = summary("compatible", f"{reason} ({why.reason})", resting)
            yield ShortVersion(name, fitting, whole.concerning(*dict.fromkeys([name, *why.about])))


def _in_runs(answers: Sequence[tuple[_Piece, Result]]) -> tuple[str, str]:
    """Which releases fit, which do not, and which are not known to, in words; and those that fit."""
    runs: dict[FitVerdict, list[str]] = {verdict: [] for verdict in _WORDS}
    several: set[FitVerdict] = set()
    for verdict, run in groupby(answers, lambda item: item[1].verdict):
        pieces = [piece for piece, _ in run]
        releases = [release for piece in pieces for release in piece.releases]
        low, high = pieces[0].low, pieces[-1].high
        if releases:
            span = listed(releases) if len(releases) <= _RUN else f"{releases[0]} to {releases[-1]}"
        elif _is_one(pieces):
            span = low
        else:
            span = ",".join(filter(None, (low and f">={low}", high and f"<{high}")))
        runs[verdict].append(span)
        if len(runs[verdict]) > 1 or not _is_one(pieces):
            several.add(verdict)
    parts = [f"{listed(spans)} {_WORDS[verdict][verdict in several]}" for verdict, spans in runs.items() if spans]
    return "; ".join(parts), listed(runs["compatible"])


def _is_one(pieces: Sequence[_Piece]) -> bool:
    first, *others = pieces
    low, high = map(numbers_in, (first.low, first.high))
    alone = bool(low and high) and high == (*low[:-1], low[-1] + 1)
    return not others and (len(first.releases) == 1 if first.releases else alone)


def _pieces(question: Question, name: str, component: Component) -> list[_Piece]:
    """The pieces of a short version; none where its releases cannot differ."""
    if component.exact is None:
        return []
    if name == "driver":
        # Of a release whose third number was left out, both ends are asked anyway.
        if len(question.drivers) != 1 or not isinstance(question.drivers[0], BranchHead):
            return []
        branch, kind = question.drivers[0].branch, "windows" if question.windows_driver else "linux"
        start = (branch,)
        seams = _seams(_of_drivers(question, kind), start)
        row = next((row for row in question.matrix.drivers if row.os == kind and row.branch == branch), None)
        least = (DriverRelease.parse(row.first) if row else None) or DriverRelease(branch, 0)
        pieces = []
        for piece in _divided(start, [seam for seam in seams if seam > tuple(least)], ()):
            low, high = DriverRelease.parse(piece.low), DriverRelease.parse(piece.high)
            pieces.append(_Piece(_dotted(low or least), piece.releases, str(low or ""), str(high or "")))
        return pieces
    versions = question.versions.get(name, ())
    short = versions[0] if len(versions) == 1 else None
    if short is None or short.pre or not short.scheme.builds or len(short.numbers) > short.scheme.numbers:
        return []
    seams = _seams(_specifiers(question, name), short.numbers)
    return _divided(short.numbers, seams, _obtainable(question.matrix, name, short)) if seams else []


def _divided(start: _Numbers, seams: Sequence[_Numbers], known: Sequence[_Numbers]) -> list[_Piece]:
    """The pieces between the seams; those in which no known release lies are left out, where the releases are known."""
    ends: list[_Numbers | None] = [None, *seams, None]
    pieces: list[_Piece] = []
    for low, high in pairwise(ends):
        within = [one for one in known if (low is None or one >= low) and (high is None or one < high)]
        first = low or (*start, 0)
        if known and not within:
            continue
        releases = tuple(map(_dotted, within))
        asked = releases[-1] if releases else _dotted(first)
        pieces.append(_Piece(asked, releases, _dotted(low or ()), _dotted(high or ())))
    return pieces


def _dotted(numbers: _Numbers) -> str:
    return ".".join(map(str, numbers))


def _seams(specifiers: Iterator[str], start: _Numbers) -> list[_Numbers]:
    """The first releases behind which, or with which, something changes within a version."""
    found: set[_Numbers] = set()
    for bound in {bound for text in specifiers for bound in parse_specifier(text).bounds}:
        if len(bound.numbers) > len(start) and bound.numbers[: len(start)] == start:
            if bound.operator in (">=", "<", "==", "!="):
                found.add(bound.numbers)
            if bound.operator in ("<=", ">", "==", "!="):
                found.add((*bound.numbers[:-1], bound.numbers[-1] + 1))
    return sorted(seam for seam in found if any(seam[len(start) :]))


def _specifiers(question: Question, name: str) -> Iterator[str]:
    """The bounds that rows of what was named set on a component, and those that tell its own releases apart."""
    matrix = question.matrix
    yield from (row.versions for row in matrix.rows_of(name))
    if name in _TOOLKITS:
        rows = [row for version in question.cuda + question.nvcc if (row := matrix.cuda_rows.get(version))]
        yield from (f">={update.release}" for row in rows for update in row.updates)
    for other, versions in question.versions.items():
        for version in versions if other != name else ():
            yield from _needs(matrix, other, version, name)
            wheels = covering(matrix.wheels_by_name.get(other, ()), version) if name == "python" else ()
            served = (served for row in wheels for served in (row.pythons, row.free_threaded))
            yield from (spec for each in served for spec in each.values())


def _needs(matrix: Matrix, other: str, version: Version, name: str) -> Iterator[str]:
    rows: list[ReleaseRow | RequirementRow] = [*releases_covering(matrix, other, version)]
    rows += requirements_covering(matrix, other, version)
    yield from (row.needs[name] for row in rows if name in row.needs)


def _obtainable(matrix: Matrix, name: str, short: Version) -> list[_Numbers]:
    """The releases that a short version stands for, where they are known one by one."""
    if name in _TOOLKITS:
        row = matrix.cuda_rows.get(CudaVersion(*(*short.numbers, 0)[:2]))
        return [*map(numbers_in, row.releases)] if row else []
    wheels = [family.wheel for family in matrix.families if canonical(family.name) == name and family.wheel]
    majors = sorted({one.major for one in matrix.toolkits})
    distributions = [name, *(f"nvidia-{wheel}-cu{major}" for wheel in wheels for major in majors)]
    known = {one.numbers for each in distributions for one in published(matrix, each)}
    return sorted(numbers for numbers in known if numbers[: len(short.numbers)] == short.numbers)


def _of_drivers(question: Question, kind: str) -> Iterator[str]:
    matrix, container = question.matrix, question.container
    texts: list[str | None] = []
    for row in matrix.cuda:
        linux = (row.driver_linux, row.disputed_linux, *(update.driver_linux for update in row.updates))
        windows = (row.driver_windows, row.disputed_windows, *(update.driver_windows for update in row.updates))
        texts += linux if kind == "linux" else windows
    texts += [each for gpu in question.gpus if gpu.model and kind == "linux" for each in gpu.model.first_drivers]
    texts += [container.row.driver] if container else []
    texts += [text for row in matrix.migs if question.mig for text in (row.driver, *row.drivers.values())]
    yield from (f">={text}" for text in texts if text)
    for other, versions in question.versions.items():
        for version in versions:
            for key in ("driver", f"driver-{kind}"):
                yield from _needs(matrix, other, version, key)
