"""TOML that others wrote: what the parser would spend gigabytes or minutes on is refused before it is parsed.

And on which line of a document each key and item stands, which the parsers do not say.
"""

from __future__ import annotations

import importlib
import re
import sys
from collections import Counter
from typing import Any, TypeAlias

from envcheck.text.lazy import lazy_pattern

_TOML = importlib.import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
_MOST_DOTS = 50  # In one key: the parser's memory and time grow with the square of them
_MOST_MARKS = 400_000  # Keys, items and tables of a document: each takes up to a kilobyte. A 5 MB lock file has 200,000
_MARKS = "=.,[{"
_QUOTED = lazy_pattern(r'"""[\s\S]*?(?:"{3,5}|\Z)|\'\'\'[\s\S]*?(?:\'{3,5}|\Z)|"[^"\n]*"?|\'[^\'\n]*\'?|#[^\n]*')
"""Strings and comments of a text without escapes; also one that is never closed, so that the time stays linear."""


class TomlError(ValueError):
    """A text is no TOML, or more than is read; ``line`` is where, if that is known."""

    def __init__(self, problem: str, line: int | None = None) -> None:
        super().__init__(problem)
        self.line = line


def loads(text: str) -> dict[str, Any]:
    """The document; raise TomlError."""
    unescaped = text.replace("\\\\", "").replace('\\"', "")
    bare = _QUOTED.sub(lambda found: "\n" * found[0].count("\n"), unescaped)
    for number, row in enumerate(bare.split("\n") if bare.count(".") > _MOST_DOTS else (), start=1):
        if row.count(".") > _MOST_DOTS and any(key.count(".") > _MOST_DOTS for key in re.split(r"[][{},=]", row)):
            raise TomlError(f"a key with more than {_MOST_DOTS} dots", number)
    if sum(map(bare.count, _MARKS)) > _MOST_MARKS:
        raise TomlError(f"more than {_MOST_MARKS:,} keys and items")
    try:
        document: dict[str, Any] = _TOML.loads(text)
    except RecursionError:
        raise TomlError("it is nested too deeply") from None
    except ValueError as error:
        found = re.search(r" \(at line (\d+), column \d+\)", str(error))
        line = int(found[1]) if found else text.count("\n") + 1
        raise TomlError(f"no valid TOML: {str(error)[: found.start()] if found else error}", line) from None
    return document


Path: TypeAlias = tuple[str | int, ...]

_TOKEN = lazy_pattern(
    r"(?P<comment>#[^\n]*)"
    r'|(?P<text>"""(?:\\[\s\S]|[^\\])*?"""(?:"{0,2})|\'\'\'[\s\S]*?\'\'\'(?:\'{0,2})'
    r'|"(?:\\.|[^"\\\n])*"|\'[^\'\n]*\')'
    r"|(?P<end>\n)"
    r"|(?P<mark>[\[\]{}=,.])"
    r"|(?P<word>[^\s#\"'\[\]{}=,.]+)"
)


def lines_of(document: str) -> dict[Path, int]:
    """The line (from 1) of each key and of each item of a list, by path. ``document`` is valid TOML.

    Keys within inline tables are left out: ``line_of`` answers with the line of what they stand in.
    """
    return _Reader().read(document)


def line_of(lines: dict[Path, int], path: Path) -> int:
    """The line of ``path``, or of the nearest table or key around it; 1 where nothing is known."""
    return next((lines[path[:length]] for length in range(len(path), 0, -1) if path[:length] in lines), 1)


class _Reader:
    """Reads tokens; ``key`` grows until ``=`` or the end of a heading, then the value's items are noted."""

    def __init__(self) -> None:
        self.lines: dict[Path, int] = {}
        self.tables: Counter[Path] = Counter()
        self.table: Path = ()
        self.key: list[str] = []
        self.heading = 0  # Brackets that opened the heading that is being read
        self.in_value = False
        self.brackets: list[str] = []
        self.item = 0
        self.item_due = False

    def read(self, document: str) -> dict[Path, int]:
        line = 1
        for token in _TOKEN.finditer(document):
            kind, text = token.lastgroup, token.group()
            if kind != "comment":
                (self._value if self.in_value else self._key)(str(kind), text, line)
            line += text.count("\n")
        return self.lines

    def _key(self, kind: str, text: str, line: int) -> None:
        if kind in ("word", "text"):
            self.key.append(text if kind == "word" else text[1:-1])
        elif text == "[" and not self.key:
            self.heading += 1
        elif text == "]" and self.key:
            path = self._path_of((), self.key, line)
            self.lines.setdefault(path, line)
            if self.heading > 1:
                self.tables[path] += 1
                path = (*path, self.tables[path] - 1)
            self.lines.setdefault(path, line)
            self.table, self.key = path, []
        elif text == "=":
            self.lines.setdefault(self._path_of(self.table, self.key, line), line)
            self.in_value, self.brackets, self.item = True, [], 0
        elif kind == "end":
            self.key, self.heading = [], 0

    def _path_of(self, table: Path, key: list[str], line: int) -> Path:
        """The path of a dotted key; a part that names a list of tables means its last one."""
        path = table
        for number, part in enumerate(key):
            path = (*path, part)
            if number < len(key) - 1:
                self.lines.setdefault(path, line)
                if self.tables[path]:
                    path = (*path, self.tables[path] - 1)
        return path

    def _value(self, kind: str, text: str, line: int) -> None:
        if kind == "end":
            if not self.brackets:
                self.in_value, self.key, self.heading = False, [], 0
            return
        in_list = self.brackets == ["["]
        if in_list and text == ",":
            self.item, self.item_due = self.item + 1, True
        elif in_list and text != "]" and self.item_due:
            self.lines.setdefault((*self._path_of(self.table, self.key, line), self.item), line)
            self.item_due = False
        if kind == "mark" and text in "[{":
            self.item_due = not self.brackets and text == "["
            self.brackets.append(text)
        elif kind == "mark" and text in "]}" and self.brackets:
            self.brackets.pop()
