"""Claims of packages on a file and which one counts; a CUDA toolkit's version, and its own claim."""

from __future__ import annotations

import mmap
import os
import re
from collections.abc import Sequence
from typing import NamedTuple

from ...common.lazy import lazy_pattern
from ...common.library_names import row_of
from ...common.record import Found
from ...common.tree import Tree, refused
from ..elf.tables import ElfError, File

_HASHED_LIMIT = 4 << 20  # Larger files are not hashed to decide between claims


class Claim(NamedTuple):
    """A package's claim on a file."""

    kind: str  # ``wheel``, ``conda``, ``dpkg``, ``rpm`` or ``toolkit``
    name: str
    version: str
    size: int | None = None  # Size in bytes in the package's list of files
    hash: str | None = None  # In RECORD's form: ``sha256=`` and unpadded base64

    @property
    def text(self) -> str:
        """As ``Library.owner`` shows it."""
        return f"{self.name}=={self.version}" if self.kind == "wheel" else f"{self.name} {self.version}".strip()


def decide(claims: Sequence[Claim], place: str, size: int) -> tuple[Claim | None, bool | None]:
    """The owner of a file of ``size`` bytes at ``place`` (on the running system) among all claims, None if it is
    unclear, and whether the file differs from its owner's record, None if no size was recorded.

    Of several claims, the one with the file's size counts, and among equal sizes the one with its hash (small files
    only). A file that matches no record was written by something else.
    """
    if not claims:
        return None, None
    fitting = [claim for claim in claims if claim.size == size]
    if _differ(fitting):
        found = _hash(place, size)
        fitting = [claim for claim in fitting if claim.hash == found] if found else fitting
        if _differ(fitting):
            return None, None
    if fitting:
        return fitting[0], False
    unsized = [claim for claim in claims if claim.size is None]
    if unsized:
        return (unsized[0] if len(claims) == 1 else None), None
    return (claims[0] if len(claims) == 1 else None), True


def _differ(claims: Sequence[Claim]) -> bool:
    return len({claim.hash for claim in claims if claim.hash}) > 1


def _hash(place: str, size: int) -> str | None:
    if size > _HASHED_LIMIT:
        return None
    import hashlib
    from base64 import urlsafe_b64encode

    try:
        with File(place) as file:
            digest = hashlib.sha256(file.read(0, _HASHED_LIMIT)).digest()
    except ElfError:
        return None
    return "sha256=" + urlsafe_b64encode(digest).decode().rstrip("=")


_UPSTREAM = lazy_pattern(r"(?:\d+:)?(?:[\d.]+\+~)?(\d+(?:\.\d+)*)")
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
_HEADER_VERSION = r"(?m)^#\s*define\s+(?:CUDART|CUDA)_VERSION\s+(\d{4,6})\b"
"""1000 times the major plus 10 times the minor number."""

_BANNER = b"Cuda compilation tools"
_BANNER_REACH = 160

DEBIAN = "/usr/lib/nvidia-cuda-toolkit"  # The folder of the compiler in Debian's package, which is spread over /usr


def version(tree: Tree, folder: str) -> Found | None:
    """The version of the toolkit in ``folder`` (a real path) and the file that states it; None if no file does."""
    stated = _parts(tree, folder).get("cuda")
    if stated:
        return Found(stated, f"file {folder}/version.json")
    match = re.search(r"CUDA Version (\d+(?:\.\d+)+)", tree.read_text(f"{folder}/version.txt", 4096) or "")
    if match:
        return Found(match[1], f"file {folder}/version.txt")
    for path in (path for pattern in header_places(folder) for path in tree.expand(pattern)):
        match = re.search(_HEADER_VERSION, tree.read_text(path, 256 * 1024) or "")
        if match:
            major, rest = divmod(int(match[1]), 1000)
            return Found(f"{major}.{rest // 10}", f"file {path}")
    printed = _printed(tree, f"{folder}/bin/nvcc")
    if printed:
        return Found(printed, f"file {folder}/bin/nvcc")
    for place in (place for name in ("lib64", "lib", "targets/*/lib") for place in tree.expand(f"{folder}/{name}")):
        for name in tree.folder_names(place)[0]:
            match = re.fullmatch(r"libcudart\.so\.(\d+\.\d+)\.\d+", name)
            if match:
                return Found(match[1], f"file {place}/{name}")
    return None


def header_places(folder: str) -> list[str]:
    """Patterns of the headers that name the version."""
    return [f"{'/usr' if folder == DEBIAN else folder}/{header}" for header in _HEADERS]


def _printed(tree: Tree, path: str) -> str | None:
    """The version that the compiler would print, from the banner in its file."""
    if not tree.is_file(path):
        return None
    try:
        with open(tree.place(path), "rb") as file:
            if not 0 < os.fstat(file.fileno()).st_size <= 256 * 1024 * 1024:
                return None
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as program:
                at = program.find(_BANNER)
                match = re.search(rb"V(\d+\.\d+)\.\d+", program[at : at + _BANNER_REACH]) if at >= 0 else None
    except (OSError, ValueError) as error:
        refused(path, error)
        return None
    return match[1].decode() if match else None


# The toolkit as the owner of its files, and the versions of its parts in ``version.json``.


_PLAIN = lazy_pattern(r"\d{1,6}(?:\.\d{1,6}){1,4}")


class ToolkitOwner(NamedTuple):
    claim: Claim
    parts: dict[str, str]
    source: str  # The file that states its version

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
    parts = tree.read_json(f"{top}/version.json").items()
    versions = {name: part.get("version") for name, part in parts if isinstance(part, dict)}
    return {name: text for name, text in versions.items() if isinstance(text, str) and _PLAIN.fullmatch(text)}
