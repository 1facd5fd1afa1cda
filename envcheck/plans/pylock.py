"""pylock.toml (PEP 751), read with packaging.pylock, which packaging has since 26.0."""

from __future__ import annotations

import re
from collections.abc import Set  # noqa: PYI025 - a frozenset is one

from packaging.specifiers import SpecifierSet

from envcheck.compat.question.package_needs import marker_names
from envcheck.plans.kit.requirement import item, of_wheel
from envcheck.plans.kit.sheet import Sheet
from envcheck.plans.kit.tables import entries
from envcheck.snapshot import Planned

NAME = "pylock.toml"

_FILE = re.compile(r"pylock(?:\.[^.]+)?\.toml")
_OF_A_LOCK = {"extras", "dependency_groups"}
"""Marker variables that say what of the lock file is installed; without options nothing of either is."""


def recognise(name: str) -> bool:
    return _FILE.fullmatch(name) is not None


def read(sheet: Sheet) -> list[Planned]:
    try:
        from packaging.pylock import Package, Pylock, PylockValidationError  # noqa: PLC0415 - older releases lack it
    except ImportError:
        raise sheet.error(None, "reading it needs packaging 26 or newer: pip install 'gpu-envcheck[plans]'") from None
    document = sheet.toml()
    try:
        lock = Pylock.from_dict(document)
    except (PylockValidationError, RecursionError, ValueError) as error:
        raise sheet.error(None, f"this is no valid lock file of PEP 751 ({type(error).__name__})") from None
    lines = [line for _, line in entries(sheet, document, "packages")]

    def installed(package: Package) -> bool:
        if package.marker is None:
            return True
        known: dict[str, str | Set[str]] = {
            **sheet.markers,
            "extras": frozenset[str](),
            "dependency_groups": frozenset[str](lock.default_groups or ()),
        }
        if not marker_names(str(package.marker)) <= sheet.markers.keys() | _OF_A_LOCK:
            return True  # it depends on something that is not known
        try:
            return package.marker.evaluate(known, context="lock_file")
        except ValueError:
            return True

    def planned(package: Package, line: int | None) -> Planned:
        if package.version is not None:
            build = sheet.build_of(package.index) if package.index else ""
            return item(sheet, package.name, SpecifierSet(f"=={package.version}"), line, build=build)
        wheel = next((each.filename for each in package.wheels or ()), None)
        if wheel is not None:
            return of_wheel(sheet, wheel, line, name=package.name)
        return item(sheet, package.name, SpecifierSet(), line, problem="the lock file states no version")

    return sheet.bounded(
        planned(package, line) for package, line in zip(lock.packages, lines, strict=True) if installed(package)
    )
