"""Pipfile.lock: the packages of the category ``default``, as pipenv sync installs them.

Further categories count where ``Pipfile.lock[develop]`` names them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from packaging.utils import canonicalize_name

from envcheck.plans.kit.requirement import of_wheel, planned, unread
from envcheck.plans.kit.sheet import Sheet
from envcheck.plans.kit.tables import table_of, tables_of, text_of, texts_of
from envcheck.snapshot import Planned

NAME = "Pipfile.lock"

_META = "_meta"
_KEY = re.compile(r'\s{0,40}"(?P<name>[^"\\]{1,200})"\s{0,40}:\s{0,40}\{')
_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,200}[A-Za-z0-9])?")
_FROM_ELSEWHERE = ("git", "hg", "svn", "bzr", "path")


def recognise(name: str) -> bool:
    return name == NAME


def read(sheet: Sheet) -> list[Planned]:
    document = _document(sheet)
    categories = [name for name in document if name != _META]
    sheet.check_extras(categories)
    wanted = {"default", *map(canonicalize_name, sheet.extras)}
    lines = _lines(sheet, categories)
    addresses = {
        text_of(each, "name"): text_of(each, "url") for each in tables_of(table_of(document, _META), "sources")
    }
    chosen = [category for category in categories if canonicalize_name(category) in wanted]
    found = (_packages(sheet, category, table_of(document, category), addresses, lines) for category in chosen)
    return sheet.bounded(item for items in found for item in items)


def _document(sheet: Sheet) -> dict[str, Any]:
    try:
        document = json.loads(sheet.text)
    except (RecursionError, ValueError):
        document = None
    if not isinstance(document, dict) or not isinstance(document.get("default"), dict):
        raise sheet.error(None, "this is no lock file of pipenv: it has no table 'default'")
    return document


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


def _packages(
    sheet: Sheet,
    category: str,
    table: dict[str, Any],
    addresses: dict[str, str],
    lines: dict[tuple[str, str], int],
) -> Iterator[Planned]:
    for name in table:
        entry, line = table_of(table, name), lines.get((category, name))
        if not _NAME.fullmatch(name):
            raise sheet.error(line, "a package without a valid name")
        file = text_of(entry, "file")
        if file:
            yield of_wheel(sheet, file, line, name=name)
        elif set(entry) & set(_FROM_ELSEWHERE):
            problem = "it is installed from an address or a folder, which does not state the version"
            yield unread(sheet, name, line, problem, name=canonicalize_name(name))
        else:
            found = _package(sheet, name, entry, line, addresses)
            if found is not None:
                yield found


def _package(
    sheet: Sheet, name: str, entry: dict[str, Any], line: int | None, addresses: dict[str, str]
) -> Planned | None:
    extras = f"[{','.join(texts_of(entry, 'extras'))}]" if texts_of(entry, "extras") else ""
    version, markers = text_of(entry, "version"), text_of(entry, "markers")
    bounds = "" if version == "*" else version
    index = addresses.get(text_of(entry, "index")) or next(iter(addresses.values()), None)
    text = f"{name}{extras}{bounds}" + (f" ; {markers}" if markers else "")
    return planned(sheet, text, line, build=sheet.build_of(index))
