"""The folders outside Python environments with CUDA libraries, and the kind of each.

Names of folders: NVIDIA's installation guides (CUDA toolkit, cuDNN, TensorRT, HPC SDK, DeepStream, WSL, Jetson) and the
search of NVIDIA's cuda-pathfinder. Nsight's tools bundle libraries for their own use and are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from ..kit.tree import Tree
from ..loader.cache import library_path

_CACHE = "/etc/ld.so.cache"
_CACHE_LIMIT = 16 << 20
_CACHED = re.compile(rb"(?<=\0)/[^\0]{0,4000}/lib(?:cu|nv|nccl|npp|magma)[^\0/]{0,200}\.so[^\0/]{0,60}(?=\0)")

_TOOLKITS = ("/usr/local/cuda*", "/opt/cuda*", "/opt/nvidia/hpc_sdk/*/*/cuda/*", "/usr/lib/cuda")
_TOOLKIT_VARIABLES = ("CUDA_HOME", "CUDA_PATH")
_TOOLKIT_FOLDERS = ("lib64", "lib", "targets/*/lib", "lib64/stubs", "lib/stubs", "targets/*/lib/stubs")
_TOOLKIT_EXTRAS = ("extras/CUPTI/lib64", "nvvm/lib64", "compat", "compat/*")
_NO_TOOLKITS = frozenset({"/", "/usr", "/usr/local"})
"""Values of CUDA_HOME where a distribution spreads the toolkit over system folders, which are searched anyway."""

_VENDOR = (
    "/usr/local/tensorrt*/lib",
    "/usr/local/TensorRT*/lib",
    "/opt/tensorrt*/lib",
    "/opt/TensorRT*/lib",
    "/usr/local/cudnn*/lib",
    "/usr/local/cudnn*/lib64",
    "/opt/cudnn*/lib",
    "/usr/local/nccl*/lib",
    "/opt/nvidia/nccl*/lib",
    "/opt/nvidia/nvshmem*/lib",
    "/opt/nvidia/deepstream/*/lib",
    "/opt/nvidia/hpc_sdk/*/*/math_libs/*/lib64",
    "/opt/nvidia/hpc_sdk/*/*/math_libs/*/targets/*/lib",
    "/opt/nvidia/hpc_sdk/*/*/comm_libs/*/*/lib",
    "/opt/nvidia/hpc_sdk/*/*/comm_libs/nccl/lib",
    "/opt/nvidia/hpc_sdk/*/*/comm_libs/nvshmem/lib",
    "/opt/magma*/lib",
    "/usr/local/magma/lib",
)
_VENDOR_VARIABLES = ("CUDNN_PATH", "NCCL_HOME", "TENSORRT_HOME", "NVSHMEM_HOME", "CUTENSOR_HOME", "MAGMA_HOME")

_DRIVER = (
    "/usr/lib/wsl/lib",
    "/usr/local/nvidia/lib",
    "/usr/local/nvidia/lib64",
    "/usr/lib/*-linux-gnu/nvidia",
    "/usr/lib/*-linux-gnu/nvidia/*",
    "/usr/lib/*-linux-gnu/tegra",
    "/run/opengl-driver/lib",
)
_SYSTEM = (
    "/lib/*-linux-gnu",
    "/usr/lib/*-linux-gnu",
    "/usr/lib/*-linux-gnu/stubs",
    "/lib64",
    "/usr/lib64",
    "/lib",
    "/usr/lib",
    "/usr/local/lib",
    "/usr/local/lib64",
    "/usr/lib/nvidia-cuda-toolkit/lib64",
)


class Place(NamedTuple):
    """A folder to look into."""

    folder: str
    """The path as found; it may be a link."""
    origin: str
    """``toolkit``, ``conda``, ``vendor``, ``driver``, ``system`` or ``other``."""
    top: str | None = None
    """Real path of the toolkit to which it belongs."""


def places(tree: Tree) -> Iterator[Place]:
    """All existing folders, those with the most specific kind first."""
    for top in _toolkits(tree):
        yield from _toolkit_places(tree, top)
    for pattern in _VENDOR:
        yield from (Place(folder, "vendor") for folder in tree.expand(pattern))
    for top in _named(tree, _VENDOR_VARIABLES):
        yield from (Place(f"{top}/{name}", "vendor") for name in ("lib", "lib64", "build/lib"))
    for pattern in _DRIVER:
        yield from (Place(folder, "driver") for folder in tree.expand(pattern))
    for pattern in _SYSTEM:
        yield from (Place(folder, "system") for folder in tree.expand(pattern))
    yield from (Place(folder, "other") for folder in library_path(tree))


def cached(tree: Tree) -> tuple[list[str], bool]:
    """The paths of CUDA libraries in the loader's cache, and whether it was read or does not exist."""
    data = tree.read_bytes(_CACHE, _CACHE_LIMIT)
    if data is None:
        return [], not tree.lexists(_CACHE)
    return [match.decode("utf-8", "replace") for match in _CACHED.findall(data)], len(data) < _CACHE_LIMIT


def _toolkits(tree: Tree) -> list[str]:
    """Real paths of the toolkits in the usual places and of those that the variables name."""
    found = [path for pattern in _TOOLKITS for path in tree.expand(pattern)]
    tops = [tree.resolve(path) for path in (*found, *_named(tree, _TOOLKIT_VARIABLES))]
    return [top for top in dict.fromkeys(tops) if top is not None and top not in _NO_TOOLKITS]


def _toolkit_places(tree: Tree, top: str) -> Iterator[Place]:
    conda = tree.resolve(f"{top}/conda-meta") is not None
    for pattern in (*_TOOLKIT_FOLDERS, *_TOOLKIT_EXTRAS):
        for folder in tree.expand(f"{top}/{pattern}"):
            yield Place(folder, "conda") if conda else Place(folder, "toolkit", top)


def _named(tree: Tree, names: tuple[str, ...]) -> Iterator[str]:
    variables = tree.variables
    for name in names:
        value = str(variables.get(name, ""))
        if value.startswith("/"):
            yield value.rstrip("/") or "/"
