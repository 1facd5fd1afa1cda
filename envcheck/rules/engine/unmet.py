"""What the packages of an environment require and do not have."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from envcheck.compat.package_needs import (
    active_requirements,
    admits,
    needed_of,
    normalised,
    requirement_name,
    same_package,
)
from envcheck.knowledge.names import canonical, scheme
from envcheck.knowledge.specifier import parse_specifier, parse_version
from envcheck.model.snapshot import Distribution
from envcheck.rules.api import Facts
from envcheck.rules.facts.frameworks import distributions_in, framework_named, machine, rows_of_release

if TYPE_CHECKING:
    from packaging.requirements import Requirement


def requirements_broken(facts: Facts) -> frozenset[tuple[str, str]]:
    """Unmet requirements by all metadata that was read, and where none was, by the matrix: the requiring package, and
    the required name and bounds.
    """
    there = {each.name: each for each in distributions_in(facts.environment)}
    found = set(_cuda_missed(facts))
    for each in there.values():
        lines = None
        if each.requires is None:  # what the matrix knows a distribution of a pasted list to require, of what is listed
            known = needed_of(facts.matrix, each.name, each.version, facts.driver_os, machine(facts))
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


def _cuda_missed(facts: Facts) -> Iterator[tuple[str, str]]:
    """The packages on top of PyTorch whose releases are for another CUDA than it is, by rows: no metadata tells."""
    torch = framework_named("torch", facts.environment)
    cuda = parse_version((torch.cuda if torch else None) or "", scheme("cuda"))
    for each in distributions_in(facts.environment) if cuda else ():
        if not any("torch" in row.needs for row in facts.matrix.rows_of(canonical(each.name))):
            continue  # as most; to find the rows of a release takes longer
        rows = rows_of_release(facts, each.name, each.version)
        wanted = [row.needs["cuda"] for row in rows if "cuda" in row.needs]
        if cuda and any("torch" in row.needs for row in rows):
            missed = (spec for spec in wanted if parse_specifier(spec).cover(cuda) == "none")
            yield from ((each.name, f"torch for CUDA {spec}") for spec in missed)


def requirements_of(
    distribution: Distribution,
    markers: Mapping[str, str],
    extras: tuple[str, ...] = ("",),
    lines: tuple[str, ...] | None = None,
) -> Iterator[Requirement]:
    """Its requirements on this system, or those of ``lines`` that hold there; none for conda packages, which have
    another syntax, and which conda keeps.
    """
    asked = distribution.requires if lines is None else lines
    return active_requirements(() if distribution.channel == "conda" else asked or (), markers, extras)
