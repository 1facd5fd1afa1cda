"""What a system's package manager installs in an image, as far as rows of the matrix name it: CUDA and cuDNN."""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec
from packaging.specifiers import InvalidSpecifier, SpecifierSet

from envcheck.plans.kit.requirement import item
from envcheck.plans.kit.sheet import Sheet
from envcheck.snapshot import Planned

_MANAGER = re.compile(r"(?:.*/)?(?:apt|apt-get|aptitude|dnf|microdnf|tdnf|yum|zypper|apk)")
_VERBS = frozenset({"install", "in", "add"})
_UPSTREAM = re.compile(r"(?:[0-9]+:)?(?P<version>[0-9]{1,4}(?:\.[0-9]{1,9}){1,4})(?P<any>\.?\*)?(?:-.*|\*)?")
"""A version as package managers write it, without epoch and revision: ``8.9.7.29-1+cuda12.2``."""
_OF_RPM = re.compile(r"(?P<name>[a-z][\w-]*?)-(?P<version>[0-9]{1,4}\.[0-9.]{1,30}-\S{1,40})")
_LONGEST = 200


def of_system(sheet: Sheet, line: int, words: list[str]) -> Iterator[Planned] | None:
    """What a command of a package manager brings; None for other commands."""
    if not words or not _MANAGER.fullmatch(words[0]) or not _VERBS & {*words[1:]}:
        return None
    verb = next(place for place, word in enumerate(words) if place and word in _VERBS)
    return _brought(sheet, line, words[verb + 1 :])


def _brought(sheet: Sheet, line: int, packages: list[str]) -> Iterator[Planned]:
    for text in packages:
        if text.startswith("-") or len(text) > _LONGEST:
            continue
        name, _, version = text.partition("=")
        of_rpm = _OF_RPM.fullmatch(text)
        pairs = [(name, version), *([(of_rpm["name"], of_rpm["version"])] if of_rpm else [])]
        for package, pinned in ((whole.partition(":")[0], pin) for whole, pin in pairs):
            found = _component(sheet, package)
            if found is not None:
                component, named = found
                planned = item(sheet, package, _bounds(pinned, named), line)
                yield msgspec.structs.replace(planned, name=f"{component} by {package}", asked=text, brings=component)
                break


def _component(sheet: Sheet, package: str) -> tuple[str, str] | None:
    """The component that a package brings, and the version that its name has: ``cuda``, ``12.4``."""
    for row in sheet.matrix.system_packages:
        for pattern in row.packages:
            if found := re.fullmatch(pattern, package):
                groups = found.groupdict()
                return row.component, ".".join(filter(None, (groups.get("major"), groups.get("minor"))))
    return None


def _bounds(pinned: str, named: str) -> SpecifierSet:
    """The versions that a pin admits, else those that begin as the package's name says."""
    found = _UPSTREAM.fullmatch(pinned)
    try:
        if found:
            return SpecifierSet(f"=={found['version']}{'.*' if found['any'] else ''}")
        return SpecifierSet(f"=={named}.*" if named else "")
    except InvalidSpecifier:
        return SpecifierSet("")
