"""A framework's installation: the package that its import takes, its metadata, and the owners of its files."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ..kit.paths import name_of, printable
from ..owners.requirements import relevant_lines
from ..owners.shipped import gone
from ..python.distributions import CondaBuild, conda_build, lost_checkout
from ..python.site import Gathered, Lack, Package, Site, packages

if TYPE_CHECKING:
    from typing import TypeAlias

# A framework's location: the package that its import would take, and the metadata about that package.

TEXT_LIMIT = 1 << 16
FILES = 200
"""Most files of one kind in one folder."""
_SHOWN = 3
_LABEL = re.compile(r"\+.*")
_HALF = "an incomplete installation"

Record: TypeAlias = "dict[str, Any]"


class Installation(NamedTuple):
    """A framework with any trace in the environment."""

    site: Site
    found: tuple[Package, ...]
    """All candidates of its import on the search path, beginning with the one that it takes."""
    wheels: tuple[Record, ...]
    """Metadata of the distributions with this package, beginning with those in the same site folder."""
    conda: CondaBuild | None

    @property
    def package(self) -> Package | None:
        return self.found[0] if self.found else None

    @property
    def path(self) -> str | None:
        return self.found[0].path if self.found else None

    @property
    def wheel(self) -> Record | None:
        """The metadata of the package: from the same site folder, else (editable installation) the first."""
        beside = [wheel for wheel in self.wheels if self.package and folder_of(wheel) == self.package.folder]
        elsewhere = [] if self.package and self.package.by_variable else list(self.wheels)
        return next(iter([*beside, *elsewhere]), None)

    @property
    def folder(self) -> str:
        """The folder of the search path with the package."""
        return self.found[0].folder if self.found else ""

    def text(self, name: str, limit: int = TEXT_LIMIT) -> str | None:
        """The text of a file of the package, or None if it cannot be read."""
        return text_of(self.site, f"{self.path}/{name}", limit) if self.path else None

    def names(self, folder: str = "") -> frozenset[str]:
        """The names in a folder of the package; an absolute path is used as it is."""
        if self.path is None or self.path.endswith(".py"):
            return frozenset()
        return self.site.names(self._place(folder))

    def _place(self, folder: str) -> str:
        return folder if folder.startswith("/") else f"{self.path}/{folder}".rstrip("/")

    def files(self, pattern: str, folder: str = "") -> list[str]:
        """Paths of the regular files in a folder of the package whose full name matches the pattern, sorted."""
        fits, base = re.compile(pattern), self._place(folder)
        paths = [f"{base}/{name}" for name in sorted(self.names(folder)) if fits.fullmatch(name)]
        return [path for path in paths[:FILES] if self.site.tree.is_file(path)]

    def gather(self, name: str, extends: str | None = None) -> Gathered:
        """An empty collection of facts about the framework ``name``."""
        led_by = (self.package.led_by or None) if self.package else None
        return Gathered(name, self.path, extends, led_by=led_by, instead_of=self._others() or None)

    def _others(self) -> list[str]:
        """What the same import would take without the path entry that leads to the present package."""
        taken = self.package
        if taken is None or not taken.led_by:
            return []
        others = [each.path for each in self.found[1:] if each.regular and each.led_by != taken.led_by]
        apart = [each for each in self.wheels if folder_of(each) != taken.folder and not each.get("editable")]
        return list(dict.fromkeys(others or [each["path"] for each in apart]))[:FILES]


def locate(site: Site, imported: str, names: Sequence[str]) -> Installation | None:
    """The framework that ``import imported`` takes; None without any trace of it.

    ``names`` are the distributions of PyPI and conda that may contain it. A folder of this name without ``__init__.py``
    does not count on PYTHONPATH (it may be any project); in a site folder it is a remnant.
    """
    found = packages(site, imported)
    wheels = [wheel for name in names for wheel in site.installed(name, "pip")]
    build = next((build for name in names if (build := conda_build(site.distributions, name))), None)
    there = wheels or build or any(package.regular or not package.by_variable for package in found)
    return Installation(site, tuple(found), tuple(wheels), build) if there else None


def text_of(site: Site, path: str, limit: int = TEXT_LIMIT) -> str | None:
    """The text of a regular file inside the root, at most ``limit`` bytes."""
    return site.tree.read_text(path, limit)


def folder_of(wheel: Record) -> str:
    """The folder of the search path with a distribution's metadata."""
    return str(wheel["path"].rpartition("/")[0])


def add_declared(facts: Gathered, here: Installation) -> None:
    """Add facts from the metadata: version and requirements, and for a conda package those in its build string."""
    wheel, conda = here.wheel, here.conda
    if wheel:
        facts.add(wheel["source"], version=wheel["version"], requires=relevant_lines(wheel.get("requires")) or None)
    if conda:
        facts.add(conda.source, version=conda.version, cuda=conda.cuda, cpu_only=conda.cpu_only, cudnn=conda.cudnn)


def problems(here: Installation, version: str | None = None, place: str = "", needs: Sequence[str] = ()) -> list[str]:
    """Problems of the installation, from its files alone.

    ``version`` is the one in the package's file ``place``; ``needs`` are names without which a folder is no
    installation.
    """
    return [*_missing(here, needs), *contradictions(here, version, place), *shadowing(here)]


def _missing(here: Installation, needs: Sequence[str]) -> list[str]:
    if here.package is None:
        if here.wheel and here.wheel.get("editable"):
            source = lost_checkout(here.site.tree, here.wheel["path"])
            if source is not None:
                return [Lack(f"it is installed in editable mode, and its source folder {printable(source)} is gone")]
            return ["it is installed in editable mode, and no file tells where its folder is"]
        traced = here.wheel or here.conda
        return [Lack(f"{'its metadata is there, its folder is not' if traced else 'it is not there'}: {_HALF}")]
    lost = _lost(here)
    lacking = [name for name in needs if name not in here.names()]
    if lacking and not lost:
        name = name_of(here.package.path).removesuffix(".py")
        shadow = f"{printable(here.package.path)} holds no {lacking[0]}: an incomplete or shadowing {printable(name)}"
        return [Lack(shadow)]
    return lost


def _lost(here: Installation) -> list[str]:
    """Missing files of the package, by the list of the distribution that installed it."""
    package, wheel = here.package, here.wheel
    if package is None or wheel is None or wheel.get("editable") or folder_of(wheel) != package.folder:
        return []
    files = gone(here.site.tree, wheel["path"], name_of(package.path))
    shown = ", ".join(printable(name, 100) for name in files[:_SHOWN])
    more = f" and {len(files) - _SHOWN} more" if len(files) > _SHOWN else ""
    return [Lack(f"files that its RECORD lists are gone: {shown}{more}")] if files else []


def contradictions(here: Installation, version: str | None, place: str) -> list[str]:
    """Metadata with another version than the package."""
    if version is None:
        return []
    said: list[str] = []
    if here.wheel and not _same(version, here.wheel["version"]):
        said.append(f"its metadata says {here.wheel['version']}, its {place} says {version}")
    if here.conda and not _same(version, here.conda.version):
        said.append(f"conda installed {here.conda.version} ({here.conda.build}), its {place} says {version}")
    return said


def shadowing(here: Installation) -> list[str]:
    """A package that PYTHONPATH puts before the installed one."""
    taken = here.package
    if taken is None or not taken.by_variable:
        return []
    others = [package.path for package in here.found[1:] if package.regular and not package.by_variable]
    others += [wheel["path"] for wheel in here.wheels if folder_of(wheel) != taken.folder]
    return [f"PYTHONPATH puts {printable(taken.path)} before {printable(others[0])}"] if others else []


def _same(first: str, second: str) -> bool:
    """Whether two versions are equal; a local tag (``+cu124``) or post-release number counts only if both have one."""
    if "+" in first and "+" in second:
        return first == second
    first, second = _LABEL.sub("", first), _LABEL.sub("", second)
    return first == second or first.startswith(f"{second}.post") or second.startswith(f"{first}.post")


# The owners of a package's files, where several distributions overwrote each other in one package.


_RECORD_LIMIT = 16 << 20


def owners(here: Installation, path: str) -> list[dict[str, Any]]:
    """The distributions that list ``path`` with its present size; all if none lists a size."""
    if len(here.wheels) < 2:
        return list(here.wheels)
    size = _size(here.site, path)
    listed = [(wheel, _recorded_size(here.site, wheel, path)) for wheel in here.wheels]
    fitting = [wheel for wheel, recorded in listed if recorded is not None and recorded == size]
    return fitting or [wheel for wheel, recorded in listed if recorded is None]


def _size(site: Site, path: str) -> int | None:
    if not site.tree.is_file(path):
        return None
    try:
        return os.stat(site.tree.place(path)).st_size
    except OSError:
        return None


def _recorded_size(site: Site, wheel: dict[str, Any], path: str) -> int | None:
    """The size in ``RECORD`` (``path,sha256=...,size``); None if the file or its size is not listed."""
    folder = folder_of(wheel)
    if not path.startswith(f"{folder}/"):
        return None
    text = "\n" + (text_of(site, f"{wheel['path']}/RECORD", _RECORD_LIMIT) or "")
    start = text.find(f"\n{path[len(folder) + 1 :]},")
    if start < 0:
        return None
    size = (
        text[start + 1 : text.find("\n", start + 1) if text.find("\n", start + 1) > 0 else None]
        .strip()
        .rpartition(",")[2]
    )
    return int(size) if size.isascii() and size.isdigit() and len(size) < 16 else None
