"""Where the loader finds libcuda, from ``ldconfig -p``, ``ldd`` and ``ls -l``."""

from __future__ import annotations

import re
from collections.abc import Iterator

from envcheck.importers.kit.paste import SOURCE, Paste
from envcheck.importers.kit.protocol import Rank
from envcheck.snapshot import Driver, DriverLibrary, Listing, Snapshot

NAME = "libcuda lookups"
RANK = Rank.OUTPUT

_LOOKUP = re.compile(r"(libcuda\.so(?:\.1)?)(?: \([^)]{0,80}\))? => (/\S{1,300})")
_LINK = re.compile(r"((?:/\S{1,200}/)?libcuda\.so(?:\.1)?) -> (\S{0,200}libcuda\.so\.[0-9.]{1,20})$")
_RELEASE = re.compile(r"libcuda\.so\.([0-9]{3}\.[0-9]{2,3}(?:\.[0-9]{2,3})?)$")
_LONGEST_LINE = 600
_MOST = 32


def read(paste: Paste) -> Snapshot:
    """The files in the order of the text; in a list of the loader's cache that is the loader's order."""
    found: dict[str, DriverLibrary] = {}
    for library in _libraries(paste):
        found.setdefault(library.path, library)
        if len(found) == _MOST:
            break
    return Snapshot(driver=Driver(source=SOURCE, libraries=Listing(items=tuple(found.values()))) if found else None)


def _libraries(paste: Paste) -> Iterator[DriverLibrary]:
    for line in paste.statements:
        text = line.strip()[:_LONGEST_LINE]
        if found := _LOOKUP.search(text):
            yield _library(found[2], found[1], found[2])
        elif found := _LINK.search(text):
            yield _library(found[2], found[1].rpartition("/")[2], found[1])


def _library(path: str, name: str, met_as: str) -> DriverLibrary:
    release = _RELEASE.search(path)
    folders = path.split("/")
    return DriverLibrary(
        source=SOURCE,
        path=path,
        soname=name if name.endswith(".1") else None,
        version=release[1] if release else None,
        kind="stub" if "stubs" in folders else "compat" if "compat" in folders else "driver",
        found_as=(met_as,),
    )
