"""The search of cuda-pathfinder for NVIDIA's libraries: wheels, conda, the loader, and a toolkit."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from ...common.lazy import lazy_pattern
from ..loader.script import OpenByName, Preload, caller_of_ctypes, started
from ..python.site import Site
from .package import TEXT_LIMIT

# The toolkit in which cuda-pathfinder searches for a library that neither wheels nor the loader have.
#
# By versions 1.0 to 1.9: the one that ``CUDA_PATH``, else ``CUDA_HOME`` names (up to 1.4 the other way round); for
# NVVM, which is separate from the other libraries, from 1.4 on also the one to which the runtime belongs that the
# loader finds.

_LIBRARIES = ("lib64", "lib")
_CATALOGUES = (
    "cuda/pathfinder/_dynamic_libs/descriptor_catalog.py",
    "cuda/pathfinder/_dynamic_libs/supported_nvidia_libs.py",
)
"""The files with the names that it requests, from 1.4 on and before."""
_SONAME = lazy_pattern(r"lib(\w{2,40})\.so((?:\.\d{1,5}){1,4})\b")


def found_in_toolkit(site: Site, library: str) -> list[Preload]:
    """How it loads a library, named as in its file name, that was in no wheel."""
    names = names_asked(site, library)
    values = (str(site.tree.variables.get(name, "")) for name in ("CUDA_PATH", "CUDA_HOME"))
    named = [value.rstrip("/") for value in values if value.startswith("/")][:1]
    toolkits = [*named, *(site.once(_toolkit_of_runtime) if library == "nvvm" else ())] if names else ()
    inner = ("nvvm/lib64",) if library == "nvvm" else _LIBRARIES
    folders = tuple(f"{toolkit}/{folder}" for toolkit in toolkits for folder in inner)
    return [Preload(names, folders, unless_found=True)] if folders else []


def text_in_pathfinder(site: Site, places: Sequence[str]) -> str:
    """The text of the first of these files in an environment's cuda-pathfinder; empty if it has none."""
    folders = [folder for folder in site.folders if "cuda" in site.names(folder)]
    texts = (site.tree.read_text(f"{folder}/{place}", TEXT_LIMIT) for place in places for folder in folders)
    return next((text for text in texts if text is not None), "")


def names_asked(site: Site, library: str) -> tuple[str, ...]:
    """The names by which cuda-pathfinder requests a library, newest first; none without it, or if it knows none."""
    return site.once(_catalogue).get(library, ())


def _catalogue(site: Site) -> dict[str, tuple[str, ...]]:
    found: dict[str, dict[str, None]] = {}
    for match in _SONAME.finditer(text_in_pathfinder(site, _CATALOGUES)):
        found.setdefault(match[1], {})[match[0]] = None

    def numbers(soname: str) -> list[int]:
        return [int(part) for part in soname.partition(".so.")[2].split(".")]

    return {library: tuple(sorted(names, key=numbers, reverse=True)) for library, names in found.items()}


def _toolkit_of_runtime(site: Site) -> list[str]:
    """The toolkit of the runtime that the loader finds: the folder above ``lib64``, ``lib`` or ``targets/*/lib``."""
    process = started(site).copy()
    caller = caller_of_ctypes(process, site)
    found = (process.open(name, caller)[0].image for name in names_asked(site, "cudart"))
    image = next((image for image in found if image), None)
    above, _, name = os.path.dirname(image.path).rpartition("/") if image else ("", "", "")
    if name not in _LIBRARIES:
        return []
    targets, _, _ = above.rpartition("/")
    return [targets.rpartition("/")[0] if targets.endswith("/targets") else above]


# The search of cuda-pathfinder, for frameworks that load libraries with it.
#
# By its versions 1.0 to 1.9: first the wheels, ``nvidia/cuNN/lib`` before ``nvidia/LIBRARY/lib``; then the conda
# environment; then the loader is asked; at last a toolkit. A library that is loaded already is taken as it is. NVRTC's
# wheel of CUDA 13.0 does not say where its builtins are: from 1.1 on, those that lie beside it are loaded with it, of
# the release that ``load_dl_linux.py`` names.


_FOLDERS = {
    "cudart": "nvidia/cuda_runtime", "nvrtc": "nvidia/cuda_nvrtc", "nvJitLink": "nvidia/nvjitlink",
    "nvvm": "nvidia/cuda_nvcc/nvvm", "cublasLt": "nvidia/cublas", "cusparselt": "nvidia/cusparselt",
    "cutensor": "cutensor",
}  # fmt: skip
"""Folders of wheels that are not named after their library."""
_FILES = {"cusparselt": "cusparseLt"}
_FIRST = {
    "cublas": ("cublasLt",), "cusparse": ("nvJitLink",), "cutensor": ("cublasLt",),
    "cusolver": ("nvJitLink", "cusparse", "cublasLt", "cublas"),
}  # fmt: skip
"""Libraries that it loads first."""
_BUILTINS = "libnvrtc-builtins.so."
_RELEASE = lazy_pattern(r"libnvrtc-builtins\.so\.(\d{1,2})\.(\d{1,2})|major, minor = (\d{1,2}), (\d{1,2})")
"""The release in a file's name (up to 1.8), or in the assignment that 1.9 builds it from."""


def found_by_pathfinder(site: Site, library: str) -> list[Preload]:
    """The files that cuda-pathfinder loads for a library: its dependencies, then itself."""
    found: list[Preload] = []
    for each in (*_FIRST.get(library, ()), library):
        places = _wheel_folders(site, each)
        if "conda-meta" in site.names(site.prefix):
            places.append(f"{site.prefix}/{'nvvm/lib64' if each == 'nvvm' else 'lib'}")
        name = _FILES.get(each, each)
        found += [Preload((f"lib{name}.so.*[0-9]",), tuple(places)), *found_in_toolkit(site, name)]
    if library == "nvrtc":
        in_wheels = tuple(_wheel_folders(site, library))
        found += [Preload((f"{_BUILTINS}{release}",), in_wheels) for release in site.once(_releases_of_builtins)]
    return found


def asked_of_pathfinder(site: Site, library: str) -> list[OpenByName]:
    """A required request: code that loads a library with cuda-pathfinder fails without it."""
    names = names_asked(site, library)
    return [OpenByName(names, optional=False)] if names else []


def _wheel_folders(site: Site, library: str) -> list[str]:
    own = _FOLDERS.get(library, f"nvidia/{library}")
    return [*site.once(_folders_of_majors), f"{own}/lib", f"{own}/lib64"]


def _folders_of_majors(site: Site) -> list[str]:
    """The folders with all libraries of one CUDA major version, newest first: ``nvidia/cu13/lib``."""
    folders = [f"{folder}/nvidia" for folder in site.folders if "nvidia" in site.names(folder)]
    names = {name for folder in folders for name in site.names(folder) if re.fullmatch(r"cu\d{2}", name)}
    return [f"nvidia/{name}/lib" for name in sorted(names, reverse=True)]


def _releases_of_builtins(site: Site) -> list[str]:
    """The releases whose builtins the cuda-pathfinder of this environment loads with NVRTC."""
    text = text_in_pathfinder(site, ("cuda/pathfinder/_dynamic_libs/load_dl_linux.py",))
    matches = _RELEASE.finditer(text) if _BUILTINS in text else ()
    return [".".join(filter(None, match.groups())) for match in matches]
