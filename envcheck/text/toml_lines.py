"""On which line of a TOML document each key and item stands; the parsers that read TOML do not say."""

from __future__ import annotations

import re
from collections import Counter
from typing import TypeAlias

Path: TypeAlias = tuple[str | int, ...]

_TOKEN = re.compile(
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
        self.heading = 0
        """Brackets that opened the heading that is being read."""
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
            self.table = self._headed(line)
            self.key = []
        elif text == "=":
            self.lines.setdefault(self._below(self.table, self.key, line), line)
            self.in_value, self.brackets, self.item = True, [], 0
        elif kind == "end":
            self.key, self.heading = [], 0

    def _headed(self, line: int) -> Path:
        path = self._below((), self.key, line)
        self.lines.setdefault(path, line)
        if self.heading > 1:
            self.tables[path] += 1
            path = (*path, self.tables[path] - 1)
        self.lines.setdefault(path, line)
        return path

    def _below(self, table: Path, key: list[str], line: int) -> Path:
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
            self.lines.setdefault((*self._below(self.table, self.key, line), self.item), line)
            self.item_due = False
        if kind == "mark" and text in "[{":
            self.item_due = not self.brackets and text == "["
            self.brackets.append(text)
        elif kind == "mark" and text in "]}" and self.brackets:
            self.brackets.pop()
