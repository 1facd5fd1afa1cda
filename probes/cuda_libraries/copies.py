"""The copies of CUDA libraries by real path, with all links to each and the packages that claim it."""

from __future__ import annotations

import os
import posixpath
import stat
from typing import TYPE_CHECKING, Any, NamedTuple

from ..kit.library_names import LibraryName, family_of
from ..kit.tree import Tree, refused
from ..owners.claims import Claim
from ..owners.conda import owners as owners_by_conda
from ..owners.wheels import recorded_by

if TYPE_CHECKING:
    from typing import TypeAlias

# The copies found, by real path, with all links to each.

LIMIT = 5000


class Copy(NamedTuple):
    """One file."""

    path: str
    """Real path, as the examined machine sees it."""
    name: LibraryName
    size: int
    origin: str
    environment: str | None
    top: str | None
    """Real path of the toolkit that contains it."""
    names: list[str]
    """Links to it."""
    claims: list[Claim]


class Copies:
    """Collects copies; the first to add a file decides its origin."""

    def __init__(self, tree: Tree) -> None:
        self.found: dict[str, Copy] = {}
        self.complete = True
        self._tree = tree
        self._folders: dict[str, str | None] = {}

    def add_folder(self, folder: str, origin: str, environment: str | None = None, top: str | None = None) -> None:
        """Every library in a folder."""
        names, certain = self._tree.folder_names(folder)
        self.complete = self.complete and certain
        for name in names:
            if name.startswith("lib") and family_of(name):
                self.add(f"{folder}/{name}", origin, environment, top)

    def add(
        self, path: str, origin: str, environment: str | None = None, top: str | None = None, claim: Claim | None = None
    ) -> None:
        """Add a path that may be a library; ``claim`` is its owner's claim."""
        found = self._real(path)
        if found is None:
            return
        real, size, linked = found
        copy = self.found.get(real)
        if copy is None:
            name = family_of(posixpath.basename(real)) or family_of(posixpath.basename(path))
            if name is None or len(self.found) >= LIMIT:
                self.complete = self.complete and name is None
                return
            copy = self.found[real] = Copy(real, name, size, origin, environment, top, [], [])
        if path != real and path not in copy.names:
            copy.names.append(path)
        if claim is not None and not linked and claim not in copy.claims:
            copy.claims.append(claim)  # the owner of a link (a development package) does not own the file

    def beside(self, path: str, start: str) -> list[tuple[str, str]]:
        """Path and family of the copies in the folder of ``path`` with file names that begin with ``start``."""
        folder = posixpath.dirname(path)
        return [
            (other.path, other.name.family)
            for other in self.found.values()
            if other.path.startswith(f"{folder}/{start}") and posixpath.dirname(other.path) == folder
        ]

    def _real(self, path: str) -> tuple[str, int, bool] | None:
        """Real path and size of a regular file, and whether ``path`` ends in a link to it."""
        folder, name = posixpath.split(path)
        if folder not in self._folders:
            self._folders[folder] = self._tree.resolve(folder)
        inside = self._folders[folder]
        real: str | None = f"{inside.rstrip('/')}/{name}" if inside else None
        linked = False
        try:
            status = os.lstat(self._tree.place(real, follow=False)) if real else None
            if real and status and stat.S_ISLNK(status.st_mode):
                linked = True
                real = self._tree.resolve(real)
                status = os.lstat(self._tree.place(real, follow=False)) if real else None
        except (OSError, ValueError) as error:
            refused(path, error)
            return None
        if real is None or status is None or not stat.S_ISREG(status.st_mode):
            return None
        return real, status.st_size, linked


# The copies in one Python environment, listed by its wheels and conda packages or not.


_BUNDLES = (
    "torch/lib",
    "tensorrt_libs",
    "tensorrt_lean_libs",
    "tensorrt_dispatch_libs",
    "tensorrt",
    "cutensor/lib",
    "cusparselt/lib",
    "cupy/.data/lib",
    "jaxlib/cuda",
    "onnxruntime/capi",
    "paddle/libs",
    "mxnet",
)
"""Folders of site-packages in which wheels bundle copies; read whether or not a RECORD lists them."""

_CONDA = ("lib", "lib/stubs", "targets/*/lib", "targets/*/lib/stubs", "cuda-compat", "nvvm/lib64")

Record: TypeAlias = "dict[str, Any]"


def add_environment(tree: Tree, copies: Copies, environment: Record) -> None:
    """Add all copies in the environment of this record."""
    key = environment["key"]
    distributions = environment.get("distributions") or ()
    for distribution in distributions:
        if distribution["channel"] == "pip":
            _add_wheel(tree, copies, key, distribution)
    for site in environment.get("site_packages") or ():
        _add_site(tree, copies, key, site)
    conda = [item for item in distributions if item["channel"] == "conda"]
    if conda:
        _add_prefix(tree, copies, key, conda)
    copies.complete = copies.complete and bool(environment.get("distributions_complete"))


def _add_wheel(tree: Tree, copies: Copies, key: str, distribution: Record) -> None:
    path = distribution["path"]
    if not path.endswith(".dist-info"):
        return
    by_conda = distribution.get("installer") == "conda"  # conda's own record takes precedence
    for recorded in recorded_by(tree, path).libraries:
        claim = Claim("wheel", distribution["name"], distribution["version"], recorded.size, recorded.hash)
        copies.add(recorded.path, "conda" if by_conda else "wheel", key, claim=None if by_conda else claim)


def _add_site(tree: Tree, copies: Copies, key: str, site: str) -> None:
    names = set(tree.folder_names(site)[0])
    origin = {"site-packages": "wheel", "dist-packages": "system"}.get(site.rpartition("/")[2], "other")
    folders = [f"{site}/{bundle}" for bundle in _BUNDLES if bundle.partition("/")[0] in names]
    folders += [f"{site}/{name}" for name in sorted(names) if name.endswith(".libs")]
    if "nvidia" in names:
        folders += tree.expand(f"{site}/nvidia/*/lib")
    for folder in folders:
        copies.add_folder(folder, origin, key)


def _add_prefix(tree: Tree, copies: Copies, key: str, packages: list[Record]) -> None:
    claims = owners_by_conda(tree, key, packages)
    for path, owners in claims.items():
        for claim in owners:
            copies.add(path, "conda", key, claim=claim)
    for pattern in _CONDA:
        for folder in tree.expand(f"{key}/{pattern}"):
            copies.add_folder(folder, "conda", key)
