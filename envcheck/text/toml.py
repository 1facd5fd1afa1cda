"""TOML that others wrote: what the parser would spend gigabytes or minutes on is refused before it is parsed."""

from __future__ import annotations

import importlib
import re
import sys
from typing import Any

_TOML = importlib.import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
_MOST_DOTS = 50
"""In one key: the parser's memory and time grow with the square of them."""
_MOST_MARKS = 400_000
"""Keys, items and tables of a document: each takes up to a kilobyte. A lock file of 5 MB has 200,000."""
_MARKS = "=.,[{"
_QUOTED = re.compile(
    r'"""[\s\S]*?(?:"{3,5}|\Z)|\'\'\'[\s\S]*?(?:\'{3,5}|\Z)|"[^"\n]*"?|\'[^\'\n]*\'?|#[^\n]*',
)
"""Strings and comments of a text without escapes; also one that is never closed, so that the time stays linear."""


class TomlError(ValueError):
    """A text is no TOML, or more than is read; ``line`` is where, if that is known."""

    def __init__(self, problem: str, line: int | None = None) -> None:
        super().__init__(problem)
        self.line = line


def loads(text: str) -> dict[str, Any]:
    """The document; raise TomlError."""
    _check_size(text)
    try:
        document: dict[str, Any] = _TOML.loads(text)
    except RecursionError:
        raise TomlError("it is nested too deeply") from None
    except ValueError as error:
        found = re.search(r" \(at line (\d+), column \d+\)", str(error))
        line = int(found[1]) if found else text.count("\n") + 1
        raise TomlError(f"no valid TOML: {str(error)[: found.start()] if found else error}", line) from None
    return document


def _check_size(text: str) -> None:
    unescaped = text.replace("\\\\", "").replace('\\"', "")
    bare = _QUOTED.sub(lambda found: "\n" * found[0].count("\n"), unescaped)
    for number, line in enumerate(bare.split("\n") if bare.count(".") > _MOST_DOTS else (), start=1):
        if line.count(".") > _MOST_DOTS and any(key.count(".") > _MOST_DOTS for key in re.split(r"[][{},=]", line)):
            raise TomlError(f"a key with more than {_MOST_DOTS} dots", number)
    if sum(map(bare.count, _MARKS)) > _MOST_MARKS:
        raise TomlError(f"more than {_MOST_MARKS:,} keys and items")
