"""uv.lock: what the project itself requires, as uv sync --no-dev installs it.

Extras and dependency groups of the project count where ``uv.lock[NAME]`` names them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
from packaging.markers import InvalidMarker, Marker
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_name

from envcheck.plans.kit.requirement import LONGEST_MARKER, applies, item
from envcheck.plans.kit.sheet import Sheet
from envcheck.plans.kit.tables import entries, table_of, tables_of, text_of, texts_of
from envcheck.plans.kit.wheels import refusal
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
    roots = [each for each, _ in here if _is_root(each)]
    sheet.check_extras(
        name for each in roots for key in ("optional-dependencies", "dev-dependencies") for name in table_of(each, key)
    )
    reached = _reached(sheet, by_name, roots) if roots else None
    return sheet.bounded(
        _package(sheet, entry)
        for found in by_name.values()
        for entry in found
        if not _is_root(entry[0]) and (reached is None or id(entry[0]) in reached)
    )


def _is_root(package: dict[str, Any]) -> bool:
    """Whether it is the project itself, or a member of its workspace."""
    return bool({"virtual", "editable"} & table_of(package, "source").keys())


def _reached(sheet: Sheet, by_name: dict[str, list[_Entry]], roots: list[dict[str, Any]]) -> set[int]:
    """Identities of the packages that the roots lead to, by dependencies whose markers hold (or cannot be told)."""
    seen: set[tuple[int, str]] = set()
    wanted = {canonicalize_name(name) for name in sheet.extras}
    active = [
        f"{kind}-{len(text_of(root, 'name'))}-{text_of(root, 'name')}-{name}"
        for root in roots
        for name in wanted
        for kind in ("extra", "group")
    ]
    left = deque((root, extra) for root in roots for extra in ("", *wanted))
    while left:
        package, extra = left.popleft()
        if (id(package), extra) in seen:
            continue
        seen.add((id(package), extra))
        asked = [*tables_of(package, "dependencies")] if not extra else []
        for key in ("optional-dependencies", "dev-dependencies") if extra else ():
            named = {canonicalize_name(name): name for name in table_of(package, key)}
            asked += tables_of(table_of(package, key), named.get(canonicalize_name(extra), ""))
        for each in asked:
            if _is_for(sheet, [text_of(each, "marker")], active):
                met = _named(by_name.get(text_of(each, "name"), []), text_of(each, "version"))
                left.extend((other, more) for other in met for more in ("", *texts_of(each, "extra")))
    return {place for place, _ in seen}


def _named(found: list[_Entry], version: str) -> Iterator[dict[str, Any]]:
    """The entries that a dependency means: where several versions are locked, it names one."""
    return (package for package, _ in found if not version or text_of(package, "version") == version)


def _is_for(sheet: Sheet, markers: list[str], active: Sequence[str] = ()) -> bool:
    """Whether one of the markers holds, or none excludes this machine for certain. ``active`` are uv's names of the
    extras and groups that are asked for: ``extra-3-app-cu124``.
    """
    texts = [text for text in markers if text]
    return not texts or any(_holds(sheet, text, extra) is not False for text in texts for extra in ("", *active))


def _holds(sheet: Sheet, text: str, extra: str) -> bool | None:
    try:
        return applies(Marker(text[:LONGEST_MARKER]), sheet.markers, extra)
    except (InvalidMarker, RecursionError):
        raise sheet.error(None, "an environment marker cannot be read") from None


def _package(sheet: Sheet, entry: _Entry) -> Planned:
    package, line = entry
    source, version = table_of(package, "source"), text_of(package, "version")
    registry = text_of(source, "registry")
    build = sheet.build_of(registry) if registry else None
    files = [text_of(each, "url") or text_of(each, "path") for each in tables_of(package, "wheels")]
    archive = table_of(package, "sdist")
    return locked(sheet, text_of(package, "name"), version, line, build=build, files=() if archive else files)


def locked(
    sheet: Sheet, name: str, version: str, line: int | None, *, build: str | None, files: Sequence[str] = ()
) -> Planned:
    """A package at the version that a lock file states, of which it names the files; raise UsageError for what is
    none.
    """
    try:
        bounds = SpecifierSet(f"=={version}" if version else "")
    except InvalidSpecifier:
        raise sheet.error(line, "a version cannot be read") from None
    if not name:
        raise sheet.error(line, "a package without a name")
    problem = None if version else "the lock file states no version"
    found = item(sheet, name, bounds, line, build=build, problem=problem)
    return msgspec.structs.replace(found, refused=refusal(sheet, files))
