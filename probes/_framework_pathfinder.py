"""Where cuda-pathfinder looks for NVIDIA's libraries, for the frameworks that load them by it.

By version 1.9: first the wheels, ``nvidia/cuNN/lib`` before ``nvidia/LIBRARY/lib``; then the conda environment; then
the loader is asked. A library that is loaded already is taken as it is.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ._loading_steps import Preload

if TYPE_CHECKING:
    from ._env_site import Site

_FOLDERS = {
    "cudart": "nvidia/cuda_runtime", "nvrtc": "nvidia/cuda_nvrtc", "nvJitLink": "nvidia/nvjitlink",
    "nvvm": "nvidia/cuda_nvcc/nvvm", "cublasLt": "nvidia/cublas", "cusparselt": "nvidia/cusparselt",
    "cutensor": "cutensor",
}  # fmt: skip
"""Folders of wheels that are not called as their library is."""
_FILES = {"cusparselt": "cusparseLt"}
_FIRST = {
    "cublas": ("cublasLt",),
    "cusolver": ("nvJitLink", "cusparse", "cublasLt", "cublas"),
    "cusparse": ("nvJitLink",),
}
"""What it loads before."""
_MAJOR = re.compile(r"cu\d{2}")


def found_by_pathfinder(site: Site, library: str) -> list[Preload]:
    """What loading that library by cuda-pathfinder loads: what it depends on, and itself."""
    return [_preload(site, each) for each in (*_FIRST.get(library, ()), library)]


def _preload(site: Site, library: str) -> Preload:
    own = _FOLDERS.get(library, f"nvidia/{library}")
    places = [f"nvidia/{name}/lib" for name in _unified(site)]
    places += [f"{own}/lib", f"{own}/lib64"]
    if "conda-meta" in site.names(site.prefix):
        places.append(f"{site.prefix}/lib")
    return Preload((f"lib{_FILES.get(library, library)}.so.*[0-9]",), tuple(places))


def _unified(site: Site) -> list[str]:
    """The folders that hold all libraries of one CUDA, newest first: ``cu13``."""
    if "nvidia/cuNN" not in site.kept:
        folders = [f"{folder}/nvidia" for folder in site.folders if "nvidia" in site.names(folder)]
        names = {name for folder in folders for name in site.names(folder) if _MAJOR.fullmatch(name)}
        site.kept["nvidia/cuNN"] = sorted(names, reverse=True)
    found: list[str] = site.kept["nvidia/cuNN"]
    return found
