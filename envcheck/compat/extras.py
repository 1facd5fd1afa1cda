"""Extras of packages (``jax[cuda13]``): which components they bring that decide about GPUs."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from envcheck.compat.matrix import Matrix
from envcheck.compat.specifier import parse_specifier, parse_version
from envcheck.compat.tables import ExtraRow
from envcheck.components import Bound, Component


def extras_of(matrix: Matrix, name: str, version: str) -> list[ExtraRow]:
    """What the matrix says of the extras of a release."""
    number = parse_version(version)
    rows = [row for row in matrix.extras if row.name == name]
    return [row for row in rows if number is not None and parse_specifier(row.versions).cover(number) == "all"]


def brought(rows: Sequence[ExtraRow], version: str, extras: Collection[str]) -> list[Component] | None:
    """The components that come with ``extras`` of a release; None where no row covers any of them."""
    found = [row for row in rows if set(row.extras) & set(extras)]
    if not found:
        return None
    return [
        Component(name, (Bound("==", version if bound == "=" else bound),))
        for row in found
        for name, bound in row.brings.items()
    ]
