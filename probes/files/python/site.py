"""The environment as framework readers see it, and the search for the package that an import would take."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

from ...common.tree import Tree

_Read = TypeVar("_Read")


class _Environment(NamedTuple):
    """The fields; a NamedTuple has no place for cached attributes."""

    tree: Tree
    prefix: str
    folders: tuple[str, ...]
    by_variable: int  # How many of the first ``folders`` come from PYTHONPATH
    distributions: tuple[dict[str, Any], ...]
    mapped: Mapping[str, str] = {}  # Import name to path, for editable installations with a finder, which is used last
    led_by: tuple[str, ...] = ()  # What adds each of ``folders`` that is not a site folder of the environment


class Site(_Environment):
    """One environment's search path and what is installed on it."""

    @cached_property
    def _kept(self) -> dict[Callable[..., Any], Any]:
        return {}

    def once(self, read: Callable[[Site], _Read]) -> _Read:
        """What ``read`` returns for this environment; readers share it."""
        if read not in self._kept:
            self._kept[read] = read(self)
        found: _Read = self._kept[read]
        return found

    @cached_property
    def _listed(self) -> dict[str, frozenset[str]]:
        return {}

    def names(self, folder: str) -> frozenset[str]:
        """The names in ``folder``, which is listed once; none if it cannot be listed."""
        if folder not in self._listed:
            self._listed[folder] = frozenset(self.tree.list_names(folder) or ())
        return self._listed[folder]

    def holds(self, imported: Iterable[str]) -> bool:
        """Whether a package or module with one of these names is on the search path."""
        wanted = {name for each in imported for name in (each, f"{each}.py")}
        if not wanted.isdisjoint(self.mapped):
            return True
        return any(not wanted.isdisjoint(self.names(folder)) for folder in self.folders)

    def installed(self, name: str, channel: str) -> list[dict[str, Any]]:
        """The distributions with this normalised name from one channel, in the order of the path."""
        return [item for item in self.distributions if item["name"] == name and item["channel"] == channel]


class ImportedPackage(NamedTuple):
    """A candidate for ``import``: ``path`` is the package's folder, or its single module file."""

    path: str
    folder: str  # The folder of the search path that contains it
    regular: bool  # False for a folder without ``__init__.py``, which any regular package on the path precedes
    by_variable: bool
    led_by: str = ""  # What adds the folder, if it is not a site folder of the environment


class Lack(str):
    """A problem that makes a framework incomplete: it cannot be imported without the missing part."""

    __slots__ = ()


class Gathered:
    """The facts of one framework, each from the first source that has it."""

    def __init__(self, name: str, path: str | None, extends: str | None = None, **more: Any) -> None:
        own = {"name": name, "path": path, "extends": extends, **more}
        self._facts: dict[str, Any] = {key: value for key, value in own.items() if value is not None}
        self._source = ""
        self._read: dict[str, str] = {}

    def add(self, source: str, **facts: Any) -> None:
        """Add values from ``source``; None is ignored."""
        for name, value in facts.items():
            if value is None or name in self._facts:
                continue
            self._source = self._source or source
            self._facts[name] = value
            if source != self._source:
                self._read[name] = source

    def known(self, name: str) -> Any:
        return self._facts.get(name)

    def record(self, problems: list[str]) -> dict[str, Any]:
        record = {**self._facts, "source": self._source, "read": self._read}
        if any(isinstance(problem, Lack) for problem in problems):
            record["incomplete"] = True
        return {**record, "problem": "; ".join(problems)} if problems else record


def packages(site: Site, name: str) -> list[ImportedPackage]:
    """All packages and modules ``name`` on the search path, in the order that an import prefers."""
    found = [
        ImportedPackage(path, folder, regular, place < site.by_variable, "".join(site.led_by[place : place + 1]))
        for place, folder in enumerate(site.folders)
        for path, regular in _importable(site, folder, name)
    ]
    found.sort(key=lambda package: not package.regular)
    folder, _, last = site.mapped.get(name, "").rpartition("/")
    brought = _importable(site, folder, last) if last else ()
    return [*found, *(ImportedPackage(path, folder, regular, by_variable=False) for path, regular in brought)]


def _importable(site: Site, folder: str, name: str) -> list[tuple[str, bool]]:
    names, tree, path = site.names(folder), site.tree, f"{folder}/{name}"
    if name in names and tree.is_file(f"{path}/__init__.py"):
        return [(path, True)]
    if f"{name}.py" in names and tree.is_file(f"{path}.py"):
        return [(f"{path}.py", True)]
    if name in names and tree.is_folder(path) and site.names(path) - {"__pycache__"}:
        return [(path, False)]
    return []
