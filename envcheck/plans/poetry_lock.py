"""poetry.lock: the packages of the main group that no extra asks for, as poetry install --only main installs them.

Extras and groups count where ``poetry.lock[NAME]`` names them.
"""

from __future__ import annotations

from typing import Any

from packaging.markers import InvalidMarker, Marker
from packaging.utils import canonicalize_name

from envcheck.plans.kit.requirement import LONGEST_MARKER, applies
from envcheck.plans.kit.sheet import Sheet
from envcheck.plans.kit.tables import entries, table_of, tables_of, text_of, texts_of
from envcheck.plans.uv_lock import locked
from envcheck.snapshot import Planned

NAME = "poetry.lock"


def recognise(name: str) -> bool:
    return name == "poetry.lock"


def read(sheet: Sheet) -> list[Planned]:
    document = sheet.toml()
    packages = entries(sheet, document, "package")
    if not packages:
        raise sheet.error(None, "it locks no package")
    extras = table_of(document, "extras")
    sheet.check_extras([*extras, *(group for each, _ in packages for group in texts_of(each, "groups"))])
    wanted: set[str] = {canonicalize_name(name) for name in sheet.extras}
    chosen: set[str] = {
        _bare(text) for name in extras if canonicalize_name(name) in wanted for text in texts_of(extras, name)
    }
    found = sheet.bounded(
        _package(sheet, each, line) for each, line in packages if _is_installed(sheet, each, line, wanted, chosen)
    )
    elsewhere = _for_some_systems([each for each, _ in packages])
    return [each for each in found if each.refused is None or each.name not in elsewhere]


def _for_some_systems(packages: list[dict[str, Any]]) -> set[str]:
    """What a dependent needs on some systems alone: older lock files say that nowhere else."""
    return {
        canonicalize_name(name)
        for package in packages
        for name, needed in table_of(package, "dependencies").items()
        for each in (needed if isinstance(needed, list) else [needed])
        if isinstance(each, dict) and text_of(each, "markers")
    }


def _bare(text: str) -> str:
    """The name in an entry of an extra: ``torch (>=2.0)``."""
    return canonicalize_name(text.partition(" ")[0].partition("[")[0])


def _package(sheet: Sheet, package: dict[str, Any], line: int | None) -> Planned:
    files = [text_of(each, "file") for each in tables_of(package, "files")]
    name, version = text_of(package, "name"), text_of(package, "version")
    return locked(sheet, name, version, line, build=_build(sheet, package), files=files)


def _is_installed(sheet: Sheet, package: dict[str, Any], line: int | None, wanted: set[str], chosen: set[str]) -> bool:
    """Whether it is installed with the ``wanted`` extras and groups; ``chosen`` are what the extras list by name."""
    groups, markers = texts_of(package, "groups"), package.get("markers")
    there = [group for group in groups if group == "main" or canonicalize_name(group) in wanted]
    if (groups and not there) or text_of(package, "category") == "dev":
        return False
    told = [text_of(markers, group) for group in there] if isinstance(markers, dict) else [text_of(package, "markers")]
    named = canonicalize_name(text_of(package, "name")) in chosen
    by_extra = any("extra" in text for text in told)
    if package.get("optional") is True and not named and not (by_extra and wanted):
        return False
    if "" in told or not told:
        return True
    try:
        asked = [Marker(text[:LONGEST_MARKER]) for text in told]
        return any(applies(each, sheet.markers, extra) is not False for each in asked for extra in ("", *wanted))
    except (InvalidMarker, RecursionError):
        raise sheet.error(line, "an environment marker cannot be read") from None


def _build(sheet: Sheet, package: dict[str, Any]) -> str | None:
    source = table_of(package, "source")
    return sheet.build_of(text_of(source, "url")) if source else ""
