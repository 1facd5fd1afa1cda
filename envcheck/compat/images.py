"""Container images by their names: which row covers an image, and what GPU software it says that the image holds."""

from __future__ import annotations

import re
from typing import NamedTuple

from envcheck.compat.matrix import Matrix
from envcheck.compat.tables import ImageRow, is_named
from envcheck.versions import CudaVersion

_LONGEST_TAG = 128


class Image(NamedTuple):
    """An image of a repository that the matrix knows."""

    row: ImageRow | None
    """None: the matrix knows the repository, but not this tag."""
    name: str
    """With its tag, without ``docker.io/`` and digest: ``nvcr.io/nvidia/cuda:12.4.1-base-ubuntu22.04``."""
    holds: dict[str, str]
    """Versions by component: those that the tag states, and those of the row."""


def image_of(matrix: Matrix, reference: str) -> Image | None:
    """The image that ``reference`` (``NAME:TAG@DIGEST``, as after FROM) names; None for an unknown repository."""
    bare = reference.partition("@")[0]
    for registry in ("docker.io/", "index.docker.io/", "registry-1.docker.io/"):
        bare = bare.removeprefix(registry)
    bare = bare.removeprefix("library/")
    name, _, tag = bare.rpartition(":") if ":" in bare.rpartition("/")[2] else (bare, "", "latest")
    rows = [row for row in matrix.images if is_named(name, row.names)]
    for row in rows:
        found = re.fullmatch(row.tags, tag[:_LONGEST_TAG])
        if found:
            stated = {part: _dotted(part, version) for part, version in found.groupdict().items() if version}
            return Image(row, f"{name}:{tag}"[:200], {**row.holds, **stated})
    return Image(None, f"{name}:{tag}"[:200], {}) if rows else None


def _dotted(part: str, version: str) -> str:
    """A version as tags write it: for CUDA ``126`` is 12.6, for Python ``312`` is 3.12."""
    if not version.isdigit() or len(version) == 1:
        return version
    if part == "python":
        return f"{version[0]}.{version[1:]}"
    return str(CudaVersion.from_tag(version) or version) if part == "cuda" else version


def is_framework(matrix: Matrix, name: str) -> bool:
    """Whether what an image holds is a framework: a package of its Python, unlike CUDA or the system's release."""
    row = matrix.role_of(name)
    return row is not None and row.role == "framework"
