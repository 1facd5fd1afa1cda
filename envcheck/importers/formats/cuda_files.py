"""CUDA on disk: libraries by their paths, as ``find``, ``ldd`` and ``LD_DEBUG`` print them, versions in prose, where
the loader finds libcuda, and nvcc.

A path means that the file exists, unless its line says the opposite. A version in prose ("CUDA 12.1", "cuDNN 8.1
installed") is kept as a stated one, since it is unknown which copy it belongs to.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from envcheck.importers.importer import Rank, importer
from envcheck.importers.paste import SOURCE, Paste
from envcheck.importers.prose.hedges import before_error
from envcheck.importers.readings import facts_in
from envcheck.importers.wording import wording
from envcheck.knowledge.relations.libraries import SPOKEN_OF, files_of
from envcheck.model.snapshot import Driver, DriverLibrary, Library, Listing, Snapshot, Toolkit, items_in
from envcheck.text.lazy import lazy_pattern

_MOST, _LONGEST_LINE = 64, 1000

_LISTS = lazy_pattern(r"\bls (?:-\S{1,6} ){0,3}(?P<folder>/[\w./+-]{2,200})(?: ?\| ?e?grep \S{1,40})?$")
"""A command that lists a folder, whose files stand below by their bare names."""


@importer("CUDA libraries", Rank.PROSE)
def read_libraries(paste: Paste) -> Snapshot:
    found: dict[str, Library] = {}
    for library in _libraries(paste):
        found.setdefault(library.path, library)
        if len(found) == _MOST:
            break
    return Snapshot(libraries=Listing(items=tuple(found.values())) if found else None)


def _libraries(paste: Paste) -> Iterator[Library]:
    # Those of folders that a command lists, up to the next line that names something else.
    folder = ""
    for line in paste.lines if "ls " in paste.text else ():
        text = line.strip()[:_LONGEST_LINE]
        if "ls " in text and (listing := _LISTS.search(text)):
            folder = listing["folder"].rstrip("/")
        elif folder and re.match(r"lib[A-Za-z_]{2,30}\.so(?:\.[0-9]{1,6}){0,4}$", text):
            yield from _files(f"{folder}/{text}")
        else:
            folder = ""
    for line in paste.statements:
        text = before_error(line.strip(" \t-*•#>`|")[:_LONGEST_LINE])
        for sentence in re.split(r"(?<=[.;!?])\s+", text):
            if (".so" in sentence or ".dll" in sentence) and not wording("file-not-there").search(sentence):
                yield from _files(sentence)
            for facts in facts_in("CUDA libraries", sentence):
                yield from items_in(facts.libraries)


def _files(text: str) -> Iterator[Library]:
    if ".so" in text:
        yield from map(_library, _path().finditer(text))
        located = wording("file-is-in").sub(r" \g<folder>/\g<file> ", text)
        yield from map(_library, _path().finditer(located) if located != text else ())
    if ".dll" in text and wording("dll-is-there").search(text):
        yield from (Library(source=SOURCE, path=match[0], family=match["family"]) for match in _dll().finditer(text))


def _library(found: re.Match[str]) -> Library:
    number = found["number"].lstrip(".")
    return Library(
        source=SOURCE,
        path=found["path"],
        family=found["family"],
        on_disk=number if number.count(".") > 1 and found["family"] != "cupti" else None,
        stub=True if "/stubs/" in found["path"] else None,
    )


@cache
def _dll() -> re.Pattern[str]:
    return re.compile(rf"\b(?P<family>{files_of(*SPOKEN_OF)})(?:64)?_[0-9_]{{1,9}}\.dll\b", re.IGNORECASE)


@cache
def _path() -> re.Pattern[str]:
    return re.compile(
        rf"(?:^|[\s=:'\"(>])(?P<path>(?:/|<)[^\s:'\",;()]{{0,300}}/lib(?P<family>{files_of(*SPOKEN_OF)})"
        r"(?:[-.][0-9a-f]{8})?\.so(?P<number>(?:\.\d{1,6}){0,4}))(?![\w.])"
    )


_LINK = lazy_pattern(r"((?:/\S{1,200}/)?libcuda\.so(?:\.1)?) -> (\S{0,200}libcuda\.so\.[0-9.]{1,20})$")


@importer("libcuda lookups", Rank.OUTPUT)
def read_libcuda(paste: Paste) -> Snapshot:
    """The files in the order of the text; in a list of the loader's cache that is the loader's order."""
    libraries: dict[str, DriverLibrary] = {}
    for line in paste.statements:
        text = line.strip()[:600]
        if found := re.search(r"(libcuda\.so(?:\.1)?)(?: \([^)]{0,80}\))? => (/\S{1,300})", text):
            libraries.setdefault(found[2], _driver_library(found[2], found[1], found[2]))
        elif found := _LINK.search(text):
            libraries.setdefault(found[2], _driver_library(found[2], found[1].rpartition("/")[2], found[1]))
        if len(libraries) == 32:
            break
    listing = Listing(items=tuple(libraries.values())) if libraries else None
    return Snapshot(driver=Driver(source=SOURCE, libraries=listing) if listing else None)


def _driver_library(path: str, name: str, met_as: str) -> DriverLibrary:
    release = re.search(r"libcuda\.so\.([0-9]{3}\.[0-9]{2,3}(?:\.[0-9]{2,3})?)$", path)
    folders = path.split("/")
    return DriverLibrary(
        source=SOURCE,
        path=path,
        soname=name if name.endswith(".1") else None,
        version=release[1] if release else None,
        kind="stub" if "stubs" in folders else "compat" if "compat" in folders else "driver",
        found_as=(met_as,),
    )


_RELEASE_OF_NVCC = lazy_pattern(
    r"Cuda compilation tools, release ([0-9]{1,2}\.[0-9]{1,2})(?:, V([0-9]{1,2}(?:\.[0-9]{1,4}){1,3}))?"
)
_TARGET = lazy_pattern(r"(?:sm|compute)_[0-9]{2,3}[af]?$")
_FEWEST_TARGETS, _MOST_TARGETS = 4, 60  # Lines of a list; fewer may be anything


@importer("nvcc --version", Rank.OUTPUT)
def read_nvcc(paste: Paste) -> Snapshot:
    """``nvcc --version`` and ``nvcc --list-gpu-code``: the toolkit on the user's PATH, and what it compiles for."""
    found = next(filter(None, map(_RELEASE_OF_NVCC.search, paste.lines)), None)
    # They stand on lines of their own, as ``nvcc --list-gpu-code`` and ``--list-gpu-arch`` print them.
    targets = tuple(dict.fromkeys(line.strip() for line in paste.statements if _TARGET.match(line.strip())))
    targets = targets[:_MOST_TARGETS] if len(targets) >= _FEWEST_TARGETS else ()
    version = (found[2] or found[1]) if found else None
    if version is None and not targets:
        return Snapshot()
    toolkit = Toolkit(source=SOURCE, path="unknown folder", version=version, targets=targets or None, on_path=True)
    return Snapshot(toolkits=Listing(items=(toolkit,)))
