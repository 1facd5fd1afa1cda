"""Pins of a plan that exclude each other: pip, which is to install them together, refuses to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec
from packaging.specifiers import SpecifierSet

from envcheck.checks import Check, Evidence, Fix
from envcheck.compat.matrix import Matrix
from envcheck.compat.question.declared import declared
from envcheck.pipeline.planned.checks import check_of, label_of
from envcheck.snapshot import Environment, Planned


def contradictions(environment: Environment, markers: Mapping[str, str], matrix: Matrix) -> Iterator[Check]:
    """A failure for each pin that another pin of the same command or file requires otherwise."""
    pinned = {
        each.name: each
        for each in environment.planned or ()
        if each.name and each.version is not None and each.together is not None and each.refused is None
    }
    for each in pinned.values():
        needs = declared(matrix, each.name, each.version or "", markers, build=each.build, extras=each.extras)
        for name, bounds in needs.items():
            other = pinned.get(name)
            if other is not None and other.together == each.together and _excludes(bounds, other.version or ""):
                yield _check(each, other, bounds, environment, matrix)


def _excludes(bounds: str, version: str) -> bool:
    try:
        return not SpecifierSet(bounds).contains(version, prereleases=True)
    except ValueError:
        return False


def _check(item: Planned, other: Planned, bounds: str, environment: Environment, matrix: Matrix) -> Check:
    check = check_of(
        item,
        environment,
        "fail",
        f"{label_of(item)} and {label_of(other)} cannot be installed together",
        f"{label_of(item)} requires {other.name}{bounds}, and {other.source} pins {other.asked}: pip refuses both.",
        fixes=(Fix(text=f"Pin {other.name}{bounds}, or another {item.name}."),),
    )
    rows = [row for row in matrix.requirements_by_name.get(item.name, ()) if other.name in row.needs]
    return msgspec.structs.replace(
        check,
        id=f"{check.id} {other.name}",
        evidence=(*check.evidence, Evidence(what="planned", value=other.asked, source=other.source)),
        sources=matrix.cite(*rows[:1]),
    )
