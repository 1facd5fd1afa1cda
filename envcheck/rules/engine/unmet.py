"""What the packages of an environment require and do not have."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from envcheck.compat.package_needs import active_requirements, admits, normalised, same_package
from envcheck.model.snapshot import Distribution, Environment

if TYPE_CHECKING:
    from packaging.requirements import Requirement


def requirements_broken(environment: Environment | None, markers: Mapping[str, str]) -> frozenset[tuple[str, str]]:
    """Unmet requirements by all metadata that was read: the requiring package, and the required name and bounds."""
    if environment is None:
        return frozenset()
    there = {each.name: each for each in environment.distributions or ()}
    found = set()
    for each in there.values():
        for asked in requirements_of(each, markers):
            name = normalised(asked.name)
            other = there.get(name)
            provided = any(same_package(name, known) for known in there) if other is None else None
            bounds = str(asked.specifier)
            if (other is None and not provided) or (
                other is not None and bounds and admits(bounds, other.version) is False
            ):
                found.add((each.name, f"{name}{bounds}"))
    return frozenset(found)


def requirements_of(
    distribution: Distribution, markers: Mapping[str, str], extras: tuple[str, ...] = ("",)
) -> Iterator[Requirement]:
    """Its requirements on this system; none for conda packages, which have another syntax, and which conda keeps."""
    return active_requirements(() if distribution.channel == "conda" else distribution.requires or (), markers, extras)
