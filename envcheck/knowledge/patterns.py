"""The patterns of error lines, whole, and an index that says which of them a line can match at all.

Some 1,500 patterns are to be tried on lines that match none of them. Each spells out words that a line must have; the
build of the wheel finds these and their index, since that takes longer than most checks, with the standard library.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from envcheck.text.lazy import Needed, has_needed, lazy_pattern

_ENDED = (
    r"(?:cu(?:da|init).{{0,200}}(?:\b|API)(?:error|failure|fails with|code|failed to get (?:\w+ )?context)\D{{0,3}}"
    r"|\bcu(?:da|init|device|ctx)\w*(?:\([^)\s]*\))? (?:returned|returns|gives|gave|fail(?:s|ed) with|err:)"
    r" (?:error )?){code}\b"
)
"""A line that reports the status code of a CUDA driver or runtime call."""
_FRAGMENT = lazy_pattern(r"\{\{([a-z-]+)\}\}")


def expanded(pattern: str, fragments: Mapping[str, str]) -> str:
    """A pattern with the fragments that it names in their places."""
    return _FRAGMENT.sub(lambda name: expanded(fragments[name[1]], fragments), pattern) if "{{" in pattern else pattern


def families_pattern(files: Iterable[str]) -> str:
    """A regular expression for what stands between ``lib`` and ``.so``, as short as can be: what follows decides."""
    return "(?:" + "|".join(re.sub(r"\\w([*+])", r"\\w\1?", each) for each in files) + ")"


def patterns_of(lines: Iterable[str], codes: Iterable[int], fragments: Mapping[str, str]) -> list[str]:
    """The patterns of an ``[[error]]``, whole."""
    return [*(expanded(line, fragments) for line in lines), *(_ENDED.format(code=code) for code in codes)]


def remedy_patterns(rows: Iterable[Iterable[str]], fragments: Mapping[str, str]) -> tuple[str, ...]:
    """The patterns of all ``[[remedy]]``, whole, each once."""
    return tuple(dict.fromkeys(expanded(text, fragments) for texts in rows for text in texts if text))


def fragments_of(named: Iterable[tuple[str, str]], families: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Fragments by name: those with a name, and ``KIND-family`` for the files of each kind of library."""
    files: dict[str, list[str]] = {}
    for kind, pattern in families:
        files.setdefault(kind, []).append(pattern)
    return {**dict(named), **{f"{kind}-family": families_pattern(found) for kind, found in files.items()}}


_WITHOUT_BLANKS = ("ja", "ko", "zh_CN", "zh_TW")  # The languages whose words adjoin each other, or what belongs to them
_BEYOND_LATIN = "\u0300"


def wording_texts(
    named: Iterable[tuple[str, Iterable[str]]], words: Iterable[tuple[str, Mapping[str, Iterable[str]]]]
) -> dict[str, str]:
    """The patterns of ``[[wording]]`` by name, with the parts that they name and the words of other languages."""
    found = {name: "|".join(patterns) for name, patterns in named}
    for means, said in words:
        by_language = [(language in _WITHOUT_BLANKS, word) for language, texts in said.items() for word in texts]
        found[f"words-{means}"] = _either(word for _, word in by_language)
        whole_words = _either(word for adjoins, word in by_language if not adjoins)
        adjoining = _either(word for adjoins, word in by_language if adjoins)
        # Asked once for all words, and not at each letter of a text without them: most texts are English.
        found[f"whole-words-{means}"] = rf"(?<!\w)(?:{whole_words})(?!\w)|{adjoining}"
    return found


def _either(words: Iterable[str]) -> str:
    ordered = sorted(dict.fromkeys(words), key=len, reverse=True)
    beyond = [word for word in ordered if word[0] >= _BEYOND_LATIN]
    others = [word for word in ordered if word[0] < _BEYOND_LATIN]
    # To compile a set of all letters beyond takes a hundred times as long as that of what they are not.
    return "|".join((*others, rf"(?=[^\x00-\x7f])(?:{'|'.join(beyond)})") if beyond else others)


_SHORTEST = 2  # Characters of a word that is worth looking for
# Python has no public parser of its own patterns; of what they are made of, this much decides what they spell out.
_TOKEN = lazy_pattern(
    r"\(\?(?:P=\w+|[a-z]+)\)|(?P<open>\((?:\?(?:P<\w+>|[a-z]*(?:-[a-z]+)?:|<?[=!]))?)|(?P<close>\))|(?P<other>\|)"
    r"|\[\^?\]?(?:\\.|[^\]\\])*\]"
    r"|(?P<repeat>[*+?]\??|\{\d*(?:,\d*)?\}\??)|\\(?P<escaped>\W)|\\.|[.^$]|(?P<literal>.)",
    re.DOTALL,
)
_DENIES = ("(?!", "(?<!")  # What begins a group whose words no match needs

_RUN = 4


def needed_by(pattern: str) -> Needed:
    """The words that every match of ``pattern`` contains, whatever their case."""
    found, _ = _alternatives(list(_TOKEN.finditer(pattern)), 0)
    return tuple(tuple(sorted(words)) for words in dict.fromkeys(found))


class Index(NamedTuple):
    """Patterns, by their numbers, so that a line is held against those few whose words it may have.

    A word can only be in a line that has all its runs of ``_RUN`` characters; the one that fewest words share tells.
    """

    needed: tuple[Needed, ...]  # What each pattern needs
    always: tuple[int, ...]  # Those that no run tells
    by_run: Mapping[str, Sequence[int]]  # The others, by a run that each line has which they match

    def in_line(self, lowered: str) -> Iterator[int]:
        """The patterns whose needed words a line, in lower case, contains, in their order."""
        runs = _runs(lowered) & self.by_run.keys()
        for place in sorted({*self.always}.union(*(self.by_run[run] for run in runs))):
            if has_needed(self.needed[place], lowered):
                yield place


def index_of(patterns: Iterable[str]) -> Index:
    """The index of these patterns, by their places among them."""
    needed = tuple(map(needed_by, patterns))
    rarest = [_longest(map(frozenset, words)) for words in needed]
    shared = Counter(run for word in frozenset().union(*rarest) for run in _runs(word))
    always: list[int] = []
    by_run: defaultdict[str, list[int]] = defaultdict(list)
    for place, words in enumerate(rarest):
        if not words or any(len(word) < _RUN for word in words):
            always.append(place)
            continue
        for run in sorted({min(sorted(_runs(word)), key=shared.__getitem__) for word in words}):  # each build is alike
            by_run[run].append(place)
    return Index(needed, tuple(always), by_run)


def _runs(text: str) -> set[str]:
    return {text[at : at + _RUN] for at in range(len(text) - _RUN + 1)}


def _longest(needed: Iterable[frozenset[str]]) -> frozenset[str]:
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
            needed, at = [] if token["open"].startswith(_DENIES) else inner, at + 1
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
