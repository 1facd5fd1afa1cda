"""Short versions that stand for several releases: they fit when one release of each fits with all that was named.

Where every member fits, or none, the relations say so themselves; this is for what they leave open. That none fits is
said only of families whose members are all known, as PyTorch's and CUDA's are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from envcheck.compat.matrix import Matrix
from envcheck.compat.names import PLATFORM, canonical
from envcheck.compat.question.candidates import TORCH
from envcheck.compat.question.hardware import NAME as FORWARD
from envcheck.compat.question.judging import ENGINE, judge
from envcheck.compat.question.question import Judgement, Question, listed, overall, summary
from envcheck.compat.question.reading import read_question
from envcheck.compat.relations.fit import Fit, FitVerdict
from envcheck.compat.specifier import Version
from envcheck.components import Bound, Component

_COMPLETE = ("cuda", "nvcc", TORCH)
"""Components whose releases the matrix knows one by one."""
_ONE_FOR_ALL = (ENGINE, "tensorrt")
"""An engine loads in the version that built it: that one of each would do, says nothing of those that are there."""
MOST_WORK = 1200
"""What may be spent on members that are tried, newest first, in the place of their families, at some 0.1 ms a unit."""
_ONE_TRIAL = 10
"""What a question costs in which each component is one release; the members of families come on top."""
_MOST_TOLD = 2
"""Members whose objection is told."""


class Choice(NamedTuple):
    """What a question with families comes to."""

    components: tuple[Component, ...]
    """The question, with a member in the place of each family that mattered."""
    judgements: tuple[Judgement, ...]
    members: Mapping[str, str]
    """The chosen members by canonical name; empty where none fits."""


class _Family(NamedTuple):
    place: int
    name: str
    members: tuple[str, ...]
    """Newest first."""


class _Tried(NamedTuple):
    components: tuple[Component, ...]
    judgements: list[Judgement]
    members: Mapping[str, str]
    """By canonical name; families that are not among them fit as they are."""


def choose(
    matrix: Matrix,
    components: Sequence[Component],
    question: Question,
    judgements: Sequence[Judgement],
    most: int = MOST_WORK,
) -> Choice | None:
    """Members that fit, or the proof that none does; None where it stays open, or takes more work than ``most``."""
    doubts = [set(judgement.about) for judgement in judgements if judgement.fit.verdict == "unknown"]
    doubtful = set().union(*doubts)
    families = [family for family in _families(matrix, components, question) if family.name in doubtful]
    if not families or not all(doubt & {family.name for family in families} for doubt in doubts):
        return None
    families.sort(key=lambda family: (len(family.members), family.name))
    search = _Search(matrix, most)
    found = search.run(_Tried(tuple(components), [], {}), families)
    if found is not None:
        return Choice(found.components, (_fitting(components, families, found), *found.judgements), found.members)
    if search.open or any(family.name not in _COMPLETE for family in families):
        return None
    return Choice(tuple(components), (*judgements, _none_fits(components, families, search.refused)), {})


class _Search:
    """Puts one member after the other in the place of each family, and goes on only with what may still fit."""

    def __init__(self, matrix: Matrix, most: int) -> None:
        self.open = False
        """Whether anything was left undecided, or untried."""
        self.refused: list[_Tried] = []
        self._tables = matrix
        self._left = most

    def run(self, base: _Tried, families: Sequence[_Family]) -> _Tried | None:
        """The first that fits."""
        first, *rest = families
        for member in first.members:
            if self._left <= 0:
                self.open = True
                return None
            self._left -= _work(rest)
            tried = self._try(base, first, member)
            verdict = overall(judgement.fit for judgement in tried.judgements)
            if verdict == "incompatible":
                self.refused.append(tried)
            elif verdict == "compatible":
                return tried
            elif rest:
                found = self.run(tried, rest)
                if found is not None:
                    return found
            else:
                self.open = True
        return None

    def _try(self, base: _Tried, family: _Family, member: str) -> _Tried:
        changed = list(base.components)
        changed[family.place] = changed[family.place]._replace(bounds=(Bound("==", member),))
        judgements = judge(self._tables, read_question(self._tables, changed))
        return _Tried(tuple(changed), judgements, {**base.members, family.name: member})


def work(matrix: Matrix, components: Sequence[Component], question: Question) -> int:
    """What it costs to judge a question once."""
    return _work(list(_families(matrix, components, question)))


def _work(families: Sequence[_Family]) -> int:
    return _ONE_TRIAL + sum(len(family.members) for family in families)


def _families(matrix: Matrix, components: Sequence[Component], question: Question) -> Iterator[_Family]:
    for place, component in enumerate(components):
        name = canonical(component.name)
        if component.exact is None or (ENGINE in question.versions and name in _ONE_FOR_ALL):
            continue
        if name in ("cuda", "nvcc"):
            members = tuple(str(version) for version in reversed(question.cuda if name == "cuda" else question.nvcc))
        else:
            members = _members(matrix, name, question.versions.get(name, ()))
        if len(members) > 1:
            yield _Family(place, name, members)


def _members(matrix: Matrix, name: str, versions: Sequence[Version]) -> tuple[str, ...]:
    """The releases, or narrower families, that rows name, newest first; none for what is a release itself."""
    family = versions[0] if len(versions) == 1 and versions[0].family else None
    if family is None:
        return ()
    start, local = family.numbers, f"+{family.local}" if family.local else ""
    named = matrix.known_versions(name) if name in _COMPLETE else matrix.named_versions(name)
    found = [one for one in reversed(named) if one.numbers[: len(start)] == start and len(one.numbers) > len(start)]
    return tuple(f"{one}{local}" for one in found)


def _fitting(components: Sequence[Component], families: Sequence[_Family], found: _Tried) -> Judgement:
    narrowed = [family for family in families if family.name in found.members]
    chosen = listed([f"{family.name} {found.members[family.name]}" for family in narrowed])
    verbs = ("stands", "fits") if len(narrowed) == 1 else ("stand", "fit")
    reason = f"{_written(components, narrowed)} {verbs[0]} for several releases, of which {chosen} {verbs[1]}"
    deciding = [judgement for judgement in found.judgements if found.members.keys() & set(judgement.about)]
    about = dict.fromkeys(name for judgement in deciding for name in judgement.about)
    return Judgement(tuple(about), summary("compatible", reason, [judgement.fit for judgement in deciding]))


def _none_fits(components: Sequence[Component], families: Sequence[_Family], refused: Sequence[_Tried]) -> Judgement:
    objections = [next(found for found in tried.judgements if found.fit.bad) for tried in refused[:_MOST_TOLD]]
    told = "; ".join(dict.fromkeys(objection.fit.reason for objection in objections))
    reason = f"no release that {_written(components, families)} stands for fits: {told}"
    about = dict.fromkeys([*(family.name for family in families), *(name for one in objections for name in one.about)])
    return Judgement(tuple(about), summary("incompatible", reason, [objection.fit for objection in objections]))


def _written(components: Sequence[Component], families: Sequence[_Family]) -> str:
    return listed([str(components[place]) for place in sorted(family.place for family in families)])


# What a question comes to: what the relations say, families narrowed to releases, and no build chosen by accident.


class Decision(NamedTuple):
    """Everything that was judged, and what it makes together."""

    question: Question
    judgements: tuple[Judgement, ...]
    objections: tuple[Judgement, ...] = ()
    """What speaks against it, and a change would have to mend."""
    members: Mapping[str, str] = MappingProxyType({})
    """Of families, the members with which it fits, by canonical name."""

    @property
    def verdict(self) -> FitVerdict:
        return overall(judgement.fit for judgement in self.judgements)


def decide(matrix: Matrix, components: Sequence[Component], most: int = MOST_WORK) -> Decision:
    """Judge a question; raise UsageError for what no question can be made of.

    ``most`` is what may be spent on trying members of families.
    """
    decision = _narrowed(matrix, components, most)
    if decision.verdict != "compatible":
        return decision
    left_out, objections = _without_one(matrix, decision.question, components, most)
    doubts = [Judgement(about, _doubt(fit, left_out)) for about, fit in objections]
    return decision._replace(judgements=(*decision.judgements, *doubts), objections=objections)


def _narrowed(matrix: Matrix, components: Sequence[Component], most: int) -> Decision:
    question = read_question(matrix, components)
    judgements = tuple(judge(matrix, question))
    decision = Decision(question, judgements, _objections(judgements))
    choice = choose(matrix, components, question, judgements, most) if decision.verdict == "unknown" else None
    if choice is None:
        return decision
    narrowed = read_question(matrix, choice.components)
    return Decision(narrowed, choice.judgements, _objections(choice.judgements), choice.members)


def _objections(judgements: Sequence[Judgement]) -> tuple[Judgement, ...]:
    return tuple(judgement for judgement in judgements if judgement.fit.bad)


def _without_one(
    matrix: Matrix, question: Question, components: Sequence[Component], most: int
) -> tuple[str, tuple[Judgement, ...]]:
    """A component without which the rest does not fit: naming it chose another build than the one that is meant.

    A further component can only narrow a question, save for the package of forward compatibility.
    """
    if FORWARD in question.labels:
        return "", ()
    platform = [Component("os", (Bound("==", question.os),)), Component("machine", (Bound("==", question.machine),))]
    named = [component for component in components if canonical(component.name) not in PLATFORM]
    for place in range(len(named) if len(named) > 2 else 0):
        objections = _narrowed(matrix, [*named[:place], *named[place + 1 :], *platform], most).objections
        if objections:
            return str(named[place]), objections
    return "", ()


def _doubt(fit: Fit, left_out: str) -> Fit:
    return summary(
        "unknown", f"were it not for {left_out}, another build would be meant, which does not fit: {fit.reason}", [fit]
    )
