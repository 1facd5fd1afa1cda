"""Where cuda-pathfinder looks for NVIDIA's libraries, for the frameworks that load them by it.

By its versions 1.0 to 1.9: first the wheels, ``nvidia/cuNN/lib`` before ``nvidia/LIBRARY/lib``; then the conda
environment; then the loader is asked; at last a toolkit. A library that is loaded already is taken as it is. NVRTC's
wheel of CUDA 13.0 does not say where its builtins are: from 1.1 on, those that lie beside it are loaded with it, of the
release that ``load_dl_linux.py`` names.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ._loading_steps import Ask, Preload
from ._pathfinder_toolkit import found_in_toolkit, names_asked, text_in_pathfinder

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
    "cutensor": ("cublasLt",),
}
"""What it loads before."""
_MAJOR = re.compile(r"cu\d{2}")
_LINUX = "cuda/pathfinder/_dynamic_libs/load_dl_linux.py"
_BUILTINS = "libnvrtc-builtins.so."
_RELEASE = re.compile(r"libnvrtc-builtins\.so\.(\d{1,2})\.(\d{1,2})|major, minor = (\d{1,2}), (\d{1,2})")
"""As it stands in the file's name, up to 1.8, or in the assignment from which 1.9 makes it."""


def found_by_pathfinder(site: Site, library: str) -> list[Preload]:
    """What loading that library by cuda-pathfinder loads: what it depends on, and itself."""
    found = [preload for each in (*_FIRST.get(library, ()), library) for preload in _preloads(site, each)]
    if library == "nvrtc":
        places = tuple(_of_wheels(site, library))
        found += [Preload((f"{_BUILTINS}{release}",), places) for release in _releases_of_builtins(site)]
    return found


def asked_of_pathfinder(site: Site, library: str) -> list[Ask]:
    """That code which loads a library by cuda-pathfinder stops where there is none."""
    names = names_asked(site, library)
    return [Ask(names, optional=False)] if names else []


def _preloads(site: Site, library: str) -> list[Preload]:
    places = _of_wheels(site, library)
    if "conda-meta" in site.names(site.prefix):
        places.append(f"{site.prefix}/{'nvvm/lib64' if library == 'nvvm' else 'lib'}")
    name = _FILES.get(library, library)
    return [Preload((f"lib{name}.so.*[0-9]",), tuple(places)), *found_in_toolkit(site, name)]


def _of_wheels(site: Site, library: str) -> list[str]:
    own = _FOLDERS.get(library, f"nvidia/{library}")
    return [*(f"nvidia/{name}/lib" for name in _unified(site)), f"{own}/lib", f"{own}/lib64"]


def _releases_of_builtins(site: Site) -> list[str]:
    """The releases whose builtins the cuda-pathfinder of this environment loads with NVRTC."""
    if "pathfinder" not in site.kept:
        text = text_in_pathfinder(site, (_LINUX,))
        said = _RELEASE.finditer(text) if _BUILTINS in text else ()
        site.kept["pathfinder"] = [".".join(filter(None, match.groups())) for match in said]
    found: list[str] = site.kept["pathfinder"]
    return found


def _unified(site: Site) -> list[str]:
    """The folders that hold all libraries of one CUDA, newest first: ``cu13``."""
    if "nvidia/cuNN" not in site.kept:
        folders = [f"{folder}/nvidia" for folder in site.folders if "nvidia" in site.names(folder)]
        names = {name for folder in folders for name in site.names(folder) if _MAJOR.fullmatch(name)}
        site.kept["nvidia/cuNN"] = sorted(names, reverse=True)
    found: list[str] = site.kept["nvidia/cuNN"]
    return found
