"""Pipfile.lock: the packages of the category ``default``, as pipenv sync installs them.

Further categories count where ``Pipfile.lock[develop]`` names them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from packaging.utils import canonicalize_name

from envcheck.model.snapshot import Planned
from envcheck.plans.requirement import BY_ADDRESS, check_name, entry, of_table, of_wheel, unread
from envcheck.plans.sheet import Sheet, table_of, tables_of, text_of

NAME = "Pipfile.lock"

_META = "_meta"
_KEY = re.compile(r'\s{0,40}"(?P<name>[^"\\]{1,200})"\s{0,40}:\s{0,40}\{')
_FROM_ELSEWHERE = ("git", "hg", "svn", "bzr", "path")


def read(sheet: Sheet) -> list[Planned]:
    try:
        document = json.loads(sheet.text)
    except (RecursionError, ValueError):
        document = None
    if not isinstance(document, dict) or not isinstance(document.get("default"), dict):
        raise sheet.error(None, "this is no lock file of pipenv: it has no table 'default'")
    categories = [name for name in document if name != _META]
    sheet = sheet.asking(group=categories)
    wanted = {"default", *map(canonicalize_name, sheet.extras)}
    lines = _lines(sheet, categories)
    sources = tables_of(table_of(document, _META), "sources")
    addresses = {text_of(each, "name"): text_of(each, "url") for each in sources}
    tables = {name: table_of(document, name) for name in categories if canonicalize_name(name) in wanted}
    return sheet.bounded(
        item
        for category, table in tables.items()
        for name in table
        for line in [lines.get((category, name))]
        for item in entry(sheet, line, _package(sheet, name, table, line, addresses))
    )


def _lines(sheet: Sheet, categories: list[str]) -> dict[tuple[str, str], int]:
    """The line on which the entry of a package begins, by category and name, where pipenv has written the file."""
    found: dict[tuple[str, str], int] = {}
    category = ""
    for number, text in enumerate(sheet.text.split("\n"), start=1):
        key = _KEY.match(text)
        if key and key["name"] in (*categories, _META):
            category = key["name"]
        elif key:
            found.setdefault((category, key["name"]), number)
    return found


def _package(
    sheet: Sheet, name: str, table: dict[str, Any], line: int | None, addresses: dict[str, str]
) -> Iterator[Planned]:
    package, file = table_of(table, name), text_of(table_of(table, name), "file")
    check_name(name)
    if file:
        yield of_wheel(sheet, file, line, name=name)
        return
    if set(package) & set(_FROM_ELSEWHERE):
        yield unread(sheet, name, line, BY_ADDRESS, name=canonicalize_name(name))
        return
    version, markers, named = (text_of(package, key) for key in ("version", "markers", "index"))
    bounds = "" if version == "*" else version
    index = addresses.get(named, "unknown:") if named else next(iter(addresses.values()), None)
    yield from of_table(sheet, name, package, bounds, markers, line, build=sheet.build_of(index))
