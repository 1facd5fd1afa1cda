"""What the entries of a plan leave of each other's releases, by what each requires of the others: as an installer would
choose among the releases that the matrix knows.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import cache, lru_cache, partial, reduce
from typing import NamedTuple, TypeAlias

from packaging.specifiers import SpecifierSet

from envcheck.compat.candidates import named_by
from envcheck.compat.package_needs import satisfies
from envcheck.compat.requirements import declared
from envcheck.compat.wheels import published, pythons_of, wheels_of
from envcheck.knowledge.days import day_of, days_in
from envcheck.knowledge.images import is_framework
from envcheck.knowledge.matrix import Matrix
from envcheck.knowledge.names import canonical
from envcheck.knowledge.specifier import parse_version
from envcheck.model.snapshot import Planned


class Releases(NamedTuple):
    """The known releases of an entry that is not pinned, ascending."""

    admitted: Sequence[str]  # By its own bounds
    left: Sequence[str]  # Of these, what the other entries leave; all, where they leave none


NO_RELEASES = Releases((), ())
BEYOND = "99999"
"""A version that only bounds without an upper one accept."""


def narrowed(entries: Sequence[Planned], matrix: Matrix, markers: Mapping[str, str]) -> dict[str, Releases]:
    """The releases of each open entry: of two that require something of each other, those that have a partner.

    Only what one command or file asks for binds: pip replaces what an earlier one installed.
    """
    admitted = {
        each.name: found
        for each in entries
        if each.name and each.version is None and each.problem is None and (found := admitted_by(each, matrix, markers))
    }
    left = {**admitted, **{name: (version,) for name, version in pinned(entries, matrix).items()}}
    extras = {each.name: each.extras for each in entries}
    marks = tuple(markers.items())

    def with_partner(name: str, kept: tuple[str, ...], other: str) -> tuple[str, ...]:
        return _with_partner(matrix, marks, (name, extras[name], kept), (other, extras[other], left[other]))

    group = {each.name: each.together for each in entries if each.image is None}
    related = defaultdict[str, dict[str, None]](dict)
    for one in left:
        for other in sorted(named_by(canonical(one), matrix)):
            if other in left and other != one and group.get(one) == group.get(other) is not None:
                related[one][other] = related[other][one] = None
    changed = True
    while changed:
        changed = False
        for name in admitted:
            kept = reduce(partial(with_partner, name), related.get(name, ()), left[name])
            if kept and len(kept) < len(left[name]):
                left[name], changed = kept, True
    return {name: Releases(found, left[name]) for name, found in admitted.items()}


_NamedReleases: TypeAlias = tuple[str, tuple[str, ...], tuple[str, ...]]
"""The name of a package, the extras that are asked for, and releases."""


@lru_cache(maxsize=1 << 12)  # the sets that are tried for one question differ in a few entries
def _with_partner(
    matrix: Matrix, marks: tuple[tuple[str, str], ...], one: _NamedReleases, other: _NamedReleases
) -> tuple[str, ...]:
    """The releases of ``one`` that go with any of the ``other``, by what each requires of the other."""
    name, own_extras, versions = one
    partner, its_extras, releases = other
    asked = {its: _declared(matrix, partner, its, marks, its_extras).get(name, "") for its in releases}

    @cache  # many releases ask for the same
    def asked_in_turn(own: str) -> set[str]:
        return {bounds for its, bounds in asked.items() if contains(own, its)}

    needs = (_declared(matrix, name, each, marks, own_extras).get(partner, "") for each in versions)
    bounds = ((version, asked_in_turn(own)) for version, own in zip(versions, needs, strict=True))
    return tuple(each for each, any_of in bounds if "" in any_of or any(contains(its, each) for its in any_of))


@lru_cache(maxsize=1 << 14)  # of one question many sets are tried
def _declared(
    matrix: Matrix, name: str, version: str, marks: tuple[tuple[str, str], ...], extras: tuple[str, ...]
) -> Mapping[str, str]:
    return declared(matrix, name, version, dict(marks), extras=extras)


def pinned(entries: Sequence[Planned], matrix: Matrix) -> dict[str, str]:
    """Versions of the packages that entries pin, by name; not of what CUDA an image or a channel of conda has."""
    return {
        each.name: each.version
        for each in entries
        if each.version is not None and each.conda is None and (each.image is None or is_framework(matrix, each.name))
    }


def contains(bounds: str, version: str) -> bool:
    """Whether a version is within bounds; one that is none of PEP 440's is within none."""
    return not bounds or satisfies(bounds, version) is True


def admitted_by(item: Planned, matrix: Matrix, markers: Mapping[str, str] | None = None) -> tuple[str, ...]:
    """The known releases within the bounds of an entry, ascending: those that PyPI has for the Python, if any."""
    within = releases_within(matrix, canonical(item.name), item.bounds, item.as_of)
    return tuple(filter(_here(item, matrix, markers), within)) or within


def newest_of(item: Planned, matrix: Matrix, markers: Mapping[str, str] | None = None) -> str:
    """The last of these, without a look at the others; empty, where there is none."""
    within = releases_within(matrix, canonical(item.name), item.bounds, item.as_of)
    return next(filter(_here(item, matrix, markers), reversed(within)), within[-1] if within else "")


def _here(item: Planned, matrix: Matrix, markers: Mapping[str, str] | None) -> Callable[[str], bool]:
    """Says of a release whether PyPI has it for the Python and the system."""
    if not (markers and "platform_machine" in markers) or item.conda is not None:
        return bool  # a text may not say for which processor it is
    name, python = canonical(item.name), markers.get("python_version")
    system = f"{markers.get('platform_system', '').lower()}-{markers['platform_machine']}"
    return lambda version: _is_for(matrix, name, version, python, system)


@lru_cache(maxsize=1 << 12)  # the sets that are tried differ in a few entries
def releases_within(matrix: Matrix, name: str, bounds: str, as_of: str | None) -> tuple[str, ...]:
    """The known releases of a package within bounds, ascending, without those that were yanked; ``as_of`` a day, those
    that came to PyPI by then.
    """
    return tuple(filter(SpecifierSet(bounds).contains, _releases(matrix, name, as_of)))


@lru_cache(maxsize=1 << 12)  # few of a plan's packages are known
def leaves_any(matrix: Matrix, name: str, bounds: str) -> bool:
    """Whether bounds leave a known release of a package, or one that may come; also where none is known."""
    known = _releases(matrix, name, None)
    return (
        not known or satisfies(bounds, BEYOND) is not False or any(contains(bounds, each) for each in reversed(known))
    )


@lru_cache(maxsize=1 << 12)
def _releases(matrix: Matrix, name: str, as_of: str | None) -> Sequence[str]:
    if name == "torch":
        known = [row.version for row in matrix.torch]
    else:
        known = [str(version) for version in published(matrix, name) or matrix.known_versions(name)]
    rows, last = matrix.published_by_name.get(name, ()), day_of(as_of) if as_of else None
    left_out = {word for row in rows for word in row.yanked.split()}
    if last:
        pairs = (pair for row in rows for pair in zip(" ".join(row.releases).split(), days_in(row.days), strict=False))
        left_out.update({*known} - {version for version, day in pairs if day and day <= last})
    known = [version for version in known if version not in left_out]
    if name != "torch":
        series = {head for head, _, last in (version.rpartition(".") for version in known) if last.isdigit()}
        known = [f"{version}.0" if version in series else version for version in known]  # 0.1 alone may mean 0.1.7
    return known


@lru_cache(maxsize=1 << 14)
def _is_for(matrix: Matrix, name: str, release: str, python: str | None, system: str) -> bool:
    """Whether PyPI has files of a release for a system and its Python, or that is not known."""
    version, systems = parse_version(release), (system, "any")
    rows = wheels_of(matrix, name, version) if version is not None and name in matrix.wheels_by_name else ()
    if any(row.pythons and not row.archive and not row.pythons.keys() & {*systems} for row in rows):
        return False
    known = pythons_of(matrix, name, version, systems) if version is not None else frozenset[str]()
    return not known or python is None or python in known
