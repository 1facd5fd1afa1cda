"""The matrix's rows of one component, for rules that look at releases by name."""

from __future__ import annotations

from envcheck.compat.matrix import Matrix
from envcheck.compat.tables import ReleaseRow


def rows_named(tables: Matrix, name: str) -> list[ReleaseRow]:
    """The rows of a component, in the order of the matrix (oldest release first)."""
    return [row for row in tables.releases if row.name == name]
