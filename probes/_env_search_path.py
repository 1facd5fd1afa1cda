"""Where an environment looks for packages, in the order of its ``sys.path``.

As documented for ``PYTHONPATH`` and the module ``site``: PYTHONPATH, the virtual environment's folder, the user's, the
base's; each site folder brings the plain lines of its ``.pth`` files along. Lines that begin with ``import`` are code
and say what they do only when they are run; what their text tells of it is told (``_env_startup``).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from ._env_interpreter import LIBRARY
from ._env_layout import Layout
from ._env_paths import home, is_folder, joined, link_target, name_of, real
from ._env_startup import path_changes
from ._kit import Request, list_names, read_text

FOLDERS = 1000
_CODE = ("import ", "import\t")
_PATH_FILES = 1000


class SearchPath(NamedTuple):
    """Existing folders, each once; ``by_variable`` of them come first, from PYTHONPATH."""

    folders: tuple[str, ...] = ()
    by_variable: int = 0
    complete: bool = False
    led_by: tuple[str, ...] = ()
    """What puts each folder there, where it is no site folder of the environment itself: ``PYTHONPATH``, ``user site``
    or the path of a ``.pth`` file; else empty."""
    startup: tuple[dict[str, Any], ...] = ()
    """The lines of ``.pth`` files that change this list by code."""


def search_path(request: Request, layout: Layout) -> SearchPath:
    """The folders that the environment's interpreter would search, its standard library left out."""
    code: list[tuple[str, str]] = []
    by_variable = _distinct(request, _python_path(request))
    sites = _distinct(request, _with_path_files(request, _sites(request, layout), code), by_variable)
    entries = [*by_variable.values(), *sites.values()]
    folders = tuple(folder for folder, _ in entries)
    complete = layout.minor is not None and len(folders) < FOLDERS
    startup = path_changes(request, code, folders) if code else ()
    return SearchPath(folders, len(by_variable), complete, tuple(led_by for _, led_by in entries), startup)


def _distinct(
    request: Request, folders: Iterator[tuple[str, str]], before: dict[str, tuple[str, str]] | None = None
) -> dict[str, tuple[str, str]]:
    """Real path → path and what leads there, for every existing folder that is not in ``before``."""
    found: dict[str, tuple[str, str]] = {}
    for folder, led_by in folders:
        key = real(request, folder)
        if key not in found and key not in (before or {}) and is_folder(request, folder):
            found[key] = (folder, led_by)
            if len(found) >= FOLDERS:
                break
    return found


def _python_path(request: Request) -> Iterator[tuple[str, str]]:
    value = str(request["variables"].get("PYTHONPATH", ""))
    if value:
        yield from ((joined(request["cwd"], part), "PYTHONPATH") for part in value.split(":"))


def _sites(request: Request, layout: Layout) -> Iterator[tuple[str, str]]:
    if layout.virtual:
        yield from ((folder, "") for folder in _site_folders(request, layout, layout.prefix))
    if layout.minor and (layout.system_packages or not layout.virtual):
        yield from ((folder, "user site") for folder in _user_site(request, layout.minor))
        if layout.base:
            yield from ((folder, "") for folder in _site_folders(request, layout, layout.base))


def _site_folders(request: Request, layout: Layout, prefix: str) -> Iterator[str]:
    """``site-packages``, and the folders that Debian uses in its stead."""
    minor = layout.minor
    other = "python" if layout.implementation == "pypy" else "pypy"
    for lib in ("lib64", "lib"):
        if lib == "lib64" and link_target(request, f"{prefix}/lib64") is not None:
            continue
        for name in list_names(request, f"{prefix}/{lib}") or []:
            match = LIBRARY.match(name)
            if match and match.group(1) != other and match.group(2) == minor:
                yield f"{prefix}/{lib}/{name}/site-packages"
    yield f"{prefix}/local/lib/python{minor}/dist-packages"
    if minor and minor.startswith("3"):
        yield f"{prefix}/lib/python3/dist-packages"
    yield f"{prefix}/lib/python{minor}/dist-packages"


def _user_site(request: Request, minor: str) -> Iterator[str]:
    variables = request["variables"]
    if variables.get("PYTHONNOUSERSITE"):
        return
    user_base = str(variables.get("PYTHONUSERBASE") or "") or (f"{home(request)}/.local" if home(request) else "")
    if user_base.startswith("/"):
        yield f"{user_base}/lib/python{minor}/site-packages"


def _with_path_files(
    request: Request, sites: Iterator[tuple[str, str]], code: list[tuple[str, str]]
) -> Iterator[tuple[str, str]]:
    """Each site folder and what its path files add; lines of code and their files go into ``code``."""
    for site, led_by in sites:
        yield site, led_by
        names = [name for name in list_names(request, site) or [] if name.endswith(".pth") and name[0] != "."]
        for name in names[:_PATH_FILES]:
            path = f"{site}/{name}"
            text = read_text(request, path) or ""
            yield from ((folder, path) for folder in _lines_of(text, site))
            code += [(path, line) for line in text.lstrip("\ufeff").splitlines() if line.startswith(_CODE)]


def _lines_of(text: str, site: str) -> Iterator[str]:
    for line in text.lstrip("\ufeff").splitlines():
        plain = line.rstrip()
        if plain and not plain.startswith(("#", *_CODE)) and name_of(plain):
            yield joined(site, plain)
