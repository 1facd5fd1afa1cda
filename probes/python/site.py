"""What a framework reader gets of an environment, and how it finds the package that an import would take."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any, NamedTuple

from ..kit.tree import Tree


class _Environment(NamedTuple):
    """The fields; a NamedTuple itself has no place for what is found out once."""

    tree: Tree
    prefix: str
    folders: tuple[str, ...]
    by_variable: int
    """How many of the first ``folders`` come from PYTHONPATH."""
    distributions: tuple[dict[str, Any], ...]
    mapped: Mapping[str, str] = {}
    """Import name to path, of editable installations that bring a finder; it is asked last."""
    led_by: tuple[str, ...] = ()
    """What puts each of ``folders`` there, where it is no site folder of the environment itself."""


class Site(_Environment):
    """One environment's search path and what is installed on it."""

    @cached_property
    def kept(self) -> dict[str, Any]:
        """What one reader found out and others ask for too."""
        return {}

    @cached_property
    def _listed(self) -> dict[str, frozenset[str]]:
        return {}

    def names(self, folder: str) -> frozenset[str]:
        """The names in ``folder``, which is listed once; none where it cannot be listed."""
        if folder not in self._listed:
            self._listed[folder] = frozenset(self.tree.list_names(folder) or ())
        return self._listed[folder]

    def holds(self, imported: Iterable[str]) -> bool:
        """Whether something of one of these names lies on the search path, a package or a module."""
        wanted = {name for each in imported for name in (each, f"{each}.py")}
        if not wanted.isdisjoint(self.mapped):
            return True
        return any(not wanted.isdisjoint(self.names(folder)) for folder in self.folders)

    def installed(self, name: str, channel: str) -> list[dict[str, Any]]:
        """The distributions of that (normalised) name from one channel, first on the path first."""
        return [item for item in self.distributions if item["name"] == name and item["channel"] == channel]


class Package(NamedTuple):
    """Something that ``import`` may take: ``path`` is the package's folder, or its single module file."""

    path: str
    folder: str
    """The folder of the search path in which it lies."""
    regular: bool
    """False for a folder without ``__init__.py``, which any regular package on the path outranks."""
    by_variable: bool
    led_by: str = ""
    """What leads to the folder, where it is no site folder of the environment itself."""


class Lack(str):
    """A problem that leaves a framework incomplete: without what is gone it cannot be imported."""

    __slots__ = ()


class Gathered:
    """The facts of one framework, each from the first source that knew it."""

    def __init__(self, name: str, path: str | None, extends: str | None = None, **more: Any) -> None:
        own = {"name": name, "path": path, "extends": extends, **more}
        self._facts: dict[str, Any] = {key: value for key, value in own.items() if value is not None}
        self._source = ""
        self._read: dict[str, str] = {}

    def add(self, source: str, **facts: Any) -> None:
        """Take what ``source`` says; None says nothing."""
        for name, value in facts.items():
            if value is None or name in self._facts:
                continue
            self._source = self._source or source
            self._facts[name] = value
            if source != self._source:
                self._read[name] = source

    def known(self, name: str) -> Any:
        """What was taken for that field, or None."""
        return self._facts.get(name)

    def record(self, problems: list[str]) -> dict[str, Any]:
        """The facts as a ``Framework``."""
        record = {**self._facts, "source": self._source, "read": self._read}
        if any(isinstance(problem, Lack) for problem in problems):
            record["incomplete"] = True
        return {**record, "problem": "; ".join(problems)} if problems else record


def packages(site: Site, name: str) -> list[Package]:
    """Everything on the search path that is called ``name``, in the order in which an import prefers it."""
    found = [
        Package(path, folder, regular, place < site.by_variable, "".join(site.led_by[place : place + 1]))
        for place, folder in enumerate(site.folders)
        for path, regular in _here(site, folder, name)
    ]
    found.sort(key=lambda package: not package.regular)
    folder, _, last = site.mapped.get(name, "").rpartition("/")
    brought = _here(site, folder, last) if last else ()
    return [*found, *(Package(path, folder, regular, by_variable=False) for path, regular in brought)]


def _here(site: Site, folder: str, name: str) -> list[tuple[str, bool]]:
    names, tree, path = site.names(folder), site.tree, f"{folder}/{name}"
    if name in names and tree.is_file(f"{path}/__init__.py"):
        return [(path, True)]
    if f"{name}.py" in names and tree.is_file(f"{path}.py"):
        return [(f"{path}.py", True)]
    if name in names and tree.is_folder(path) and site.names(path) - {"__pycache__"}:
        return [(path, False)]
    return []
