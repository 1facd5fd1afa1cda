"""Where copies of a library lie that the loader does not find: a few known folders, never a search of the disk."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from ._links import expand, folder_names, resolve

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ._env_site import Site
    from ._loading import Process

_BELOW_A_SITE = ("torch/lib", "tensorrt_libs", "tensorrt_rtx_libs", "cutensor/lib", "cuquantum/lib", "nvpl/lib")
_PATTERNS = (
    "/usr/local/cuda*/lib64",
    "/usr/local/cuda*/targets/*/lib",
    "/opt/cuda/lib64",
    "/opt/cuda/targets/*/lib",
    "/usr/lib/*-linux-gnu/nvidia",
    "/usr/lib/*-linux-gnu/nvidia/current",
    "/usr/lib/*-linux-gnu/tegra",
)
_FOLDERS_OF_SYSTEMS = (
    "/usr/local/lib",
    "/usr/lib/wsl/lib",
    "/usr/local/nvidia/lib",
    "/usr/local/nvidia/lib64",
    "/run/opengl-driver/lib",
)
_COPIES = 8


_KEPT = 64
_FOLDERS: dict[tuple[str, str, tuple[str, ...]], tuple[str, ...]] = {}


class Places:
    """The folders of one environment and its machine, listed when they are first asked for."""

    def __init__(self, site: Site, process: Process) -> None:
        self._site = site
        self._process = process

    def copies(self, name: str) -> list[str]:
        """Real paths of the files of that name that the loader would take."""
        return list(islice((path for path in self._all_of(name) if self._fits(path)), _COPIES))

    def foreign(self, name: str) -> tuple[str, str] | None:
        """The first file of that name at which the loader passes, being for another processor, and what it is for."""
        for path in self._all_of(name):
            head = self._process.search.head(path)
            if head is not None and self._process.system.passes_over(head):
                return path, f"it is for {head.machine}, {head.bits} bit"
        return None

    def _all_of(self, name: str) -> Iterator[str]:
        if not name or "/" in name:
            return
        yield from dict.fromkeys(self._process.search.real(f"{folder}/{name}") for folder in self._folders())

    def _fits(self, path: str) -> bool:
        head = self._process.search.head(path)
        return head is not None and not head.refused and not self._process.system.passes_over(head)

    def _folders(self) -> tuple[str, ...]:
        key = (self._site.request.get("root", "/"), self._site.prefix, self._site.folders)
        if key not in _FOLDERS:
            if len(_FOLDERS) >= _KEPT:
                _FOLDERS.clear()
            _FOLDERS[key] = tuple(
                folder for folder in dict.fromkeys(self._all()) if resolve(self._site.request, folder)
            )
        return _FOLDERS[key]

    def _all(self) -> Iterator[str]:
        request = self._site.request
        for folder in self._site.folders:
            for name in folder_names(request, f"{folder}/nvidia")[0]:
                yield f"{folder}/nvidia/{name}/lib"
            yield from (f"{folder}/{inner}" for inner in _BELOW_A_SITE)
        yield f"{self._site.prefix}/lib"
        for pattern in (f"{self._site.prefix}/targets/*/lib", *_PATTERNS):
            yield from expand(request, pattern)
        yield from _FOLDERS_OF_SYSTEMS
