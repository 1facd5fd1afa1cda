"""What a Jetson's system software comes with, and which libraries were looked for in vain there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from envcheck.checks import Evidence
from envcheck.compat.families import row_of
from envcheck.compat.specifier import parse_specifier, parse_version
from envcheck.compat.tables import FamilyRow, ReleaseRow
from envcheck.rules.api import Facts
from envcheck.rules.machine import on_tegra
from envcheck.rules.observed import quoted_error
from envcheck.rules.release_rows import rows_named
from envcheck.snapshot import Platform

_MISSING = re.compile(
    r"(?P<soname>lib[A-Za-z][\w+-]{1,60}\.so(?:\.\d{1,3}){0,3})\b.{0,40}"
    r"(?:cannot open shared object file|file too short|not found)"
)

_L4T = re.compile(r"lib(?:cuda|nvcucompat|nvcudla|nvdla\w*|nvrm_\w+|nvrm|nvos|nvmap|nvsci\w*|nvbuf\w*|tegra\w*)$")
"""The driver's side, which every release mounts."""


class Wanted(NamedTuple):
    """A library of JetPack that a program did not find."""

    soname: str
    part: str
    """``cuda``, ``cudnn``, ``tensorrt`` or ``l4t``."""
    number: int | None
    """First number of the soname, where it is that of the part's release."""
    evidence: Evidence


def _comes_with_jetpack(row: FamilyRow) -> bool:
    return row.kind in ("cudnn", "tensorrt") or (row.kind == "cuda" and not row.apart)


def wanted(facts: Facts) -> tuple[Wanted, ...]:
    """The libraries that error lines, or frameworks by their files, miss; each soname once."""
    found: dict[str, Wanted] = {}
    for soname, evidence in (*_of_errors(facts), *_of_frameworks(facts)):
        name, _, numbers = soname.partition(".so")
        row = row_of(name.removeprefix("lib"))
        comes_with_it = row is not None and (
            row.kind in ("cudnn", "tensorrt") or (row.kind == "cuda" and not row.apart)
        )
        part = "l4t" if _L4T.match(name) else row.kind if row and comes_with_it else None
        first = numbers.strip(".").partition(".")[0]
        numbered = part in ("cudnn", "tensorrt") or bool(row and row.numbered == "cuda")
        if part:
            number = int(first[:9]) if first and numbered else None
            found.setdefault(soname, Wanted(soname, part, number, evidence))
    return tuple(found.values())


def _of_errors(facts: Facts) -> Iterator[tuple[str, Evidence]]:
    for error in facts.snapshot.observed_errors:
        for match in _MISSING.finditer(error.text):
            yield match["soname"], quoted_error(error)


def _of_frameworks(facts: Facts) -> Iterator[tuple[str, Evidence]]:
    environment = facts.environment
    frameworks = environment.frameworks.items if environment and environment.frameworks else ()
    for framework in frameworks:
        for load in framework.loads or ():
            if load.path is None and not load.optional:
                yield load.name, Evidence(what=load.name, value=f"not found, for {load.needed_by}", source=load.source)


def system(facts: Facts) -> ReleaseRow | None:
    """What the matrix knows of this Jetson's system software, by its L4T release, else by its JetPack."""
    platform = facts.snapshot.platform or Platform()
    row = covering("l4t", platform.tegra_release, facts)
    return row or covering("jetpack", platform.jetpack, facts)


def covering(name: str, version: str | None, facts: Facts) -> ReleaseRow | None:
    """The row of a release; of a family of releases (``32.7``) the newest that agrees with all that is named."""
    number = parse_version(version or "")
    if number is None:
        return None
    rows = [row for row in rows_named(facts.tables, name) if parse_specifier(row.versions).cover(number) != "none"]
    return next(
        (row for row in rows if parse_specifier(row.versions).cover(number) == "all"), rows[-1] if rows else None
    )


def branch(version: str | None) -> int | None:
    """The first number of an L4T release: systems and images of different ones do not share libraries."""
    number = parse_version(version or "")
    return number.numbers[0] if number else None


def brings(row: ReleaseRow, part: str) -> int | None:
    """First number of the version of a part that comes with the system."""
    number = parse_version(row.bundles.get(part, ""))
    return number.numbers[0] if number else None


def admits(row: ReleaseRow, item: Wanted) -> bool:
    """Whether any release of the part with the library's number can be on the system."""
    number = parse_version(str(item.number))
    need = row.needs.get(item.part) or f"=={brings(row, item.part)}"
    return number is None or parse_specifier(need).cover(number) != "none"


def is_one(row: ReleaseRow) -> bool:
    """Whether the system and its CUDA are one: no other CUDA can be put on it, and containers are given the host's."""
    need = row.needs.get("cuda")
    return need is not None and need == f"=={row.bundles.get('cuda')}"


def on_aarch64(facts: Facts) -> bool:
    """Whether it is a Jetson, or an ARM machine of which a text does not say more."""
    platform = facts.snapshot.platform
    unsaid = platform is not None and platform.machine == "aarch64" and platform.tegra is None
    return on_tegra(facts) or (unsaid and platform is not None and not platform.tegra_release)
