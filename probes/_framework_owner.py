"""Whose files those of a package are, where several distributions hold one package and each wrote over the other's."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from ._env_paths import is_file, real
from ._framework_here import Here, folder_of, text_of
from ._kit import below

if TYPE_CHECKING:
    from ._env_site import Site

_RECORD_LIMIT = 16 << 20


def owners(here: Here, path: str) -> list[dict[str, Any]]:
    """The distributions whose own list of files has ``path`` with the size that it has; all, where none says a size."""
    if len(here.wheels) < 2:
        return list(here.wheels)
    size = _size(here.site, path)
    listed = [(wheel, _recorded_size(here.site, wheel, path)) for wheel in here.wheels]
    fitting = [wheel for wheel, recorded in listed if recorded is not None and recorded == size]
    return fitting or [wheel for wheel, recorded in listed if recorded is None]


def _size(site: Site, path: str) -> int | None:
    if not is_file(site.request, path):
        return None
    inside = path if site.request.get("root", "/") == "/" else real(site.request, path)
    try:
        return os.stat(below(site.request, inside)).st_size
    except OSError:
        return None


def _recorded_size(site: Site, wheel: dict[str, Any], path: str) -> int | None:
    """The size in ``RECORD`` (``path,sha256=...,size``); None where it lists no such file, or no size."""
    folder = folder_of(wheel)
    if not path.startswith(f"{folder}/"):
        return None
    text = "\n" + (text_of(site, f"{wheel['path']}/RECORD", _RECORD_LIMIT) or "")
    start = text.find(f"\n{path[len(folder) + 1 :]},")
    if start < 0:
        return None
    size = (
        text[start + 1 : text.find("\n", start + 1) if text.find("\n", start + 1) > 0 else None]
        .strip()
        .rpartition(",")[2]
    )
    return int(size) if size.isdigit() and len(size) < 16 else None
