"""pyproject.toml: the project's dependencies, also in Poetry's own table, from the indexes that uv or Poetry are told.

Extras and dependency groups count where ``FILE[NAME]`` names them, and the groups that the project's tool installs
unasked.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, NamedTuple

import msgspec
from packaging.utils import canonicalize_name

from envcheck.compat.package_needs import applies, read_requirement, requirement_name
from envcheck.knowledge.matrix import Matrix
from envcheck.model.snapshot import Planned
from envcheck.plans.groups import Lists, names_of
from envcheck.plans.readers import pixi_toml, setup_py
from envcheck.plans.readers.uv_lock import check_conflicts
from envcheck.plans.requirement import (
    BY_ADDRESS,
    PackageIndexes,
    entry,
    marker_of,
    of_table,
    open_part,
    planned,
    unread,
)
from envcheck.plans.sheet import Sheet, UnreadError, table_at, table_of, tables_of, text_of, texts_of
from envcheck.text.toml import Path, line_of, lines_of

NAME = "pyproject.toml"

_OF_POETRY = {"extra": "extras", "group": "group"}
_NUMBERS = re.compile(r"[0-9]{1,8}(?:\.[0-9]{1,8}){0,3}")
_BOUND = re.compile(r"(?P<operator>\^|~(?!=)|=(?!=))\s*(?P<version>[0-9A-Za-z.+!*-]{1,80})")
_ONE_VERSION = re.compile(r"[0-9][0-9A-Za-z.+!-]{0,80}(?:\.\*)?")
_FROM_ELSEWHERE = ("git", "url", "path", "file", "workspace")
_FIELDS = {
    *("name", "version", "description", "readme", "requires-python", "license", "license-files", "authors"),
    *("maintainers", "keywords", "classifiers", "urls", "scripts", "gui-scripts", "entry-points", "dependencies"),
    *("optional-dependencies", "dynamic", "import-names", "import-namespaces"),
}
"""All fields of ``[project]``."""


def read(sheet: Sheet) -> list[Planned]:
    document = sheet.toml()
    project, tools = table_of(document, "project"), table_of(document, "tool")
    poetry = table_of(tools, "poetry")
    pixi = table_of(tools, "pixi")
    if not project and not poetry and not pixi:
        if (beside := _setups(sheet)) is not None:  # a project of setuptools from before [project]
            return sheet.bounded(beside)
        raise sheet.error(None, "it has neither a [project] nor a [tool.poetry] or [tool.pixi] table")
    known = {kind: [*names_of(document, kind), *table_of(poetry, key)] for kind, key in _OF_POETRY.items()}
    sheet = sheet.asking(**known, environment=pixi_toml.environments(pixi) if pixi else ())
    lists = Lists(sheet, document)
    if sheet.groups:
        check_conflicts(sheet, table_of(tools, "uv").get("conflicts"))
    lines = lines_of(sheet.text)
    asked = [*_of_project(sheet, document, lists, lines), *_of_poetry(sheet, poetry, lists.default, lines)]
    uv = table_of(tools, "uv")
    overridden = {requirement_name(text) for text in texts_of(uv, "override-dependencies")}  # whatever others require
    found = sheet.bounded(_as_uv_decides(sheet, uv, asked, lines))
    own = canonicalize_name(text_of(project, "name"))  # which an extra of its own names, as in sglang[srt]
    of_pixi = sheet.bounded(pixi_toml.of_manifest(sheet, pixi, ("tool", "pixi")) if pixi and sheet.groups else ())
    by_conda = {each.name for each in of_pixi if each.conda is not None}  # which pixi installs in place of PyPI's
    return [
        msgspec.structs.replace(
            each, together=None if each.name in overridden else sheet.file, overridden=tuple(sorted(overridden))
        )
        for each in found
        if (not own or each.name != own) and each.name not in by_conda
    ] + [each for each in of_pixi if not own or each.name != own]


class UvSettings(NamedTuple):
    """Requirements of ``tool.uv``, those that can be read."""

    overrides: Sequence[str]
    constraints: Sequence[str]


NO_SETTINGS = UvSettings((), ())


def uv_settings(paths: Sequence[str], matrix: Matrix) -> UvSettings:
    """What ``tool.uv`` of the files has."""
    overrides, constraints = list[str](), list[str]()
    for path in paths:
        if path.partition("[")[0].replace("\\", "/").rpartition("/")[2] == NAME:
            uv = table_of(table_of(Sheet.open(path, matrix, {}).toml(), "tool"), "uv")
            overrides += map(str, filter(None, map(read_requirement, texts_of(uv, "override-dependencies"))))
            constraints += map(str, filter(None, map(read_requirement, texts_of(uv, "constraint-dependencies"))))
    return UvSettings(overrides, constraints)


@dataclass(frozen=True)
class _Origin:
    """Where uv and Poetry take packages from."""

    index: PackageIndexes
    sources: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    """By package: its entries in ``tool.uv.sources``, or those of Poetry that name a source alone."""
    addresses: dict[str, str] = field(default_factory=dict)  # By the name of an index


def _of_project(sheet: Sheet, document: dict[str, Any], lists: Lists, lines: dict[Path, int]) -> Iterator[Planned]:
    project, tools = table_of(document, "project"), table_of(document, "tool")
    if "dependencies" in texts_of(project, "dynamic") and not table_of(table_of(tools, "poetry"), "dependencies"):
        yield from _dynamic(sheet, tools, line_of(lines, ("project", "dynamic")))
    for name in project:
        if name not in _FIELDS:
            problem = "a [project] table has no such field"
            yield open_part(sheet, line_of(lines, ("project", name)), UnreadError(problem))
    origin = _origin(table_of(tools, "uv"), table_of(tools, "poetry"))
    for path, listed in lists.wanted():
        if not isinstance(listed, list):
            yield open_part(sheet, line_of(lines, path), UnreadError("requirements are a list of texts"))
            continue
        for number, text in enumerate(listed):
            line = line_of(lines, (*path, number))
            yield from entry(sheet, line, _from(sheet, origin, lists, text, line))


def _dynamic(sheet: Sheet, tools: dict[str, Any], line: int) -> Iterator[Planned]:
    """The dependencies that another file states: one that the build backend is told of, or setuptools' own."""
    of_setuptools = table_at(tools, ("setuptools", "dynamic", "dependencies")).get("file")
    of_hatch = table_at(tools, ("hatch", "metadata", "hooks", "requirements_txt")).get("files")
    named = of_setuptools or of_hatch
    paths = [named] if isinstance(named, str) else named
    if isinstance(paths, list) and all(isinstance(each, str) for each in paths):
        yield from setup_py.of_files(sheet, paths, line)
    elif (beside := _setups(sheet)) is not None:
        yield from beside
    else:
        problem = "the dependencies are dynamic; check the lock or requirements file"
        yield open_part(sheet, line, UnreadError(problem))


def _setups(sheet: Sheet) -> Iterator[Planned] | None:
    """What setup.cfg and setup.py beside the file require; None where there is neither."""
    files = [name for name in ("setup.cfg", "setup.py") if sheet.has_beside(name)]
    return chain.from_iterable(setup_py.read(sheet.beside(name, 1)) for name in files) if files else None


def _as_uv_decides(sheet: Sheet, uv: dict[str, Any], asked: list[Planned], lines: dict[Path, int]) -> Iterator[Planned]:
    """What is asked for, with what ``tool.uv`` has in its place, and within the bounds that it sets."""
    if not sheet.groups:  # pip does not read it
        yield from asked
        return
    decided: dict[str, dict[str, Planned]] = {}
    for key in ("override-dependencies", "constraint-dependencies"):
        texts = enumerate(texts_of(uv, key))
        found = (planned(sheet, text, line_of(lines, ("tool", "uv", key, number))) for number, text in texts)
        decided[key] = {each.name: each for each in found if each}
    sheet.constraints.extend(decided["constraint-dependencies"].values())
    for each in asked:
        override = decided["override-dependencies"].get(each.name)
        yield msgspec.structs.replace(override, build=each.build) if override else each


def _origin(table: dict[str, Any], poetry: dict[str, Any]) -> _Origin:
    index = PackageIndexes(main=text_of(table, "index-url") or None, links=tuple(texts_of(table, "find-links")))
    index.extra = tuple(texts_of(table, "extra-index-url"))
    addresses = {}
    for each in tables_of(table, "index"):
        addresses[text_of(each, "name")] = text_of(each, "url")
        if each.get("default") is True:
            index.main = text_of(each, "url")
        elif each.get("explicit") is not True:
            index.extra = (*index.extra, text_of(each, "url"))
    sources: dict[str, list[dict[str, Any]]] = {}
    named = table_of(table, "sources")
    for name in named:
        listed = tables_of(named, name) if isinstance(named[name], list) else [table_of(named, name)]
        sources[canonicalize_name(name)] = listed
    addresses |= {text_of(each, "name"): text_of(each, "url") for each in tables_of(poetry, "source")}
    for name, value in table_of(poetry, "dependencies").items():
        for each in value if isinstance(value, list) else [value]:
            if _names_source_alone(each):
                source = {"index": text_of(each, "source"), "marker": text_of(each, "markers")}
                sources.setdefault(canonicalize_name(name), []).append(source)
    return _Origin(index, sources, addresses)


def _names_source_alone(value: Any) -> bool:
    """Whether it tells Poetry where to take what ``[project]`` requires."""
    return isinstance(value, dict) and "source" in value and not {"version", *_FROM_ELSEWHERE} & value.keys()


def _from(sheet: Sheet, origin: _Origin, lists: Lists, text: Any, line: int) -> Iterator[Planned]:
    """What an item of a list would install, from where ``tool.uv.sources`` has it taken."""
    included = text_of(text, "include-group") if isinstance(text, dict) and [*text] == ["include-group"] else ""
    if included and canonicalize_name(included) in lists.groups:
        return
    if not isinstance(text, str):
        raise UnreadError("requirements are texts, and a group includes another one by its name")
    index, elsewhere = origin.index, False
    found = planned(sheet, text, line)
    if found is None:
        return
    for source in origin.sources.get(found.name, ()):
        marker = text_of(source, "marker")
        extra, group = canonicalize_name(text_of(source, "extra")), canonicalize_name(text_of(source, "group"))
        if (extra and extra not in lists.asked) or (group and group not in lists.asked | lists.default):
            continue
        if marker and applies(marker_of(marker), sheet.markers, lists.asked) is False:
            continue
        elsewhere, named = bool(set(source) & set(_FROM_ELSEWHERE)), text_of(source, "index")
        of_pypi = named.lower() == "pypi" and named not in origin.addresses
        index = replace(index, main=None if of_pypi else origin.addresses.get(named, "unknown:"), extra=())
        break
    problem = "tool.uv.sources takes it from an address or a folder, which does not state the version"
    if elsewhere:
        yield unread(sheet, found.name, line, problem, name=found.name)
    else:
        served = msgspec.structs.replace(found, build=index.build(sheet))
        yield found if found.build is None else index.opened(sheet, served)


def _of_poetry(sheet: Sheet, poetry: dict[str, Any], default: set[str], lines: dict[Path, int]) -> Iterator[Planned]:
    extras, groups = table_of(poetry, "extras"), table_of(poetry, "group")
    wanted: set[str] = {canonicalize_name(name) for name in sheet.extras}
    asked = [texts_of(extras, name) for name in extras if canonicalize_name(name) in wanted]
    chosen: set[str] = {canonicalize_name(each) for texts in asked for each in texts}
    tables: list[Path] = [
        ("dependencies",),
        *((("dev-dependencies",),) if "dev" in default else ()),
        *(("group", name, "dependencies") for name in groups if canonicalize_name(name) in wanted | default),
    ]
    for path in tables:
        for name, value in table_at(poetry, path).items():
            line = line_of(lines, ("tool", "poetry", *path, name))
            for each in value if isinstance(value, list) and value else [value]:
                if canonicalize_name(name) != "python" and not _names_source_alone(each):
                    yield from entry(sheet, line, _poetry_entry(sheet, poetry, name, each, line, chosen))


def _poetry_entry(
    sheet: Sheet, poetry: dict[str, Any], name: str, value: Any, line: int, chosen: set[str]
) -> Iterator[Planned]:
    table = {"version": value} if isinstance(value, str) else value
    if not isinstance(table, dict) or not set(table) & {"version", *_FROM_ELSEWHERE}:
        raise UnreadError("a dependency of Poetry is a version, or a table that states one")
    if table.get("optional") is True and canonicalize_name(name) not in chosen:
        return
    if set(table) & set(_FROM_ELSEWHERE):
        yield unread(sheet, name[:80], line, BY_ADDRESS, name=canonicalize_name(name))
        return
    bounds, marker = pep440_bounds(text_of(table, "version")), _poetry_marker(table)
    if bounds is None or marker is None:
        problem = "Poetry's bounds on it cannot be written as one list"
        yield unread(sheet, name[:80], line, problem, name=canonicalize_name(name))
        return
    named = text_of(table, "source")
    index = PackageIndexes("unknown:" if named and named.lower() != "pypi" else None)
    for each in tables_of(poetry, "source"):
        priority = text_of(each, "priority") or "primary"
        if named and text_of(each, "name") == named:
            index = PackageIndexes(main=text_of(each, "url"))
            break
        if not named and priority in ("primary", "default"):
            index = replace(index, main=text_of(each, "url") or index.main)
        elif not named and priority == "supplemental":
            index = replace(index, extra=(*index.extra, text_of(each, "url")))
    yield from of_table(sheet, name, table, bounds, marker, line, build=index.build(sheet))


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
    return f">={version},<{'.'.join(map(str, [*given[: kept - 1], given[kept - 1] + 1]))}"
