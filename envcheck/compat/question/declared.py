"""What the wheels of a release require on PyPI, for a system and a Python."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from envcheck.compat.extras import extras_of
from envcheck.compat.matrix import Matrix
from envcheck.compat.question.package_needs import normalised
from envcheck.compat.question.wheels import covering
from envcheck.compat.relations.torch import build_of, tag_of, torch_row
from envcheck.compat.specifier import covered, parse_version
from envcheck.compat.tables import Machine, RequirementRow, TorchBuild
from envcheck.versions import CudaVersion

_SYSTEMS = {"linux": "linux", "win32": "windows", "darwin": "macos"}
_MACHINES: dict[str, Machine] = {"x86_64": "x86_64", "amd64": "x86_64", "aarch64": "aarch64", "arm64": "aarch64"}
_OF_A_BUILD = ("nvidia-", "cuda-")
"""How the packages start that a build of PyTorch requires for its own CUDA version."""


def declared(
    matrix: Matrix,
    name: str,
    version: str,
    markers: Mapping[str, str],
    *,
    build: str | None = "",
    extras: Collection[str] = (),
) -> dict[str, str]:
    """Bounds on other distributions by name, as far as they are the same for every Python that ``markers`` admit.

    ``build`` is the local tag that the index serves PyTorch with; None: not known.
    """
    release, _, tag = version.partition("+")
    number = parse_version(release)
    if number is None:
        return {}
    rows = covering(matrix.requirements_by_name.get(name, ()), number)
    holding = [row for row in rows if covered(row.versions, number) == "all" and _holds(row, markers)]
    found: dict[str, str] = {}
    for other, bounds in ((normalised(key), text) for row in holding for key, text in row.needs.items()):
        found[other] = f"{found[other]},{bounds}" if other in found else bounds
    for extra in extras_of(matrix, name, release):
        if set(extra.extras) & set(extras):
            found |= {other: f"=={release}" for other, bounds in extra.brings.items() if bounds == "="}
    return _of_torch(matrix, version, tag, build, found, markers) if name == "torch" else found


def _of_torch(
    matrix: Matrix, version: str, tag: str, build: str | None, found: dict[str, str], markers: Mapping[str, str]
) -> dict[str, str]:
    """What a build of PyTorch requires: the rows hold for PyPI's, and others require the libraries of their CUDA."""
    row, tag = torch_row(matrix, version), tag or build or ""
    default = row.default_cuda if row else None
    if build is not None and (not tag or (default and tag == tag_of(default))):
        return found
    shared = {name: bounds for name, bounds in found.items() if not name.startswith(_OF_A_BUILD)}
    cuda = CudaVersion.from_tag(tag) if tag.startswith("cu") else None
    machine = _machine(markers) if _system(markers) == "linux" else None
    other = build_of(matrix, row.version, cuda, "linux", machine) if row and cuda and machine else None
    return shared | (dict(_pins(other)) if other and other.pinned else {})


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
