"""How people and programs word what importers look for: patterns by name (rows of ``wording.toml``), with the words of
other languages in them (rows of ``names.toml``).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache

from envcheck.knowledge.load import load_matrix
from envcheck.knowledge.patterns import expanded

_WITHOUT_BLANKS = ("ja", "ko", "zh_CN", "zh_TW")
"""The languages whose words adjoin each other, or what belongs to them."""
_BEYOND_LATIN = "\u0300"


@cache
def wording(name: str) -> re.Pattern[str]:
    """The pattern of this name, compiled when it is first asked for: most texts need few of them."""
    flags = next(row.flags for row in load_matrix().wordings if row.name == name)
    return re.compile(f"(?{flags}){text_of(name)}" if flags else text_of(name))


def text_of(name: str) -> str:
    """The same as a part of another pattern."""
    return expanded(_texts()[name], _texts())


@cache
def _texts() -> dict[str, str]:
    """The patterns by name, with parts for those that name them, and words of other languages by what they mean."""
    found = {row.name: "|".join(row.patterns) for row in load_matrix().wordings}
    for row in load_matrix().words:
        words = [(language in _WITHOUT_BLANKS, word) for language, texts in row.said.items() for word in texts]
        found[f"words-{row.means}"] = _either(word for _, word in words)
        whole_words = _either(word for adjoins, word in words if not adjoins)
        adjoining = _either(word for adjoins, word in words if adjoins)
        # Asked once for all words, and not at each letter of a text without them: most texts are English.
        found[f"whole-words-{row.means}"] = rf"(?<!\w)(?:{whole_words})(?!\w)|{adjoining}"
    return found


def _either(words: Iterable[str]) -> str:
    ordered = sorted(dict.fromkeys(words), key=len, reverse=True)
    beyond = [word for word in ordered if word[0] >= _BEYOND_LATIN]
    others = [word for word in ordered if word[0] < _BEYOND_LATIN]
    # To compile a set of all letters beyond takes a hundred times as long as that of what they are not.
    return "|".join((*others, rf"(?=[^\x00-\x7f])(?:{'|'.join(beyond)})") if beyond else others)
