"""Match lines of programs, the kernel and container runtimes with the rows of ``errors.toml``.

Only the shipped rows are used: a user's pattern could take unlimited time on a hostile line. A pattern is tried only on
lines that contain the words which it spells out: most lines match none of some hundred patterns, and a pattern with
``.*`` takes a time that grows with the square of a line's length.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from envcheck.knowledge.load import load_matrix
from envcheck.knowledge.relations.libraries import SPOKEN_OF, files_of
from envcheck.knowledge.tables import XidRow
from envcheck.model.checks import DecidedBy, Status

if TYPE_CHECKING:
    from envcheck.model.snapshot import ObservedError


LONGEST = 2000
"""Characters of a line that are matched; pasted text is untrusted."""
_ENDED = (
    r"(?:cu(?:da|init).{{0,200}}(?:\b|API)(?:error|failure|fails with|code|failed to get (?:\w+ )?context)\D{{0,3}}"
    r"|\bcu(?:da|init|device|ctx)\w*(?:\([^)\s]*\))? (?:returned|returns|gives|gave|fail(?:s|ed) with|err:)"
    r" (?:error )?){code}\b"
)
"""A line that reports the status code of a CUDA driver or runtime call."""
_FRAGMENT = re.compile(r"\{\{([a-z-]+)\}\}")
_XID = re.compile(r"\bXid(?: ?\([^)]{0,80}\))?(?:[:,]? {0,8}|=)([0-9]{1,3})\b", re.IGNORECASE)
_REMARK = re.compile(r"\s*\[\[")
"""The beginning of the harmless line in which NVIDIA's images say that they run without forward compatibility."""


class ErrorLine(NamedTuple):
    """A line that names a problem."""

    problem: str
    """Name of the rule."""
    pattern: str
    """A regular expression; case does not count."""
    said_by: DecidedBy
    status: Status = "fail"
    after: tuple[str, ...] = ()
    """Problems whose consequence the line is."""
    beside: str = ""
    """A regular expression that another line of the same text must match."""
    unless: str = ""
    """A regular expression that no line of the same text may match."""
    programs: tuple[tuple[str, str], ...] = ()
    """Programs other than PyTorch, and what their lines match."""

    def is_in(self, text: str) -> bool:
        return _compiled(self.pattern).search(text) is not None

    def program_of(self, text: str) -> str:
        """The program that prints such a line; empty where that may be PyTorch."""
        return next((name for name, pattern in self.programs if _compiled(pattern).search(text[:LONGEST])), "")


@lru_cache(maxsize=4096)
def named_by(text: str) -> ErrorLine | None:
    """The problem that a line names; None for a line that names none."""
    found, xid = next(_rows_in(text), None), event_in(text)
    if found or xid is None or xid.action == "see-text":
        return found
    status = status_of(xid) if xid.problem == "gpu-error-logged" else "fail"
    return ErrorLine(xid.problem, _XID.pattern, "driver-answered", status)


def rank_of(text: str) -> int:
    """How exactly a line names a problem: the lower, the more exactly; all others follow."""
    line = named_by(text)
    return _ranks().get(line, len(_ranks())) if line else len(_ranks())


def named_beside(text: str, texts: Sequence[str]) -> ErrorLine | None:
    """As ``named_by`` has it; a row gives way to the next if what must stand beside it is not in ``texts``, or what
    must not is.
    """
    line = named_by(text)
    if line is None or is_borne_out(line, texts):
        return line
    return next((row for row in _rows_in(text) if is_borne_out(row, texts)), None)


def _rows_in(text: str) -> Iterator[ErrorLine]:
    """The rows that know a line, by priority."""
    shown = text[:LONGEST]
    if not _REMARK.match(shown):
        yield from (line for line in _index().in_line(shown.lower()) if line.is_in(shown))


def event_in(text: str) -> XidRow | None:
    """The event of the driver (an Xid) that a line of the kernel log tells."""
    found = _XID.search(text[:LONGEST])
    return event(int(found[1])) if found else None


def event(number: int) -> XidRow | None:
    return next((row for row in load_matrix().xids if row.number == number), None)


def status_of(row: XidRow) -> Status:
    """What an event alone proves: that a program failed is a warning, and one that asks for nothing a remark."""
    if row.action in ("none", "see-text", "see-earlier"):
        return "note"
    return "warn" if row.kind == "program" else "fail"


def is_borne_out(line: ErrorLine, texts: Sequence[str]) -> bool:
    """Whether one of the texts has what must stand beside the line, and none has what must not."""
    return (not line.beside or _met_in(line.beside, texts)) and not (line.unless and _met_in(line.unless, texts))


def bears_on(line: ErrorLine, text: str) -> bool:
    """Whether a text is what must, or must not, stand beside the line."""
    return any(pattern and _met_in(pattern, (text,)) for pattern in (line.beside, line.unless))


def _met_in(pattern: str, texts: Iterable[str]) -> bool:
    return any(_compiled(pattern).search(text[:LONGEST]) for text in texts)


def fragment_in(fragment: str, text: str) -> re.Match[str] | None:
    """Where a text has what the fragment of this name matches; None where it has not."""
    return _compiled(_of_fragment(fragment)).search(text)


def matches_fragment(fragment: str, text: str) -> bool:
    return fragment_in(fragment, text) is not None


def lines_with(fragment: str, errors: Iterable[ObservedError]) -> tuple[ObservedError, ...]:
    """The error lines of a text that have what the fragment of this name matches."""
    return tuple(error for error in errors if matches_fragment(fragment, error.text))


def nccl_releases(errors: Iterable[ObservedError]) -> tuple[str, ...]:
    """The releases of NCCL that the lines of a text say were loaded, each once."""
    found = (fragment_in("nccl-release", error.text) for error in errors)
    return tuple(sorted({named["release"] for named in found if named}))


@cache
def error_lines() -> tuple[ErrorLine, ...]:
    """All patterns of error lines, by priority."""
    return tuple(
        ErrorLine(
            row.problem,
            pattern,
            row.said_by,
            row.status,
            row.after,
            _whole(row.beside),
            _whole(row.unless),
            tuple(row.programs.items()),
        )
        for row in sorted(load_matrix().errors, key=lambda row: row.priority)
        for pattern in (*map(_whole, row.lines), *(_ENDED.format(code=code) for code in row.codes))
    )


@cache
def _ranks() -> dict[ErrorLine, int]:
    return {line: rank for rank, line in enumerate(error_lines())}


@cache
def _index() -> Index[ErrorLine]:
    return Index((line, needed_by(line.pattern)) for line in error_lines())


def _whole(pattern: str) -> str:
    """A pattern with the fragments that it names in their places."""
    return _FRAGMENT.sub(lambda match: _of_fragment(match[1]), pattern)


@cache
def _of_fragment(name: str) -> str:
    return _whole(_fragments()[name])


@cache
def _fragments() -> dict[str, str]:
    named = {row.name: row.pattern for row in load_matrix().fragments}
    return named | {f"{kind}-family": files_of(kind) for kind in SPOKEN_OF}


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    # Compiled on demand: most checks see no error line, and some three hundred patterns take 50 ms.
    # A word ends at a letter of another script too: Chinese and Japanese put no space between them.
    return re.compile(pattern, re.IGNORECASE | re.ASCII)


Needed = tuple[frozenset[str], ...]
"""Of each set, the line must contain one word; words are in lower case."""

_SHORTEST = 2
"""Characters of a word that is worth looking for."""
# Python has no public parser of its own patterns; of what they are made of, this much decides what they spell out.
_TOKEN = re.compile(
    r"\(\?P=\w+\)|(?P<open>\((?:\?(?:P<\w+>|:|<?[=!]))?)|(?P<close>\))|(?P<other>\|)|\[\^?\]?(?:\\.|[^\]\\])*\]"
    r"|(?P<repeat>[*+?]\??|\{\d*(?:,\d*)?\}\??)|\\(?P<escaped>\W)|\\.|[.^$]|(?P<literal>.)",
    re.DOTALL,
)
_LOOKS = ("(?=", "(?!", "(?<")
"""What begins a group that matches no character."""

_RUN = 4


def needed_by(pattern: str) -> Needed:
    """The words that every match of ``pattern`` contains, whatever their case."""
    found, _ = _alternatives(list(_TOKEN.finditer(pattern)), 0)
    return tuple(dict.fromkeys(found))


def has_needed(needed: Needed, lowered: str) -> bool:
    """Whether a line, in lower case, contains what is needed."""
    return all(any(word in lowered for word in words) for words in needed)


Item = TypeVar("Item")


class Index(Generic[Item]):
    """Items by what they need, so that a line is held against those few whose words it may have.

    A word can only be in a line that has all its runs of ``_RUN`` characters; the one that fewest words share tells.
    """

    def __init__(self, items: Iterable[tuple[Item, Needed]]) -> None:
        self._items = tuple(items)
        self._always: set[int] = set()
        self._places: defaultdict[str, list[int]] = defaultdict(list)
        rarest = [_longest(needed) for _, needed in self._items]
        shared = Counter(run for word in frozenset().union(*rarest) for run in _runs(word))
        for place, words in enumerate(rarest):
            if not words or any(len(word) < _RUN for word in words):
                self._always.add(place)
                continue
            for run in {min(sorted(_runs(word)), key=shared.__getitem__) for word in words}:
                self._places[run].append(place)

    def in_line(self, lowered: str) -> Iterator[Item]:
        """The items whose needed words a line, in lower case, contains, in their order."""
        met = _runs(lowered) & self._places.keys()
        for place in sorted(self._always.union(*(self._places[run] for run in met))):
            item, needed = self._items[place]
            if has_needed(needed, lowered):
                yield item


def _runs(text: str) -> set[str]:
    return {text[at : at + _RUN] for at in range(len(text) - _RUN + 1)}


def _longest(needed: Sequence[frozenset[str]]) -> frozenset[str]:
    """Of what is needed, the set whose shortest word is the longest, which is the rarest."""
    return max(needed, key=lambda words: min(map(len, words)), default=frozenset())


def _alternatives(tokens: Sequence[re.Match[str]], at: int) -> tuple[list[frozenset[str]], int]:
    """What a group needs, from its first token on, and the place of its end."""
    branches: list[list[frozenset[str]]] = [[]]
    word = ""
    while at < len(tokens) and not tokens[at]["close"]:
        token, at = tokens[at], at + 1
        if token["other"]:
            branches[-1] += _word_set(word)
            branches.append([])
            word = ""
            continue
        literal = (token["literal"] or token["escaped"] or "").lower()
        needed: list[frozenset[str]] = []
        if token["open"]:
            inner, at = _alternatives(tokens, at)
            needed, at = [] if token["open"].startswith(_LOOKS) else inner, at + 1
        repeat = tokens[at]["repeat"] if at < len(tokens) else None
        if literal and not repeat:
            word += literal
            continue
        branches[-1] += _word_set(word)
        word = ""
        if repeat:
            at += 1
        if not (repeat or "").startswith(("*", "?", "{0", "{,")):  # else it may be left out
            branches[-1] += needed
    branches[-1] += _word_set(word)
    if len(branches) == 1:
        return branches[0], at
    found = [words for words in map(_longest, branches) if words]  # the rarest that each alternative needs
    return [frozenset().union(*found)] if len(found) == len(branches) else [], at


def _word_set(word: str) -> list[frozenset[str]]:
    return [frozenset({word})] if len(word) >= _SHORTEST else []
