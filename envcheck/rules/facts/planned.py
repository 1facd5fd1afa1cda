"""What a plan would install besides the releases that it pins: entries whose release is open, and what the pinned ones
require. Some of it collides in every release.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import NamedTuple

from envcheck.compat.matrix import Matrix
from envcheck.compat.question.package_needs import pinned_by
from envcheck.compat.question.requirements import declared
from envcheck.rules.api import Facts
from envcheck.rules.facts.library_names import install_same_files, wheel_of
from envcheck.snapshot import Distribution, Environment, Planned, inferred


class Requirement(NamedTuple):
    """What a pinned package of a plan requires in one exact release."""

    wheel: Distribution
    owner: str
    """The package that requires it: ``torch`` and its version."""


def open_entries(environment: Environment | None) -> Iterator[Distribution]:
    """The entries of a plan whose release is open, with an empty version."""
    for item in (environment.planned if environment else None) or ():
        if item.name and item.version is None and item.refused is None:
            yield Distribution(source=item.source, name=item.name, version="")


def named(distribution: Distribution) -> str:
    """Name and version; the name alone where a plan leaves the release open."""
    return f"{distribution.name} {distribution.version}".rstrip()


def version_of(distribution: Distribution) -> str:
    """The version as evidence."""
    return distribution.version or "any release"


def required_wheels(environment: Environment, facts: Facts) -> dict[str, Requirement]:
    """NVIDIA's wheels that the pinned packages of a plan require, by name."""
    found: dict[str, Requirement] = {}
    for item in (environment.planned or ()) if any(_wheels(environment)) else ():
        for name, bounds in _required(item, facts).items():
            version = pinned_by(f"{name}{bounds}") if wheel_of(name) else None
            if version:
                wheel = Distribution(source=inferred(f"requirement/{item.name}"), name=name, version=version)
                found.setdefault(name, Requirement(wheel, f"{item.name} {item.version}"))
    return found


def _required(item: Planned, facts: Facts) -> dict[str, str]:
    if item.version is None or item.conda is not None:
        return {}
    return declared(facts.matrix, item.name, item.version, facts.markers, build=item.build, extras=item.extras)


def _wheels(environment: Environment) -> Iterator[Planned]:
    """The entries that are wheels of NVIDIA: without one nothing can collide with what is required."""
    return (item for item in environment.planned or () if wheel_of(item.name))


def all_wheels(environment: Environment, facts: Facts) -> tuple[Distribution, ...]:
    """NVIDIA's wheels that are installed, and of a plan those that will be; conda's lie elsewhere."""
    there = [*(environment.distributions or ()), *open_entries(environment)]
    names = {each.name for each in there}
    there += [each.wheel for name, each in required_wheels(environment, facts).items() if name not in names]
    return tuple(each for each in there if wheel_of(each.name) and each.channel != "conda")


def overwritten_by(environment: Environment, name: str, facts: Facts) -> tuple[str, str] | None:
    """The package of a plan that writes the same files as the entry ``name``, and what requires it: empty where the
    plan alone asks for it. None where there is no such package.
    """
    required = required_wheels(environment, facts)
    pairs = (pair for pair in combinations(all_wheels(environment, facts), 2) if install_same_files(*pair))
    others = [other.name for pair in pairs if name in {each.name for each in pair} for other in pair]
    others += _in_its_folder(environment, name, facts.matrix)
    other = next((each for each in others if each != name), None)
    if other is None or name in required:
        return None
    return other, required[other].owner if other in required else ""


def _in_its_folder(environment: Environment, name: str, matrix: Matrix) -> list[str]:
    projects = set(matrix.projects(name, "shares-its-folder"))
    names = (item.name for item in environment.planned or ())
    return [other for other in names if projects & set(matrix.projects(other, "shares-its-folder"))]
