"""METADATA of a wheel or a source archive: its requirements as specifiers of the matrix.

An archive is read as a stream: nothing is unpacked to disk, and nothing is built.
"""

from __future__ import annotations

import re
import tarfile
import zlib
from collections.abc import Collection, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from email.parser import HeaderParser
from functools import cached_property

import msgspec
import requests
import urllib3
from packaging.markers import UndefinedEnvironmentName
from packaging.requirements import Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import parse

from envcheck.compat.package_needs import marks_of, read_requirement
from envcheck.errors import UsageError
from envcheck.knowledge.specifier import Version, parse_specifier
from envcheck.refresh.index import TIMEOUT, IndexFile, PackageIndex, RemoteWheel, cause
from envcheck.refresh.kept import Kept
from envcheck.refresh.wheel_files import Platform, Release, pythons_of

PYTHON = "Requires-Python"  # The name that stands for the Python range among distributions

_KIND = "requirements 1"  # What is kept of a file; the number changes with what is read of it
_METADATA = r"[^/]*\.dist-info/METADATA"
_MOST_BYTES = 1 << 22
_EXACT = ("==", "!=", "<=", ">")
_NUMBERS = 3  # Most numbers in the name of a release
_PROCESSORS = {("windows", "x86_64"): "AMD64", ("macos", "aarch64"): "arm64"}
"""What Python calls the processors that have another name there."""
_EXTRA = re.compile(r"""extra\s*==\s*["']([^"']+)["']""")
_PYTHON_NAMED = re.compile(r"""["']([0-9])\.([0-9]{1,2})[^"']*["']""")


@dataclass(frozen=True)
class Metadata:
    requires_python: str
    requirements: tuple[Requirement, ...]

    @cached_property
    def by_name(self) -> dict[str, list[Requirement]]:
        """The requirements of each distribution, by its normalized name."""
        found: dict[str, list[Requirement]] = {}
        for item in self.requirements:
            found.setdefault(canonicalize_name(item.name), []).append(item)
        return found

    def extras_for(self, name: str) -> set[str]:
        """The extras, by their normalized names, with which it requires something else of a distribution."""
        markers = (str(item.marker or "") for item in self.by_name.get(name, ()))
        return {str(canonicalize_name(extra)) for marker in markers for extra in _EXTRA.findall(marker)}


def metadata_of(file: IndexFile, index: PackageIndex, kept: Kept) -> Metadata:
    """What a wheel or an archive requires. Raises UsageError when it cannot be read."""
    if text := kept.get(file.sha256, _KIND):
        requires_python, lines = msgspec.json.decode(text, type=tuple[str, list[str]])
        return Metadata(requires_python, tuple(asked for line in lines if (asked := read_requirement(line))))
    if not file.name.endswith(".whl"):
        found = read_archive(file, index.session)
    elif file.metadata_sha256:
        found = parse_metadata(index.whole(file.metadata, _MOST_BYTES))
    else:
        with closing(RemoteWheel(file, index.session)) as wheel:
            content = wheel.read(lambda name: re.fullmatch(_METADATA, name) is not None, _MOST_BYTES)
            found = parse_metadata(content or b"")
    lines = [str(requirement) for requirement in found.requirements]
    kept.put(file.sha256, _KIND, msgspec.json.encode((found.requires_python, lines)).decode())
    return found


def parse_metadata(content: bytes) -> Metadata:
    """Read METADATA; requirements that cannot be read are left out."""
    message = HeaderParser().parsestr(content.decode("utf-8", "replace"))
    lines = message.get_all("Requires-Dist") or ()
    found = tuple(asked for line in lines if (asked := read_requirement(str(line))))
    return Metadata(str(message.get("Requires-Python") or ""), found)


def pin(metadata: Metadata, distribution: str, machines: Sequence[str] = ("x86_64",)) -> str | None:
    """The specifier that ``distribution`` must meet on Linux, on each of ``machines``.

    None if there is none, if it has no bound, or if machines or Python versions differ. Requirements of extras count if
    there is none without an extra and the extras agree.
    """
    named = of_name(metadata, distribution)
    pythons = _pythons_around_markers(named, metadata.requires_python)
    found: set[str | None] = set()
    for machine in machines or ("x86_64", "aarch64"):
        by_python = {_first_active(named, _environment(("linux", machine), python)) for python in pythons} - {None}
        found.add(by_python.pop() if len(by_python) == 1 else None)
    return found.pop() if len(found) == 1 else None


def bounds_by_python(
    wheels: Sequence[tuple[tuple[int, int], Metadata]],
    distribution: str,
    platform: Platform,
    extras: Collection[str] = ("",),
) -> list[tuple[str, str]]:
    """What wheels for these Pythons, ascending, require of ``distribution`` on a platform, whatever extras are asked
    for, or with one of them: Pythons and their bounds.

    The Pythons are a specifier, empty for all. What has no bound is left out.
    """
    named = [(python, of_name(metadata, distribution)) for python, metadata in wheels]
    first = named[0][1]
    if all(each == first for _, each in named):
        named = [(python, first) for python in _pythons_around_markers(first, wheels[0][1].requires_python)]
    by_python = [(python, _bounds(each, _environment(platform, python), extras)) for python, each in named]
    # Runs of Pythons with the same bounds, as specifiers: the ends are open.
    starts = [place for place, (_, spec) in enumerate(by_python) if not place or spec != by_python[place - 1][1]]
    found = []
    for start, following in zip(starts, [*starts[1:], None], strict=True):
        (major, minor), spec = by_python[start]
        lower = f">={major}.{minor}" if start else ""
        upper = "<{}.{}".format(*by_python[following][0]) if following is not None else ""
        if spec:
            found.append((",".join(filter(None, (lower, upper))), spec))
    return found


def of_name(metadata: Metadata, distribution: str) -> list[Requirement]:
    return metadata.by_name.get(canonicalize_name(distribution), [])


def extras_of(metadata: Metadata, name: str) -> dict[str, set[str]]:
    """The extras of a project's wheel, by their normalized names, each with those of its own that it asks for."""
    found: dict[str, set[str]] = {}
    for item in metadata.requirements:
        for extra in map(str, map(canonicalize_name, _EXTRA.findall(str(item.marker or "")))):
            same = canonicalize_name(item.name) == name
            own = {str(canonicalize_name(each)) for each in item.extras} if same else set()
            found.setdefault(extra, {extra}).update(own)
    return found


def _bounds(named: Sequence[Requirement], environment: dict[str, str], extras: Collection[str]) -> str:
    """The bounds of all requirements that hold; empty if there are none, or one cannot be read."""
    holding = [item for item in named if any(_holds(item, environment | {"extra": extra}) for extra in extras)]
    bounds = {bound for item in holding for bound in item.specifier}
    least = sorted((bound for bound in bounds if bound.operator == ">="), key=lambda bound: parse(bound.version))
    return as_specifier(",".join(map(str, bounds.difference(least[:-1])))) or ""


def python_range(release: Release, requires_python: str) -> str | None:
    """The Python versions with wheels of a release: by tags, or by Requires-Python if wheels serve later versions."""
    if any(wheel.any_later for wheel in release.wheels):
        bounds = [part for part in requires_python.split(",") if "!=" not in part]
        return as_specifier(",".join(bounds))
    majors: dict[int, list[int]] = {}
    # The Python versions of the Linux wheels, or of other systems' wheels if there are none.
    machine = (release.machines or ("x86_64",))[0]
    every = sorted({python for wheel in release.wheels for python in wheel.pythons})
    for major, minor in pythons_of(release, "linux", machine) or every:
        majors.setdefault(major, []).append(minor)
    specs = []
    for major, minors in majors.items():
        if len(minors) > 1 and len(minors) == minors[-1] - minors[0] + 1:
            specs.append(f">={major}.{minors[0]},<{major}.{minors[-1] + 1}")
        else:
            specs += [f"=={major}.{minor}" for minor in minors]
    return "|".join(specs) or None


def as_specifier(text: str) -> str | None:
    """Convert a SpecifierSet to the matrix's form: lower bounds first, no local parts, no upper pre-releases."""
    try:
        parts = SpecifierSet(text)
    except InvalidSpecifier:
        return None
    ordered = sorted(parts, key=lambda part: (part.operator not in (">=", ">", "==", "~="), part.version))
    bounds = [(part.operator, part.version) for part in ordered if part.operator != "==="]
    if [operator for operator, _ in bounds] == [">=", "<="] and len({version for _, version in bounds}) == 1:
        bounds = [("==", bounds[0][1])]
    written = []
    for operator, version in bounds:
        # A pre-release that is wanted at least may be all that there is.
        early = r"\.?dev" if operator in (">=", "==") else r"(?:\.?dev|a|b|rc)"
        plain = re.sub(rf"{early}[0-9]*(?=$|\.\*$)", "", version.partition("+")[0])
        if operator in _EXACT and not plain.endswith(".*"):  # for pip ==2.5 is 2.5.0 alone, for the matrix every 2.5.x
            plain += ".0" * (_NUMBERS - 1 - plain.partition(".post")[0].count("."))
        written.append(operator + plain)
    spec = ",".join(written)
    try:
        parse_specifier(spec)
    except ValueError:
        return None
    return spec or None


def same(one: str, other: str) -> bool:
    """Whether two specifiers are equivalent."""
    return _meaning(one) == _meaning(other)


def narrower(one: str, other: str) -> bool:
    """Whether ``other`` admits every version that ``one`` admits."""
    try:
        inner, outer = parse_specifier(one), parse_specifier(other)
    except ValueError:
        return False
    starts = {Version((0,) * _NUMBERS)}  # what a bound admits can start at its own version, and at the next
    for bound in (*inner.bounds, *outer.bounds):
        for numbers in (bound.numbers, (*bound.numbers[:-1], bound.numbers[-1] + 1)):
            starts.add(Version(numbers + (0,) * (_NUMBERS - len(numbers))))
        posts = () if bound.post is None else (bound.post, bound.post + 1)
        starts |= {Version(bound.numbers, post=post) for post in posts}
    return all(outer.cover(start) == "all" for start in starts if inner.cover(start) == "all")


def _pythons_around_markers(named: Sequence[Requirement], requires_python: str) -> list[tuple[int, int]]:
    """Admitted Python versions on both sides of each one that a marker names; between them, markers do not change.

    The running Python must not matter.
    """
    marked = (found for item in named for found in _PYTHON_NAMED.findall(str(item.marker or "")))
    near = {(int(major), int(minor) + step) for major, minor in marked for step in (-1, 0, 1) if int(minor) + step >= 0}
    try:
        spec = SpecifierSet(requires_python)
    except InvalidSpecifier:
        spec = SpecifierSet()
    admitted = (one for one in near if any(spec.contains(f"{one[0]}.{one[1]}.{patch}") for patch in (0, 99)))
    return sorted(admitted) or sorted(near) or [(3, 0)]


def _first_active(named: Sequence[Requirement], environment: dict[str, str]) -> str | None:
    plain = [item for item in named if _holds(item, environment)]
    extras = []
    for item in (item for item in named if item not in plain):
        asked = _EXTRA.findall(str(item.marker or ""))
        if any(_holds(item, environment | {"extra": extra}) for extra in asked):
            extras.append(item)
    required = next((spec for item in plain if (spec := as_specifier(str(item.specifier)))), None)
    if required:
        return required
    # An extra that nobody asked for forbids nothing newer: what it says up to is what was tried then.
    kept = [",".join(str(bound) for bound in item.specifier if bound.operator not in ("<", "<=")) for item in extras]
    wanted = {spec for text in kept if (spec := as_specifier(text))}
    return wanted.pop() if len(wanted) == 1 else None


def _holds(item: Requirement, environment: dict[str, str]) -> bool:
    if item.marker is None:
        return True
    try:
        return item.marker.evaluate(environment)
    except UndefinedEnvironmentName:
        return False


def _environment(platform: Platform, python: tuple[int, int]) -> dict[str, str]:
    """The marker environment of CPython on a platform, whatever runs this."""
    os, machine = platform
    marks = marks_of(f"{python[0]}.{python[1]}.0", os, _PROCESSORS.get(platform, machine))
    return {**marks, "extra": ""}


def _meaning(text: str) -> set[frozenset[tuple[str, tuple[int, ...], int | None]]]:
    try:
        alternatives = parse_specifier(text).alternatives
    except ValueError:
        return set()
    found = set()
    for bounds in alternatives:
        meant = set()
        for bound in bounds:
            # Trailing zeros have no meaning at the end of a bound, or after the numbers of a release.
            numbers, kept = bound.numbers, 1 if bound.operator in (">=", "<") else _NUMBERS
            while len(numbers) > kept and numbers[-1] == 0:
                numbers = numbers[:-1]
            meant.add((bound.operator, numbers, bound.post))
        found.add(frozenset(meant))
    return found


_DECLARED = re.compile(r"[^/]+/(?:[^/]+/){0,2}[^/]+\.egg-info/requires\.txt")
"""What setuptools puts into an archive: the requirements, in sections."""
_INFO = re.compile(r"[^/]+/PKG-INFO")
_MOST_MEMBER_BYTES = 1 << 20
_MOST_UNPACKED = 1 << 28  # Bytes of an archive after which the search ends
_MOST_MEMBERS = 50_000
_BROKEN = (tarfile.TarError, zlib.error, EOFError, OSError, urllib3.exceptions.HTTPError)


def read_archive(file: IndexFile, session: requests.Session) -> Metadata:
    """What the archive requires; nothing, where it does not say. Raises UsageError when it cannot be read."""
    if file.name.endswith(".zip"):
        with closing(RemoteWheel(file, session)) as archive:
            info = archive.read(lambda name: _kind(name) == "info", _MOST_MEMBER_BYTES)
            stated = archive.read(lambda name: _kind(name) == "declared", _MOST_MEMBER_BYTES)
        members = {"info": info or b"", "declared": stated or b""}
    else:
        members = _of_tar(file, session)
    found = parse_metadata(members.get("info", b"")).requirements
    if not found:
        lines = _lines(members.get("declared", b"").decode("utf-8", "replace"))
        found = tuple(asked for line in lines if (asked := read_requirement(line)))
    return Metadata(file.requires_python, found)


def _lines(text: str) -> Iterator[str]:
    """The requirements in ``requires.txt`` that hold without an extra, with the marker of their section."""
    extra = marker = ""
    for line in map(str.strip, text.splitlines()):
        section = re.fullmatch(r"\[([^\]:]{0,100})(?::([^\]]{0,500}))?\]", line)
        if section:
            extra, marker = section[1], section[2] or ""
        elif line and not extra:
            yield f"{line} ; {marker}" if marker else line


def _kind(name: str) -> str:
    return "declared" if _DECLARED.fullmatch(name) else "info" if _INFO.fullmatch(name) else ""


def _of_tar(file: IndexFile, session: requests.Session) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    try:
        with session.get(file.url, timeout=TIMEOUT, stream=True) as response:
            response.raise_for_status()
            with tarfile.open(fileobj=response.raw, mode="r|*") as archive:
                left = _MOST_UNPACKED
                for count, member in enumerate(archive):
                    left -= member.size
                    if len(found) > 1 or left < 0 or count > _MOST_MEMBERS:
                        break
                    kind = _kind(member.name) if member.isfile() and member.size <= _MOST_MEMBER_BYTES else ""
                    content = archive.extractfile(member) if kind else None
                    if content:
                        found.setdefault(kind, content.read(_MOST_MEMBER_BYTES))
    except requests.RequestException as error:
        raise UsageError(f"{file.name} cannot be read: {cause(error)}") from None
    except _BROKEN as error:
        raise UsageError(f"{file.name} cannot be read as an archive: {type(error).__name__}") from None
    return found
