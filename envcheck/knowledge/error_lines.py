"""Match lines of programs, the kernel and container runtimes with the rows of ``errors.toml``.

Only the shipped rows are used: a user's pattern could take unlimited time on a hostile line. A pattern is tried only on
lines that contain the words which it spells out: most lines match none of some 1,500 patterns, and a pattern with
``.*`` takes a time that grows with the square of a line's length.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import cache, lru_cache
from typing import TYPE_CHECKING, NamedTuple

from envcheck.knowledge.compiling import ERROR_INDEX, FAILURE_INDEX, REMEDY_INDEX
from envcheck.knowledge.load import load_matrix
from envcheck.knowledge.matrix import decode
from envcheck.knowledge.patterns import Index, expanded, fragments_of, index_of, patterns_of, remedy_patterns
from envcheck.knowledge.tables.messages import RemedyRow, XidRow
from envcheck.model.checks import DecidedBy, Status
from envcheck.text.lazy import lazy_pattern

if TYPE_CHECKING:
    from envcheck.model.snapshot import ObservedError


LONGEST = 2000  # Characters of a line that are matched; pasted text is untrusted
_XID = lazy_pattern(r"\bXid(?: ?\([^)]{0,80}\))?(?:[:,]? {0,8}|=)([0-9]{1,3})\b", re.IGNORECASE)
_REMARK = lazy_pattern(r"\s*\[\[")
"""The beginning of the harmless line in which NVIDIA's images say that they run without forward compatibility."""


class ErrorLine(NamedTuple):
    """A line that names a problem."""

    problem: str  # Name of the rule
    pattern: str  # A regular expression; case does not count
    said_by: DecidedBy
    status: Status = "fail"
    after: tuple[str, ...] = ()  # Problems whose consequence the line is
    beside: str = ""  # A regular expression that another line of the same text must match
    unless: str = ""  # A regular expression that no line of the same text may match
    programs: tuple[tuple[str, str], ...] = ()  # Programs other than PyTorch, and what their lines match
    costs_speed: bool = False  # Whether a note is a warning where another line says that a program is slow

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
    return _ranks().get(named_by(text), len(_ranks()))


def named_beside(text: str, texts: Sequence[str]) -> ErrorLine | None:
    """As ``named_by``; a row gives way if what must stand beside it is not in ``texts``, or what must not is."""
    line = named_by(text)
    if line is None or is_borne_out(line, texts):
        return line
    return next((row for row in rows_in(text) if is_borne_out(row, texts)), None)


@lru_cache(maxsize=256)  # rules ask about the same lines again
def rows_in(text: str) -> tuple[ErrorLine, ...]:
    """All rows that know a line, by priority."""
    return tuple(_rows_in(text))


def _rows_in(text: str) -> Iterator[ErrorLine]:
    shown = text[:LONGEST]
    if not _REMARK.match(shown):
        lines = map(error_lines().__getitem__, _index().in_line(shown.lower()))
        yield from (line for line in lines if line.is_in(shown))


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
    return (not line.beside or met_in(line.beside, texts)) and not (line.unless and met_in(line.unless, texts))


def bears_on(line: ErrorLine, text: str) -> bool:
    """Whether a text is what must, or must not, stand beside the line."""
    return any(pattern and met_in(pattern, (text,)) for pattern in (line.beside, line.unless))


def bears_on_remedy(text: str) -> bool:
    shown, (patterns, index) = text[:LONGEST], _remedy_patterns()
    return any(_compiled(patterns[place]).search(shown) for place in index.in_line(shown.lower()))


def words_beside(row: RemedyRow, texts: Sequence[str]) -> dict[str, str] | None:
    """The words that lines of a text hold for a remedy; None where it is not for that text."""
    words: dict[str, str] = {}
    for patterns in (row.lines, (row.beside,) if row.beside else ()):
        tried = (_compiled(expanded(each, _fragments())).search(text[:LONGEST]) for each in patterns for text in texts)
        found = next(filter(None, tried), None)
        if patterns and found is None:
            return None
        words |= {name: word for name, word in (found.groupdict() if found else {}).items() if word}
    differ = any(words.get(f"{name}_", word) != word for name, word in words.items())  # ``NAME_`` of another line
    return None if differ or (row.unless and met_in(expanded(row.unless, _fragments()), texts)) else words


def met_in(pattern: str, texts: Iterable[str]) -> bool:
    return any(_compiled(pattern).search(text[:LONGEST]) for text in texts)


@lru_cache(maxsize=8)
def failure_patterns(whole: str | None) -> dict[str, list[str]]:
    """What lines about failures match, by where it stands: of a whole text in lower case what its lines may match."""
    index = _compiled_index(FAILURE_INDEX) if whole is not None else None
    places = None if index is None or whole is None else frozenset(index.in_line(whole))
    found: defaultdict[str, list[str]] = defaultdict(list)
    rows = ((row.where, pattern) for row in load_matrix().failures for pattern in row.patterns)
    for place, (where, pattern) in enumerate(rows):
        # Letters have forms beyond ASCII that lower case keeps: without regard to case, a long s is an "s".
        if places is None or place in places or (where == "harmless" and not (whole or "").isascii()):
            found[where].append(pattern)
    return found


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
    fragments = _fragments()
    return tuple(
        ErrorLine(
            row.problem,
            pattern,
            row.said_by,
            row.status,
            row.after,
            expanded(row.beside, fragments),
            expanded(row.unless, fragments),
            tuple(row.programs.items()),
            row.costs_speed,
        )
        for row in sorted(load_matrix().errors, key=lambda row: row.priority)
        for pattern in patterns_of(row.lines, row.codes, fragments)
    )


@cache
def _ranks() -> dict[ErrorLine | None, int]:
    return {line: rank for rank, line in enumerate(error_lines())}


@cache
def _index() -> Index:
    return _compiled_index(ERROR_INDEX) or index_of(line.pattern for line in error_lines())


def _compiled_index(entry: str) -> Index | None:
    compiled = load_matrix().given.get(entry)
    index: Index | None = decode(compiled, Index) if compiled else None
    return index


@cache
def _remedy_patterns() -> tuple[tuple[str, ...], Index]:
    rows = ((*row.lines, row.beside, row.unless) for row in load_matrix().remedies)
    found = remedy_patterns(rows, _fragments())
    return found, _compiled_index(REMEDY_INDEX) or index_of(found)


@cache
def _of_fragment(name: str) -> str:
    return expanded(_fragments()[name], _fragments())


@cache
def _fragments() -> dict[str, str]:
    matrix = load_matrix()
    return fragments_of(
        ((row.name, row.pattern) for row in matrix.fragments), ((row.kind, row.files) for row in matrix.families)
    )


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    # Compiled on demand: most checks see no error line, and some three hundred patterns take 50 ms.
    # A word ends at a letter of another script too: Chinese and Japanese put no space between them.
    return re.compile(pattern, re.IGNORECASE | re.ASCII)
