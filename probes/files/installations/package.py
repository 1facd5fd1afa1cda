"""A framework's installation: the package that its import takes, its metadata, the owners of its files, and the
literals in its small Python files.

Such files are written by a framework's build: ``__version__ = '2.10.0'``, ``cuda: str = "13.2"``, ``build_info =
collections.OrderedDict([...])``. They are read as text; nothing is run.
"""

from __future__ import annotations

import ast
import os
import re
import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

from ...common.lazy import lazy_pattern
from ...common.paths import name_of, printable, without_prefix, without_suffix
from ...common.record import Record
from ..owners.shipped import missing_files
from ..owners.wheels import line_about
from ..python.distributions import CondaPackage, conda_build, lost_checkout, relevant_lines
from ..python.site import Gathered, ImportedPackage, Lack, Site, packages

TEXT_LIMIT = 1 << 16
FILES = 200  # Most files of one kind in one folder
_SHOWN = 3
_LABEL = lazy_pattern(r"\+.*")
_HALF = "an incomplete installation"


class Installation(NamedTuple):
    """A framework with any trace in the environment."""

    site: Site
    found: tuple[ImportedPackage, ...]  # All candidates of its import on the search path, first the one that it takes
    wheels: tuple[Record, ...]  # Metadata of the distributions with this package, first those in the same site folder
    conda: CondaPackage | None

    @property
    def package(self) -> ImportedPackage | None:
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
        return self.found[0].folder if self.found else ""

    def text(self, name: str, limit: int = TEXT_LIMIT) -> str | None:
        """The text of a file of the package, or None if it cannot be read."""
        return self.site.tree.read_text(f"{self.path}/{name}", limit) if self.path else None

    def json(self, name: str) -> dict[str, Any]:
        """The JSON object in a file of the package; an empty one where there is none."""
        return self.site.tree.read_json(f"{self.path}/{name}", TEXT_LIMIT) if self.path else {}

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
        taken = self.package
        if taken is None or not taken.led_by:
            return Gathered(name, self.path, extends)
        # What the same import would take without the path entry that leads to the present package.
        others = [each.path for each in self.found[1:] if each.regular and each.led_by != taken.led_by]
        apart = [each for each in self.wheels if folder_of(each) != taken.folder and not each.get("editable")]
        instead_of = list(dict.fromkeys(others or [each["path"] for each in apart]))[:FILES]
        return Gathered(name, self.path, extends, led_by=taken.led_by, instead_of=instead_of or None)

    def add_declared(self, facts: Gathered) -> None:
        """Add facts from the metadata: version and requirements, and for a conda package those in its build string."""
        wheel, conda = self.wheel, self.conda
        if wheel:
            facts.add(wheel["source"], version=wheel["version"], requires=relevant_lines(wheel.get("requires")) or None)
        if conda:
            facts.add(conda.source, version=conda.version, cuda=conda.cuda, cpu_only=conda.cpu_only, cudnn=conda.cudnn)

    def add_stated_version(self, facts: Gathered, place: str, *names: str) -> str | None:
        """Add the version that a file of the package assigns to the first of ``names`` (``__version__`` without any),
        or is if it is no Python, and return it.
        """
        text = self.text(place) or ""
        literals = (assigned(text, name) for name in names or ("__version__",))
        stated = next(filter(None, map(version, literals if place.endswith(".py") else (text.strip(),))), None)
        facts.add(f"file {self.path}/{place}", version=stated)
        return stated

    def problems(self, version: str | None = None, place: str = "", needs: Sequence[str] = ()) -> list[str]:
        """Problems of the installation, from its files alone.

        ``version`` is the one in the package's file ``place``; ``needs`` are names without which a folder is no
        installation.
        """
        return [*self._missing(needs), *self.contradictions(version, place), *self.shadowing()]

    def _missing(self, needs: Sequence[str]) -> list[str]:
        if self.package is None:
            if self.wheel and self.wheel.get("editable"):
                source = lost_checkout(self.site.tree, self.wheel["path"])
                how = "it is installed in editable mode, and"
                if source is not None:
                    return [Lack(f"{how} its source folder {printable(source)} is gone")]
                return [f"{how} no file tells where its folder is"]
            traced = self.wheel or self.conda
            return [Lack(f"{'its metadata is there, its folder is not' if traced else 'it is not there'}: {_HALF}")]
        package, wheel = self.package, self.wheel
        own = wheel is not None and not wheel.get("editable") and folder_of(wheel) == package.folder
        files = missing_files(self.site.tree, wheel["path"], name_of(package.path)) if wheel and own else []
        if files:
            shown = ", ".join(printable(name, 100) for name in files[:_SHOWN])
            more = f" and {len(files) - _SHOWN} more" if len(files) > _SHOWN else ""
            return [Lack(f"files that its RECORD lists are gone: {shown}{more}")]
        lacking = [name for name in needs if name not in self.names()]
        if lacking:
            name = printable(without_suffix(name_of(package.path), ".py"))
            shadow = f"{printable(package.path)} holds no {lacking[0]}"
            return [Lack(f"{shadow}: an incomplete or shadowing {name}")]
        return []

    def contradictions(self, version: str | None, place: str) -> list[str]:
        """Metadata with another version than the package."""
        if version is None:
            return []
        differences: list[str] = []
        if self.wheel and not _is_same_version(version, self.wheel["version"]):
            differences.append(f"its metadata says {self.wheel['version']}, its {place} says {version}")
        if self.conda and not _is_same_version(version, self.conda.version):
            differences.append(f"conda installed {self.conda.version} ({self.conda.build}), its {place} says {version}")
        return differences

    def shadowing(self) -> list[str]:
        """A package that PYTHONPATH puts before the installed one."""
        taken = self.package
        if taken is None or not taken.by_variable:
            return []
        others = [package.path for package in self.found[1:] if package.regular and not package.by_variable]
        others += [wheel["path"] for wheel in self.wheels if folder_of(wheel) != taken.folder]
        return [f"PYTHONPATH puts {printable(taken.path)} before {printable(others[0])}"] if others else []

    def owners(self, path: str) -> list[Record]:
        """The distributions that list ``path`` with its present size; all without a size for it if none does."""
        if len(self.wheels) < 2:
            return list(self.wheels)
        tree = self.site.tree
        try:
            size = os.stat(tree.place(path)).st_size if tree.is_file(path) else None
        except OSError:
            size = None
        fitting, unsized = [], []
        for wheel in self.wheels:
            listed = line_about(tree, wheel["path"], without_prefix(path, f"{folder_of(wheel)}/"))
            recorded = listed.rpartition(b",")[2]
            if not recorded.isdigit():
                unsized.append(wheel)
            elif int(recorded) == size:
                fitting.append(wheel)
        return fitting or unsized

    def brought_by(self, path: str | None, name: str | None) -> Record | None:
        """The distribution that brought the file at ``path``; where that is not clear, the one with this name."""
        if len(self.wheels) < 2:
            return self.wheel
        fitting = self.owners(path) if path else list(self.wheels)
        named = [wheel for wheel in fitting if wheel["name"] == name]
        return next(iter([*named, *fitting]), self.wheel)

    def owner(self, path: str | None) -> Record | None:
        """The distribution that brought the file at ``path``; the one beside the package where several or none did."""
        fitting = self.owners(path) if path else list(self.wheels)
        return self.wheel if self.wheel in fitting else next(iter(fitting), None)


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


def folder_of(wheel: Record) -> str:
    """The folder of the search path with a distribution's metadata."""
    return str(wheel["path"].rpartition("/")[0])


def _is_same_version(first: str, second: str) -> bool:
    """Whether two versions are equal; a local tag (``+cu124``) or post-release number counts only if both have one."""
    if "+" in first and "+" in second:
        return first == second
    first, second = _LABEL.sub("", first), _LABEL.sub("", second)
    return first == second or first.startswith(f"{second}.post") or second.startswith(f"{first}.post")


LITERAL_LIMIT = 1 << 14  # Most characters of one value; lists of built parts have some hundred
_ASSIGNED = lazy_pattern(r"^(?P<names>(?:\w+[ \t]*(?::[^=\n]*)?=[ \t]*)+)(?P<value>[^=\n#][^\n]*)$", re.MULTILINE)
_ASSIGNEE = lazy_pattern(r"(\w+)[ \t]*(?::[^=\n]*)?=")
_CUDA = lazy_pattern(r"(\d{1,2})(?:\.(\d{1,2}|x))?(?:\.\d{1,3})?")
_TARGET = lazy_pattern(r"(?:sm|compute)_\d{2,3}[af]?")


def assigned(text: str, name: str) -> Any:
    """The literal that the text assigns to ``name``, once, on one top-level line; else None."""
    lines = _ASSIGNED.finditer(text) if name in text else ()
    found = [match["value"] for match in lines if name in _ASSIGNEE.findall(match["names"])]
    if len(found) != 1 or len(found[0]) > LITERAL_LIMIT:
        return None
    dressed = re.fullmatch(r"(?:collections\.)?OrderedDict\((?P<pairs>.*)\)", found[0].strip(), re.DOTALL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # warnings about invalid escapes in foreign text do not matter
            value = ast.literal_eval(dressed["pairs"] if dressed else found[0].strip())
            return dict(value) if dressed else value
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
        return None


def mapping(text: str, name: str) -> dict[Any, Any]:
    """The dictionary that the text assigns to ``name``; else an empty one."""
    value = assigned(text, name)
    return value if isinstance(value, dict) else {}


def version(value: object) -> str | None:
    return value if isinstance(value, str) and re.fullmatch(r"[0-9][0-9A-Za-z.+!_-]{0,80}", value) else None


def cuda_version(value: object) -> str | None:
    """``12.5`` of ``12.5.1``, ``12`` of ``12.x``; None if it is not a CUDA version, such as ``0.0`` or ``False``."""
    match = _CUDA.fullmatch(value) if isinstance(value, str) else None
    if match is None or int(match[1]) == 0:
        return None
    return match[1] if match[2] in {None, "x"} else f"{match[1]}.{match[2]}"


def cuda_of_number(value: object) -> str | None:
    """``12.8`` of 1208 (or 12080): as builds encode a CUDA version in one number."""
    if not isinstance(value, int) or isinstance(value, bool) or not 700 <= value < 100_000:
        return None
    major, minor = divmod(value // 10 if value >= 10_000 else value, 100)
    return f"{major}.{minor}"


def digits_as_version(digits: str) -> str:
    """``12.8`` of ``128``, ``9.2`` of ``92``; two digits that are no CUDA of one digit are a major version: ``12``."""
    return digits if len(digits) == 2 and digits.startswith("1") else f"{digits[:-1]}.{digits[-1]}"


def label(version_text: str | None) -> dict[str, str]:
    """The versions in a local tag: ``{"cuda": "12", "torch": "2.5"}`` of ``2.7.4+cu12torch2.5cxx11abiFALSE``."""
    _, plus, local = (version_text or "").partition("+")
    cuda = re.search(r"cu(?:da)?(\d{2,3})(?!\d)", local)
    torch = re.search(r"(?:torch|pt)(\d{1,2}\.\d{1,2})(?!\d)", local)
    found = {"cuda": digits_as_version(cuda[1]) if cuda else None, "torch": torch[1] if torch else None}
    return {key: value for key, value in found.items() if value is not None and plus}


def targets(value: object) -> list[str] | None:
    """The values, if all are targets of GPU code; None for an empty list."""
    items = list(value) if isinstance(value, (list, tuple)) else []
    good = [item for item in items if isinstance(item, str) and _TARGET.fullmatch(item)]
    return good if good and len(good) == len(items) <= 100 else None
