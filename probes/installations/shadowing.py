"""Packages without metadata that are imported instead of one that a framework requires, or instead of a standard
module.

PYTHONPATH, the user site or a ``.pth`` file leads to their folder before the one where the package was installed.
Frameworks are left out: their readers report it.
"""

from __future__ import annotations

import sys
from typing import Any

from ..kit.paths import printable, without_suffix
from ..owners.wheels import decisive
from ..python.site import Package, Site, packages
from .catalog import DETAILED
from .package import folder_of, text_of
from .text import assigned, version

_MOST = 50
"""Most import names of one distribution."""
_BESIDE = frozenset({"numpy"})
"""Packages that frameworks use without requiring them."""
_UNUSED = frozenset({"antigravity", "ensurepip", "idlelib", "lib2to3", "test", "this", "turtle", "turtledemo", "venv"})
"""Standard modules that no package imports."""
_PYTHONS_OWN = frozenset(getattr(sys, "stdlib_module_names", ())) - set(sys.builtin_module_names) - _UNUSED
"""Empty before Python 3.10, which is needed to tell them."""
_SAYING = (("__init__.py", "__version__"), ("version.py", "version"), ("_version.py", "version"))


def shadowing(site: Site, shipped: dict[str, Any]) -> list[dict[str, Any]]:
    """A ``Distribution`` for each, with the version in its files, if any."""
    wanted = (_BESIDE | set(shipped["packages"])) - DETAILED
    first = {item["name"]: item for item in reversed(site.distributions) if item["name"] in wanted}
    return [record for item in first.values() if (record := _instead(site, item))]


def hides_pythons_own(site: Site, minor: str | None) -> list[str] | None:
    """Paths that shadow a standard module, since PYTHONPATH precedes the standard library; None: not known."""
    if not _PYTHONS_OWN:
        return None
    led = [
        each for each in site.folders[: site.by_variable] if not each.endswith(f"/python{minor}")
    ]  # the library itself
    names = {without_suffix(name, ".py") for folder in led for name in site.names(folder)}
    taken = (next(iter(packages(site, name)), None) for name in sorted(names & _PYTHONS_OWN))
    return [printable(each.path) for each in taken if each and each.regular and each.folder in led][:_MOST]


def _instead(site: Site, item: dict[str, Any]) -> dict[str, Any] | None:
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
                return _record(site, item["name"], taken)
    return None


def _record(site: Site, name: str, taken: Package) -> dict[str, Any]:
    record = {"name": name, "version": "", "path": taken.path, "channel": "pip", "source": f"file {taken.path}"}
    if taken.led_by:
        record["led_by"] = taken.led_by
    for place, variable in _SAYING:
        path = taken.path if taken.path.endswith(".py") else f"{taken.path}/{place}"
        text = text_of(site, path) or ""
        said = version(assigned(text, "__version__")) or version(assigned(text, variable))
        if said:
            return {**record, "version": said, "source": f"file {path}"}
    return record
