"""Where copies of a library lie that the loader does not find: a few known folders, never a search of the disk."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._kit import below
from ._links import expand, folder_names, resolve
from ._loading_heads import head_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ._env_site import Site
    from ._loading_system import System

_BELOW_A_SITE = ("torch/lib", "tensorrt_libs", "tensorrt_rtx_libs", "cutensor/lib", "cuquantum/lib", "nvpl/lib")
_TOOLKITS = ("/usr/local/cuda*/lib64", "/usr/local/cuda*/targets/*/lib", "/opt/cuda/lib64", "/opt/cuda/targets/*/lib")
_SYSTEM = ("/usr/local/lib", "/usr/lib/wsl/lib", "/usr/local/nvidia/lib64", "/run/opengl-driver/lib")
_COPIES = 8


class Places:
    """The folders of one environment and its machine, listed when they are first asked for."""

    def __init__(self, site: Site, system: System) -> None:
        self._site = site
        self._system = system
        self._folders: tuple[str, ...] | None = None

    def copies(self, name: str) -> list[str]:
        """Real paths of the files of that name that the loader would take."""
        if not name or "/" in name:
            return []
        if self._folders is None:
            self._folders = tuple(dict.fromkeys(self._all()))
        paths = (resolve(self._site.request, f"{folder}/{name}") for folder in self._folders)
        return list(dict.fromkeys(path for path in paths if path and self._fits(path)))[:_COPIES]

    def _fits(self, path: str) -> bool:
        head = head_of(below(self._site.request, path))
        return head is not None and not head.refused and not self._system.passes_over(head)

    def _all(self) -> Iterator[str]:
        request = self._site.request
        for folder in self._site.folders:
            for name in folder_names(request, f"{folder}/nvidia")[0]:
                yield f"{folder}/nvidia/{name}/lib"
            yield from (f"{folder}/{inner}" for inner in _BELOW_A_SITE)
        yield from (f"{self._site.prefix}/lib", f"{self._site.prefix}/targets/x86_64-linux/lib")
        for pattern in _TOOLKITS:
            yield from expand(request, pattern)
        yield from _SYSTEM
