"""What people call components, and how each component numbers its releases."""

from __future__ import annotations

import re
from functools import cache

from envcheck.knowledge.specifier import PLAIN, Scheme, parse_specifier, parse_version
from envcheck.model.components import Bound

_ALIASES = {
    "pytorch": "torch", "tf": "tensorflow", "trt": "tensorrt", "trt-engine": "tensorrt-engine", "cuda-toolkit": "cuda",
    "cudatoolkit": "cuda", "cuda-version": "cuda", "nvidia-driver": "driver", "compute-capability": "gpu", "cc": "gpu",
    "libcudnn": "cudnn", "libnccl": "nccl", "l4t-core": "l4t", "jetson-linux": "l4t", "g++": "gcc", "arch": "machine",
    "cpython": "python", "flash-attention": "flash-attn", "image": "nvcr", "container": "nvcr", "mxnet-gpu": "mxnet",
}  # fmt: skip

_BUILDS = Scheme(3, builds=True)
_MINORS = Scheme(2, builds=True)
_NVIDIA = "nvidia-"  # How NVIDIA's distributions of libraries begin: 9.1.0 stands for 9.1.0.70

_SCHEMES = {
    "cuda": _MINORS, "nvcc": _MINORS, "cuda-compat": _MINORS, "python": _MINORS, "glibc": _MINORS,
    "ubuntu": _MINORS._replace(digits=2), "jetpack": Scheme(2), "deepstream": Scheme(2), "l4t": Scheme(3),
    "cudnn": _BUILDS, "nccl": _BUILDS, "tensorrt": _BUILDS, "tensorrt-engine": _BUILDS,
    "driver": Scheme(2, builds=True), "windows": _BUILDS, "gcc": Scheme(1, builds=True),
    "clang": Scheme(1, builds=True), "msvc": _MINORS,
}  # fmt: skip

_MOST_NUMBERS = 6  # Numbers that any version has

COMPILERS = frozenset({"gcc", "clang", "msvc", "icc", "pgi", "nvhpc"})
"""Host compilers: they matter to the toolkit that compiles, so that a CUDA version beside one means the toolkit."""

SYSTEMS = frozenset({"jetpack", "l4t"})  # System software of Jetsons: what comes with it is there without being named

ARM = SYSTEMS | {"drive-os"}  # System software of boards that have Arm processors alone

SETS = SYSTEMS | {"deepstream", "drive-os", "nvcr"}
"""Software that is one set of versions: another version of what it brings is not known to work."""

HARDWARE = frozenset({"driver", "gpu", "cuda-compat"}) | SYSTEMS  # Naming one of these says that a GPU is to be used

CUDA_PARTS = frozenset({"cuda", "nvcc", "cudnn", "nccl", "tensorrt", "tensorrt-engine", "mig"})
"""Naming one of these beside a framework is about its builds with CUDA."""

PLATFORM = frozenset({"os", "machine"})  # Naming one of these says where; nothing need depend on it


@cache
def canonical(name: str) -> str:
    """The one name of a component; ``name`` as the grammar of components, or a row, writes it."""
    plain = re.sub(r"[._]+", "-", name.lower())
    return _ALIASES.get(plain, plain)


def scheme(name: str) -> Scheme:
    """How the component of this canonical name numbers its releases."""
    return _SCHEMES.get(name) or (_BUILDS if name.startswith(_NVIDIA) else PLAIN)


def is_within(bound: Bound, name: str, found: str) -> bool:
    """Whether an installed release of a component is within a bound; what is no version never is.

    What is installed is one release, so that a number which it leaves out is zero.
    """
    version = parse_version(found, scheme(canonical(name)))
    if version is None or unreadable(bound):
        return False
    padded = version.numbers + (0,) * (_MOST_NUMBERS - len(version.numbers))
    return parse_specifier(str(bound)).cover(version._replace(numbers=padded)) == "all"


def unreadable(bound: Bound) -> str:
    """Why a bound compares with no version; empty where it does."""
    try:
        parse_specifier(str(bound).replace("|", " "))
    except ValueError:
        plain = parse_version(bound.value)
        return f"{bound.value!r} is not a version" + (f" that {bound.operator} can compare with" if plain else "")
    return ""
