"""The copies of CUDA libraries by real path, in environments and in the folders of the machine.

Names of folders: NVIDIA's installation guides (CUDA toolkit, cuDNN, TensorRT, HPC SDK, DeepStream, WSL, Jetson) and the
search of NVIDIA's cuda-pathfinder. Nsight's tools bundle libraries for their own use and are left out.
"""

from __future__ import annotations

import os
import posixpath
import re
import stat
from collections.abc import Iterator
from typing import NamedTuple

from ...common.library_names import LibraryFileName, family_of
from ...common.record import Record
from ...common.tree import Tree, refused
from ..loader.setup import Paths, library_path
from ..owners.claims import Claim
from ..owners.conda import owners as owners_by_conda
from ..owners.wheels import libraries_by

LIMIT = 5000


class Copy(NamedTuple):
    """One file."""

    path: str
    """Real path, as the examined machine sees it."""
    name: LibraryFileName
    size: int
    origin: str
    environment: str | None
    top: str | None
    """Real path of the toolkit that contains it."""
    names: list[str]
    """Links to it."""
    claims: list[Claim]


class Copies:
    """Collects copies; the first to add a file decides its origin."""

    def __init__(self, tree: Tree) -> None:
        self.found: dict[str, Copy] = {}
        self.complete = True
        self._tree = tree
        self._paths = Paths(tree)

    def add_folder(self, folder: str, origin: str, environment: str | None = None, top: str | None = None) -> None:
        names, certain = self._tree.folder_names(folder)
        self.complete = self.complete and certain
        for name in names:
            if name.startswith("lib") and family_of(name):
                self.add(f"{folder}/{name}", origin, environment, top)

    def add(
        self, path: str, origin: str, environment: str | None = None, top: str | None = None, claim: Claim | None = None
    ) -> None:
        """Add a path that may be a library; ``claim`` is its owner's claim."""
        found = self._real(path)
        if found is None:
            return
        real, size, linked = found
        copy = self.found.get(real)
        if copy is None:
            name = family_of(posixpath.basename(real)) or family_of(posixpath.basename(path))
            if name is None or len(self.found) >= LIMIT:
                self.complete = self.complete and name is None
                return
            copy = self.found[real] = Copy(real, name, size, origin, environment, top, [], [])
        if path != real and path not in copy.names:
            copy.names.append(path)
        if claim is not None and not linked and claim not in copy.claims:
            copy.claims.append(claim)  # the owner of a link (a development package) does not own the file

    def _real(self, path: str) -> tuple[str, int, bool] | None:
        """Real path and size of a regular file, and whether ``path`` ends in a link to it."""
        folder, name = posixpath.split(path)
        inside = self._paths.folder(folder)
        real: str | None = f"{inside.rstrip('/')}/{name}" if inside else None
        linked = False
        try:
            status = os.lstat(self._tree.place(real, follow=False)) if real else None
            if real and status and stat.S_ISLNK(status.st_mode):
                linked = True
                real = self._tree.resolve(real)
                status = os.lstat(self._tree.place(real, follow=False)) if real else None
        except (OSError, ValueError) as error:
            refused(path, error)
            return None
        if real is None or status is None or not stat.S_ISREG(status.st_mode):
            return None
        return real, status.st_size, linked


_BUNDLES = (
    "torch/lib", "tensorrt_libs", "tensorrt_lean_libs", "tensorrt_dispatch_libs", "tensorrt", "cutensor/lib",
    "cusparselt/lib", "cupy/.data/lib", "jaxlib/cuda", "onnxruntime/capi", "paddle/libs", "mxnet",
)  # fmt: skip
"""Folders of site-packages in which wheels bundle copies; read whether or not a RECORD lists them."""

_CONDA = ("lib", "lib/stubs", "targets/*/lib", "targets/*/lib/stubs", "cuda-compat", "nvvm/lib64")


def add_environment(tree: Tree, copies: Copies, environment: Record) -> None:
    """Add all copies in the environment of this record."""
    key = environment["key"]
    distributions = environment.get("distributions") or ()
    for distribution in distributions:
        if distribution["channel"] != "pip" or not distribution["path"].endswith(".dist-info"):
            continue
        by_conda = distribution.get("installer") == "conda"  # conda's own record takes precedence
        for recorded in libraries_by(tree, distribution["path"]) or ():
            claim = Claim("wheel", distribution["name"], distribution["version"], recorded.size, recorded.hash)
            copies.add(recorded.path, "conda" if by_conda else "wheel", key, claim=None if by_conda else claim)
    for site in environment.get("site_packages") or ():
        names = set(tree.folder_names(site)[0])
        origin = {"site-packages": "wheel", "dist-packages": "system"}.get(site.rpartition("/")[2], "other")
        folders = [f"{site}/{bundle}" for bundle in _BUNDLES if bundle.partition("/")[0] in names]
        folders += [f"{site}/{name}" for name in sorted(names) if name.endswith(".libs")]
        if "nvidia" in names:
            folders += tree.expand(f"{site}/nvidia/*/lib")
        for folder in folders:
            copies.add_folder(folder, origin, key)
    conda = [item for item in distributions if item["channel"] == "conda"]
    for path, claims in owners_by_conda(tree, key, conda).items() if conda else ():
        for claim in claims:
            copies.add(path, "conda", key, claim=claim)
    for pattern in _CONDA if conda else ():
        for folder in tree.expand(f"{key}/{pattern}"):
            copies.add_folder(folder, "conda", key)
    copies.complete = copies.complete and bool(environment.get("distributions_complete"))


_CACHE = "/etc/ld.so.cache"
_CACHE_LIMIT = 16 << 20
_CACHED = re.compile(rb"(?<=\0)/[^\0]{0,4000}/lib(?:cu|nv|nccl|npp|magma)[^\0/]{0,200}\.so[^\0/]{0,60}(?=\0)")

_TOOLKITS = ("/usr/local/cuda*", "/opt/cuda*", "/opt/nvidia/hpc_sdk/*/*/cuda/*", "/usr/lib/cuda")
_TOOLKIT_FOLDERS = ("lib64", "lib", "targets/*/lib", "lib64/stubs", "lib/stubs", "targets/*/lib/stubs")
_NO_TOOLKITS = frozenset({"/", "/usr", "/usr/local"})
"""Values of CUDA_HOME where a distribution spreads the toolkit over system folders, which are searched anyway."""

_VENDOR = (
    "/usr/local/tensorrt*/lib", "/usr/local/TensorRT*/lib", "/opt/tensorrt*/lib", "/opt/TensorRT*/lib",
    "/usr/local/cudnn*/lib", "/usr/local/cudnn*/lib64", "/opt/cudnn*/lib", "/usr/local/nccl*/lib",
    "/opt/nvidia/nccl*/lib", "/opt/nvidia/nvshmem*/lib", "/opt/nvidia/deepstream/*/lib",
    "/opt/nvidia/hpc_sdk/*/*/math_libs/*/lib64", "/opt/nvidia/hpc_sdk/*/*/math_libs/*/targets/*/lib",
    "/opt/nvidia/hpc_sdk/*/*/comm_libs/*/*/lib", "/opt/nvidia/hpc_sdk/*/*/comm_libs/nccl/lib",
    "/opt/nvidia/hpc_sdk/*/*/comm_libs/nvshmem/lib", "/opt/magma*/lib", "/usr/local/magma/lib",
)  # fmt: skip
_VENDOR_VARIABLES = ("CUDNN_PATH", "NCCL_HOME", "TENSORRT_HOME", "NVSHMEM_HOME", "CUTENSOR_HOME", "MAGMA_HOME")

_DRIVER = (
    "/usr/lib/wsl/lib", "/usr/local/nvidia/lib", "/usr/local/nvidia/lib64", "/usr/lib/*-linux-gnu/nvidia",
    "/usr/lib/*-linux-gnu/nvidia/*", "/usr/lib/*-linux-gnu/tegra", "/run/opengl-driver/lib",
)  # fmt: skip
_SYSTEM = (
    "/lib/*-linux-gnu", "/usr/lib/*-linux-gnu", "/usr/lib/*-linux-gnu/stubs", "/lib64", "/usr/lib64", "/lib",
    "/usr/lib", "/usr/local/lib", "/usr/local/lib64", "/usr/lib/nvidia-cuda-toolkit/lib64",
)  # fmt: skip


def places(tree: Tree) -> Iterator[tuple[str, str, str | None]]:
    """All existing folders (as found, which may be links), their kinds, and the toolkits to which they belong, those
    of the most specific kind first.
    """
    usual = [path for pattern in _TOOLKITS for path in tree.expand(pattern)]
    for top in dict.fromkeys(tree.resolve(path) for path in (*usual, *_named(tree, ("CUDA_HOME", "CUDA_PATH")))):
        if top is None or top in _NO_TOOLKITS:
            continue
        conda = tree.resolve(f"{top}/conda-meta") is not None
        for pattern in (*_TOOLKIT_FOLDERS, "extras/CUPTI/lib64", "nvvm/lib64", "compat", "compat/*"):
            for folder in tree.expand(f"{top}/{pattern}"):
                yield (folder, "conda", None) if conda else (folder, "toolkit", top)
    for pattern in _VENDOR:
        yield from ((folder, "vendor", None) for folder in tree.expand(pattern))
    for top in _named(tree, _VENDOR_VARIABLES):
        yield from ((f"{top}/{name}", "vendor", None) for name in ("lib", "lib64", "build/lib"))
    for origin, patterns in (("driver", _DRIVER), ("system", _SYSTEM)):
        for pattern in patterns:
            yield from ((folder, origin, None) for folder in tree.expand(pattern))
    yield from ((folder, "other", None) for folder in library_path(tree))


def cached(tree: Tree) -> tuple[list[str], bool]:
    """The paths of CUDA libraries in the loader's cache, and whether it was read or does not exist."""
    data = tree.read_bytes(_CACHE, _CACHE_LIMIT)
    if data is None:
        return [], not tree.lexists(_CACHE)
    return [match.decode("utf-8", "replace") for match in _CACHED.findall(data)], len(data) < _CACHE_LIMIT


def _named(tree: Tree, names: tuple[str, ...]) -> Iterator[str]:
    variables = tree.variables
    for name in names:
        value = str(variables.get(name, ""))
        if value.startswith("/"):
            yield value.rstrip("/") or "/"
