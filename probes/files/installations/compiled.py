"""Compiled files of no framework that hold GPU code or link PyTorch; of each only its tables and headers are read."""

from __future__ import annotations

import posixpath
import re
import time
from collections.abc import Iterator
from typing import NamedTuple

from ...common.lazy import lazy_pattern
from ...common.library_names import family_of
from ...common.paths import printable
from ...common.record import Record
from ...common.tree import REFUSED, Tree
from ..elf.library import Elf, ElfError
from ..elf.tables import section_table
from ..gpu_code.targets import OWN_SECTIONS, REGISTRATION, gpu_targets
from ..owners.wheels import compiled_by, for_tests
from ..python.distributions import normalised
from ..python.site import Site
from .catalog import CATALOGUE, DETAILED

_MOST = {"files": 4000, "folders": 2000}
_SECONDS = 6.0  # For a cold network file system: less than the probe's deadline. A local disk needs a tenth of it.
_ALONE_MOST = 200  # Most files of one package with GPU code alone: of more, a program chooses by the GPU
_NATIVE = lazy_pattern(r".+\.(?:so(?:\.[0-9.]{1,20})?|cubin|fatbin|ptx)")
_LINKING_MOST = 6  # Most files of one package whose symbols are looked up: all of one build ask for the same PyTorch
_OF_FRAMEWORKS = frozenset(name for entry in CATALOGUE for name in entry.imports.split())
_SECTIONS = lazy_pattern("|".join(map(re.escape, (*OWN_SECTIONS, REGISTRATION))).encode())
_TORCH = lazy_pattern(r"lib(?:torch|c10)\w*\.so")
_FOR_ONE_TORCH = lazy_pattern(r"(?:torch|pt)[-_]?\d")
"""In the name of a file, or its folder, that a package chooses by the version of PyTorch: ``addon_torch28-cuda.so``."""
_VARIABLE = "TORCH_EXTENSIONS_DIR"
_PYTHON = lazy_pattern(r"/python(\d)\.(\d+)/")


class _Owner(NamedTuple):
    """A package, or a folder or file without one."""

    name: str
    path: str
    version: str | None = None
    cache: str | None = None
    """The folder of a build in PyTorch's cache, named after Python and CUDA, or the variable that names the cache."""


class _Bounds:
    """How much may still be looked at."""

    def __init__(self) -> None:
        self.left = dict(_MOST)
        self.until = time.monotonic() + _SECONDS
        self.complete = True

    def takes(self, what: str) -> bool:
        """Whether one more file or folder may be looked at."""
        self.left[what] -= 1
        enough = self.left[what] >= 0 and time.monotonic() < self.until
        self.complete = self.complete and enough
        return enough


def compiled(site: Site) -> Record:
    """The listing of ``Extension`` records of an environment."""
    bounds = _Bounds()
    described = [_described(site, owner, files, bounds) for owner, files in _owners(site, bounds)]
    return {"items": [record for record in described if record], "complete": bounds.complete}


def _owners(site: Site, bounds: _Bounds) -> Iterator[tuple[_Owner, list[str]]]:
    """Owners and their files; those that no metadata lists, which are few and most often built on site, come first."""
    listed: dict[str, set[str]] = {}
    owners: list[_Owner] = []
    packaged: list[tuple[_Owner, list[str]]] = []
    by_name = {item["name"]: item for item in reversed(site.distributions)}
    for item in site.distributions:
        if item["channel"] == "pip" and item["path"].endswith(".dist-info"):
            paths, tops = compiled_by(site.tree, item["path"])
            listed.setdefault(posixpath.dirname(item["path"]), set()).update(tops)
            files = [path for path in paths if family_of(path.rpartition("/")[2]) is None]
            if files and item["name"] not in DETAILED:
                packaged.append((_Owner(item["name"], item["path"], item["version"]), files))
    places: list[tuple[str, str]] = []
    for folder in site.folders:
        # What no RECORD lists; the system's package manager needs none.
        if not (folder.startswith("/usr/lib/") and folder.endswith("/dist-packages")):
            names = sorted(site.names(folder) - listed.get(folder, set()))
            places += [(name, f"{folder}/{name}") for name in names if _is_wanted(name) and not for_tests(name)]
    for name, path in (*places, *site.mapped.items()):
        stem = name.partition(".")[0]
        item = by_name.get(normalised(stem), {})
        if stem not in _OF_FRAMEWORKS and item.get("name") not in DETAILED:
            owners.append(_Owner(item.get("name", stem), path, item.get("version")))
    for owner in (*owners, *_cached(site)):
        if files := _compiled_below(site.tree, owner.path, bounds):
            yield owner, files
    yield from packaged


def _cached(site: Site) -> Iterator[_Owner]:
    """What PyTorch's ``cpp_extension`` compiled for this Python; the variable's folder has no builds."""
    tree, stated = site.tree, site.tree.variables.get(_VARIABLE)
    top = stated or f"{tree.variables.get('XDG_CACHE_HOME') or f'{tree.home()}/.cache'}/torch_extensions"
    own = tuple(f"py{match[1]}{match[2]}_" for match in map(_PYTHON.search, site.folders) if match)
    for build in [""] if stated else [name for name in tree.list_names(top) or () if name.startswith(own)]:
        folder = f"{top}/{build}".rstrip("/")
        names = tree.list_names(folder) or ()
        yield from (_Owner(name, f"{folder}/{name}", cache=build or _VARIABLE) for name in names)


def _is_wanted(name: str) -> bool:
    """Whether it may be a package, or code of one, by its name."""
    if "." not in name:
        return name.isidentifier() and name not in {"__pycache__", "build", "node_modules"}
    return _NATIVE.fullmatch(name) is not None and family_of(name) is None


def _compiled_below(tree: Tree, top: str, bounds: _Bounds) -> list[str]:
    """The compiled files at a path and below it."""
    found: list[str] = []
    waiting = [(top, 0)]
    while waiting:
        path, depth = waiting.pop()
        if "." in path.rpartition("/")[2]:
            found.append(path)
        elif tree.is_folder(path) and bounds.takes("folders"):
            names = (each for each in tree.list_names(path) or () if _is_wanted(each) and not for_tests(each))
            waiting += [(f"{path}/{each}", depth + 1) for each in names if "." in each or depth < 5]
    return sorted(found)


def _described(site: Site, owner: _Owner, files: list[str], bounds: _Bounds) -> Record | None:
    alone = {path for path in files if re.fullmatch(r".+\.(?:cubin|fatbin|ptx)", path)}
    code: dict[str, None] = {}
    ptx: dict[str, str] = {}
    holding: list[str] = []
    linking: list[str] = []
    whole, for_torch = len(alone) <= _ALONE_MOST, site.holds(("torch",))
    for path in files if whole else [path for path in files if path not in alone]:
        if not bounds.takes("files"):
            break
        place = site.tree.place(path)
        holds, links = (True, False) if path in alone else _signs(place, for_torch=for_torch)
        bounds.complete = bounds.complete and place not in REFUSED
        if links and not _FOR_ONE_TORCH.search("/".join(path.split("/")[-2:])):
            linking.append(path)
        found = gpu_targets(place) if holds else None
        if found and (found.targets or not found.complete):
            whole = whole and found.complete
            holding.append(path)
            code.update(dict.fromkeys(found.targets))
            for target, isa in found.ptx.items():
                ptx[target] = max(isa, ptx.get(target, isa), key=lambda text: [int(part) for part in text.split(".")])
    if linking:
        from .parts import lacking_in_torch  # where nothing links PyTorch, its loader need not be known
        from .torch_files import torch_of

        linking = linking if torch_of(site).parts else []
    if not holding and not linking:
        return None
    lacking = lacking_in_torch(site, linking[:_LINKING_MOST]) if linking else None
    return {
        "name": printable(owner.name),
        "path": printable(owner.path),
        "source": f"elf {printable((holding or linking)[0])}",
        "binaries": [printable(path) for path in dict.fromkeys([*holding, *linking])][:16],
        **({"version": owner.version} if owner.version else {}),
        **({"cache": printable(owner.cache)} if owner.cache else {}),
        **({"gpu_code": list(code), "ptx": ptx} if code and whole else {}),
        **({"unresolved": lacking} if lacking or (lacking is not None and len(linking) <= _LINKING_MOST) else {}),
    }


def _signs(place: str, *, for_torch: bool) -> tuple[bool, bool]:
    """Whether a library may hold GPU code (by the names of its sections), and whether it links PyTorch."""
    try:
        with Elf(place) as elf:
            _, names = section_table(elf.file, elf.header)
            holds = not names or _SECTIONS.search(names) is not None
            return holds, for_torch and any(map(_TORCH.match, elf.needed))
    except ElfError:
        return False, False
