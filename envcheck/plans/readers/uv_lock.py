"""uv.lock: what the project itself requires, as uv sync installs it, with the groups that it installs by default.

Extras and further groups of the project count where ``uv.lock[NAME]`` names them. The pyproject.toml beside it says
which groups are installed by default.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator, Sequence
from typing import Any

import msgspec
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

from envcheck.compat.package_needs import applies
from envcheck.model.snapshot import Planned
from envcheck.plans.groups import of_uv, project_beside
from envcheck.plans.requirement import alternatives, check_name, entry, item, marker_of, refusal
from envcheck.plans.sheet import Sheet, UnreadError, entries, table_of, tables_of, text_of, texts_of

NAME = "uv.lock"

_PARTS = {"optional-dependencies": "extra", "dev-dependencies": "group"}
"""What of a project may be asked for besides its dependencies, and how uv's markers call it."""

_TELLS_APART = ("version", "source")
"""What a dependency names besides where several packages of its name are locked."""
_MOST_ROUNDS = 8

_Entry = tuple[dict[str, Any], int | None]
_Part = tuple[dict[str, Any], str, str]
"""A package, and the list of it that is asked for: which kind, and the name of an extra or group."""


def read(sheet: Sheet) -> list[Planned]:
    document = sheet.toml()
    packages = entries(sheet, document, "package")
    for package, _ in packages:
        check_name(text_of(package, "name"))
    here = [each for each in packages if is_for(sheet, texts_of(each[0], "resolution-markers"))]
    by_name: dict[str, list[_Entry]] = {text_of(package, "name"): [] for package, _ in packages}
    for each in here:
        by_name[text_of(each[0], "name")].append(each)
    # ``uv sync`` installs the project beside the lock file, or all members of a workspace without one.
    local = [package for package, _ in here if _is_local(package)]
    roots = [package for package in local if "." in table_of(package, "source").values()] or local
    manifest = table_of(document, "manifest")  # of a workspace whose root is no project
    if groups := table_of(manifest, "dependency-groups"):
        roots.append({"name": "", "dev-dependencies": groups})
    sheet = sheet.asking(
        **{kind: [each for root in roots for each in table_of(root, key)] for key, kind in _PARTS.items()}
    )
    check_conflicts(sheet, document.get("conflicts", []))
    reached = _reached(sheet, by_name, roots) if roots else None

    def package_of(package: dict[str, Any], line: int | None) -> Iterator[Planned]:
        registry = text_of(table_of(package, "source"), "registry")
        build = sheet.build_of(registry) if registry else None
        files = [text_of(each, "url") or text_of(each, "path") for each in tables_of(package, "wheels")]
        files = [] if table_of(package, "sdist") else files  # which is compiled where no wheel serves
        yield locked(sheet, text_of(package, "name"), text_of(package, "version"), line, build=build, files=files)

    found = (
        entry(sheet, line, package_of(package, line))
        for named in by_name.values()
        for package, line in named
        if not _is_local(package) and (reached is None or id(package) in reached)
    )
    return alternatives(sheet.bounded(item for items in found for item in items))


def _is_local(package: dict[str, Any]) -> bool:
    """Whether it is the project itself, or a member of its workspace."""
    return bool({"virtual", "editable"} & table_of(package, "source").keys())


def _reached(sheet: Sheet, by_name: dict[str, list[_Entry]], roots: list[dict[str, Any]]) -> set[int]:
    """Identities of the packages that the roots lead to, by dependencies whose markers hold (or cannot be told)."""
    asked: list[tuple[str, str]] = [(key, canonicalize_name(name)) for name in sheet.extras for key in _PARTS]
    if sheet.groups:
        there = {name for root in roots for name in table_of(root, "dev-dependencies")}
        asked += [("dev-dependencies", name) for name in of_uv(project_beside(sheet), there)]
    begin = [(root, key, name) for root in roots for key, name in (("dependencies", ""), *asked)]
    active = {_as_marker(*each) for each in begin}
    for _ in range(_MOST_ROUNDS):
        seen = _walked(sheet, by_name, begin, active)
        # An extra that a dependency is asked for with decides the markers of other dependencies too.
        if (found := {_as_marker(*each) for each in seen.values()}) <= active:
            break
        active |= found
    return {place for place, _, _ in seen}


def _walked(
    sheet: Sheet, by_name: dict[str, list[_Entry]], begin: list[_Part], active: set[str]
) -> dict[tuple[int, str, str], _Part]:
    """All parts of packages that the first ones lead to, by the identity of the package and the part's name."""
    seen: dict[tuple[int, str, str], _Part] = {}
    left = deque(begin)
    while left:
        package, key, part = left.popleft()
        if (id(package), key, part) in seen:
            continue
        seen[id(package), key, part] = (package, key, part)
        lists = table_of(package, key) if part else package
        wanted = [name for name in lists if canonicalize_name(name) == part] if part else [key]
        for each in (each for name in wanted for each in tables_of(lists, name)):
            if is_for(sheet, [text_of(each, "marker")], active):
                name = text_of(each, "name")
                check_name(name)
                found = by_name.setdefault(name, [({"name": name}, None)])  # what it does not lock stays open
                for other, _ in found:
                    if any(each.get(key, other.get(key)) != other.get(key, each.get(key)) for key in _TELLS_APART):
                        continue
                    left.append((other, "dependencies", ""))
                    for more in texts_of(each, "extra"):
                        left.append((other, "optional-dependencies", canonicalize_name(more)))
    return seen


def _as_marker(package: dict[str, Any], key: str, part: str) -> str:
    """How uv's markers name a part of a package that excludes others: ``extra-3-app-cu124``."""
    name = text_of(package, "name")
    return f"{_PARTS[key]}-{len(name)}-{name}-{part}" if part else f"project-{len(name)}-{name}"


def is_for(sheet: Sheet, markers: list[str], active: Collection[str] = ()) -> bool:
    """Whether one of the markers holds, or none excludes this machine for certain. ``active`` are the extras that are
    asked for, by the names that the markers give them.
    """
    asked = [marker_of(text) for text in markers if text]
    return not asked or any(applies(each, sheet.markers, active) is not False for each in asked)


def check_conflicts(sheet: Sheet, sets: Any) -> None:
    """Raise UsageError where extras or groups are asked for that ``tool.uv.conflicts`` has exclude each other."""
    asked = {canonicalize_name(name) for name in sheet.extras}
    for listed in sets if isinstance(sets, list) else ():
        tables = [each for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []
        named = [text_of(each, key) for each in tables for key in ("extra", "group") if text_of(each, key)]
        both = [name for name in named if canonicalize_name(name) in asked]
        if len(both) > 1:
            raise sheet.error(None, f"{' and '.join(both[:2])} exclude each other (tool.uv.conflicts); ask for one")


def locked(
    sheet: Sheet, name: str, version: str, line: int | None, *, build: str | None, files: Sequence[str] = ()
) -> Planned:
    """A package at the version that a lock file states, of which it names the files; raise UnreadError for what is
    none.
    """
    check_name(name)
    try:
        bounds = SpecifierSet(f"=={Version(version)}" if version else "")
    except ValueError:  # also where a number has thousands of digits
        raise UnreadError("a version cannot be read") from None
    problem = None if version else "the lock file states no version"
    found = item(sheet, name, bounds, line, build=build, problem=problem)
    return msgspec.structs.replace(found, refused=refusal(sheet, files))
