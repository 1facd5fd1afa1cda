"""pylock.toml (PEP 751), read with packaging.pylock, which packaging has since 26.0."""

from __future__ import annotations

import re
from collections.abc import Set  # noqa: PYI025 - a frozenset is one
from typing import TYPE_CHECKING, Any

import msgspec
from packaging.markers import Marker
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from envcheck.compat.package_needs import decided, marker_names
from envcheck.model.snapshot import Planned
from envcheck.plans.requirement import alternatives, build_of_variant, item, of_wheel, refusal, without_label
from envcheck.plans.sheet import Sheet, entries, tables_of, text_of

if TYPE_CHECKING:
    from packaging.pylock import Package


NAME = "pylock.toml"

FILES = re.compile(r"pylock(?:\.[^.]+)?\.toml")


def read(sheet: Sheet) -> list[Planned]:
    try:
        from packaging.pylock import Pylock, PylockValidationError  # noqa: PLC0415 - older releases lack it
    except ImportError:
        raise sheet.error(None, "reading it needs packaging 26 or newer: pip install 'gpu-envcheck[plans]'") from None
    document = sheet.toml()
    if "packages" not in document:
        raise sheet.error(None, "it locks no package")
    labels = _take_labels(document)
    try:
        lock = Pylock.from_dict(document)
    except (PylockValidationError, RecursionError, ValueError) as error:
        raise sheet.unread(None, f"this is no valid lock file of PEP 751 ({type(error).__name__})") from None
    extras, groups = lock.extras or (), lock.dependency_groups or ()
    sheet = sheet.asking(extra=extras, group=groups)
    wanted = {canonicalize_name(name) for name in sheet.extras}
    lines = [line for _, line in entries(sheet, document, "packages")]

    known: dict[str, str | Set[str]] = {
        **sheet.markers,
        "extras": frozenset[str](wanted & set(extras)),
        "dependency_groups": frozenset[str]([*(lock.default_groups or ()), *(wanted & set(groups))]),
    }

    def holds_part(part: str) -> bool | None:
        try:
            return Marker(part).evaluate(known, context="lock_file") if marker_names(part) <= known.keys() else None
        except ValueError:
            return None

    return alternatives(
        sheet.bounded(
            _planned(sheet, package, line, labels.get(package.name, set()))
            for package, line in zip(lock.packages, lines, strict=True)
            if package.marker is None or decided(str(package.marker), holds_part) is not False
        )
    )


def _take_labels(document: dict[str, Any]) -> dict[str, set[str]]:
    """Take the labels of wheel variants, a preview, off the files, as the standard refuses them; by package."""
    found: dict[str, set[str]] = {}
    for package in tables_of(document, "packages"):
        for wheel in tables_of(package, "wheels"):
            for key in ("name", "url", "path"):
                plain, label = without_label(text_of(wheel, key))
                if label:
                    wheel[key] = plain
                    found.setdefault(text_of(package, "name"), set()).add(label)
    return found


def _planned(sheet: Sheet, package: Package, line: int | None, labels: Set[str]) -> Planned:
    files = [each.filename for each in package.wheels or ()]
    if package.version is not None:
        # Without an index the addresses of the files say where it comes from.
        build = sheet.build_of(package.index) if package.index else None if package.version.local else ""
        if labels:
            build = build_of_variant(*labels) if len(labels) == 1 else None
        found = item(sheet, package.name, SpecifierSet(f"=={package.version}"), line, build=build)
        return msgspec.structs.replace(found, refused=refusal(sheet, () if package.sdist else files))
    if files:
        return of_wheel(sheet, files[0], line, name=package.name)
    return item(sheet, package.name, SpecifierSet(), line, problem="the lock file states no version")
