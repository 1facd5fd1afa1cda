"""Packages that no metadata accounts for: those imported instead of a required package or a standard module, and
those that an interrupted installation left.

PYTHONPATH, the user site or a ``.pth`` file leads to the folder of the former before the one where the package was
installed. Frameworks are left out: their readers report it.
"""

from __future__ import annotations

import sys
from collections.abc import Collection
from typing import Any

from ...common.paths import name_of, printable, without_suffix
from ...common.tree import REFUSED
from ..owners.wheels import compiled_by, decisive
from ..python.distributions import normalised
from ..python.site import Site, packages
from .catalog import CATALOGUE, DETAILED
from .package import TEXT_LIMIT, assigned, folder_of, version

_MOST = 50  # Most import names of one distribution
_BESIDE = frozenset({"numpy"})  # Packages that frameworks use without requiring them
_UNUSED = frozenset({"antigravity", "ensurepip", "idlelib", "lib2to3", "test", "this", "turtle", "turtledemo", "venv"})
"""Standard modules that no package imports."""
_PYTHONS_OWN = frozenset(getattr(sys, "stdlib_module_names", ())) - set(sys.builtin_module_names) - _UNUSED
"""Empty before Python 3.10, which is needed to tell them."""
_AT_START = frozenset({"abc", "codecs", "encodings", "genericpath", "io", "os", "posixpath", "site", "stat"})
"""Those that are imported before the working folder is searched."""
_IMPORTED = frozenset(name for entry in CATALOGUE for name in (*entry.imports.split(), *_BESIDE))
_SAYING = (("__init__.py", "__version__"), ("version.py", "version"), ("_version.py", "version"))


def shadowing(site: Site, shipped: dict[str, Any]) -> list[dict[str, Any]]:
    """A ``Distribution`` for each, with the version in its files, if any."""
    wanted = (_BESIDE | set(shipped["packages"])) - DETAILED
    first = {item["name"]: item for item in reversed(site.distributions) if item["name"] in wanted}
    return [record for item in first.values() if (record := _shadowing_file(site, item))]


def hides_pythons_own(site: Site, minor: str | None, required: Collection[str]) -> list[str] | None:
    """Paths that shadow a standard module, since PYTHONPATH precedes the standard library, and those in the working
    folder, which programs started there search first, that also shadow a framework, NumPy, or a package of what
    frameworks require (``required``, normalised names); None: not known.
    """
    if not _PYTHONS_OWN:
        return None
    # Without the library itself.
    led = [each for each in site.folders[: site.by_variable] if not each.endswith(f"/python{minor}")]
    found = _hiding(site, led, _PYTHONS_OWN)
    here = site.tree.cwd.rstrip("/")
    # Nobody starts programs inside a package, or among what is installed.
    if here not in site.folders and not here.startswith(site.prefix) and "__init__.py" not in site.names(here):
        own = {without_suffix(name, ".py") for name in site.names(here)}
        first = {each.partition("-")[0] for each in required}
        own = {
            name
            for name in own
            if name in _IMPORTED or normalised(name) in required or (name in first and _shared(site, name, required))
        }
        names = _PYTHONS_OWN - _AT_START | {name for name in own if packages(site, name)}
        found += _hiding(site._replace(folders=(here,), by_variable=1, led_by=(), mapped={}), [here], names)
    return found[:_MOST]


def missing_in_copies(site: Site, copies: Collection[str]) -> list[str]:
    """What the folders ``copies`` lack of the compiled modules, or ``version.py``, that the installed packages of their
    names have beside ``__init__.py``: the first of each. A checkout that was not built is such a copy.
    """
    lacking = []
    for path in copies:
        installed = next(iter(packages(site, name_of(path))), None)
        there = {name.partition(".")[0] for name in site.tree.list_names(path) or ()}
        names = site.tree.list_names(installed.path) if installed and there else None
        needed = (name for name in names or () if name.endswith((".so", ".pyd")) or name == "version.py")
        lacking += [printable(f"{path}/{name}") for name in needed if name.partition(".")[0] not in there][:1]
    return lacking


def _shared(site: Site, name: str, required: Collection[str]) -> bool:
    """Whether required distributions share the package, as those of ``cuda.bindings`` and ``cuda.pathfinder`` do."""
    parts = [each[len(name) + 1 :].replace("-", "_") for each in required if each.startswith(f"{name}-")]
    found = packages(site, name) if parts else ()
    return any(site.tree.is_file(f"{each.path}/{part}/__init__.py") for each in found for part in parts)


def _hiding(site: Site, folders: list[str], hidden: frozenset[str]) -> list[str]:
    names = {without_suffix(name, ".py") for folder in folders for name in site.names(folder)}
    taken = (next(iter(packages(site, name)), None) for name in sorted(names & hidden))
    return [printable(each.path) for each in taken if each and each.regular and each.folder in folders]


def _shadowing_file(site: Site, item: dict[str, Any]) -> dict[str, Any] | None:
    folder = folder_of(item)
    if folder not in site.folders[1:]:
        return None
    earlier = site.folders[: site.folders.index(folder)]
    files = decisive(site.tree, item["path"])[0]
    names = dict.fromkeys(without_suffix(each.path[len(folder) + 1 :].partition("/")[0], ".py") for each in files)
    for name in list(names)[:_MOST]:
        if any({name, f"{name}.py"} & site.names(each) for each in earlier):
            taken = next(iter(packages(site, name)), None)
            if taken and taken.regular and taken.folder in earlier:
                break
    else:
        return None
    record = {"name": item["name"], "version": "", "path": taken.path, "channel": "pip", "source": f"file {taken.path}"}
    if taken.led_by:
        record["led_by"] = taken.led_by
    for place, variable in _SAYING:
        path = taken.path if taken.path.endswith(".py") else f"{taken.path}/{place}"
        text = site.tree.read_text(path, TEXT_LIMIT) or ""
        stated = version(assigned(text, "__version__")) or version(assigned(text, variable))
        if stated:
            return {**record, "version": stated, "source": f"file {path}"}
    return record


_RECORD_LIMIT = 16 << 20


def unrecorded(site: Site) -> list[str]:
    """Paths of the regular packages in folders that pip installs into which nobody's metadata names.

    Debian's own folders belong to its package manager, which needs no record there; a folder that a variable or a
    ``.pth`` file adds may be any project.
    """
    found: list[str] = []
    for folder, led_by in zip(site.folders, site.led_by):
        if led_by in ("", "user site") and (name_of(folder) == "site-packages" or "/local/lib/" in folder):
            found += [printable(f"{folder}/{name}") for name in sorted(_unclaimed(site, folder))]
    return found[:50]


def _unclaimed(site: Site, folder: str) -> set[str]:
    names, tree = site.names(folder), site.tree
    infos = {name: normalised(name.partition("-")[0]) for name in names if name.endswith((".dist-info", ".egg-info"))}
    conda = [item for item in site.distributions if item["channel"] == "conda"]
    known = {*infos.values(), *(item["name"] for item in conda)}
    packages = {normalised(name): name for name in names if name.isidentifier()}
    left = {name for key, name in packages.items() if key not in known and tree.is_file(f"{folder}/{name}/__init__.py")}
    for info in sorted(infos, key=lambda name: infos[name] in packages):  # first those that must hold other names
        if not left:
            break
        _, listed = compiled_by(tree, f"{folder}/{info}")
        left.difference_update(listed or (tree.read_text(f"{folder}/{info}/top_level.txt") or "").split())
        if not REFUSED.keys().isdisjoint((f"{folder}/{info}", f"{folder}/{info}/RECORD")):
            return set()  # it may name any of them
    for item in conda if left else ():
        data = tree.read_bytes(item["path"], _RECORD_LIMIT) or b""
        left -= {name for name in left if b"site-packages/%s/" % name.encode() in data}
    return left
