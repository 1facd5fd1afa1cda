"""One requirement (PEP 508), or a wheel by its name, as what it would install, and where an installer looks for it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from msgspec.structs import replace
from packaging.markers import InvalidMarker, Marker
from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import SpecifierSet
from packaging.tags import Tag
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename
from packaging.version import Version

from envcheck.compat.package_needs import applies, exact
from envcheck.model.snapshot import Planned
from envcheck.plans.sheet import Sheet, UnreadError, texts_of

LONGEST = 2000
BY_ADDRESS = "it is installed from an address or a folder, which does not state the version"
_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,200}[A-Za-z0-9])?")
_LONGEST_MARKER = 50_000  # uv writes markers of some thousand characters where extras exclude each other

_parsed = lru_cache(maxsize=1 << 13)(Requirement)  # plans that are judged in one run pin much of the same


def planned(sheet: Sheet, text: str, line: int | None, *, build: str | None = "") -> Planned | None:
    """What a requirement would install; None where its marker excludes it. Raises UnreadError for what is none.

    ``build`` is the local tag of the builds that the index serves (``Planned.build``).
    """
    try:
        asked = _parsed(text) if len(text) <= LONGEST else None
    except (InvalidRequirement, RecursionError):
        asked = None
    if asked is None:
        raise sheet.unread(line, "this is no requirement; write NAME==VERSION, as in torch==2.5.1")
    applied = True if asked.marker is None else applies(asked.marker, sheet.markers)
    if applied is False:
        return None
    if asked.url is not None:
        file = of_wheel(sheet, asked.url, line, name=asked.name)
        return file if applied else perhaps(file)
    found = item(sheet, asked.name, asked.specifier, line, build=build)
    if applied is None:
        sheet.undecided.add(found.source)
    return replace(found, extras=tuple(sorted(map(canonicalize_name, asked.extras)))) if asked.extras else found


def of_table(
    sheet: Sheet, name: str, table: dict[str, Any], bounds: str, marker: str, line: int | None, *, build: str | None
) -> Iterator[Planned]:
    """What a table about a package would install, with the extras that it lists."""
    extras = f"[{','.join(texts_of(table, 'extras'))}]" if "extras" in table else ""
    text = f"{name}{extras} {bounds}" + (f" ; {marker}" if marker else "")
    yield from filter(None, [planned(sheet, text, line, build=build)])


def check_name(name: str) -> None:
    """Raise UnreadError where no package can have the name."""
    if not _NAME.fullmatch(name):
        raise UnreadError("a package without a valid name")


def item(
    sheet: Sheet,
    name: str,
    bounds: SpecifierSet,
    line: int | None,
    *,
    build: str | None = "",
    problem: str | None = None,
) -> Planned:
    """A named package within bounds; raise UsageError for a version that is too long to be one."""
    within = str(bounds)
    if len(within) > LONGEST:
        raise sheet.error(line, "a version is too long")
    normal = canonicalize_name(name)
    return Planned(
        source=f"{sheet.file}:{line}" if line else sheet.file,
        name=normal,
        asked=f"{normal}{within}",
        bounds=within,
        version=exact(bounds),
        build=build,
        file=sheet.file,
        line=line,
        problem=problem,
    )


_VARIANT = re.compile(
    r"(?P<wheel>[^-]{1,99}-[^-]{1,99}(?:-[0-9][^-]{0,99})?-(?![0-9])[^-]{1,99}-[^-]{1,99}-[^-]{1,99})"
    r"-(?P<label>[0-9a-z._]{1,16})\.whl"
)
"""A wheel variant, which is a preview: behind the platform it has a label, such as ``cu128``."""


def of_wheel(sheet: Sheet, address: str, line: int | None, *, name: str = "") -> Planned:
    """A file by its address: a wheel's name tells its version, that of another file or a repository at most a name."""
    file, label = without_label(_file_of(address))
    try:
        found, version, _, _ = parse_wheel_filename(file)
    except ValueError:  # also where a number has thousands of digits
        return _of_source(sheet, address, line, name)
    build = version.local or build_of_variant(label)
    planned = item(sheet, name or found, SpecifierSet(f"=={version}"), line, build=build)
    return replace(planned, refused=refusal(sheet, [file]))


def _file_of(address: str) -> str:
    return re.split(r"[?#]", address, maxsplit=1)[0].rpartition("/")[2].replace("%2B", "+").replace("%2b", "+")


def without_label(address: str) -> tuple[str, str]:
    """The name or address of a wheel without its variant's label, and the label."""
    folder, slash, file = address.rpartition("/")
    variant = _VARIANT.fullmatch(file)
    return (f"{folder}{slash}{variant['wheel']}.whl", variant["label"]) if variant else (address, "")


def build_of_variant(label: str) -> str | None:
    """The local tag of the index that has the same build, as PyTorch names its variants; None: not known."""
    return label if label.startswith("cu") or not label else None


_EGG = re.compile(r"[#&]egg=(?P<name>[A-Za-z0-9._-]{1,200})")
_REPOSITORY = re.compile(
    r"(?:git\+)?(?:https?|ssh|git)://(?:[^/@\s]{1,100}@)?[\w.-]{1,80}(?::[0-9]{1,5})?/[\w.-]{1,80}/(?P<name>[\w.-]{1,80}?)"
    r"(?:\.git)?(?:@[^#\s]{1,200}|/archive/[^#\s]{1,200})?/?(?:#\S{0,200})?"
)


def _of_source(sheet: Sheet, address: str, line: int | None, name: str) -> Planned:
    """A project by the address or folder of its source, which a build may compile: one that is known, or anything."""
    egg, repository = _EGG.search(address), _REPOSITORY.fullmatch(address)
    asked = name or (egg["name"] if egg else "")
    folder = "" if "://" in address else address.rstrip("/").rpartition("/")[2]
    known = canonicalize_name(asked or (repository["name"] if repository else folder))
    if known and (sheet.matrix.knows(known) or any(known in row.names for row in sheet.matrix.plain)):
        return item(sheet, known, SpecifierSet(), line, problem=BY_ADDRESS)
    return unread(sheet, asked or "an address or a folder", line, BY_ADDRESS)


def perhaps(file: Planned) -> Planned:
    """A file that is for one Python, or for one of several, where the Python is not known."""
    problem = "whether it is installed depends on the Python, which is not stated"
    return replace(file, problem=file.problem or problem)


def unread(sheet: Sheet, what: str, line: int | None, problem: str, *, name: str = "") -> Planned:
    """A line that may install anything, or any release of ``name``."""
    source = f"{sheet.file}:{line}" if line else sheet.file
    return Planned(source=source, name=name, asked=what, file=sheet.file, line=line, problem=problem)


def entry(sheet: Sheet, line: int | None, items: Iterator[Planned]) -> Iterator[Planned]:
    """What an entry of a file installs; where it is not understood, something that may be anything."""
    try:
        yield from items
    except UnreadError as error:
        yield open_part(sheet, line, error)


def open_part(sheet: Sheet, line: int | None, error: UnreadError) -> Planned:
    """A part of a file that is not understood and may install anything."""
    place = error.line or line
    return unread(sheet, f"line {place}" if place else "a part of the file", place, error.problem)


def alternatives(items: Iterable[Planned], required: Mapping[str, str] | None = None) -> list[Planned]:
    """The items of a lock file; a package at several versions, where the Python that decides is not known, is one
    within them, and within what is ``required`` of it.
    """
    by_name: dict[str, list[Planned]] = {}
    for each in items:
        by_name.setdefault(each.name or f"{each.source} {each.asked}", []).append(each)
    return [one_of(each, SpecifierSet((required or {}).get(name, ""))) for name, each in by_name.items()]


def one_of(asked: list[Planned], required: SpecifierSet) -> Planned:
    """A package at several versions, of which what is not known decides, as one within them."""
    within = [each for each in asked if each.version is None or required.contains(each.version, prereleases=True)]
    served = [each for each in within or asked if each.refused is None] or asked
    versions = sorted({each.version for each in served if each.version is not None}, key=Version)
    if len(versions) < 2 or any(each.version is None for each in served):
        return replace(served[0], extras=tuple(sorted({name for each in served for name in each.extras})))
    lowest, highest = (versions[place].partition("+")[0] for place in (0, -1))
    bounds = SpecifierSet(f">={lowest},<={highest}")
    asked_for = f"{served[0].name}=={' or '.join(versions)}"
    build = served[0].build if len({each.build for each in served}) == 1 else None
    chosen = replace(served[0], asked=asked_for, bounds=str(bounds), version=None, build=build)
    return replace(chosen, alternatives=tuple(versions))


def marker_of(text: str) -> Marker:
    """The environment marker; raise UnreadError where it is none."""
    try:
        if len(text) <= _LONGEST_MARKER:
            return Marker(text)
    except (InvalidMarker, RecursionError):
        pass
    raise UnreadError("an environment marker cannot be read")


_SYSTEMS = {"linux": ("manylinux", "linux", "musllinux"), "win32": ("win",), "darwin": ("macosx",)}
_MACHINES = {"x86_64": ("x86_64", "amd64"), "aarch64": ("aarch64", "arm64")}


def refusal(sheet: Sheet, files: Iterable[str]) -> str | None:
    """Why none of these files can be installed; None where one can, or where that is not known.

    ``files`` are names or addresses. A source archive can be built anywhere.
    """
    found: list[frozenset[Tag]] = []
    for file in files:
        if not (name := _file_of(file)).endswith(".whl"):
            return None
        try:
            found.append(parse_wheel_filename(without_label(name)[0])[3])
        except InvalidWheelFilename:
            return None
    if not found or any(_serves(tag, sheet.markers) for tags in found for tag in tags):
        return None
    known = (sheet.markers.get(key, "") for key in ("sys_platform", "platform_machine"))
    python = f", Python {sheet.markers['python_version']}" if "python_version" in sheet.markers else ""
    what = "the wheel that it names is" if len(found) == 1 else f"its {len(found)} wheels are"
    return f"{what} for another system or Python than {' '.join(filter(None, known))}{python}"


def _serves(tag: Tag, markers: Mapping[str, str]) -> bool:
    """Whether a wheel of this tag can be installed, as far as the machine is known."""
    system, machine = markers.get("sys_platform"), markers.get("platform_machine")
    if tag.platform != "any":
        if system in _SYSTEMS and not tag.platform.startswith(_SYSTEMS[system]):
            return False
        universal = tag.platform.endswith("universal2")
        if machine in _MACHINES and not universal and not tag.platform.endswith(_MACHINES[machine]):
            return False
    python = markers.get("python_version", "").replace(".", "")
    if not python or not tag.interpreter.startswith("cp"):
        return True
    own = tag.interpreter.removeprefix("cp")
    if tag.abi == "abi3" and re.fullmatch("[0-9]{1,9}", own):
        return int(own[1:] or 0) <= int(python[1:])
    return own == python


@dataclass
class PackageIndexes:
    """Where an installer looks; an extra index may have a newer build of the same release, which pip prefers."""

    main: str | None = None
    extra: tuple[str, ...] = ()
    links: tuple[str, ...] = ()  # Pages and folders that list files
    none: bool = False  # Only files that it is given count

    def take(self, meaning: str, value: str) -> bool:
        """Note an option that says where to look; False for any other."""
        if meaning == "index":
            self.main = value
        elif meaning == "extra":
            self.extra = (*self.extra, *value.split())
        elif meaning == "backend":
            self.extra = (*self.extra, f"https://download.pytorch.org/whl/{value}")
        elif meaning == "links":
            self.links = (*self.links, value)
        elif meaning == "none":
            self.none = True
        else:
            return False
        return True

    def opened(self, sheet: Sheet, found: Planned) -> Planned:
        """The package, whose build is not known to be PyPI's where another index may have one of its own."""
        matrix, places = sheet.matrix, [each for each in (self.main, *self.extra, *self.links) if each]
        served = found.build != "" and matrix.has_trait(found.name, "on-torch-index")
        if served or matrix.has_trait(found.name, "distributes-torch"):
            return found
        return replace(found, build=None if self.none or any(map(sheet.has_others, places)) else "")

    def build(self, sheet: Sheet) -> str | None:
        """Local tag of PyTorch's builds there, empty for PyPI's own; None: not known."""
        if self.none:
            return None
        builds = [sheet.build_of(each) for each in (self.main, *self.extra, *self.links)]
        tags = {each for each in builds if each}
        if len(tags) > 1 or (None in builds and not tags):
            return None
        return tags.pop() if tags else ""
