"""Which lists of requirements of a project are asked for; some groups a project's tool installs unasked."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from envcheck.errors import UsageError
from envcheck.plans.sheet import Sheet, table_at, table_of, text_of, texts_of
from envcheck.text.toml import Path

_PROJECT = "pyproject.toml"
_TABLES: dict[str, tuple[Path, ...]] = {
    "extra": (("project", "optional-dependencies"),),
    "group": (("dependency-groups",), ("tool", "pdm", "dev-dependencies")),
}
"""Where the lists of extras and groups stand."""
_UNASKED: tuple[Path, ...] = (
    ("tool", "uv", "dev-dependencies"), ("tool", "rye", "dev-dependencies"), ("tool", "flit", "metadata", "requires"),
    ("tool", "hatch", "envs", "default", "dependencies"), ("tool", "hatch", "envs", "default", "extra-dependencies"),
)  # fmt: skip
"""Lists that tools install unasked."""


def of_uv(project: dict[str, Any], there: Iterable[str]) -> set[str]:
    """Normalized names of the groups that ``uv sync`` installs, of those that are there."""
    names: set[str] = {canonicalize_name(name) for name in there}
    uv = table_of(table_of(project, "tool"), "uv")
    if uv.get("default-groups") == "all":
        return names
    chosen = texts_of(uv, "default-groups") if "default-groups" in uv else ["dev"]
    return names & {canonicalize_name(name) for name in chosen}


def of_poetry(project: dict[str, Any], there: Iterable[str]) -> set[str]:
    """Normalized names of the groups that ``poetry install`` installs, of those that are there; PDM takes them all."""
    groups = table_of(table_of(table_of(project, "tool"), "poetry"), "group")
    optional = {canonicalize_name(name) for name in groups if table_of(groups, name).get("optional") is True}
    names: set[str] = {canonicalize_name(name) for name in there}
    return names - optional


def names_of(project: dict[str, Any], kind: str) -> list[str]:
    """The names of a project's extras or groups, as they are written."""
    return [name for path in _TABLES[kind] for name in table_at(project, path)]


def project_beside(sheet: Sheet) -> dict[str, Any]:
    """The pyproject.toml beside a lock file; empty where there is none that can be read."""
    try:
        return sheet.beside(_PROJECT, 1).toml() if sheet.has_beside(_PROJECT) else {}
    except UsageError:
        return {}


class Lists:
    """The lists of requirements of a project, and which of them are asked for."""

    def __init__(self, sheet: Sheet, document: dict[str, Any]) -> None:
        self.document, self.tools = document, table_of(document, "tool")
        project, poetry = table_of(document, "project"), table_of(self.tools, "poetry")
        self.own = canonicalize_name(text_of(project, "name") or "-")
        self.tables: dict[str, list[tuple[Path, dict[str, Any]]]] = {
            kind: [(path, table_at(document, path)) for path in paths] for kind, paths in _TABLES.items()
        }
        self.groups: set[str] = {canonicalize_name(name) for name in names_of(document, "group")}
        of_tool = of_poetry if poetry or "pdm" in self.tools else of_uv
        there = [*self.groups, *table_of(poetry, "group"), "dev"] if sheet.groups else []
        self.default: set[str] = of_tool(document, there)  # Normalized names of the groups that count unasked
        self.asked: set[str] = {canonicalize_name(name) for name in sheet.extras}
        self.unasked = _UNASKED if sheet.groups else ()

    def wanted(self) -> Iterator[tuple[Path, Any]]:
        """Where each list stands that is asked for, and the list: the project's own, and those of extras and groups
        with what they include: an extra the project itself with other extras, a group other groups.
        """
        left = deque[tuple[str, str]](("group", name) for name in self.default)
        left.extend((kind, name) for name in self.asked for kind in ("extra", "group"))
        for path in (("project", "dependencies"), *self.unasked):
            table = table_at(self.document, path[:-1])
            if path[-1] in table:
                yield path, table[path[-1]]
                left.extend(self._included(table[path[-1]]))
        seen: set[tuple[str, str]] = set()
        while left:
            kind, wanted = left.popleft()
            if (kind, wanted) in seen:
                continue
            seen.add((kind, wanted))
            for path, table in self.tables[kind]:
                for name in (name for name in table if canonicalize_name(name) == wanted):
                    yield (*path, name), table[name]
                    left.extend(self._included(table[name]))

    def _included(self, listed: Any) -> Iterator[tuple[str, str]]:
        """The extras and groups that a list includes: ``app[cuda]`` of the project ``app``, and ``include-group``."""
        for each in listed if isinstance(listed, list) else ():
            if isinstance(each, dict) and isinstance(each.get("include-group"), str):
                yield "group", canonicalize_name(each["include-group"])
            elif isinstance(each, str) and "[" in each:
                try:
                    asked = Requirement(each)
                except (InvalidRequirement, RecursionError):
                    continue  # which the list's own reading reports
                if canonicalize_name(asked.name) == self.own:
                    yield from (("extra", canonicalize_name(name)) for name in asked.extras)
