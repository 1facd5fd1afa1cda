"""pyproject.toml: the project's dependencies, also in Poetry's own table, from the indexes that uv or Poetry are told.

Extras and dependency groups count where ``FILE[NAME]`` names them.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from packaging.markers import InvalidMarker, Marker
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from envcheck.plans.kit.index import Index
from envcheck.plans.kit.requirement import LONGEST_MARKER, applies, planned, unread
from envcheck.plans.kit.sheet import Sheet
from envcheck.plans.kit.tables import table_of, tables_of, text_of, texts_of
from envcheck.snapshot import Planned
from envcheck.text.toml_lines import Path, line_of, lines_of

NAME = "pyproject.toml"

_NUMBERS = re.compile(r"[0-9]{1,8}(?:\.[0-9]{1,8}){0,3}")
_BOUND = re.compile(r"(?P<operator>\^|~(?!=)|=(?!=))\s*(?P<version>[0-9A-Za-z.+!*-]{1,80})")
_ONE_VERSION = re.compile(r"[0-9][0-9A-Za-z.+!-]{0,80}(?:\.\*)?")
_FROM_ELSEWHERE = ("git", "url", "path", "file", "workspace")


def recognise(name: str) -> bool:
    return name == "pyproject.toml"


def read(sheet: Sheet) -> list[Planned]:
    document = sheet.toml()
    project, poetry = table_of(document, "project"), table_of(table_of(document, "tool"), "poetry")
    if not project and not poetry:
        raise sheet.error(None, "it has neither a [project] nor a [tool.poetry] table")
    optional, groups = table_of(project, "optional-dependencies"), table_of(document, "dependency-groups")
    sheet.check_extras([*optional, *groups, *table_of(poetry, "extras"), *table_of(poetry, "group")])
    lines = lines_of(sheet.text)
    asked: list[Planned] = []
    if project:
        asked += _of_project(sheet, document, lines)
    if table_of(poetry, "dependencies"):
        asked += _of_poetry(sheet, poetry, lines)
    return sheet.bounded(asked)


@dataclass(frozen=True)
class _Origin:
    """Where uv takes packages from."""

    index: Index
    sources: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    """By package: its entries in ``tool.uv.sources``."""
    addresses: dict[str, str] = field(default_factory=dict)
    """By the name of an index."""


def _of_project(sheet: Sheet, document: dict[str, Any], lines: dict[Path, int]) -> Iterator[Planned]:
    project = table_of(document, "project")
    tools = table_of(document, "tool")
    if "dependencies" in texts_of(project, "dynamic") and not table_of(table_of(tools, "poetry"), "dependencies"):
        line = line_of(lines, ("project", "dynamic"))
        raise sheet.error(line, "the dependencies are dynamic; check the lock or requirements file")
    origin = _uv(table_of(tools, "uv"))
    for path, table, name in _lists(sheet, document):
        entries = table.get(name)
        for number, text in enumerate(entries if isinstance(entries, list) else ()):
            if isinstance(text, str):
                found = _from(sheet, origin, text, line_of(lines, (*path, name, number)))
                if found is not None:
                    yield found


def _lists(sheet: Sheet, document: dict[str, Any]) -> Iterator[tuple[Path, dict[str, Any], str]]:
    """The lists of requirements that are asked for: the project's own, and those of extras and groups with what they
    include: an extra the project itself with other extras, a group other groups.
    """
    project = table_of(document, "project")
    optional, groups = table_of(project, "optional-dependencies"), table_of(document, "dependency-groups")
    yield ("project",), project, "dependencies"
    left = deque[str](canonicalize_name(name) for name in sheet.extras)
    seen: set[str] = set()
    own = canonicalize_name(text_of(project, "name") or "-")
    while left:
        wanted = left.popleft()
        if wanted in seen:
            continue
        seen.add(wanted)
        for path, table in ((("project", "optional-dependencies"), optional), (("dependency-groups",), groups)):
            for name in (name for name in table if canonicalize_name(name) == wanted):
                yield path, table, name
                entries = table[name] if isinstance(table[name], list) else []
                left.extend(included for entry in entries for included in _included(entry, own))


def _included(entry: Any, own: str) -> Iterator[str]:
    """The extras or groups that an entry includes: ``app[cuda]`` of the project ``app``, and ``include-group``."""
    if isinstance(entry, dict):
        group = text_of(entry, "include-group")
        yield from (canonicalize_name(group),) if group else ()
    elif isinstance(entry, str) and "[" in entry:
        try:
            asked = Requirement(entry)
        except (InvalidRequirement, RecursionError):
            return  # which the list's own reading reports
        yield from map(canonicalize_name, asked.extras if canonicalize_name(asked.name) == own else ())


def _uv(table: dict[str, Any]) -> _Origin:
    index = Index(main=text_of(table, "index-url") or None, links=bool(texts_of(table, "find-links")))
    index.extra = tuple(texts_of(table, "extra-index-url"))
    addresses = {}
    for each in tables_of(table, "index"):
        addresses[text_of(each, "name")] = text_of(each, "url")
        if each.get("default") is True:
            index.main = text_of(each, "url")
        elif each.get("explicit") is not True:
            index.extra = (*index.extra, text_of(each, "url"))
    sources: dict[str, list[dict[str, Any]]] = {}
    for name, entry in table_of(table, "sources").items():
        listed = entry if isinstance(entry, list) else [entry]
        sources[canonicalize_name(name)] = [each for each in listed if isinstance(each, dict)]
    return _Origin(index, sources, addresses)


def _from(sheet: Sheet, origin: _Origin, text: str, line: int) -> Planned | None:
    """What a requirement would install from where ``tool.uv.sources`` has it taken."""
    index = origin.index
    try:
        name = canonicalize_name(Requirement(text).name)
    except (InvalidRequirement, RecursionError):
        return planned(sheet, text, line)  # which raises the error
    for entry in origin.sources.get(name, ()):
        marker = text_of(entry, "marker")
        needed = text_of(entry, "extra") or text_of(entry, "group")
        if needed and needed not in sheet.extras:
            continue
        if marker and _holds(sheet, marker, line) is False:
            continue
        if set(entry) & set(_FROM_ELSEWHERE):
            found = planned(sheet, text, line)
            problem = "tool.uv.sources takes it from an address or a folder, which does not state the version"
            return None if found is None else unread(sheet, found.name, line, problem, name=found.name)
        index = replace(index, main=origin.addresses.get(text_of(entry, "index"), "unknown:"), extra=())
        break
    return planned(sheet, text, line, build=index.build(sheet))


def _holds(sheet: Sheet, text: str, line: int) -> bool | None:
    try:
        return applies(Marker(text[:LONGEST_MARKER]), sheet.markers)
    except (InvalidMarker, RecursionError):
        raise sheet.error(line, "an environment marker cannot be read") from None


def _of_poetry(sheet: Sheet, poetry: dict[str, Any], lines: dict[Path, int]) -> Iterator[Planned]:
    extras = {canonicalize_name(name): value for name, value in table_of(poetry, "extras").items()}
    groups = {canonicalize_name(name): name for name in table_of(poetry, "group")}
    wanted = [canonicalize_name(name) for name in sheet.extras]
    chosen: set[str] = {
        canonicalize_name(each) for name in wanted for each in extras.get(name, ()) if isinstance(each, str)
    }
    tables: list[Path] = [
        ("dependencies",),
        *(("group", groups[name], "dependencies") for name in wanted if name in groups),
    ]
    for path in tables:
        table = poetry
        for step in path:
            table = table_of(table, str(step))
        for name, value in table.items():
            line = line_of(lines, ("tool", "poetry", *path, name))
            for entry in value if isinstance(value, list) else [value]:
                if canonicalize_name(name) != "python":
                    yield from _poetry_entry(sheet, poetry, name, entry, line, chosen)


def _poetry_entry(
    sheet: Sheet, poetry: dict[str, Any], name: str, entry: Any, line: int, chosen: set[str]
) -> Iterator[Planned]:
    table = {"version": entry} if isinstance(entry, str) else entry if isinstance(entry, dict) else {}
    if table.get("optional") is True and canonicalize_name(name) not in chosen:
        return
    if set(table) & set(_FROM_ELSEWHERE):
        problem = "it is installed from an address or a folder, which does not state the version"
        yield unread(sheet, name[:80], line, problem, name=canonicalize_name(name))
        return
    bounds, marker = pep440_bounds(text_of(table, "version")), _poetry_marker(table)
    if bounds is None or marker is None:
        problem = "Poetry's bounds on it cannot be written as one list"
        yield unread(sheet, name[:80], line, problem, name=canonicalize_name(name))
        return
    index = Index()
    for each in tables_of(poetry, "source"):
        priority = text_of(each, "priority") or "primary"
        if text_of(each, "name") == text_of(table, "source") and text_of(table, "source"):
            index = Index(main=text_of(each, "url"))
            break
        if priority in ("primary", "default"):
            index = replace(index, main=text_of(each, "url") or index.main)
        elif priority == "supplemental":
            index = replace(index, extra=(*index.extra, text_of(each, "url")))
    wanted = f"[{','.join(texts_of(table, 'extras'))}]" if texts_of(table, "extras") else ""
    text = f"{name}{wanted}{bounds}" + (f" ; {marker}" if marker else "")
    found = planned(sheet, text, line, build=index.build(sheet))
    if found is not None:
        yield found


def _poetry_marker(table: dict[str, Any]) -> str | None:
    """``markers``, ``python`` and ``platform`` of a dependency as one marker; None for bounds with alternatives."""
    pythons = pep440_bounds(text_of(table, "python"))
    if pythons is None:
        return None
    parts = [f"({text_of(table, 'markers')})"] if text_of(table, "markers") else []
    if text_of(table, "platform"):
        parts.append(f"sys_platform == '{text_of(table, 'platform')}'")
    for bound in filter(None, pythons.split(",")):
        operator = bound[: len(bound) - len(bound.lstrip("<>=!~"))]
        parts.append(f"python_full_version {operator} '{bound.removeprefix(operator).strip()}'")
    return " and ".join(parts)


def pep440_bounds(text: str) -> str | None:
    """Poetry's bounds in PEP 440: ``^2.0.1`` is ``>=2.0.1,<3``, ``~2.0.1`` ``>=2.0.1,<2.1``; None for alternatives."""
    if "|" in text:
        return None
    parts = [part.strip() for part in text.split(",") if part.strip() not in ("", "*")]
    return ",".join(_bound(part) for part in parts)


def _bound(part: str) -> str:
    if _ONE_VERSION.fullmatch(part):
        return f"=={part}"
    found = _BOUND.fullmatch(part)
    if not found:
        return part
    version = found["version"]
    if found["operator"] == "=":
        return f"=={version}"
    numbers = _NUMBERS.match(version)
    if numbers is None:
        return part
    given = [int(each) for each in numbers[0].split(".")]
    if found["operator"] == "~":
        kept = min(len(given), 2)
    else:  # ^: up to the first number that is not zero
        kept = next((place for place, each in enumerate(given, start=1) if each), len(given))
    above = [*given[: kept - 1], given[kept - 1] + 1]
    return f">={version},<{'.'.join(map(str, above))}"
