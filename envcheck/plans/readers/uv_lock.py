"""uv.lock: what the project itself requires, as uv sync installs it, with the groups that it installs by default.

Extras and further groups of the project count where ``uv.lock[NAME]`` names them. The pyproject.toml beside it says
which groups are installed by default.

"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

from envcheck.compat.package_needs import applies
from envcheck.model.snapshot import Planned
from envcheck.plans.groups import of_uv, project_beside
from envcheck.plans.requirement import check_name, entry, item, marker_of, refusal
from envcheck.plans.sheet import Sheet, UnreadError, entries, table_of, tables_of, text_of, texts_of

NAME = "uv.lock"

_PARTS = {"optional-dependencies": "extra", "dev-dependencies": "group"}
"""What of a project may be asked for besides its dependencies, and how uv's markers call it."""

_Entry = tuple[dict[str, Any], int | None]


def read(sheet: Sheet) -> list[Planned]:
    document = sheet.toml()
    packages = entries(sheet, document, "package")
    if not packages:
        raise sheet.error(None, "it locks no package")
    for package, _ in packages:
        check_name(text_of(package, "name"))
    here = [each for each in packages if is_for(sheet, texts_of(each[0], "resolution-markers"))]
    by_name: dict[str, list[_Entry]] = {text_of(package, "name"): [] for package, _ in packages}
    for each in here:
        by_name[text_of(each[0], "name")].append(each)
    roots = [package for package, _ in here if _is_root(package)]
    manifest = table_of(document, "manifest")  # of a workspace whose root is no project
    if groups := table_of(manifest, "dependency-groups"):
        roots.append({"name": "", "dev-dependencies": groups})
    sheet.check_extras(name for root in roots for key in _PARTS for name in table_of(root, key))
    reached = _reached(sheet, by_name, roots) if roots else None
    found = (
        entry(sheet, line, _package(sheet, package, line))
        for named in by_name.values()
        for package, line in named
        if not _is_root(package) and (reached is None or id(package) in reached)
    )
    return sheet.bounded(item for items in found for item in items)


def _is_root(package: dict[str, Any]) -> bool:
    """Whether it is the project itself, or a member of its workspace."""
    return bool({"virtual", "editable"} & table_of(package, "source").keys())


def _reached(sheet: Sheet, by_name: dict[str, list[_Entry]], roots: list[dict[str, Any]]) -> set[int]:
    """Identities of the packages that the roots lead to, by dependencies whose markers hold (or cannot be told)."""
    seen: set[tuple[int, str, str]] = set()
    asked: list[tuple[str, str]] = [(key, canonicalize_name(name)) for name in sheet.extras for key in _PARTS]
    if sheet.groups:
        there = {name for root in roots for name in table_of(root, "dev-dependencies")}
        asked += [("dev-dependencies", name) for name in of_uv(project_beside(sheet), there)]
    active = [
        f"{_PARTS[key]}-{len(text_of(root, 'name'))}-{text_of(root, 'name')}-{name}"
        for root in roots
        for key, name in asked
    ]
    left = deque((root, key, name) for root in roots for key, name in (("dependencies", ""), *asked))
    while left:
        package, key, part = left.popleft()
        if (id(package), key, part) in seen:
            continue
        seen.add((id(package), key, part))
        lists = table_of(package, key) if part else package
        wanted = [name for name in lists if canonicalize_name(name) == part] if part else [key]
        for each in (each for name in wanted for each in tables_of(lists, name)):
            if is_for(sheet, [text_of(each, "marker")], active):
                name = text_of(each, "name")
                check_name(name)
                found = by_name.setdefault(name, [({"name": name}, None)])  # what it does not lock stays open
                version = text_of(each, "version")  # which it names where several are locked
                for other, _ in found:
                    if version and text_of(other, "version") not in ("", version):
                        continue
                    left.append((other, "dependencies", ""))
                    left.extend(
                        (other, "optional-dependencies", canonicalize_name(more)) for more in texts_of(each, "extra")
                    )
    return {place for place, _, _ in seen}


def is_for(sheet: Sheet, markers: list[str], active: Iterable[str] = ()) -> bool:
    """Whether one of the markers holds, or none excludes this machine for certain. ``active`` are uv's names of the
    extras and groups that are asked for: ``extra-3-app-cu124``.
    """
    asked = [marker_of(text) for text in markers if text]
    return not asked or any(
        applies(each, sheet.markers, extra) is not False for each in asked for extra in ("", *active)
    )


def _package(sheet: Sheet, package: dict[str, Any], line: int | None) -> Iterator[Planned]:
    source, version = table_of(package, "source"), text_of(package, "version")
    registry = text_of(source, "registry")
    build = sheet.build_of(registry) if registry else None
    files = [text_of(each, "url") or text_of(each, "path") for each in tables_of(package, "wheels")]
    archive = table_of(package, "sdist")
    yield locked(sheet, text_of(package, "name"), version, line, build=build, files=() if archive else files)


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
