"""The libraries that conda packages installed into a prefix, from ``conda-meta/NAME-VERSION-BUILD.json``.

A record lists all files of its package, up to megabytes of JSON. It is not decoded as a whole: the entries of libraries
are cut out (``{"_path": "lib/libcudnn.so.9.3.0", …, "size_in_bytes": 104664}``), and decoded alone.
"""

from __future__ import annotations

import json
import posixpath
import re
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from typing import Any

from ...common.library_names import MAYBE, family_of
from ...common.tree import Tree
from .claims import Claim
from .wheels import Recorded

NAMES = (
    r"(?:lib)?(?:cu|nv|nccl|npp|magma|tensorrt)|.*(?:cuda|cudnn|torch|tensorflow|jaxlib|onnxruntime|paddle|mxnet"
    r"|ctranslate)"
)
"""Packages whose records are opened: those that provide such libraries or are known to bundle copies."""

RECORD_LIMIT = 64 << 20
_ENTRY_LIMIT = 4096


def owners(tree: Tree, prefix: str, packages: list[dict[str, Any]]) -> dict[str, list[Claim]]:
    """The packages that list these paths below ``prefix`` (without following links).

    ``packages`` are distributions whose channel is conda, with ``name``, ``version`` and ``path``.
    """
    found: dict[str, list[Claim]] = {}
    for package in packages:
        if not re.match(NAMES, package["name"]):
            continue
        for path, size in _entries(tree.read_bytes(package["path"], RECORD_LIMIT) or b"").items():
            claim = Claim("conda", package["name"], package["version"], size)
            found.setdefault(posixpath.normpath(f"{prefix}/{path}"), []).append(claim)
    return found


def all_files(tree: Tree, prefix: str, package: dict[str, Any]) -> Iterator[Recorded]:
    """All files with a hash in a package's record; for files that conda wrote the prefix into, the final hash."""
    data = tree.read_json(package["path"], RECORD_LIMIT).get("paths_data")
    paths = data.get("paths") if isinstance(data, dict) else None
    for entry in paths if isinstance(paths, list) else ():
        if not isinstance(entry, dict) or entry.get("path_type") != "hardlink":
            continue
        path, size, replaced = entry.get("_path"), entry.get("size_in_bytes"), entry.get("prefix_placeholder")
        digest = entry.get("sha256_in_prefix") or (None if replaced else entry.get("sha256"))
        if not isinstance(path, str) or not isinstance(digest, str):
            continue
        parts = path.split("/")
        if "\0" in path or path.startswith("/") or ".." in parts or path.endswith((".pyc", ".pyo")):
            continue
        try:
            value = urlsafe_b64encode(bytes.fromhex(digest)).decode().rstrip("=")
        except ValueError:
            continue
        if "__pycache__" not in parts[:-1]:
            known = size if isinstance(size, int) and not replaced else None
            yield Recorded(f"{prefix}/{path}", known, f"sha256={value}")


def _entries(data: bytes) -> dict[str, int | None]:
    """Path (relative to the prefix) to size, for the libraries in one record."""
    found: dict[str, int | None] = {}
    for match in MAYBE.finditer(data):
        start = data.rfind(b'"', max(match.start() - _ENTRY_LIMIT, 0), match.start() + 1)
        end = data.find(b'"', match.end(), match.end() + _ENTRY_LIMIT)
        path = _decoded(data[start : end + 1]) if start >= 0 and end >= 0 else None
        if not isinstance(path, str) or path.startswith("/") or "\0" in path or not family_of(path.rpartition("/")[2]):
            continue
        # The JSON object around the path, if it describes a file.
        opened, closed = data.rfind(b"{", max(start - _ENTRY_LIMIT, 0), start), data.find(b"}", end, end + _ENTRY_LIMIT)
        whole = opened >= 0 and closed >= 0 and data.rfind(b"}", opened, start) < 0
        entry = _decoded(data[opened : closed + 1]) if whole else None
        is_file = isinstance(entry, dict) and "_path" in entry and entry.get("path_type") != "softlink"
        size = entry.get("size_in_bytes") if entry and is_file else None
        if found.get(path) is None:
            found[path] = size if isinstance(size, int) else None
    return found


def _decoded(raw: bytes) -> Any:
    try:
        return json.loads(raw)
    except (ValueError, RecursionError):
        return None
