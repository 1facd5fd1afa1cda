"""What the packages of an environment require and do not have, and how an installer would resolve what is asked for.

Like pip, it prefers what is installed, then the newest; narrows a choice that a later requirement excludes; and goes
back where a choice leaves another package without a version: one version of each package that all who ask for it admit,
or none. What else is installed has no say: pip only warns of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from envcheck.compat.package_needs import (
    active_requirements,
    admits,
    needed_of,
    normalised,
    read_requirement,
    requirement_name,
    same_package,
    satisfies,
)
from envcheck.knowledge.names import canonical
from envcheck.model.snapshot import Distribution, items_in
from envcheck.rules.api import Facts
from envcheck.rules.fixes.install import one_bound

if TYPE_CHECKING:
    from packaging.requirements import Requirement
    from packaging.specifiers import Specifier

Candidates = Callable[[str, str], Iterable[Distribution]]  # The releases of a package within bounds, the best first
Requires = Callable[[Distribution, Sequence[str]], Iterable["Requirement"]]  # What a release requires with these extras
_MOST = 400  # Choices that are tried; after them, the rest stays open


class _Wish(NamedTuple):
    """What one package asks of another."""

    by: str  # Empty for what the user asks for
    bounds: str
    extras: tuple[str, ...]


_Wishes = dict[str, tuple[_Wish, ...]]
_Chosen = dict[str, Distribution]


class Resolution(NamedTuple):
    chosen: dict[str, Distribution]
    extras: dict[str, tuple[str, ...]]
    conflict: str = ""  # The requirement that no release meets, where there is none: then nothing is chosen


def resolve(asked: Iterable[Requirement], candidates: Candidates, requires: Requires) -> Resolution:
    """The releases that an installer would have installed after it was asked for these."""
    search = _Resolution(candidates, requires)
    wishes: _Wishes = {}
    found = search.settle(wishes, {}) if all(search.add(wishes, "", each) for each in asked) else None
    if found is None:
        return Resolution({}, {}, search.conflict)
    wishes, chosen = found
    return Resolution(chosen, {name: _extras(wishes[name]) for name in chosen})


class _Resolution:
    def __init__(self, candidates: Candidates, requires: Requires) -> None:
        self._candidates = candidates
        self._requires = requires
        self._left = _MOST
        self.conflict = ""  # The first one that was met

    def settle(self, wishes: _Wishes, chosen: _Chosen) -> tuple[_Wishes, _Chosen] | None:
        """The choices for all that is asked for; None where there are none."""
        name = next((name for name in wishes if name not in chosen), None)
        if name is None or self._left < 0:
            return wishes, chosen
        extras = _extras(wishes[name])
        for candidate in self._candidates(name, _bounds(wishes[name])):
            self._left -= 1
            now, asked = {**chosen, name: candidate}, dict(wishes)
            for further in self._requires(candidate, extras):
                other = normalised(further.name)
                if other == name:
                    continue
                if not self.add(asked, name, further):
                    break
                if other in now and not _serves(now[other], asked[other], wishes.get(other, ())):
                    _reconsider(other, asked, now)
            else:
                if name in now and (found := self.settle(asked, now)) is not None:
                    return found
        return None

    def add(self, wishes: _Wishes, by: str, asked: Requirement) -> bool:
        """Add what one package asks of another; whether any release meets all that is asked of that one."""
        name = normalised(asked.name)
        wishes[name] = (*wishes.get(name, ()), _Wish(by, str(asked.specifier), tuple(sorted(asked.extras))))
        bounds = _bounds(wishes[name])
        possible = not bounds or any(True for _ in self._candidates(name, bounds))
        self.conflict = self.conflict or ("" if possible else f"{name}{bounds}")
        return possible


def _bounds(wishes: Sequence[_Wish]) -> str:
    asked = dict.fromkeys(each.bounds for each in wishes if each.bounds)
    return one_bound(asked) if len(asked) > 1 else next(iter(asked), "")


def _extras(wishes: Sequence[_Wish]) -> tuple[str, ...]:
    return tuple(sorted({extra for each in wishes for extra in each.extras}))


def _serves(chosen: Distribution, wishes: Sequence[_Wish], before: Sequence[_Wish]) -> bool:
    """Whether a choice that was made meets what is asked of it now, with no further extra."""
    bounds = _bounds(wishes)
    return (not bounds or satisfies(bounds, chosen.version) is not False) and _extras(wishes) == _extras(before)


def _reconsider(name: str, wishes: _Wishes, chosen: _Chosen) -> None:
    """Take back a choice, with all that was chosen for its sake alone."""
    chosen.pop(name, None)
    for other in list(wishes):
        if other not in wishes:
            continue  # it went with another one
        wishes[other] = tuple(each for each in wishes[other] if each.by != name)
        if not wishes[other]:
            del wishes[other]
            _reconsider(other, wishes, chosen)


@cache
def newest_admitted(bounds: str) -> str | None:
    """The newest release that bounds of PEP 440 can mean: the pinned one, or one just below the upper bound.

    Empty where there is no upper bound, and only the index knows; None where no release is within the bounds.
    """
    from packaging.version import Version  # noqa: PLC0415 - few environments need it

    asked = read_requirement(f"x{bounds}") if bounds else None
    if asked is None or all(each.operator in (">", ">=", "!=") for each in asked.specifier):
        return ""
    exact = next((each.version for each in asked.specifier if each.operator == "==="), None)
    if exact is not None:
        return None if satisfies(bounds, exact) is False else exact
    try:
        near = {text for each in asked.specifier for text in _near(each)}
    except ValueError:  # more digits than Python reads
        return ""
    return max((each for each in sorted(near) if satisfies(bounds, each)), key=Version, default=None)


def _near(bound: Specifier) -> Iterator[str]:
    """The releases at the end of a bound: itself and those just below, or the last one of its series."""
    from packaging.version import Version  # noqa: PLC0415 - as above

    end = Version(bound.version.removesuffix(".*"))
    base, numbers = end.base_version, [*end.release]
    if bound.operator == "~=":
        yield f"{base.rpartition('.')[0]}.999"
    elif bound.version.endswith(".*"):
        yield f"{base}.999"
    else:
        yield bound.version
        stage, number = end.pre or ("", 0)
        yield f"{base}{stage}{number - 1}" if number else base
        yield f"{base}.post{(end.post or 0) - 1}" if (end.post or 0) > 1 else base
    while numbers and numbers[-1] == 0:
        numbers.pop()
    if numbers:  # ``1.999`` of ``2`` and of ``2.0``
        epoch = f"{end.epoch}!" if end.epoch else ""
        yield f"{epoch}{'.'.join(map(str, (*numbers[:-1], numbers[-1] - 1, 999)))}"


def requirements_broken(facts: Facts) -> frozenset[tuple[str, str]]:
    """Unmet requirements by metadata, else by the matrix: the requiring package, and the required name and bounds."""
    there = frameworks_of_text(facts) | {each.name: each for each in facts.distributions}
    found: set[tuple[str, str]] = set()
    # The packages on top of PyTorch whose releases are for another CUDA than it is, by rows: no metadata tells.
    torch = facts.framework("torch")
    for each in there.values() if torch and torch.cuda else ():
        if torch and any("torch" in row.needs for row in facts.matrix.rows_of(canonical(each.name))):
            fit = facts.fit_of_release(each.name, each.version, "cuda", torch.cuda or "")
            if fit is not None and fit.bad:
                found.add((each.name, f"torch for {fit.nearest_change}"))
    for each in there.values():
        lines = None
        if each.requires is None:  # what the matrix knows a distribution of a pasted list to require, of what is listed
            known = needed_of(facts.matrix, each.name, each.version, facts.driver_os, facts.processor)
            lines = tuple(line for line in known if requirement_name(line) in there)
        for asked in requirements_of(each, facts.markers, lines=lines):
            name = normalised(asked.name)
            other = there.get(name)
            provided = any(same_package(name, known) for known in there) if other is None else None
            bounds = str(asked.specifier)
            if (other is None and not provided) or (
                other is not None and bounds and admits(bounds, other.version) is False
            ):
                found.add((each.name, f"{name}{bounds}"))
    return frozenset(found)


def frameworks_of_text(facts: Facts) -> dict[str, Distribution]:
    """The frameworks of which a text tells the version, and lists no package, in the form of packages."""
    frameworks = items_in(facts.environment.frameworks)
    named = [each for each in frameworks if each.version and not (each.path or facts.installed(each.name))]
    return {each.name: Distribution(source=each.source, name=each.name, version=each.version or "") for each in named}


def requirements_of(
    distribution: Distribution,
    markers: Mapping[str, str],
    extras: tuple[str, ...] = ("",),
    lines: tuple[str, ...] | None = None,
) -> Iterator[Requirement]:
    """Its requirements here, or those of ``lines``; none for conda packages: another syntax, and conda keeps them."""
    asked = distribution.requires if lines is None else lines
    return active_requirements(() if distribution.channel == "conda" else asked or (), markers, extras)
