"""poetry.lock: the packages that no extra asks for and no optional group, as poetry install installs them.

Extras and optional groups count where ``poetry.lock[NAME]`` names them. The pyproject.toml beside it says which groups
are optional.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from packaging.utils import canonicalize_name

from envcheck.errors import UsageError
from envcheck.model.snapshot import Planned
from envcheck.plans.groups import of_poetry, project_beside
from envcheck.plans.readers import pyproject
from envcheck.plans.readers.uv_lock import is_for, locked
from envcheck.plans.requirement import alternatives, entry
from envcheck.plans.sheet import Sheet, entries, table_of, tables_of, text_of, texts_of

NAME = "poetry.lock"


def read(sheet: Sheet) -> list[Planned]:
    document = sheet.toml()
    packages = entries(sheet, document, "package")
    extras = table_of(document, "extras")
    groups = {group for each, _ in packages for group in texts_of(each, "groups")}
    sheet = sheet.asking(extra=extras, group=groups)
    asked: set[str] = {canonicalize_name(name) for name in sheet.extras}
    wanted = asked | (of_poetry(project_beside(sheet), [*groups, "dev"]) if sheet.groups else set())
    chosen: set[str] = {
        canonicalize_name(text.partition(" ")[0].partition("[")[0])  # of torch (>=2.0)
        for name in extras
        if canonicalize_name(name) in wanted
        for text in texts_of(extras, name)
    }

    def found_in(package: dict[str, Any], line: int | None) -> Iterator[Planned]:
        if _is_installed(sheet, package, wanted, asked, chosen):
            files = [text_of(each, "file") for each in tables_of(package, "files")]
            name, version = text_of(package, "name"), text_of(package, "version")
            source = table_of(package, "source")
            build = sheet.build_of(text_of(source, "url")) if source else ""
            yield locked(sheet, name, version, line, build=build, files=files)

    found = sheet.bounded(item for package, line in packages for item in entry(sheet, line, found_in(package, line)))
    # What a dependent needs on some systems alone: older lock files say that nowhere else.
    elsewhere = {
        canonicalize_name(name)
        for package, _ in packages
        for name, needed in table_of(package, "dependencies").items()
        for each in (needed if isinstance(needed, list) else [needed])
        if isinstance(each, dict) and text_of(each, "markers")
    }
    there = (each for each in found if each.refused is None or each.name not in elsewhere)
    return alternatives(there, _required(sheet))


def _required(sheet: Sheet) -> dict[str, str]:
    """The project's own bounds: Poetry's lock says of two builds of a release not which of its extras has which."""
    try:
        project = sheet.beside(pyproject.NAME, 1) if sheet.has_beside(pyproject.NAME) else None
        own = replace(project, extras=sheet.extras, groups=sheet.groups) if project else None
        return {each.name: each.bounds for each in pyproject.read(own)} if own else {}
    except UsageError:
        return {}


def _is_installed(sheet: Sheet, package: dict[str, Any], wanted: set[str], asked: set[str], chosen: set[str]) -> bool:
    """Whether it is installed with the ``wanted`` groups and the extras that are ``asked`` for; ``chosen`` are what the
    extras list by name.
    """
    groups, markers = texts_of(package, "groups"), package.get("markers")
    there = [group for group in groups if group == "main" or canonicalize_name(group) in wanted]
    if (groups and not there) or (text_of(package, "category") == "dev" and "dev" not in wanted):
        return False
    conditions = (
        [text_of(markers, group) for group in there] if isinstance(markers, dict) else [text_of(package, "markers")]
    )
    named = canonicalize_name(text_of(package, "name")) in chosen
    by_extra = any("extra" in text for text in conditions)
    if package.get("optional") is True and not named and not (by_extra and asked):
        return False
    return "" in conditions or is_for(sheet, conditions, asked)
