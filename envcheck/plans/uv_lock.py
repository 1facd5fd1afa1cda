"""uv.lock: what the project itself requires, without extras and dependency groups, as uv sync --no-dev installs it."""

from __future__ import annotations

from collections import deque
from typing import Any

from packaging.markers import InvalidMarker, Marker
from packaging.specifiers import InvalidSpecifier, SpecifierSet

from envcheck.plans.kit.requirement import applies, item
from envcheck.plans.kit.sheet import Sheet
from envcheck.plans.kit.tables import entries, table_of, tables_of, text_of, texts_of
from envcheck.snapshot import Planned

NAME = "uv.lock"

_Entry = tuple[dict[str, Any], int | None]


def recognise(name: str) -> bool:
    return name == "uv.lock"


def read(sheet: Sheet) -> list[Planned]:
    packages = entries(sheet, sheet.toml(), "package")
    if not packages:
        raise sheet.error(None, "it locks no package")
    here = [entry for entry in packages if _is_for(sheet, texts_of(entry[0], "resolution-markers"))]
    by_name: dict[str, list[_Entry]] = {}
    for entry in here:
        by_name.setdefault(text_of(entry[0], "name"), []).append(entry)
    roots = [text_of(each, "name") for each, _ in here if {"virtual", "editable"} & table_of(each, "source").keys()]
    wanted = _reached(sheet, by_name, roots) if roots else set(by_name)
    return sheet.bounded(
        _package(sheet, entry)
        for name, found in by_name.items()
        if name in wanted
        for entry in found
        if _is_fetched(entry)
    )


def _is_fetched(entry: _Entry) -> bool:
    return not {"virtual", "editable"} & table_of(entry[0], "source").keys()


def _reached(sheet: Sheet, by_name: dict[str, list[_Entry]], roots: list[str]) -> set[str]:
    """The names that the roots lead to, by dependencies whose markers hold (or cannot be told)."""
    seen: set[tuple[str, str]] = set()
    left = deque((name, "") for name in roots)
    while left:
        name, extra = left.popleft()
        if (name, extra) in seen:
            continue
        seen.add((name, extra))
        for package, _ in by_name.get(name, ()):
            asked = (
                tables_of(table_of(package, "optional-dependencies"), extra)
                if extra
                else tables_of(package, "dependencies")
            )
            for each in asked:
                if _is_for(sheet, [text_of(each, "marker")]):
                    left.append((text_of(each, "name"), ""))
                    left.extend((text_of(each, "name"), more) for more in texts_of(each, "extra"))
    return {name for name, _ in seen}


def _is_for(sheet: Sheet, markers: list[str]) -> bool:
    """Whether one of the markers holds, or none excludes this machine for certain."""
    texts = [text for text in markers if text]
    return not texts or any(_holds(sheet, text) is not False for text in texts)


def _holds(sheet: Sheet, text: str) -> bool | None:
    try:
        return applies(Marker(text[:4000]), sheet.markers)
    except (InvalidMarker, RecursionError):
        raise sheet.error(None, "an environment marker cannot be read") from None


def _package(sheet: Sheet, entry: _Entry) -> Planned:
    package, line = entry
    source, version = table_of(package, "source"), text_of(package, "version")
    registry = text_of(source, "registry")
    return locked(
        sheet, text_of(package, "name"), version, line, build=sheet.build_of(registry or None) if registry else None
    )


def locked(sheet: Sheet, name: str, version: str, line: int | None, *, build: str | None) -> Planned:
    """A package at the version that a lock file states; raise UsageError for what is none."""
    try:
        bounds = SpecifierSet(f"=={version}" if version else "")
    except InvalidSpecifier:
        raise sheet.error(line, "a version cannot be read") from None
    if not name:
        raise sheet.error(line, "a package without a name")
    problem = None if version else "the lock file states no version"
    return item(sheet, name, bounds, line, build=build, problem=problem)
