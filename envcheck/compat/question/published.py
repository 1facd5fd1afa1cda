"""Whether a release exists: a version between two that PyPI lists, which it does not list itself, may be none."""

from __future__ import annotations

from collections.abc import Iterator

from envcheck.compat.question.question import Question
from envcheck.compat.relations.fit import Fit, conclude
from envcheck.compat.specifier import Version, parse_specifier, parse_version
from envcheck.compat.tables import ReleaseRow


def not_published(question: Question, name: str, version: Version) -> Fit | None:
    """That PyPI lists no such release, though older and newer ones; None where it does, or nobody can tell.

    What the component's own rows name, and what another index carries, may have been taken from PyPI, or never have
    been there.
    """
    if version.family or version.pre or version.local:
        return None
    matrix = question.matrix
    rows = matrix.published_by_name.get(name, ())
    listed = [one for row in rows for text in row.releases for word in text.split() if (one := parse_version(word))]
    older = max((one for one in listed if _order(one) < _order(version)), key=_order, default=None)
    newer = min((one for one in listed if _order(one) > _order(version)), key=_order, default=None)
    if older is None or newer is None or any(_stands_for(version, one) for one in listed):
        return None
    if any(_speaks_of(row, version) for row in matrix.rows_of(name)):
        return None
    reason = f"PyPI lists no release {name} {version}, but {older} and then {newer}: it may never have been published"
    return conclude(matrix, "unknown", reason, *rows, change=f"{name} {older}")


def toolkit_fits(question: Question) -> Iterator[Fit]:
    """That there is no toolkit of an nvcc that was named, though drivers report its CUDA."""
    for version in question.nvcc:
        row = question.matrix.cuda_rows.get(version)
        if row is not None and not row.toolkit:
            reason = f"no toolkit of CUDA {version} was published; drivers alone report it"
            yield conclude(question.matrix, "unknown", reason, row).concerning("nvcc")


def _speaks_of(row: ReleaseRow, version: Version) -> bool:
    """Whether a row names this version alone, or is about another index that has it."""
    spec = parse_specifier(row.versions)
    exact = (bound for bound in spec.bounds if bound.operator == "==" and len(bound.numbers) >= len(version.numbers))
    named = any(_stands_for(version, Version(bound.numbers, post=bound.post)) for bound in exact)
    elsewhere = bool(row.index) and version.post is None
    return named or (elsewhere and spec.cover(version) == "all")


def _stands_for(version: Version, release: Version) -> bool:
    """Whether a version as it was written may mean a release: further numbers and posts are often left out."""
    numbers = release.numbers + (0,) * len(version.numbers)
    return numbers[: len(version.numbers)] == version.numbers and version.post in (None, release.post)


def _order(version: Version) -> tuple[tuple[int, ...], int]:
    """By which releases are sorted: 1.0 and 1.0.0 are one, and a post-release follows its release."""
    numbers = version.numbers
    while numbers and not numbers[-1]:
        numbers = numbers[:-1]
    return numbers, -1 if version.post is None else version.post
