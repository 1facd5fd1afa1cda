"""Narrow what a plan leaves open by what its pinned packages require, as every installer does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
from packaging.specifiers import InvalidSpecifier, SpecifierSet

from envcheck.compat.matrix import Matrix
from envcheck.compat.question.requirements import declared
from envcheck.plans.kit.requirement import exact
from envcheck.snapshot import Planned

_MOST_ROUNDS = 8
"""A release that is decided may decide another one: vLLM pins PyTorch, which pins Triton."""


def narrowed(items: Sequence[Planned], matrix: Matrix, markers: Mapping[str, str]) -> list[Planned]:
    """The items, the open ones within the bounds that the requirements of the pinned ones set on them."""
    found, asked = list(items), dict[str, dict[str, str]]()
    for _ in range(_MOST_ROUNDS):
        left = [place for place, item in enumerate(found) if _is_open(item)]
        pinned = [item for item in found if left and item.version is not None and _is_from_an_index(item)]
        if not left or all(item.name in asked for item in pinned):
            break
        asked |= {item.name: _required(item, matrix, markers) for item in pinned if item.name not in asked}
        for place in left:
            found[place] = _within(found[place], asked)
    return found


def _is_from_an_index(item: Planned) -> bool:
    """Whether pip chooses it, or finds it in the image: channels of conda have requirements of their own."""
    return bool(item.name) and item.conda is None and item.refused is None


def _is_open(item: Planned) -> bool:
    return item.version is None and item.problem is None and item.image is None and _is_from_an_index(item)


def _within(item: Planned, asked: Mapping[str, Mapping[str, str]]) -> Planned:
    """The item within what is required of it; where nothing is left, with the requirement that contradicts the plan."""
    for owner, required in asked.items():
        bounds = required.get(item.name)
        if not bounds or bounds in item.bounds.split(","):
            continue
        try:
            both = SpecifierSet(",".join(filter(None, (item.bounds, bounds))))
        except InvalidSpecifier:
            continue
        version, pin = exact(both), exact(SpecifierSet(bounds))
        if pin is not None and version is None:
            why = f"{owner} requires {item.name}{bounds}, which the plan excludes"
            return msgspec.structs.replace(item, problem=why)
        item = msgspec.structs.replace(item, bounds=str(both), version=version)
    return item


def _required(item: Planned, matrix: Matrix, markers: Mapping[str, str]) -> dict[str, str]:
    return declared(matrix, item.name, item.version or "", markers, build=item.build, extras=item.extras)
