"""The Debian package of a file, from dpkg's database, without running dpkg.

``/var/lib/dpkg/info/NAME.list`` (or ``NAME:ARCHITECTURE.list``) has the paths of a package, one on each line, and
``/var/lib/dpkg/status`` its version. Only lists of packages with CUDA-like names are opened.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection

from ..kit.library_names import MAYBE, family_of
from ..kit.tree import Tree
from .claims import Claim

INFO = "/var/lib/dpkg/info"
STATUS = "/var/lib/dpkg/status"
NAMES = re.compile(r"(?:lib)?(?:cu|nv|nccl|npp|magma|tensorrt|deepstream)")
"""Beginnings of the names of packages with CUDA libraries."""

_LIST_LIMIT = 4 << 20
_STATUS_LIMIT = 64 << 20
_LISTS = 3000


def owners(tree: Tree, wanted: Collection[str]) -> dict[str, list[Claim]]:
    """The packages that list the real paths ``wanted``."""
    names = [name for name in tree.folder_names(INFO)[0] if name.endswith(".list") and NAMES.match(name)]
    found: dict[str, list[str]] = {}
    folders: dict[str, str | None] = {}
    for name in names[:_LISTS] if wanted else ():
        data = tree.read_bytes(f"{INFO}/{name}", _LIST_LIMIT) or b""
        package = name[: -len(".list")].partition(":")[0]
        for path in _libraries(data):
            folder, file = posixpath.split(path)
            if folder not in folders:
                folders[folder] = tree.resolve(folder)
            real = f"{folders[folder]}/{file}"
            if real in wanted and package not in found.setdefault(real, []):
                found[real].append(package)
    versions = _versions(tree, {package for packages in found.values() for package in packages})
    return {path: [Claim("dpkg", name, versions.get(name, "")) for name in names] for path, names in found.items()}


def _libraries(data: bytes) -> list[str]:
    if not MAYBE.search(data):
        return []
    lines = data.decode("utf-8", "replace").split("\n")
    return [line for line in lines if line.startswith("/") and family_of(line.rpartition("/")[2])]


def _versions(tree: Tree, packages: Collection[str]) -> dict[str, str]:
    data = b"\n" + (tree.read_bytes(STATUS, _STATUS_LIMIT) or b"") + b"\n\n" if packages else b""
    found: dict[str, str] = {}
    for package in packages:
        start = data.find(b"\nPackage: " + package.encode() + b"\n")
        stanza = data[start : data.find(b"\n\n", start + 1)] if start >= 0 else b""
        match = re.search(rb"\nVersion: ([0-9A-Za-z.+:~-]{1,200})(?=\n|$)", stanza)
        if match:
            found[package] = match[1].decode()
    return found
