"""How people and programs word what importers look for: patterns by name (rows of ``wording.toml``), with the words of
other languages in them (rows of ``names.toml``).
"""

from __future__ import annotations

import re
from functools import cache

from envcheck.knowledge.load import load_matrix
from envcheck.knowledge.patterns import expanded, wording_texts
from envcheck.text.lazy import lazy_pattern


@cache
def wording(name: str) -> re.Pattern[str]:
    """The pattern of this name, compiled for the first line that may have it: most texts need few of them."""
    flags, text = next(row.flags for row in load_matrix().wordings if row.name == name), text_of(name)
    return lazy_pattern(f"(?{flags}){text}" if flags else text, needed=load_matrix().needed_words.get(text, ()))


def text_of(name: str) -> str:
    """The same as a part of another pattern."""
    return expanded(_texts()[name], _texts())


@cache
def _texts() -> dict[str, str]:
    matrix = load_matrix()
    return wording_texts(
        ((row.name, row.patterns) for row in matrix.wordings), ((row.means, row.said) for row in matrix.words)
    )
