"""Packages whose source alone is on PyPI and is compiled for CUDA against PyTorch: whether the plan lets them build."""

from __future__ import annotations

import re

import msgspec

from envcheck.checks import Check, Fix
from envcheck.compat.images import image_of
from envcheck.compat.matrix import Matrix
from envcheck.compat.names import canonical
from envcheck.compat.specifier import parse_specifier, parse_version
from envcheck.compat.tables import ReleaseRow, WheelRow
from envcheck.pipeline.planned.checks import check_of, label_of
from envcheck.snapshot import Environment, Planned


def uncompiled(item: Planned, environment: Environment, matrix: Matrix) -> Check | None:
    """The open question of a package that must be compiled, where its build sees no PyTorch, or the image no nvcc."""
    rows = _rows(item, matrix)
    if rows is None:
        return None
    images = {each.image for each in environment.planned or () if each.image is not None}
    first = f"Install PyTorch first, then {item.name} with --no-build-isolation, or a compiled wheel."
    if item.isolated:
        told, fix = "pip builds it in isolation, where it sees no PyTorch unless its source asks for it", first
    # pip builds before it installs, so PyTorch must come from the base image or another command.
    elif images and not any(
        matrix.has_trait(each.name, "distributes-torch") and (each.image is not None or each.together != item.together)
        for each in environment.planned or ()
    ):
        told, fix = "no command before this one is known to install PyTorch", first
    elif images and not any(_holds_nvcc(name, matrix) for name in images):
        told = "nothing that was read brings nvcc into the image"
        fix = "Start from an image with the CUDA toolkit (nvcc), or install a compiled wheel."
    else:
        return None
    why = f"PyPI has its source alone, which is compiled against PyTorch with nvcc; {told}."
    title = f"Whether {label_of(item)} can be built is not known"
    check = check_of(item, environment, "unknown", title, f"{label_of(item)}: {why}", fixes=(Fix(text=fix),))
    return msgspec.structs.replace(check, sources=matrix.cite(*rows))


def _rows(item: Planned, matrix: Matrix) -> tuple[WheelRow, ReleaseRow] | None:
    """The rows that say of PyPI's package that there is no wheel for Linux, and that PyTorch and nvcc compile it."""
    from_pypi = item.conda is None and item.image is None and not item.problem and "+" not in (item.version or "")
    if not from_pypi or matrix.has_trait(item.name, "compiles-where-it-runs"):
        return None
    name, version = canonical(item.name), parse_version(item.version or "")
    wheels = [
        row for row in matrix.wheels_by_name.get(name, ()) if row.archive and not {"any", "linux"} & {*row.pythons}
    ]
    if version is not None:
        wheels = [row for row in wheels if parse_specifier(row.versions).cover(version) == "all"]
    releases = [row for row in matrix.rows_of(name) if {"nvcc", "torch"} <= row.needs.keys()]
    return (wheels[-1], releases[-1]) if wheels and releases else None


def _holds_nvcc(name: str, matrix: Matrix) -> bool:
    image = image_of(matrix, name)
    row = image.row if image else None
    return row is not None and bool(row.nvcc) and re.fullmatch(row.nvcc, name.rpartition(":")[2]) is not None
