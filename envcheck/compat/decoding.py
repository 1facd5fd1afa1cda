"""Tables whose rows are decoded when they are first asked for: a question needs few of them, and all take 20 ms.

A table is given as its rows, or as JSON of the compiled matrix.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from threading import RLock
from typing import Any, Generic, TypeVar, overload

import msgspec

from envcheck.compat.names import canonical
from envcheck.compat.tables import PublishedRow, ReleaseRow, RequirementRow, Row, WheelRow
from envcheck.errors import MatrixError

R = TypeVar("R", bound=Row)
N = TypeVar("N", ReleaseRow, WheelRow, RequirementRow, PublishedRow)

ONE_AT_A_TIME = RLock()
"""msgspec prepares a Struct at its first decoding; a second thread that decodes it meanwhile ends the process."""


def decode(content: bytes | msgspec.Raw, wanted: Any) -> Any:
    """``content`` of the compiled matrix as the type ``wanted``; raise MatrixError where it is damaged."""
    try:
        with ONE_AT_A_TIME:
            return msgspec.json.decode(content, type=wanted)
    except msgspec.DecodeError as error:
        raise MatrixError(f"the compiled matrix is damaged, install envcheck again: {error}") from error


def decode_rows(content: msgspec.Raw, row: type[R]) -> tuple[R, ...]:
    rows: tuple[R, ...] = decode(content, tuple[row, ...])  # type: ignore[valid-type]  # row is an argument
    return rows


class Table(Generic[R]):
    """The rows of one kind, as an attribute of an object with the Mapping ``given`` of tables by name."""

    def __init__(self, row: type[R]) -> None:
        self.row = row

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> Table[R]: ...
    @overload
    def __get__(self, instance: object, owner: type) -> tuple[R, ...]: ...
    def __get__(self, instance: Any, owner: type) -> Table[R] | tuple[R, ...]:
        if instance is None:
            return self
        given = instance.given.get(self._name, ())
        rows = decode_rows(given, self.row) if isinstance(given, msgspec.Raw) else given
        instance.__dict__[self._name] = rows  # found there from now on
        return rows


class ByName(Mapping[str, tuple[N, ...]]):
    """Rows by the canonical name of their component, those of one name in the order of the matrix."""

    def __init__(self, row: type[N], given: Iterable[N] | msgspec.Raw) -> None:
        self._row: type[N] = row
        self._encoded: dict[str, msgspec.Raw] = {}
        self._rows: dict[str, tuple[N, ...]] = {}
        if isinstance(given, msgspec.Raw):
            self._encoded = decode(given, dict[str, msgspec.Raw])
        else:
            groups: dict[str, list[N]] = {}
            for one in given:
                groups.setdefault(canonical(one.name), []).append(one)
            self._rows = {name: tuple(group) for name, group in groups.items()}

    def __getitem__(self, name: str) -> tuple[N, ...]:
        found = self._rows.get(name)
        if found is None:
            found = self._rows[name] = decode_rows(self._encoded[name], self._row)
        return found

    def __contains__(self, name: object) -> bool:
        return name in self._encoded or name in self._rows

    def __iter__(self) -> Iterator[str]:
        return iter(self._encoded or self._rows)

    def __len__(self) -> int:
        return len(self._encoded or self._rows)
