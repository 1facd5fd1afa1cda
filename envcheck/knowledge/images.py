"""Container images by their names: which row covers an image, and what GPU software it says that the image holds."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from typing import NamedTuple

import msgspec

from envcheck.knowledge.matrix import Matrix
from envcheck.knowledge.relations.fit import WEAKEST_FIRST
from envcheck.knowledge.tables import is_named
from envcheck.knowledge.tables.software import ImageRow
from envcheck.model.versions import CudaVersion


class Image(NamedTuple):
    row: ImageRow | None  # None: the matrix knows the repository, but not this tag
    name: str  # With its tag, without ``docker.io/`` and digest: ``nvcr.io/nvidia/cuda:12.4.1-base-ubuntu22.04``
    holds: dict[str, str]  # Versions by component: those that the tag states, and those of the row


def image_of(matrix: Matrix, reference: str) -> Image | None:
    """The image that ``reference`` (``NAME:TAG@DIGEST``, as after FROM) names; None for an unknown repository."""
    image = _named(matrix, reference)
    row = image.row if image else None
    base = _named(matrix, row.base) if row and row.base else None
    below = base.row if base else None
    if image is None or row is None or base is None or below is None:
        return image
    built = also_contained(below, base.name)
    merged = msgspec.structs.replace(  # what it has from its base, as far as its own row says nothing else
        row,
        holds={**base.holds, **row.holds},
        also={name: {**built, **row.also.get(name, {})} for name in row.names},
        forward=below.forward if row.forward is None else row.forward,
        driver=row.driver or below.driver,
        demands=row.demands or below.demands,
        capability_min=row.capability_min or below.capability_min,
        capability_max=row.capability_max or below.capability_max,
        source=(*row.source, *below.source),
        confidence=min(row.confidence, below.confidence, key=WEAKEST_FIRST.index),
    )
    return image._replace(row=merged, holds={**merged.holds, **image.holds})


def _named(matrix: Matrix, reference: str) -> Image | None:
    bare = reference.partition("@")[0]
    for registry in ("docker.io/", "index.docker.io/", "registry-1.docker.io/"):
        bare = bare.removeprefix(registry)
    bare = bare.removeprefix("library/")
    name, _, tag = bare.rpartition(":") if ":" in bare.rpartition("/")[2] else (bare, "", "latest")
    rows = [row for row in matrix.images if is_named(name, row.names)]
    for row in rows:
        found = re.fullmatch(row.tags, tag[:128])
        if found:
            holds = dict(row.holds)
            for part, version in found.groupdict().items():
                # As tags write it: for CUDA 126 is 12.6, for Python 312 is 3.12.
                short = version or ""
                if short.isdigit() and len(short) > 1 and part == "python":
                    short = f"{short[0]}.{short[1:]}"
                elif short.isdigit() and len(short) > 1 and part == "cuda":
                    short = str(CudaVersion.from_tag(short) or short)
                holds |= {part: short} if short else {}
            return Image(row, f"{name}:{tag}"[:200], holds)
    return Image(None, f"{name}:{tag}"[:200], {}) if rows else None


def also_contained(row: ImageRow, name: str) -> dict[str, str]:
    """The builds of its publisher in the image ``name`` of a row."""
    repository = name.partition(":")[0]
    own = [parts for key, parts in row.also.items() if key == repository or fnmatchcase(name, key)]
    return {part: version for parts in own for part, version in parts.items()}
