"""What the entries of a plan leave of each other's releases, by what each requires of the others: as an installer would
choose among the releases that the matrix knows.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from msgspec.structs import replace

from envcheck.compat.candidates import named_by
from envcheck.compat.package_needs import exact, marks_of, satisfies, specifiers
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
BEYOND = "99999"  # A version that only bounds without an upper one accept


class Narrowing:
    """The entries of plans, the open ones within what pinned ones require, and what all leave of each other's releases:
    of two that require something of each other, those that have a partner.

    Only what one command or file asks for binds: pip replaces what an earlier one installed.
    """

    def __init__(self, entries: Sequence[Planned], matrix: Matrix, markers: Mapping[str, str]) -> None:
        self.entries = [*entries]
        self._matrix, self._markers, self._marks = matrix, markers, tuple(markers.items())
        self._places = {each.name: place for place, each in enumerate(entries) if each.name}
        self._admitted: dict[str, tuple[str, ...]] = {}
        self._left: dict[str, tuple[str, ...]] = {}
        self._pythons: dict[str, frozenset[str]] = {}
        self._related = defaultdict[str, dict[str, None]](dict)
        self._changed = set[str]()  # What may be narrowed further
        self._started = False
        if any(map(is_open, entries)):
            self._bind(entries)

    def pin(self, name: str, version: str) -> None:
        """Choose a release of an open entry."""
        place = self._places[name]
        self._put(place, replace(self.entries[place], version=version, bounds=f"=={version}"))
        self._bind([self.entries[place]])

    def releases(self) -> dict[str, Releases]:
        """Those of the open entries."""
        if not self._started:
            self._started = True
            for each in self.entries:
                self._take(each)
            # Those of one command or file that name each other.
            group = {each.name: each.together for each in self.entries if each.image is None}
            for one in self._places if self._admitted else ():
                for other in sorted(named_by(canonical(one), self._matrix) & self._places.keys()):
                    if other != one and group.get(one) == group.get(other) is not None:
                        self._related[one][other] = self._related[other][one] = None
            self._hold_to_pythons(self.entries)
        while self._changed:
            for name in filter(self._changed.__contains__, [*self._admitted]):
                self._changed.remove(name)
                kept = self._left[name]
                for other in filter(self._left.__contains__, self._related[name]):
                    pair = [(each, self.entries[self._places[each]].extras) for each in (name, other)]
                    kept = _with_partner(self._matrix, self._marks, (*pair[0], kept), (*pair[1], self._left[other]))
                if kept and len(kept) < len(self._left[name]):
                    self._left[name] = kept
                    self._changed |= self._related[name].keys() & self._admitted.keys()
        return {name: Releases(found, self._left[name]) for name, found in self._admitted.items()}

    def _bind(self, owners: Sequence[Planned]) -> None:
        """Hold the open entries within what pinned ones require; those that are pinned so bind others in turn."""
        while owners:
            required: dict[int, list[tuple[Planned, str]]] = defaultdict(list)
            for each in owners:
                # What pip chooses, or finds in the image: channels of conda have requirements of their own.
                if each.name and each.version is not None and each.conda is each.refused is None:
                    needs = declared(
                        self._matrix, each.name, each.version, self._markers, build=each.build, extras=each.extras
                    )
                    for name in needs.keys() & self._places.keys():
                        required[self._places[name]].append((each, needs[name]))
            left = [(place, self.entries[place]) for place in sorted(required)]
            places = [place for place, item in left if is_open(item) and item.refused is None]
            for place in places:
                self._put(place, _within(self.entries[place], required[place]))
            owners = [self.entries[place] for place in places]

    def _put(self, place: int, item: Planned) -> None:
        self.entries[place] = item
        if self._started:
            self._take(item)
            self._hold_to_pythons([item])

    def _take(self, item: Planned) -> None:
        """Take over the releases of an entry: that which is pinned, or what is left of those within its bounds."""
        self._admitted.pop(item.name, None)
        self._changed.discard(item.name)
        before = self._left.pop(item.name, ())
        if is_pinned(item, self._matrix):
            self._left[item.name] = (item.version or "",)
        elif (
            item.name
            and item.version is item.problem is None
            and (found := admitted_by(item, self._matrix, self._markers))
        ):
            self._admitted[item.name] = found
            self._left[item.name] = tuple(filter({*found}.__contains__, before)) or found
        self._changed |= {item.name, *self._related.get(item.name, ())} & self._admitted.keys()

    def _hold_to_pythons(self, pins: Iterable[Planned]) -> None:
        """Leave the open entries what PyPI has for a Python that it has files of all pins of their command for, where
        no Python is stated.
        """
        if "python_version" in self._markers or "platform_machine" not in self._markers or not self._admitted:
            return
        for each in pins:
            if each.version and each.together and each.conda is each.image is None and each.build is not None:
                known = pythons_in(self._matrix, each.name, each.version, self._markers)
                if known:
                    self._pythons[each.together] = self._pythons.get(each.together, known) & known
        for name in self._admitted:
            before, together = self._left[name], self.entries[self._places[name]].together or ""
            if pythons := self._pythons.get(together):
                self._left[name] = _here(self._matrix, canonical(name), before, pythons, system_in(self._markers))
            if self._left[name] != before:
                self._changed |= self._related[name].keys() & self._admitted.keys()


def is_open(item: Planned) -> bool:
    """Whether the plan does not say which release of a package it installs."""
    return bool(item.name) and item.version is item.problem is item.image is item.conda is None


def is_pinned(item: Planned, matrix: Matrix) -> bool:
    """Whether an entry pins a package; not what CUDA an image or a channel of conda has."""
    of_image = item.image is None or matrix.has_role(item.name, "framework")
    return item.version is not None and item.conda is None and of_image


def _within(item: Planned, required: Iterable[tuple[Planned, str]]) -> Planned:
    """The item within what packages require of it; where nothing is left, with the requirement that contradicts the
    plan, which pip refuses of one command or file.
    """
    for owner, bounds in required:
        if not bounds or bounds in item.bounds.split(","):
            continue
        try:
            both, asked = specifiers(",".join(filter(None, (item.bounds, bounds)))), specifiers(bounds)
        except ValueError:
            continue
        version = exact(both)
        if version is None and exact(asked) is not None:
            why = f"{owner.name} requires {item.name}{bounds}, which the plan excludes"
            refused = owner.together == item.together is not None
            return replace(item, refused=why) if refused else replace(item, problem=why)
        item = replace(item, bounds=str(both), version=version)
    return item


_BINDING = ("engine", "framework")
"""Roles in the order in which releases are chosen: an engine requires one release of its framework."""


def at_newest(items: Sequence[Planned], matrix: Matrix, markers: Mapping[str, str]) -> list[Planned]:
    """The items, each open one at the newest known release that the others leave, one after the other."""
    chosen = in_turn(items, matrix, markers, lambda _, left: left[-1])
    return [
        replace(new, newest=True) if is_open(old) and new.version else new
        for old, new in zip(items, chosen, strict=True)
    ]


def in_turn(
    items: Sequence[Planned],
    matrix: Matrix,
    markers: Mapping[str, str],
    choose: Callable[[Planned, Sequence[str]], str | None],
) -> list[Planned]:
    """The items, each open one at the release that ``choose`` takes of those that the others leave; None leaves it."""
    narrowing = Narrowing(items, matrix, markers)
    followed = {each.name: [not matrix.has_role(each.name, role) for role in _BINDING] for each in items}
    for place in sorted(range(len(items)), key=lambda place: followed[items[place].name]):
        item = narrowing.entries[place]
        releases = narrowing.releases().get(item.name) if is_open(item) else None
        if releases and (version := choose(item, releases.left)):
            narrowing.pin(item.name, version)
    return narrowing.entries


def pythons_in(
    matrix: Matrix, name: str, release: str, markers: Mapping[str, str], *, compiled: bool = False
) -> frozenset[str]:
    """The Pythons that PyPI has files, or wheels, of a release for on the system; none where they are not known."""
    version = parse_version(release) if (known := canonical(name)) in matrix.wheels_by_name else None
    systems = (system_in(markers), "any")
    return pythons_of(matrix, known, version, systems, compiled=compiled) if version else frozenset()


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


def releases_of(question: Question) -> tuple[list[tuple[str, str]], Mapping[str, str]]:
    """The releases that were named of packages whose requirements are known, and the markers of the machine."""
    versions = question.versions
    known = [(name, its[0]) for name, its in versions.items() if name in question.matrix.requirements_by_name]
    exact = [
        (name, f"{its}+{its.local}".rstrip("+")) for name, its in known if not its.family and not versions[name][1:]
    ]
    python = str(versions["python"][0]) if "python" in versions else None
    return [] if question.systems else exact, marks_of(python, question.os, question.machine)


def third_fits(question: Question) -> Iterator[Fit]:
    """What two of the releases that were named require of a package that was not, where no release of it meets both."""
    matrix, versions = question.matrix, question.versions
    releases, markers = releases_of(question)
    if len(releases) < 2:
        return
    asked: dict[str, dict[str, list[str]]] = defaultdict(dict)
    every = with_each_python(markers, [pythons_in(matrix, *each, markers) for each in releases])
    for name, version in releases:
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
