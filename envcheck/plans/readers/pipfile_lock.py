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
from envcheck.plans.requirement import check_name, entry, of_wheel, planned, unread
from envcheck.plans.sheet import Sheet, table_of, tables_of, text_of, texts_of

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
        problem = "it is installed from an address or a folder, which does not state the version"
        yield unread(sheet, name, line, problem, name=canonicalize_name(name))
        return
    extras = f"[{','.join(texts_of(package, 'extras'))}]" if texts_of(package, "extras") else ""
    version, markers = text_of(package, "version"), text_of(package, "markers")
    bounds = "" if version == "*" else version
    named = text_of(package, "index")
    index = addresses.get(named, "unknown:") if named else next(iter(addresses.values()), None)
    text = f"{name}{extras} {bounds}" + (f" ; {markers}" if markers else "")
    found = planned(sheet, text, line, build=sheet.build_of(index))
    if found is not None:
        yield found
