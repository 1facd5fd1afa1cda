"""Claims of packages on a file and which one counts; a CUDA toolkit's version, and its own claim."""

from __future__ import annotations

import json
import mmap
import os
import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from ...common.library_names import row_of
from ...common.record import Found
from ...common.tree import Tree, refused

_HASHED_LIMIT = 4 << 20
"""Larger files are not hashed to decide between claims."""


class Claim(NamedTuple):
    """A package's claim on a file."""

    kind: str
    """``wheel``, ``conda``, ``dpkg``, ``rpm`` or ``toolkit``."""
    name: str
    version: str
    size: int | None = None
    """Size in bytes in the package's list of files."""
    hash: str | None = None
    """In RECORD's form: ``sha256=`` and unpadded base64."""

    @property
    def text(self) -> str:
        """As ``Library.owner`` shows it."""
        return f"{self.name}=={self.version}" if self.kind == "wheel" else f"{self.name} {self.version}".strip()


class Ownership(NamedTuple):
    owner: Claim | None
    """None if no package claims the file, or it is unclear which."""
    altered: bool | None
    """Whether the file differs from its owner's record; None if no size was recorded."""


def decide(claims: Sequence[Claim], place: str, size: int) -> Ownership:
    """The owner of a file of ``size`` bytes at ``place`` (on the running system) among all claims.

    Of several claims, the one with the file's size counts, and among equal sizes the one with its hash (small files
    only). A file that matches no record was written by something else.
    """
    if not claims:
        return Ownership(None, None)
    fitting = [claim for claim in claims if claim.size == size]
    if _differ(fitting):
        found = _hash(place, size)
        fitting = [claim for claim in fitting if claim.hash == found] if found else fitting
        if _differ(fitting):
            return Ownership(None, None)
    if fitting:
        return Ownership(fitting[0], altered=False)
    unsized = [claim for claim in claims if claim.size is None]
    if unsized:
        return Ownership(unsized[0], None) if len(claims) == 1 else Ownership(None, None)
    return Ownership(claims[0] if len(claims) == 1 else None, altered=True)


def _differ(claims: Sequence[Claim]) -> bool:
    return len({claim.hash for claim in claims if claim.hash}) > 1


def _hash(place: str, size: int) -> str | None:
    if size > _HASHED_LIMIT:
        return None
    import hashlib
    from base64 import urlsafe_b64encode

    try:
        descriptor = os.open(place, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        refused(place, error)
        return None
    with open(descriptor, "rb") as file:
        digest = hashlib.sha256(file.read(_HASHED_LIMIT)).digest()
    return "sha256=" + urlsafe_b64encode(digest).decode().rstrip("=")


_UPSTREAM = re.compile(r"(?:\d+:)?(?:[\d.]+\+~)?(\d+(?:\.\d+)*)")
"""Less the epoch, and less the version of the soname that Debian puts first: ``11.1.1+~10.9.0.58~11.8.0-5``."""


def declared(claim: Claim | None, family: str) -> str | None:
    """The library's version in its owner's metadata; None if the owner (torch …) only bundles it."""
    if claim is None or claim.kind == "toolkit":
        return None
    row = row_of(family)
    names = (row.owners or re.escape(row.name.lower())) if row else re.escape(family.lower())
    plain = re.sub(r"^(?:nvidia-|lib)", "", claim.name)
    if not any(re.match(rf"(?:{names})(?![a-z])", name) for name in (claim.name, plain)):
        return None
    upstream = _UPSTREAM.match(claim.version)
    return upstream[1] if upstream else None


_HEADERS = ("include/cuda_runtime_api.h", "targets/*/include/cuda_runtime_api.h", "include/cuda.h")
_HEADER_VERSION = re.compile(r"^#\s*define\s+(?:CUDART|CUDA)_VERSION\s+(\d{4,6})\b", re.MULTILINE)
"""1000 times the major plus 10 times the minor number."""
_HEADER_LIMIT = 256 * 1024

_BANNER = b"Cuda compilation tools"
_BANNER_REACH = 160
_BANNER_VERSION = re.compile(rb"V(\d+\.\d+)\.\d+")
_PROGRAM_LIMIT = 256 * 1024 * 1024

_RUNTIME = re.compile(r"libcudart\.so\.(\d+\.\d+)\.\d+")
_LIBRARY_FOLDERS = ("lib64", "lib", "targets/*/lib")

_DEBIAN = "/usr/lib/nvidia-cuda-toolkit"
"""The folder of the compiler in Debian's package, which is spread over /usr."""


def version(tree: Tree, folder: str) -> Found | None:
    """The version of the toolkit in ``folder`` (a real path) and the file that states it; None if no file does."""
    steps: tuple[Callable[[Tree, str], Found | None], ...] = (_json, _text, _header, _compiler, _runtime)
    return next((found for step in steps if (found := step(tree, folder))), None)


def header_places(folder: str) -> list[str]:
    """Patterns of the headers that name the version."""
    return [f"{'/usr' if folder == _DEBIAN else folder}/{header}" for header in _HEADERS]


def _json(tree: Tree, folder: str) -> Found | None:
    path = f"{folder}/version.json"
    try:
        version_text = json.loads(tree.read_text(path) or "")["cuda"]["version"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    is_version = isinstance(version_text, str) and re.fullmatch(r"\d+(?:\.\d+)+", version_text)
    return Found(version_text, f"file {path}") if is_version else None


def _text(tree: Tree, folder: str) -> Found | None:
    path = f"{folder}/version.txt"
    match = re.search(r"CUDA Version (\d+(?:\.\d+)+)", tree.read_text(path, 4096) or "")
    return Found(match.group(1), f"file {path}") if match else None


def _header(tree: Tree, folder: str) -> Found | None:
    for path in (path for pattern in header_places(folder) for path in tree.expand(pattern)):
        match = _HEADER_VERSION.search(tree.read_text(path, _HEADER_LIMIT) or "")
        if match:
            major, rest = divmod(int(match.group(1)), 1000)
            return Found(f"{major}.{rest // 10}", f"file {path}")
    return None


def _compiler(tree: Tree, folder: str) -> Found | None:
    """The version that nvcc would print, from the banner in its file."""
    path = f"{folder}/bin/nvcc"
    if not tree.is_file(path):
        return None
    try:
        with open(tree.place(path), "rb") as file:
            if not 0 < os.fstat(file.fileno()).st_size <= _PROGRAM_LIMIT:
                return None
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as program:
                at = program.find(_BANNER)
                match = _BANNER_VERSION.search(program[at : at + _BANNER_REACH]) if at >= 0 else None
    except (OSError, ValueError) as error:
        refused(path, error)
        return None
    return Found(match.group(1).decode(), f"file {path}") if match else None


def _runtime(tree: Tree, folder: str) -> Found | None:
    places = [place for name in _LIBRARY_FOLDERS for place in tree.expand(f"{folder}/{name}")]
    for place in places:
        for name in tree.folder_names(place)[0]:
            match = _RUNTIME.fullmatch(name)
            if match:
                return Found(match.group(1), f"file {place}/{name}")
    return None


# The toolkit as the owner of its files, and the versions of its parts in ``version.json``.


_JSON_LIMIT = 1 << 20
_PLAIN = re.compile(r"\d{1,6}(?:\.\d{1,6}){1,4}")


class ToolkitOwner(NamedTuple):
    claim: Claim
    parts: dict[str, str]
    source: str
    """The file that states its version."""

    def declared(self, family: str) -> str | None:
        """The version of the family's part."""
        row = row_of(family)
        return self.parts.get(row.part or f"lib{row.name.lower()}") if row else None


def toolkit(tree: Tree, top: str) -> ToolkitOwner:
    """The toolkit in the folder ``top`` (a real path)."""
    found = version(tree, top)
    claim = Claim("toolkit", "CUDA toolkit", found.value if found else "")
    return ToolkitOwner(claim, _parts(tree, top), found.source if found else f"file {top}")


def _parts(tree: Tree, top: str) -> dict[str, str]:
    try:
        told = json.loads(tree.read_bytes(f"{top}/version.json", _JSON_LIMIT) or b"")
    except (ValueError, RecursionError):
        return {}
    parts = told.items() if isinstance(told, dict) else ()
    versions = {name: part.get("version") for name, part in parts if isinstance(part, dict)}
    return {name: text for name, text in versions.items() if isinstance(text, str) and _PLAIN.fullmatch(text)}
