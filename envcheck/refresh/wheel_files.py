"""A project's releases from its file names, with the Python versions and systems of each wheel; and the wheels of
``gpu-envcheck-matrix``, which hold newer rows.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from datetime import date
from typing import NamedTuple

from packaging.tags import Tag
from packaging.utils import canonicalize_name, parse_sdist_filename, parse_wheel_filename
from packaging.version import Version

from envcheck.errors import UsageError
from envcheck.knowledge.copies import FORMAT
from envcheck.knowledge.updates import DISTRIBUTION, MOST_BYTES, NewRows, checked
from envcheck.refresh.index import IndexFile, PackageIndex

_INTERPRETER = re.compile(r"(?:cp|py)([0-9])([0-9]{0,4})")
MACHINES = {"x86_64": "x86_64", "amd64": "x86_64", "aarch64": "aarch64", "arm64": "aarch64", "intel": "x86_64"}
"""By the end of a platform's tag; macOS once called 32 and 64 bits in one wheel ``intel``."""

Platform = tuple[str, str]  # Operating system and machine, as in rows of the matrix

PLATFORMS: tuple[Platform, ...] = (
    ("linux", "x86_64"),
    ("linux", "aarch64"),
    ("windows", "x86_64"),
    ("macos", "x86_64"),
    ("macos", "aarch64"),
)
"""Those of which rows tell."""


class WheelFile(NamedTuple):
    file: IndexFile
    build: tuple[int, str] | tuple[()]
    pythons: frozenset[tuple[int, int]]  # Versions of CPython in its tags
    any_later: bool  # Whether later versions can use it too (abi3, py3)
    platforms: frozenset[Platform]  # Empty for a wheel for every system

    def serves(self, os: str, machine: str) -> bool:
        return not self.platforms or (os, machine) in self.platforms


class Release(NamedTuple):
    """A final release with wheels that were not yanked, or with yanked ones where those are wanted."""

    version: Version
    wheels: tuple[WheelFile, ...]

    def for_platform(self, os: str, machine: str) -> tuple[WheelFile, ...]:
        return tuple(wheel for wheel in self.wheels if wheel.serves(os, machine))

    @property
    def machines(self) -> tuple[str, ...]:
        """Machines with a separate Linux wheel; empty if wheels serve every system."""
        named = {machine for wheel in self.wheels for os, machine in wheel.platforms if os == "linux"}
        return tuple(machine for machine in ("x86_64", "aarch64") if machine in named)

    @property
    def platforms(self) -> tuple[Platform, ...]:
        """The platforms that its wheels serve: every one, where a wheel is for every system."""
        named = {platform for wheel in self.wheels for platform in wheel.platforms}
        everywhere = any(not wheel.platforms for wheel in self.wheels)
        return tuple(platform for platform in PLATFORMS if everywhere or platform in named)


NamedWheel = tuple[IndexFile, tuple[int, str] | tuple[()], frozenset[Tag]]
"""A wheel with the build number and the tags in its name."""


class Files(NamedTuple):
    """The files of a final release."""

    wheels: list[NamedWheel]
    archives: list[IndexFile]

    @property
    def every(self) -> list[IndexFile]:
        return [*(wheel[0] for wheel in self.wheels), *self.archives]

    def installable(self) -> Files:
        """Those that pip takes for a version that is named exactly: yanked ones where it has no other."""
        wheels = [wheel for wheel in self.wheels if not wheel[0].yanked]
        archives = [file for file in self.archives if not file.yanked]
        return Files(wheels, archives) if wheels or archives else self


def files_of(files: Iterable[IndexFile], project: str) -> dict[Version, Files]:
    """The files of each final release of ``project``, ascending; others are left out."""
    found: dict[Version, Files] = defaultdict(lambda: Files([], []))
    own = canonicalize_name(project)
    for file in files:
        try:
            if file.name.endswith(".whl"):
                name, version, build, tags = parse_wheel_filename(file.name)
                if name == own:
                    found[version].wheels.append((file, build, tags))
            elif (parsed := parse_sdist_filename(file.name))[0] == own:
                found[parsed[1]].archives.append(file)
        except ValueError:  # what packaging raises for a name, and for a version, are of this kind
            continue
    return {version: found[version] for version in sorted(found) if not version.is_prerelease and not version.local}


def releases(files: Iterable[IndexFile], project: str) -> list[Release]:
    """The releases of ``project`` with wheels that were not yanked, ascending."""
    given = files_of((file for file in files if not file.yanked), project)
    return [Release(version, tuple(map(_wheel, own.wheels))) for version, own in given.items() if own.wheels]


def with_archives(files: Iterable[IndexFile], project: str) -> list[Release]:
    """The releases as pip takes them, ascending, yanked ones too: where one has no wheel, its source archive stands for
    a wheel for every system.
    """
    found = []
    for version, every in files_of(files, project).items():
        own = every.installable()
        archives = [WheelFile(file, (), frozenset(), any_later=True, platforms=frozenset()) for file in own.archives]
        found.append(Release(version, tuple(map(_wheel, own.wheels)) or tuple(archives[:1])))
    return found


def _wheel(named: NamedWheel) -> WheelFile:
    file, build, tags = named
    matches = (_INTERPRETER.fullmatch(tag.interpreter) for tag in tags)
    pythons = {(int(match[1]), int(match[2])) for match in matches if match and match[2]}
    later = any(tag.abi == "abi3" or tag.interpreter.startswith("py") for tag in tags)
    platforms = set()
    for text in {tag.platform for tag in tags} - {"any"}:
        os = "linux" if "linux" in text else "windows" if text.startswith("win") else "macos"
        platforms.add((os, next((known for ending, known in MACHINES.items() if text.endswith(ending)), "other")))
    return WheelFile(file, build, frozenset(pythons), later, frozenset(platforms))


def pythons_of(release: Release, os: str = "linux", machine: str = "x86_64") -> list[tuple[int, int]]:
    """The versions of CPython in the wheels for a platform, ascending."""
    return sorted({python for wheel in release.for_platform(os, machine) for python in wheel.pythons})


def newest_wheel(
    release: Release, os: str = "linux", machine: str = "x86_64", *, oldest: bool = False
) -> WheelFile | None:
    """The wheel for the newest CPython, or the oldest, in its last build."""

    def rank(wheel: WheelFile) -> tuple[list[int], tuple[int, str] | tuple[()], str]:
        first, *_, last = [*sorted(wheel.pythons or {(0, 0)})] * 2
        return [-number for number in first] if oldest else [*last], wheel.build, wheel.file.name

    return max(release.for_platform(os, machine), key=rank, default=None)


def newer_than(day: str, index: PackageIndex) -> tuple[str, IndexFile] | None:
    """The newest wheel whose rows this envcheck can read, with their day, where that is after ``day``."""
    for release in reversed(releases(index.files(DISTRIBUTION), DISTRIBUTION)):
        form, *numbers = release.version.release  # 1.2026.11.29.870: the format, the day, and the minute of it
        try:
            found = date(*numbers[:3]).isoformat() + "".join(f".{minute:04}" for minute in numbers[3:])
        except (TypeError, ValueError):
            continue
        if form == FORMAT:
            return (found, release.wheels[0].file) if found > day else None
    return None


def rows_of(day: str, file: IndexFile, index: PackageIndex) -> NewRows:
    """What a wheel holds, which must be of ``day``. Raises UsageError with what is wrong with it."""
    doubt = "" if file.sha256 else "the index does not tell its sha256"
    if not index.is_private:
        doubt = "the index was asked without TLS, so anybody between may have told its sha256"
    if doubt:
        raise UsageError(f"{file.name} was refused: {doubt}; nothing changed")
    rows = checked(index.whole(file, MOST_BYTES), file.name, file.sha256)
    if rows.read != day:
        raise UsageError(f"{file.name} was refused: its rows are of {rows.read}; nothing changed")
    return rows
