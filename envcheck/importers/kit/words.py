"""Words of other languages in what people write, by what they mean: rows of ``names.toml``."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from envcheck.compat.load import load_matrix

_WITHOUT_BLANKS = ("ja", "ko", "zh_CN", "zh_TW")
"""The languages whose words adjoin each other, or what belongs to them."""


_BEYOND_LATIN = "\u0300"


@cache
def words_for(meaning: str) -> str:
    """A pattern for each word that means this, also as a part of another word."""
    return _either(word for _, word in _said(meaning))


@cache
def whole_words_for(meaning: str) -> str:
    """The same; of languages with blanks between words only whole words."""
    said = _said(meaning)
    whole = _either(word for of, word in said if of not in _WITHOUT_BLANKS)
    adjoining = _either(word for of, word in said if of in _WITHOUT_BLANKS)
    # Asked once for all words, and not at each letter of a text without them: most texts are English.
    return rf"(?<!\w)(?:{whole})(?!\w)|{adjoining}"


def _said(meaning: str) -> list[tuple[str, str]]:
    rows = (row for row in load_matrix().words if row.means == meaning)
    return [(of, word) for row in rows for of, texts in row.said.items() for word in texts]


def _either(words: Iterable[str]) -> str:
    said = sorted(dict.fromkeys(words), key=len, reverse=True)
    beyond = [word for word in said if word[0] >= _BEYOND_LATIN]
    others = [word for word in said if word[0] < _BEYOND_LATIN]
    return "|".join((*others, rf"(?=[{_BEYOND_LATIN}-\U0010ffff])(?:{'|'.join(beyond)})") if beyond else others)
