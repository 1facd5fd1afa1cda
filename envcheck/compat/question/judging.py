"""All judgements about a question: hardware pairs, each component's rows, and what nothing speaks of."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from envcheck.compat.fit import Fit, FitVerdict
from envcheck.compat.question.candidates import Candidate, release_candidates
from envcheck.compat.question.engine import NAME as ENGINE
from envcheck.compat.question.engine import judge_engine
from envcheck.compat.question.extension import judge_extension
from envcheck.compat.question.hardware import judge_hardware
from envcheck.compat.question.implied import with_implied
from envcheck.compat.question.judgement import Judgement, agree, overall, soften
from envcheck.compat.question.module import judge_module
from envcheck.compat.question.names import COMPILERS, PLATFORM
from envcheck.compat.question.question import Question
from envcheck.compat.question.rows import rows_of
from envcheck.compat.question.software import judge_candidate
from envcheck.compat.question.torch import NAME as TORCH
from envcheck.compat.question.torch import torch_readings
from envcheck.compat.question.wording import listed, unknown_release
from envcheck.compat.specifier import Version
from envcheck.compat.tables import Tables

_TOLD_BY_OTHERS = frozenset({"cuda", "nvcc", "python", "gcc", ENGINE})
"""A version of these that no row of releases covers may be known all the same."""


class Option(NamedTuple):
    """One way to read a named component, and what is said of it so read."""

    label: str
    judgements: Sequence[Judgement]


def judge(tables: Tables, question: Question) -> list[Judgement]:
    """Everything that the matrix says of a question, weak sources set aside."""
    full = with_implied(tables, question)
    found = [*full.problems, *judge_hardware(tables, full)]
    found += [*judge_module(tables, full), *judge_engine(tables, full), *judge_extension(tables, full)]
    for name, versions in full.versions.items():
        options = [option for version in versions for option in _options(tables, full, name, version)]
        found += _joined(full, name, options)
    found += _compiling(tables, full)
    found += _alone(full, found)
    return [Judgement(about, soften(fit)) for about, fit in found]


def _compiling(tables: Tables, question: Question) -> list[Judgement]:
    """Host compilers, and systems, and the toolkit of the CUDA that was named, where no nvcc was."""
    asked = COMPILERS | {"os"}
    if "nvcc" in question.versions or not asked & question.labels.keys():
        return []
    options = [
        option
        for version in question.versions.get("cuda", ())
        if rows_of(tables, "nvcc")
        for option in _options(tables, question, "nvcc", version)
    ]
    found = _joined(
        question._replace(labels={**question.labels, "nvcc": question.labels.get("cuda", "")}), "nvcc", options
    )
    return [Judgement(("cuda", *about[1:]), fit) for about, fit in found if asked & set(about)]


def _options(tables: Tables, question: Question, name: str, version: Version) -> list[Option]:
    """The releases that a version stands for, each in the build that fits best."""
    if name == TORCH:
        return _torch_options(tables, question, version)
    if name == ENGINE or not rows_of(tables, name):
        return []
    candidates = release_candidates(tables, question, name, version)
    if not candidates:
        return (
            [] if name in _TOLD_BY_OTHERS else [Option(name, [_open([name], unknown_release(question, name, version))])]
        )
    return _best([_expanded(tables, question, candidate) for candidate in candidates])


def _torch_options(tables: Tables, question: Question, version: Version) -> list[Option]:
    options = []
    for reading in torch_readings(tables, question, version):
        problem = [Judgement((TORCH, *reading.about), reading.problem)] if reading.problem else []
        candidates = [candidate._replace(rows=(*candidate.rows, *reading.rows)) for candidate in reading.candidates]
        best = _best([_expanded(tables, question, candidate) for candidate in candidates])
        options.append(Option(reading.label, [*problem, *(item for option in best for item in option.judgements)]))
    return options


def _expanded(tables: Tables, question: Question, candidate: Candidate) -> list[Option]:
    """A candidate as one option, or as one for each release of a family that its rows tell apart."""
    if not candidate.partial:
        return [Option(candidate.label, judge_candidate(tables, question, candidate))]
    members = [candidate._replace(rows=(*candidate.rows, row)) for row in candidate.partial]
    return [
        Option(f"{candidate.name} {row.versions}", judge_candidate(tables, question, member))
        for row, member in zip(candidate.partial, members, strict=True)
    ]


def _best(builds: Sequence[list[Option]]) -> list[Option]:
    """The build with the fewest objections; the first of equals."""
    return min(builds, key=_objections, default=[])


def _objections(options: list[Option]) -> tuple[int, int]:
    verdicts = [judgement.fit.verdict for option in options for judgement in option.judgements]
    return verdicts.count("incompatible"), verdicts.count("unknown")


def _joined(question: Question, name: str, options: Sequence[Option]) -> list[Judgement]:
    """What all readings of a component agree on; unknown, with those that fit, where they do not."""
    spoken = [option for option in options if option.judgements]
    verdicts = {_verdict(option) for option in spoken}
    if len(verdicts) <= 1:
        return list(spoken[-1].judgements) if spoken else []
    about = dict.fromkeys(other for option in spoken for judgement in option.judgements for other in judgement.about)
    members = [(option.label, Fit(verdict=_verdict(option), reason="")) for option in spoken]
    return [Judgement(tuple(about), agree(members, question.labels[name]))]


def _verdict(option: Option) -> FitVerdict:
    return overall(judgement.fit for judgement in option.judgements)


def _alone(question: Question, found: Iterable[Judgement]) -> list[Judgement]:
    """What no relation speaks of. Where something runs is no component; python is none where nothing is Python's."""
    related = {name for judgement in found if len(judgement.about) > 1 for name in judgement.about}
    named = {name for judgement in found if len(judgement.about) == 1 for name in judgement.about}
    left = [name for name in question.labels if name not in related | named | PLATFORM]
    if named and not related:
        return []
    labels = question.labels
    if related:
        return [_open([name], f"nothing in the matrix relates {labels[name]} to anything else here") for name in left]
    told = listed([labels[name] for name in left or labels])
    if len(left) > 1:
        return [_open(left, f"nothing in the matrix relates {told} to each other")]
    return [_open(list(labels), f"nothing else is named that {told} could be held against")]


def _open(names: Sequence[str], reason: str) -> Judgement:
    return Judgement(tuple(names), Fit(verdict="unknown", reason=reason))
