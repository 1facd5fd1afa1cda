"""Whether a release exists: a version between two that PyPI lists, which it does not list itself, may be none."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from envcheck.compat.matrix import Matrix
from envcheck.compat.question.question import Question
from envcheck.compat.relations.fit import Fit, conclude
from envcheck.compat.specifier import Version, parse_specifier, parse_version
from envcheck.compat.tables import PublishedRow, ReleaseRow


class Gap(NamedTuple):
    """A number that no release has, between two that have been published."""

    older: Version
    newer: Version
    rows: tuple[PublishedRow, ...]
    """What lists them."""


def gap_of(matrix: Matrix, name: str, version: Version) -> Gap | None:
    """The gap between PyPI's releases into which a version falls; None where it is one, or nobody can tell.

    What the component's own rows name, and what another index carries, may have been taken from PyPI, or never have
    been there.
    """
    if version.family or version.pre:
        return None
    rows = matrix.published_by_name.get(name, ())
    listed = published(matrix, name)
    older = max((one for one in listed if _order(one) < _order(version)), key=_order, default=None)
    newer = min((one for one in listed if _order(one) > _order(version)), key=_order, default=None)
    if older is None or newer is None or any(_stands_for(version, one) for one in listed):
        return None
    named = name == "torch" and any(row.version == str(version) for row in matrix.torch)
    if named or any(_speaks_of(row, version) for row in matrix.rows_of(name)):
        return None
    return Gap(older, newer, rows)


def published(matrix: Matrix, name: str) -> list[Version]:
    """The releases of a component that PyPI lists, ascending; none where the matrix has no list of them."""
    texts = [word for row in matrix.published_by_name.get(name, ()) for text in row.releases for word in text.split()]
    return sorted((version for text in texts if (version := parse_version(text))), key=_order)


def is_published(matrix: Matrix, name: str, version: Version) -> bool:
    """Whether PyPI lists a release, or one of a family."""
    own = not version.local and not version.pre
    return own and any(_stands_for(version, one) for one in published(matrix, name))


def not_published(question: Question, name: str, version: Version) -> Fit | None:
    """That PyPI lists no such release, though older and newer ones; None where it does, or nobody can tell."""
    gap = None if version.local else gap_of(question.matrix, name, version)
    if gap is None:
        return None
    reason = f"PyPI lists no release {name} {version}, but {gap.older} and then {gap.newer}"
    change = f"{name} {gap.older}"
    return conclude(question.matrix, "unknown", f"{reason}: it may never have been published", *gap.rows, change=change)


def series_meant(matrix: Matrix, name: str, version: Version) -> tuple[Version, Version] | None:
    """The series that 1.13.0 stands for where its first release is 1.13.1, and that release: documents call the series
    so. Where there is a 1.13.0, or a row speaks of it, it means that one alone.
    """
    gap = gap_of(matrix, name, version) if version.numbers[2:] == (0,) else None
    if gap is None or gap.newer.numbers[:2] != version.numbers[:2]:
        return None
    return version._replace(numbers=version.numbers[:2]), gap.newer


def release_meant(matrix: Matrix, name: str, version: Version) -> Version | None:
    """The release that a short version names where PyPI lists it in these very words, as 0.22 with 0.22.1 after it, or
    where it is the only one: 59.5 for 59.5.0.
    """
    if not version.family:
        return None
    padded = (*version.numbers, *(0,) * version.scheme.numbers)[: version.scheme.numbers]
    listed = published(matrix, name)
    within = [one for one in listed if one.numbers[: len(version.numbers)] == version.numbers]
    alone = len(within) == 1 and within[0][:3] == (padded, version.pre, version.post)
    return version._replace(numbers=padded) if alone or any(one[:3] == version[:3] for one in listed) else None


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


def lists(row: PublishedRow, version: Version) -> bool:
    """Whether a row lists a release that a version may mean."""
    texts = (word for text in row.releases for word in text.split())
    return any(one and _stands_for(version, one) for one in map(parse_version, texts))


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
