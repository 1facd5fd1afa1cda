"""Narrow what a plan leaves open by what its pinned packages require, as every installer does."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_name

from envcheck.compat.extras import extras_of
from envcheck.compat.matrix import Matrix
from envcheck.compat.question.wheels import covering
from envcheck.compat.relations.torch import build_of, tag_of, torch_row
from envcheck.compat.specifier import covered, parse_version
from envcheck.compat.tables import Machine, RequirementRow, TorchBuild
from envcheck.plans.kit.requirement import exact
from envcheck.snapshot import Planned
from envcheck.versions import CudaVersion

_SYSTEMS = {"linux": "linux", "win32": "windows", "darwin": "macos"}
_MACHINES: dict[str, Machine] = {"x86_64": "x86_64", "amd64": "x86_64", "aarch64": "aarch64", "arm64": "aarch64"}
_MOST_ROUNDS = 8
"""A release that is decided may decide another one: vLLM pins PyTorch, which pins Triton."""
_OF_A_BUILD = ("nvidia-", "cuda-")
"""How the packages start that a build of PyTorch requires for its own CUDA version."""


def narrowed(items: Sequence[Planned], matrix: Matrix, markers: Mapping[str, str]) -> list[Planned]:
    """The items, the open ones within the bounds that the requirements of the pinned ones set on them."""
    found, asked = list(items), dict[str, dict[str, str]]()
    for _ in range(_MOST_ROUNDS):
        left = [place for place, item in enumerate(found) if _is_open(item)]
        pinned = [item for item in found if left and item.version is not None and _is_from_an_index(item)]
        if not left or all(item.name in asked for item in pinned):
            break
        asked |= {item.name: required(item, matrix, markers) for item in pinned if item.name not in asked}
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


def required(item: Planned, matrix: Matrix, markers: Mapping[str, str]) -> dict[str, str]:
    """What the wheels of a release require on this system, as far as it is the same for every Python that is meant."""
    release, _, tag = (item.version or "").partition("+")
    version = parse_version(release)
    if version is None:
        return {}
    rows = covering(matrix.requirements_by_name.get(item.name, ()), version)
    holding = [row for row in rows if covered(row.versions, version) == "all" and _holds(row, markers)]
    found: dict[str, str] = {}
    for name, bounds in ((canonicalize_name(name), text) for row in holding for name, text in row.needs.items()):
        found[name] = f"{found[name]},{bounds}" if name in found else bounds
    for extra in extras_of(matrix, item.name, release):
        if set(extra.extras) & set(item.extras):
            found |= {name: f"=={release}" for name, bounds in extra.brings.items() if bounds == "="}
    return _of_torch(item, tag, found, matrix, markers) if item.name == "torch" else found


def _of_torch(
    item: Planned, tag: str, found: dict[str, str], matrix: Matrix, markers: Mapping[str, str]
) -> dict[str, str]:
    """What a build of PyTorch requires: the rows hold for PyPI's, and others require the libraries of their CUDA."""
    row, tag = torch_row(matrix, item.version or ""), tag or item.build or ""
    default = row.default_cuda if row else None
    if item.build is not None and (not tag or (default and tag == tag_of(default))):
        return found
    shared = {name: bounds for name, bounds in found.items() if not name.startswith(_OF_A_BUILD)}
    cuda = CudaVersion.from_tag(tag) if tag.startswith("cu") else None
    machine = _machine(markers) if _system(markers) == "linux" else None
    build = build_of(matrix, row.version, cuda, "linux", machine) if row and cuda and machine else None
    return shared | (dict(_pins(build)) if build and build.pinned else {})


def _pins(build: TorchBuild) -> Iterator[tuple[str, str]]:
    major = build.cuda.partition(".")[0]
    for name, version in (("cudnn", build.cudnn), ("nccl", build.nccl), ("cusparselt", build.cusparselt)):
        if version:
            yield f"nvidia-{name}-cu{major}", f"=={version}"


def _holds(row: RequirementRow, markers: Mapping[str, str]) -> bool:
    if row.os and _system(markers) not in row.os:
        return False
    if row.machine and _machine(markers) not in row.machine:
        return False
    python = parse_version(markers.get("python_version", ""))
    return not row.python or (python is not None and covered(row.python, python) == "all")


def _system(markers: Mapping[str, str]) -> str:
    return _SYSTEMS.get(markers.get("sys_platform", ""), "")


def _machine(markers: Mapping[str, str]) -> Machine | None:
    return _MACHINES.get(markers.get("platform_machine", "").lower())
