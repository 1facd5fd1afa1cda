"""What the entries of a plan leave of each other's releases, by what each requires of the others: as an installer would
choose among the releases that the matrix knows.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache, partial, reduce
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from envcheck.compat.candidates import named_by
from envcheck.compat.package_needs import marks_of, pinned_by, satisfies, specifiers
from envcheck.compat.question import Question
from envcheck.compat.requirements import declared, declared_for, is_excluded, system_in
from envcheck.compat.wheels import ANY_LATER, published, pythons_of, wheels_of
from envcheck.knowledge.days import day_of, days_in
from envcheck.knowledge.matrix import Matrix
from envcheck.knowledge.names import canonical
from envcheck.knowledge.relations.fit import Fit, conclude
from envcheck.knowledge.specifier import parse_version

if TYPE_CHECKING:
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
    for name, pythons in _shared_pythons(entries, matrix, markers) if admitted else ():
        if name in admitted and pythons:
            left[name] = _here(matrix, canonical(name), left[name], pythons, system_in(markers))
    related = defaultdict[str, dict[str, None]](dict)
    for one in left:
        for other in sorted(named_by(canonical(one), matrix) & left.keys()):
            if other != one and group.get(one) == group.get(other) is not None:
                related[one][other] = related[other][one] = None
    changed = {*admitted}  # What may be narrowed further
    while changed:
        for name in filter(changed.__contains__, admitted):
            changed.remove(name)
            kept = reduce(partial(with_partner, name), related.get(name, ()), left[name])
            if kept and len(kept) < len(left[name]):
                left[name] = kept
                changed |= related[name].keys() & admitted.keys()
    return {name: Releases(found, left[name]) for name, found in admitted.items()}


def _shared_pythons(
    entries: Sequence[Planned], matrix: Matrix, markers: Mapping[str, str]
) -> Iterator[tuple[str, frozenset[str]]]:
    """By open entry, the Pythons that PyPI has files of all pins for that are resolved with it, if none is stated."""
    together: dict[str | None, list[frozenset[str]]] = defaultdict(list)
    for each in entries if "python_version" not in markers and "platform_machine" in markers else ():
        if each.version and each.name and each.together and each.conda is each.image is None and each.build is not None:
            together[each.together].append(pythons_in(matrix, each.name, each.version, markers))
    common = {key: frozenset.intersection(*known) for key, its in together.items() if (known := [*filter(None, its)])}
    yield from ((each.name, common[each.together]) for each in entries if not each.version and each.together in common)


def pythons_in(
    matrix: Matrix, name: str, release: str, markers: Mapping[str, str], *, compiled: bool = False
) -> frozenset[str]:
    """The Pythons that PyPI has files, or wheels, of a release for on the system; none where they are not known."""
    version, systems = parse_version(release), (system_in(markers), "any")
    return pythons_of(matrix, canonical(name), version, systems, compiled=compiled) if version else frozenset()


_NamedReleases: TypeAlias = tuple[str, tuple[str, ...], tuple[str, ...]]
"""The name of a package, the extras that are asked for, and releases."""


@lru_cache(maxsize=1 << 12)  # the sets that are tried for one question differ in a few entries
def _with_partner(
    matrix: Matrix, marks: tuple[tuple[str, str], ...], one: _NamedReleases, other: _NamedReleases
) -> tuple[str, ...]:
    """The releases of ``one`` that go with any of the ``other``, by what each requires of the other."""
    name, own_extras, versions = one
    partner, its_extras, releases = other
    asked = {its: declared_for(matrix, partner, its, marks, "", its_extras).get(name, "") for its in releases}
    if len(releases) == 1:  # a pin, beside which an installer passes over what either requires otherwise
        pair = (partner, releases[0])
        excluded = {each for each in versions if is_excluded(matrix, name, each, *pair)}
        excluded |= {each for each in versions if is_excluded(matrix, *pair, name, each)}
        versions = tuple(each for each in versions if each not in excluded) or versions

    @cache  # many releases ask for the same
    def asked_in_turn(own: str) -> set[str]:
        return {bounds for its, bounds in asked.items() if contains(own, its)}

    needs = (declared_for(matrix, name, each, marks, "", own_extras).get(partner, "") for each in versions)
    bounds = ((version, asked_in_turn(own)) for version, own in zip(versions, needs, strict=True))
    return tuple(each for each, any_of in bounds if "" in any_of or any(contains(its, each) for its in any_of))


def pinned(entries: Sequence[Planned], matrix: Matrix) -> dict[str, str]:
    """Versions of the packages that entries pin, by name; not of what CUDA an image or a channel of conda has."""
    return {
        each.name: each.version
        for each in entries
        if each.version is not None
        and each.conda is None
        and (each.image is None or matrix.has_role(each.name, "framework"))
    }


def contains(bounds: str, version: str) -> bool:
    """Whether a version is within bounds; one that is none of PEP 440's is within none."""
    return not bounds or satisfies(bounds, version) is True


def admitted_by(item: Planned, matrix: Matrix, markers: Mapping[str, str] | None = None) -> tuple[str, ...]:
    """The known releases within the bounds of an entry, ascending: those that PyPI has for the Python, if any."""
    within, place = releases_within(matrix, canonical(item.name), item.bounds, item.as_of), _place_of(item, markers)
    return _here(matrix, canonical(item.name), within, *place) if place else within


def newest_of(item: Planned, matrix: Matrix, markers: Mapping[str, str] | None = None) -> str:
    """The last of these, without a look at the others; empty, where there is none."""
    within, place = releases_within(matrix, canonical(item.name), item.bounds, item.as_of), _place_of(item, markers)
    here = (each for each in reversed(within) if not place or _is_for(matrix, canonical(item.name), each, *place))
    return next(here, (within or ("",))[-1])


def _place_of(item: Planned, markers: Mapping[str, str] | None) -> tuple[frozenset[str], str] | None:
    """The Python, if it is stated, and the system; None of a text that may not say for which processor it is."""
    if not markers or "platform_machine" not in markers or item.conda is not None:
        return None
    return frozenset({markers["python_version"]} if "python_version" in markers else ()), system_in(markers)


@lru_cache(maxsize=1 << 12)  # the sets that are tried differ in a few entries
def _here(
    matrix: Matrix, name: str, releases: tuple[str, ...], pythons: frozenset[str], system: str
) -> tuple[str, ...]:
    """The releases that PyPI has for one of the Pythons, if any are given, and the system; all, where it has none."""
    return tuple(each for each in releases if _is_for(matrix, name, each, pythons, system)) or releases


@lru_cache(maxsize=1 << 12)  # the sets that are tried differ in a few entries
def releases_within(matrix: Matrix, name: str, bounds: str, as_of: str | None) -> tuple[str, ...]:
    """The known releases of a package within bounds, ascending, without those that were yanked; ``as_of`` a day, those
    that came to PyPI by then.
    """
    return tuple(filter(specifiers(bounds).contains, _releases(matrix, name, as_of)))


@lru_cache(maxsize=1 << 12)  # few of a plan's packages are known
def leaves_any(matrix: Matrix, name: str, bounds: str) -> bool:
    """Whether bounds leave a known release of a package, or one that may come; also where none is known."""
    known = _releases(matrix, name, None)
    return (
        not known or satisfies(bounds, BEYOND) is not False or any(contains(bounds, each) for each in reversed(known))
    )


def excluding(
    matrix: Matrix, name: str, by_owner: Mapping[str, Sequence[str]], own: str = ""
) -> tuple[str, str] | None:
    """The first two owners whose bounds on a package, each one for every Python, leave no known release of it; the
    bounds of ``own`` come last.
    """

    def leaves(*owners: str) -> bool:
        joined = map(joined_bounds, zip(*(by_owner[owner] for owner in owners), strict=True))
        return any(leaves_any(matrix, canonical(name), bounds) for bounds in joined)

    if len(by_owner) < 2 or leaves(*by_owner):
        return None
    able = sorted((owner for owner in by_owner if leaves(owner)), key=own.__eq__)
    return next((pair for pair in combinations(able, 2) if not leaves(*pair)), None)


def joined_bounds(bounds: Iterable[str]) -> str:
    return ",".join(sorted({part for each in bounds for part in each.split(",") if part}))


def _releases_of(question: Question) -> tuple[list[tuple[str, str]], Mapping[str, str]]:
    """The releases that were named of packages whose requirements are known, and the markers of the machine."""
    versions = question.versions
    known = [(name, its[0]) for name, its in versions.items() if name in question.matrix.requirements_by_name]
    exact = [
        (name, f"{its}+{its.local}".rstrip("+")) for name, its in known if not its.family and not versions[name][1:]
    ]
    python = str(versions["python"][0]) if "python" in versions else None
    return [] if question.systems else exact, marks_of(python, question.os, question.machine)


def required_pins(question: Question, other: str) -> Iterator[tuple[str, str]]:
    """Of each package that was named and requires one release of another: its name, and that release, from the index
    of its own tag.
    """
    exact, markers = _releases_of(question)
    for name, version in exact:
        bounds, tag = declared(question.matrix, name, version, markers).get(other, ""), version.partition("+")[2]
        if pin := pinned_by(f"{other}{bounds}"):
            yield name, f"{pin}+{tag}".rstrip("+")


def third_fits(question: Question) -> Iterator[Fit]:
    """What two of the releases that were named require of a package that was not, where no release of it meets both."""
    matrix, versions = question.matrix, question.versions
    exact, markers = _releases_of(question)
    if len(exact) < 2:
        return
    asked: dict[str, dict[str, list[str]]] = defaultdict(dict)
    every = with_each_python(markers, [pythons_in(matrix, *each, markers) for each in exact])
    for name, version in exact:
        needs = [declared(matrix, name, version, one) for one in every]
        for other in needs[0].keys() - versions.keys():
            asked[other][name] = [each.get(other, "") for each in needs]
    for other, by_owner in asked.items():
        if pair := excluding(matrix, other, by_owner):
            rows = [row for name in pair for row in matrix.requirements_by_name[name] if other in row.needs]
            bounds = [f"{question.labels[name]} requires {other}{by_owner[name][-1]}" for name in pair]
            reason = f"{' and '.join(bounds)}, which no known release meets together"
            yield conclude(matrix, "incompatible", reason, *rows[:1]).concerning(*pair)


def with_each_python(markers: Mapping[str, str], known: Iterable[frozenset[str]]) -> Sequence[Mapping[str, str]]:
    """The markers, with each Python that PyPI has files of all releases for, where none is stated and few are left."""
    found = [*filter(None, known)] if "python_version" not in markers else []
    common = frozenset.intersection(*found) if found else frozenset()
    if not common or ANY_LATER in common:
        return [markers]
    return [{**markers, "python_version": each} for each in sorted(common)]


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


def _is_for(matrix: Matrix, name: str, release: str, pythons: frozenset[str], system: str) -> bool:
    """Whether PyPI has files of a release for a system and one of the Pythons, or that is not known."""
    version, systems = parse_version(release), (system, "any")
    rows = wheels_of(matrix, name, version) if version is not None and name in matrix.wheels_by_name else ()
    if any(row.pythons and not row.archive and not row.pythons.keys() & {*systems} for row in rows):
        return False
    known = pythons_of(matrix, name, version, systems) if version is not None and pythons else frozenset[str]()
    return not known or bool(pythons & known)
