"""The toolkit in which cuda-pathfinder looks for a library that neither wheels nor the loader have.

By versions 1.0 to 1.9: the one that ``CUDA_PATH``, else ``CUDA_HOME`` names (up to 1.4 the other way round); for NVVM,
which lies aside of the other libraries, from 1.4 on also the one to which the runtime belongs that the loader finds.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ._loading_python import caller_of_ctypes, started
from ._loading_steps import Preload

if TYPE_CHECKING:
    from ._env_site import Site

_VARIABLES = ("CUDA_PATH", "CUDA_HOME")
_RUNTIMES = ("libcudart.so.13", "libcudart.so.12")
_LIBRARIES = ("lib64", "lib")
_MAJORS = ("13", "12")
_NUMBERS = {
    "cufft": ("12", "11"), "curand": ("11", "10"), "cusolver": ("12", "11"), "cusparse": ("12",),
    "cusparseLt": ("0",), "cutensor": ("2",), "nccl": ("2",), "nvvm": ("4",),
}  # fmt: skip
"""Of sonames that do not count as CUDA does."""


def found_in_toolkit(site: Site, library: str) -> list[Preload]:
    """What it does about a library, named as in its file name, that was in no wheel."""
    names = tuple(f"lib{library}.so.{number}" for number in _NUMBERS.get(library, _MAJORS))
    toolkits = [*_named(site), *(_of_runtime(site) if library == "nvvm" else ())]
    inner = ("nvvm/lib64",) if library == "nvvm" else _LIBRARIES
    folders = tuple(f"{toolkit}/{folder}" for toolkit in toolkits for folder in inner)
    return [Preload(names, folders, unless_found=True)] if folders else []


def _named(site: Site) -> list[str]:
    variables = site.request.get("variables") or {}
    values = (str(variables.get(name, "")) for name in _VARIABLES)
    return [value.rstrip("/") for value in values if value.startswith("/")][:1]


def _of_runtime(site: Site) -> list[str]:
    """The folder above ``lib64``, ``lib`` or ``targets/*/lib`` in which the loader finds the runtime."""
    if "runtime's toolkit" not in site.kept:
        process = started(site).copy()
        caller = caller_of_ctypes(process, site)
        found = (process.open(name, caller)[0].image for name in _RUNTIMES)
        image = next((image for image in found if image), None)
        site.kept["runtime's toolkit"] = _toolkit(os.path.dirname(image.path)) if image else []
    toolkit: list[str] = site.kept["runtime's toolkit"]
    return toolkit


def _toolkit(folder: str) -> list[str]:
    above, _, name = folder.rpartition("/")
    if name not in _LIBRARIES:
        return []
    targets, _, _ = above.rpartition("/")
    return [targets.rpartition("/")[0] if targets.endswith("/targets") else above]
