"""pixi.lock: the packages of one environment for this platform, read by its lines, which pixi writes in one way. It is
``default`` unless ``FILE[NAME]`` names others.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from envcheck.model.snapshot import Planned
from envcheck.plans.readers.environment_yml import of_conda
from envcheck.plans.readers.pixi_toml import is_for
from envcheck.plans.readers.uv_lock import locked
from envcheck.plans.requirement import alternatives, entry, of_wheel, unread
from envcheck.plans.sheet import Sheet

NAME = "pixi.lock"

_ENVIRONMENT = re.compile(r"  (?P<name>[\w-]{1,100}):")
_PLATFORM = re.compile(r"      (?P<name>[\w-]{1,100}):")
_PACKAGE = re.compile(r" {6,8}- (?P<kind>conda|pypi): (?P<address>\S{1,2000})")
_FILE = re.compile(
    r"(?:.*/)?(?P<channel>[^/]+)/[^/]+/(?P<name>[^/]+)-(?P<version>[^-/]+)-(?P<build>[^-/]+)\.(?:conda|tar\.bz2)"
)
_ARCHIVE = re.compile(
    r"https://\S{1,300}/(?P<name>[A-Za-z0-9][\w.]{0,80})-(?P<version>[0-9][\w.]{0,40})\.(?:tar\.gz|zip)"
)
"""The archive of a release on an index."""
_ITSELF = "."


def read(sheet: Sheet) -> list[Planned]:
    lines = sheet.text.split("\n")
    if "environments:" not in lines:
        raise sheet.error(None, "it locks no environment")
    begin = lines.index("environments:") + 1
    end = next((number for number, text in enumerate(lines[begin:], begin) if text[:1].strip()), len(lines))
    there = [found["name"] for text in lines[begin:end] if (found := _ENVIRONMENT.fullmatch(text))]
    sheet = sheet.asking(environment=there)
    return alternatives(sheet.bounded(_read(sheet, lines, begin, end)))


def _read(sheet: Sheet, lines: list[str], begin: int, end: int) -> Iterator[Planned]:
    wanted, environment, counts = sheet.extras or ("default",), "", False
    for number in range(begin, end):
        text = lines[number]
        if found := _ENVIRONMENT.fullmatch(text):
            environment, counts = found["name"], False
        elif found := _PLATFORM.fullmatch(text):
            counts = environment in wanted and is_for(sheet, found["name"])
        elif counts and (found := _PACKAGE.fullmatch(text)):
            yield from entry(sheet, number + 1, _package(sheet, found["kind"], found["address"], number + 1))


def _package(sheet: Sheet, kind: str, address: str, line: int) -> Iterator[Planned]:
    if kind == "pypi" and (archive := _ARCHIVE.fullmatch(address)):
        yield locked(sheet, archive["name"], archive["version"], line, build="")
    elif kind == "pypi" and address != _ITSELF:
        yield of_wheel(sheet, address, line)
    elif kind == "pypi":
        yield unread(sheet, address, line, "")  # the project whose lock it is
    elif file := _FILE.fullmatch(address):
        yield of_conda(
            sheet, f"{file['name']}=={file['version'].rpartition('!')[2]}={file['build']}", line, [file["channel"]]
        )
    else:
        raise sheet.unread(line, "this is no address of a package of conda's")
