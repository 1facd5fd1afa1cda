"""Names of CUDA libraries and of NVIDIA's wheels, the CUDA major of each, and the wheels that a plan would install."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache, lru_cache
from itertools import chain, combinations, islice, permutations
from typing import NamedTuple

from envcheck.compat.candidates import named_by
from envcheck.compat.package_needs import normalised, pinned_by, read_requirement
from envcheck.compat.requirements import declared
from envcheck.knowledge.load import load_matrix
from envcheck.knowledge.matrix import Matrix
from envcheck.knowledge.relations.libraries import SPOKEN_OF, TOOLKIT, cuda_majors, files_of, row_of, same_major
from envcheck.knowledge.tables.packages import FamilyRow
from envcheck.model.snapshot import Distribution, Environment, Framework, inferred
from envcheck.rules.api import Facts
from envcheck.text.lazy import lazy_pattern

_MOST = 8

_WHEEL = lazy_pattern(r"nvidia-(?P<name>[a-z]+(?:-[a-z]+)*?)(?:-cu(?P<cuda>[0-9]{1,3}))?")


class LibraryName(NamedTuple):
    """The parts of a library's name."""

    file: str  # ``libcublas.so.12``
    family: str  # ``cublas``
    number: str  # ``12``; empty where the name has none

    @property
    def kind(self) -> str:
        """The product: ``cudnn``, ``tensorrt``, ``nccl``, or ``cuda`` for the toolkit and related libraries."""
        row = row_of(self.family)
        return row.kind if row else "cuda"


def names_in(text: str) -> list[LibraryName]:
    """The libraries that a line mentions, each once."""
    of_linux = _shared_objects().finditer(text) if ".so" in text else ()
    objects = (LibraryName(each[0], each["family"], each["number"].lstrip(".")) for each in of_linux)
    of_windows = _dlls().finditer(text) if ".dll" in text.lower() else ()
    dlls = (LibraryName(each[0], each["family"], _decoded_dll(each["number"])) for each in of_windows)
    return list(dict.fromkeys(islice(chain(objects, dlls), _MOST)))


@lru_cache(maxsize=4096)
def name_of(path: str) -> LibraryName | None:
    """The library that a path or file name stands for; None for other libraries than CUDA's."""
    found = names_in(path.rpartition("/")[2])
    return found[0] if found else None


@cache
def _shared_objects() -> re.Pattern[str]:
    family = rf"(?P<family>{files_of(*SPOKEN_OF)})"
    return re.compile(rf"\blib{family}(?:[-.][0-9a-f]{{8}})?\.so(?P<number>(?:\.\d{{1,6}}){{0,4}})")


@cache
def _dlls() -> re.Pattern[str]:
    family = rf"(?P<family>{files_of(*SPOKEN_OF)})"
    return re.compile(rf"\b{family}(?:64)?_(?P<number>\d{{1,5}}(?:_\d{{1,3}}){{0,2}})\.dll", re.IGNORECASE)


def _decoded_dll(number: str) -> str:
    """Decode a number in a DLL's name: Windows writes 11.2 as 112, 9.1 as 91, and major versions as they are."""
    first, *rest = number.split("_")
    if len(first) == 3:
        return ".".join([first[:2], first[2:], *rest])
    minor = len(first) == 2 and first[0] in "56789"
    return ".".join([first[0], first[1], *rest] if minor else [first, *rest])


class WheelName(NamedTuple):
    """The parts of the name of one of NVIDIA's wheels."""

    name: str  # ``cudnn``
    cuda: str | None  # ``12``; None where the name has no suffix


@lru_cache(maxsize=1 << 13)
def wheel_of(name: str) -> WheelName | None:
    """The parsed name of one of NVIDIA's wheels; None for any other distribution."""
    match = _WHEEL.fullmatch(name)
    return WheelName(match["name"], match["cuda"]) if match and match["name"] in _wheels() else None


def family_of_wheel(name: str) -> str | None:
    wheel = wheel_of(name)
    return _wheels()[wheel.name].name if wheel else None


def cuda_of_wheel(distribution: Distribution) -> str | None:
    """The CUDA major version of a wheel."""
    wheel = wheel_of(distribution.name)
    if wheel is None:
        return None
    if wheel.cuda:
        return wheel.cuda[:2]
    return distribution.version.partition(".")[0] if _wheels()[wheel.name].wheel_is_cuda else None


def install_same_files(one: Distribution, other: Distribution) -> bool:
    """Whether both install files of the same name into the same folder, such as NCCL for two CUDA major versions."""
    first, second = wheel_of(one.name), wheel_of(other.name)
    if first is None or second is None or first.name != second.name or one.name == other.name:
        return False
    same_soname = one.version.partition(".")[0] == other.version.partition(".")[0] != ""
    return _wheels()[first.name].one_folder or (first.name == "cudnn" and same_soname)


def shares_its_folder(distribution: Distribution) -> bool:
    """Whether its files have the same names and folder as those for another CUDA major version."""
    wheel = wheel_of(distribution.name)
    return wheel is not None and (_wheels()[wheel.name].one_folder or wheel.name == "cudnn")


def wheel_with(family: str) -> str | None:
    """The name, without suffix, of the wheel with a family of libraries: ``nvidia-cublas`` for ``cublasLt``."""
    row = row_of(family)
    return f"nvidia-{row.wheel}" if row and row.wheel else None


def toolkit_extra(family: str) -> str | None:
    """The extra of ``cuda-toolkit`` that installs a family in the matching version, for any CUDA major version:
    ``cublas``. None for libraries that are released separately from the toolkit.
    """
    row = row_of(family)
    if row is None or not row.wheel or row.apart:
        return None
    return "cudart" if row.name == "cudart" else row.wheel.removeprefix("cuda-")


def contains_library(distribution: Distribution, name: LibraryName, matrix: Matrix) -> bool:
    """Whether a wheel contains the library with this name, as far as its version is known."""
    wheel, row = wheel_of(distribution.name), row_of(name.family)
    if wheel is None or row is None or wheel.name != row.wheel:
        return False
    number = name.number.partition(".")[0]
    if row.apart:
        return not number or not distribution.version or same_major(distribution.version, number) is not False
    cuda, majors = cuda_of_wheel(distribution), cuda_majors(matrix, name.family, name.number)
    return not majors or not cuda or not cuda.isdecimal() or int(cuda) in majors


def wheels_of_extra(extra: str, cuda: str) -> tuple[str, ...]:
    """The possible PyPI names of a toolkit wheel for a CUDA major, by its extra: with a suffix, newer ones without."""
    name = next((name for name, row in _wheels().items() if toolkit_extra(row.name) == extra), None)
    return (f"nvidia-{name}-cu{cuda}", f"nvidia-{name}") if name else ()


def wheels_brought(wheel_name: str) -> tuple[str, ...]:
    """The possible PyPI names of the wheels that one of NVIDIA's wheels requires."""
    wheel = wheel_of(wheel_name)
    extras = [extra for family in (_wheels()[wheel.name].brings if wheel else ()) if (extra := toolkit_extra(family))]
    return tuple(name for extra in extras for name in wheels_of_extra(extra, (wheel.cuda or "")[:2] if wheel else ""))


@cache
def _wheels() -> dict[str, FamilyRow]:
    return {row.wheel: row for row in load_matrix().families if row.wheel}


def lines_requiring(framework: Framework, family: str) -> list[str]:
    """The requirement lines for a wheel of a family, or for ``cuda-toolkit`` with its extra."""
    base, extra = wheel_with(family), toolkit_extra(family)
    wheel = re.compile(rf"{base}(?:-cu\d+)?")
    found = []
    for line in framework.requires if base else ():
        asked = read_requirement(line)
        name = normalised(asked.name) if asked else ""
        if wheel.fullmatch(name) or (asked is not None and name == TOOLKIT and extra in asked.extras):
            found.append(line)
    return found


class RequiredWheel(NamedTuple):
    """What a pinned package of a plan requires in one exact release."""

    wheel: Distribution
    owner: str  # The package that requires it: ``torch`` and its version


def open_entries(environment: Environment | None) -> Iterator[Distribution]:
    """The entries of a plan whose release is open, with an empty version."""
    for item in (environment.planned if environment else None) or ():
        if item.name and item.version is None and item.refused is None:
            yield Distribution(source=item.source, name=item.name, version="")


def version_of(distribution: Distribution) -> str:
    """The version as evidence."""
    return distribution.version or "any release"


def required_wheels(facts: Facts) -> dict[str, RequiredWheel]:
    """NVIDIA's wheels that the pinned packages of a plan require, by name; none where no entry can meet them."""
    found: dict[str, RequiredWheel] = {}
    planned = facts.environment.planned or ()
    for item in planned if any(wheel_of(item.name) for item in planned) else ():
        may_bring = any(map(wheel_of, named_by(normalised(item.name), facts.matrix)))
        if item.version is None or item.conda is not None or not may_bring:
            continue
        needs = declared(facts.matrix, item.name, item.version, facts.markers, build=item.build, extras=item.extras)
        for name, bounds in needs.items():
            version = pinned_by(f"{name}{bounds}") if wheel_of(name) else None
            if version:
                wheel = Distribution(source=inferred(f"requirement/{item.name}"), name=name, version=version)
                found.setdefault(name, RequiredWheel(wheel, f"{item.name} {item.version}"))
    return found


def all_wheels(facts: Facts) -> tuple[Distribution, ...]:
    """NVIDIA's wheels that are installed, and of a plan those that will be; conda's lie elsewhere."""
    there = [*facts.distributions, *open_entries(facts.environment)]
    names = {each.name for each in there}
    there += [each.wheel for name, each in required_wheels(facts).items() if name not in names]
    return tuple(each for each in there if wheel_of(each.name) and each.channel != "conda")


def overwritten(facts: Facts) -> dict[str, tuple[str, str]]:
    """By entry of a plan, a package of it that writes the same files, and what requires that one: empty where the plan
    alone asks for it.
    """
    required = required_wheels(facts)
    others: dict[str, str] = {}
    pairs = [pair for pair in combinations(all_wheels(facts), 2) if install_same_files(*pair)]
    groups = defaultdict[str, list[str]](list)
    for item in facts.environment.planned or ():
        for project in facts.matrix.projects(item.name, "shares-its-folder"):
            groups[project].append(item.name)
    for names in (*([one.name, other.name] for one, other in pairs), *groups.values()):
        for name, other in permutations(names, 2):
            if name != other:
                others.setdefault(name, other)
    asked = ((name, other) for name, other in others.items() if name not in required)
    return {name: (other, required[other].owner if other in required else "") for name, other in asked}
