"""The C library of an image's system, and what the wheels of a plan need of it."""

from __future__ import annotations

import msgspec

from envcheck.checks import Check, Fix
from envcheck.compat.matrix import Matrix
from envcheck.compat.specifier import covered, parse_version
from envcheck.components import Bound, Component
from envcheck.pipeline.planned.checks import answered, asked, check_of, label_of
from envcheck.plans.readers.dockerfile import MUSL
from envcheck.snapshot import Environment, Planned

_PURE = "any"


def beside_system(item: Planned, environment: Environment, matrix: Matrix) -> Check | None:
    """The failure of a package whose wheels the image's system does not take; None where it does, or none is known."""
    if item.version is None or item.conda is not None or item.image is not None or item.brings is not None:
        return None
    release = f"{item.version}+{item.build}" if item.build and item.name == "torch" else item.version
    for part in environment.planned or ():
        if part.image is None or part.version is None:
            continue
        if part.name == MUSL:
            return _without_glibc(item, part, environment, matrix)
        if part.name in matrix.distribution_names:
            answer = asked(matrix, item.name, release, [Component(part.name, (Bound("==", part.version),))])
            if answer is not None and answer.verdict == "incompatible":
                return answered(item, environment, answer, f" {part.image}")
    return None


def _without_glibc(item: Planned, part: Planned, environment: Environment, matrix: Matrix) -> Check | None:
    """Rows of wheels leave out those for musl; no package for GPUs had any on 26 November 2026."""
    number = parse_version(item.version or "")
    rows = [
        row for row in matrix.wheels_by_name.get(item.name, ()) if number and covered(row.versions, number) == "all"
    ]
    if not rows or any(row.archive or _PURE in row.pythons for row in rows):
        return None
    check = check_of(
        item,
        environment,
        "fail",
        f"{label_of(item)} does not fit {part.image}",
        f"the wheels of {label_of(item)} for Linux need glibc, and the C library of {part.image} is musl",
        fixes=(Fix(text="Start from an image of Debian or Ubuntu, as the tags without alpine are."),),
    )
    return msgspec.structs.replace(check, sources=matrix.cite(*rows))
