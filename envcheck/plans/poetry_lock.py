"""poetry.lock: the packages of the main group that no extra asks for, as poetry install --only main installs them."""

from __future__ import annotations

from typing import Any

from packaging.markers import InvalidMarker, Marker

from envcheck.plans.kit.requirement import applies
from envcheck.plans.kit.sheet import Sheet
from envcheck.plans.kit.tables import entries, table_of, text_of, texts_of
from envcheck.plans.uv_lock import locked
from envcheck.snapshot import Planned

NAME = "poetry.lock"


def recognise(name: str) -> bool:
    return name == "poetry.lock"


def read(sheet: Sheet) -> list[Planned]:
    packages = entries(sheet, sheet.toml(), "package")
    if not packages:
        raise sheet.error(None, "it locks no package")
    return sheet.bounded(
        locked(sheet, text_of(each, "name"), text_of(each, "version"), line, build=_build(sheet, each))
        for each, line in packages
        if _is_installed(sheet, each, line)
    )


def _is_installed(sheet: Sheet, package: dict[str, Any], line: int | None) -> bool:
    groups, markers = texts_of(package, "groups"), package.get("markers")
    if package.get("optional") is True or (groups and "main" not in groups) or text_of(package, "category") == "dev":
        return False
    marker = text_of(markers, "main") if isinstance(markers, dict) else markers if isinstance(markers, str) else ""
    if not marker:
        return True
    try:
        return applies(Marker(marker[:4000]), sheet.markers) is not False
    except (InvalidMarker, RecursionError):
        raise sheet.error(line, "an environment marker cannot be read") from None


def _build(sheet: Sheet, package: dict[str, Any]) -> str | None:
    source = table_of(package, "source")
    return sheet.build_of(text_of(source, "url")) if source else ""
