"""A TOML file of the matrix to change; everything else in it stays as it is, comments included."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import tomlkit
from tomlkit.container import Container
from tomlkit.exceptions import TOMLKitError
from tomlkit.items import AoT, Comment, Table, Whitespace

from envcheck.errors import MatrixError, UsageError

_LONGEST_LIST = 400
"""Characters of a list that is written on one line."""


class Document:
    """One file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._taken: dict[str, list[dict[str, Any]]] = {}
        try:
            self._text = _read(path)
            self.content = tomlkit.parse(self._text)
        except TOMLKitError as error:
            raise MatrixError(f"{path.name}: cannot be read as TOML: {error}") from None

    def rows(self, table: str) -> list[Table]:
        """The rows of ``[[table]]``."""
        found = self.content.get(table, [])
        return list(found) if isinstance(found, AoT) else []

    def insert(self, table: str, position: int, row: Mapping[str, Any]) -> None:
        """Put a new row before the one at ``position``."""
        array = self.content.get(table)
        if not isinstance(array, AoT):
            array = tomlkit.aot()
            self.content.append(table, array)
        new = _as_table(table, row)
        if position > 0:
            _move_trivia(array[position - 1], new)
        array.insert(position, new)

    def take(self, table: str) -> list[dict[str, Any]]:
        """The rows of ``[[table]]``, which ``text`` then writes in this one style at the end of the file."""
        if table not in self._taken:
            self._taken[table] = [row.unwrap() for row in self.rows(table)]
            self.content.pop(table, None)
        return self._taken[table]

    @property
    def text(self) -> str:
        whole = tomlkit.dumps(self.content)
        if not any(self._taken.values()):
            return whole
        rows = [_as_text(table, row) for table, rows in self._taken.items() for row in rows]
        return "\n".join((whole.rstrip("\n") + "\n", *rows))

    def check_untouched(self) -> None:
        """Raise UsageError if the file was changed since it was read, instead of overwriting it."""
        if _read(self.path) != self._text:
            raise UsageError(f"{self.path} was changed while the index was read; nothing was written, refresh again")


def _read(path: Path) -> str:
    """The text with its original line ends."""
    try:
        return path.read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from None


def array(values: Sequence[str]) -> tomlkit.items.Array:
    """A list on one line."""
    made: tomlkit.items.Array = _parsed(_text_of(list(values)))
    return made


def inline(values: Mapping[str, Any]) -> tomlkit.items.InlineTable:
    """A table on one line."""
    made: tomlkit.items.InlineTable = _parsed(_text_of(values))
    return made


def _parsed(text: str) -> Any:
    return tomlkit.parse(f"value = {text}\n")["value"]


def _as_text(table: str, row: Mapping[str, Any]) -> str:
    """A row in the style of hand-written ones: one key on each line, followed by an empty line."""
    lines = [f"{key} = {_text_of(value)}" for key, value in row.items()]
    return "\n".join((f"[[{table}]]", *lines, ""))


def _as_table(table: str, row: Mapping[str, Any]) -> Table:
    parsed = tomlkit.parse(f"{_as_text(table, row)}\n")[table]
    assert isinstance(parsed, AoT)  # noqa: S101 - it was written in the line above
    return parsed[0]


def _text_of(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return tomlkit.string(value).as_string()
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{key} = {_text_of(item)}" for key, item in value.items()) + " }"
    if value and isinstance(value[0], Mapping):
        return "[\n" + "".join(f"    {_text_of(item)},\n" for item in value) + "]"
    line = "[" + ", ".join(_text_of(item) for item in value) + "]"
    return line if len(line) <= _LONGEST_LIST else "[\n" + "".join(f"    {_text_of(item)},\n" for item in value) + "]"


def _move_trivia(before: Table, new: Table) -> None:
    """Move the comments after the previous row to the row that they precede."""
    trivia = _cut_trivia(before)
    _append_trivia(before, [(None, Whitespace("\n"))])
    _cut_trivia(new)
    _append_trivia(new, trivia or [(None, Whitespace("\n"))])


def _cut_trivia(row: Table) -> list[tuple[Any, Any]]:
    body = _last_container(row).body
    kept = len(body)
    while kept and body[kept - 1][0] is None and isinstance(body[kept - 1][1], Comment | Whitespace):
        kept -= 1
    cut = list(body[kept:])
    del body[kept:]
    return cut


def _append_trivia(row: Table, trivia: Sequence[tuple[Any, Any]]) -> None:
    _last_container(row).body.extend(trivia)


def _last_container(row: Table) -> Container:
    """The container of the text at the end of a row: its last sub-table, if it ends with one."""
    container = row.value
    while True:
        keyed = [item for key, item in container.body if key is not None]
        if not keyed or not isinstance(keyed[-1], Table):
            return container
        container = keyed[-1].value
