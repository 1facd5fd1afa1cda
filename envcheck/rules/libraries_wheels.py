"""NVIDIA's wheels by what they hold, and the CUDA major that they are for: mostly the suffix of their names."""

from __future__ import annotations

import re
from typing import NamedTuple

from envcheck.compat.libraries import cuda_majors, same_major
from envcheck.compat.tables import Tables
from envcheck.rules.libraries_names import LibraryName
from envcheck.snapshot import Distribution

_WHEEL = re.compile(r"nvidia-(?P<name>[a-z]+(?:-[a-z]+)*?)(?:-cu(?P<cuda>[0-9]{1,3}))?")
_FAMILIES = {
    "cuda-runtime": "cudart",
    "cuda-nvrtc": "nvrtc",
    "cuda-cupti": "cupti",
    "nvjitlink": "nvJitLink",
    "cusparselt": "cusparseLt",
    "nvshmem": "nvshmem_host",
    "cublas": "cublas",
    "cudnn": "cudnn",
    "cufft": "cufft",
    "curand": "curand",
    "cusolver": "cusolver",
    "cusparse": "cusparse",
    "cufile": "cufile",
    "nccl": "nccl",
    "nvtx": "nvToolsExt",
}
_OF_THEIR_OWN = frozenset({"cudnn", "cusparselt", "nvshmem", "nccl"})
"""Wheels that do not come with a toolkit: the first number of their version is that of their soname."""
_SAME_FILES = frozenset({"nccl", "cusparselt", "nvshmem"})
"""Wheels whose files have the same names for every CUDA major, in one folder; cuDNN's do within one of its majors."""
_NAMED_FOR_CUDA = frozenset({"cuda-runtime", "cuda-nvrtc", "cuda-cupti", "nvjitlink", "cublas"})
"""Wheels without a suffix whose own version is CUDA's."""


class Wheel(NamedTuple):
    """What the name of a wheel says."""

    name: str
    """``cudnn``."""
    cuda: str | None
    """``12``; None where the name does not say."""


def wheel_of(name: str) -> Wheel | None:
    """What a distribution of NVIDIA's holds; None for any other."""
    match = _WHEEL.fullmatch(name)
    return Wheel(match["name"], match["cuda"]) if match and match["name"] in _FAMILIES else None


def family_of_wheel(name: str) -> str | None:
    """The family of its libraries."""
    wheel = wheel_of(name)
    return _FAMILIES[wheel.name] if wheel else None


def cuda_of_wheel(distribution: Distribution) -> str | None:
    """The CUDA major that a wheel is for."""
    wheel = wheel_of(distribution.name)
    if wheel is None:
        return None
    if wheel.cuda:
        return wheel.cuda[:2]
    return distribution.version.partition(".")[0] if wheel.name in _NAMED_FOR_CUDA else None


def fills_the_same_folder(one: Distribution, other: Distribution) -> bool:
    """Whether both write files of one name into one folder: NCCL for two CUDA majors."""
    first, second = wheel_of(one.name), wheel_of(other.name)
    if first is None or second is None or first.name != second.name or one.name == other.name:
        return False
    same_soname = one.version.partition(".")[0] == other.version.partition(".")[0]
    return first.name in _SAME_FILES or (first.name == "cudnn" and same_soname)


def shares_its_folder(distribution: Distribution) -> bool:
    """Whether its files have the names, and the folder, of those for another CUDA major."""
    wheel = wheel_of(distribution.name)
    return wheel is not None and (wheel.name in _SAME_FILES or wheel.name == "cudnn")


def wheel_holding(family: str) -> str | None:
    """The name, without a suffix, of the wheel that holds a family of libraries: ``nvidia-cublas`` for ``cublasLt``."""
    name = _name_holding(family)
    return f"nvidia-{name}" if name else None


def toolkit_extra(family: str) -> str | None:
    """The extra of the distribution ``cuda-toolkit`` that brings a family, for any CUDA major and in the version that
    goes with it: ``cublas``. None for what is released apart from the toolkit.
    """
    name = _name_holding(family)
    if name is None or name in _OF_THEIR_OWN:
        return None
    return "cudart" if name == "cuda-runtime" else name.removeprefix("cuda-")


def serves(distribution: Distribution, name: LibraryName, tables: Tables) -> bool:
    """Whether a wheel holds the library of that name, as far as its version is known."""
    wheel, base = wheel_of(distribution.name), _name_holding(name.family)
    if wheel is None or wheel.name != base:
        return False
    number = name.number.partition(".")[0]
    if base in _OF_THEIR_OWN:
        return not number or not distribution.version or same_major(distribution.version, number) is not False
    cuda, majors = cuda_of_wheel(distribution), cuda_majors(tables, name.family, name.number)
    return not majors or not cuda or not cuda.isdecimal() or int(cuda) in majors


def wheels_of_extra(extra: str, cuda: str) -> tuple[str, ...]:
    """The names under which a wheel of the toolkit may be on PyPI for a CUDA major, by its extra: with the major behind
    it, or, as the newer ones, without.
    """
    name = next((name for name in _FAMILIES if toolkit_extra(_FAMILIES[name]) == extra), None)
    return (f"nvidia-{name}-cu{cuda}", f"nvidia-{name}") if name else ()


def _name_holding(family: str) -> str | None:
    plain = (
        "cudnn" if family.startswith("cudnn") else {"cublasLt": "cublas", "cusolverMg": "cusolver"}.get(family, family)
    )
    return next((name for name, held in _FAMILIES.items() if held == plain), None)
