"""pdm.lock: the packages of the default group and of the groups for development, as pdm install installs them.

Further groups count where ``pdm.lock[NAME]`` names them. The pyproject.toml beside it says which are for development.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
from packaging.utils import canonicalize_name

from envcheck.model.snapshot import Planned
from envcheck.plans.groups import names_of, project_beside
from envcheck.plans.readers.uv_lock import is_for, locked
from envcheck.plans.requirement import alternatives, check_name, entry, of_wheel
from envcheck.plans.sheet import Sheet, entries, table_of, tables_of, text_of, texts_of

NAME = "pdm.lock"

_FROM_ELSEWHERE = ("url", "git", "hg", "svn", "bzr", "path")


def read(sheet: Sheet) -> list[Planned]:
    document = sheet.toml()
    packages = entries(sheet, document, "package")
    groups = texts_of(table_of(document, "metadata"), "groups")
    sheet = sheet.asking(group=groups)
    wanted: set[str] = {"default", *map(canonicalize_name, sheet.extras)}
    if sheet.groups:
        wanted |= set(map(canonicalize_name, names_of(project_beside(sheet), "group"))) or {"dev"}

    def found_in(package: dict[str, Any], line: int | None) -> Iterator[Planned]:
        own = texts_of(package, "groups")
        if (own and wanted.isdisjoint(map(canonicalize_name, own))) or not is_for(sheet, [text_of(package, "marker")]):
            return
        name, place = text_of(package, "name"), next((key for key in _FROM_ELSEWHERE if key in package), "")
        check_name(name)
        if place:
            yield of_wheel(sheet, text_of(package, place), line, name=name)
            return
        files = [text_of(each, "file") or text_of(each, "url") for each in tables_of(package, "files")]
        found = locked(sheet, name, text_of(package, "version"), line, build="", files=files)
        yield msgspec.structs.replace(found, extras=tuple(sorted(texts_of(package, "extras"))))

    found = (entry(sheet, line, found_in(package, line)) for package, line in packages)
    return alternatives(sheet.bounded(item for items in found for item in items))
