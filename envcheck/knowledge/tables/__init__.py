"""The rows of the matrix. Every row has an id, a source and the day it was read; versions are kept as text.

A row is knowledge as its source states it. Whatever can be computed from rows (what a driver still supports, the
newest toolkit for a GPU) is computed by the relations, never typed in.

Without ``from __future__ import annotations``, as in ``envcheck.model.snapshot``: rows are decoded.
"""

from functools import lru_cache
from typing import ClassVar, Literal, TypeAlias

import msgspec

from envcheck.sources import Confidence

Os: TypeAlias = Literal["linux", "windows", "macos", "wsl"]
"""Operating systems. WSL has the Windows driver (and its numbers) under Linux programs."""

Machine: TypeAlias = Literal["x86_64", "aarch64"]


class Row(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A piece of knowledge."""

    source: tuple[str, ...]  # Keys of the sources that state it, in ``[sources.KEY]`` of the same file
    confidence: Confidence = "high"
    note: str = ""

    id_of: ClassVar[str]  # ``cuda/{0.version}``: how a row of the table makes its id

    @property
    def id(self) -> str:
        """Names the row in reports; unique in its table."""
        return self.id_of.format(self)


class SourceRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A page, or a metadata field of a distribution on PyPI, and the day it was read."""

    title: str
    address: str
    read: str


def is_named(name: str, patterns: tuple[str, ...]) -> bool:
    """Whether one of the patterns is the name, or its beginning with ``*`` behind it."""
    return name in patterns or name.startswith(_beginnings(patterns))


def any_named(names: set[str], patterns: tuple[str, ...]) -> bool:
    """Whether that is so of one of the names."""
    beginnings = _beginnings(patterns)
    by_exact_name = not names.isdisjoint(patterns)
    return by_exact_name or (bool(beginnings) and any(name.startswith(beginnings) for name in names))


@lru_cache(maxsize=1 << 10)
def _beginnings(patterns: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(each[:-1] for each in patterns if each.endswith("*"))
