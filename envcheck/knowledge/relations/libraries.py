"""CUDA's libraries by the names of their files: their family, which CUDA a copy belongs to, what it serves."""

from __future__ import annotations

import re
from functools import cache, lru_cache

from envcheck.knowledge.load import load_matrix
from envcheck.knowledge.matrix import Matrix
from envcheck.knowledge.names import canonical
from envcheck.knowledge.patterns import families_pattern
from envcheck.knowledge.relations.fit import Fit, conclude
from envcheck.knowledge.specifier import covered, numbers_in, parse_specifier, parse_version
from envcheck.knowledge.tables.packages import FamilyRow
from envcheck.knowledge.tables.software import ReleaseRow
from envcheck.model.versions import CudaVersion


def cuda_majors(matrix: Matrix, family: str, number: str) -> frozenset[int]:
    """The CUDA majors that a library of this family belongs to, by the number in its name; empty where unknown."""
    version = parse_version(number)
    if version is None:
        return frozenset()
    plain, known = family.lower(), row_of(family)
    # A library with numbers of its own may be from when CUDA's releases numbered all: ``libcufft.so.10.0``.
    if known is not None and (
        known.numbered == "cuda"
        or (known.once_cuda and len(version.numbers) > 1 and covered(known.once_cuda, version) == "all")
    ):
        return frozenset(version.numbers[:1])
    own = [(row, parse_version(row.bundles[plain])) for row in _named(matrix, TOOLKIT) if plain in row.bundles]
    having = [row for row, bundled in own if bundled and bundled.numbers[0] == version.numbers[0]]
    return frozenset(cuda.major for row in having if (cuda := _cuda_of(row)))


def toolkit_wheels(matrix: Matrix, cuda: CudaVersion, *, minor: bool) -> str | None:
    """The ``cuda-toolkit`` for a CUDA, of that minor or the newest of the major, as a specifier; None without one."""
    releases = [release for row in _named(matrix, TOOLKIT) if (release := _cuda_of(row))]
    if minor and cuda in releases:
        return f"=={cuda}.*"
    return f"=={cuda.major}.*" if any(release.major == cuda.major for release in releases) else None


def is_older(found: str | None, wanted: str | None) -> bool | None:
    """Whether ``found`` is older than ``wanted``, by the numbers that both have; None where one is unknown."""
    one, other = _in_common(found, wanted)
    return one < other if one and other else None


def same_major(one: str | None, other: str | None) -> bool | None:
    return same_version(one, other, numbers=1)


def same_version(one: str | None, other: str | None, numbers: int = 3) -> bool | None:
    """Whether both are one release, by the first ``numbers`` of those that both have."""
    first, second = _in_common(one, other)
    return first[:numbers] == second[:numbers] if first and second else None


def _in_common(one: str | None, other: str | None) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The numbers of two versions, of each as many as both have; none where one is no version."""
    first, second = numbers_in(one or ""), numbers_in(other or "")
    shortest = min(len(first), len(second))
    return first[:shortest], second[:shortest]


def cudnn_serves(matrix: Matrix, framework: str, found: str, built_with: str) -> Fit:
    """Whether cuDNN ``found`` serves a framework that was built with another: XLA, TensorFlow and PyTorch ask for the
    same major and no older minor; others run, or only warn.
    """
    here, built = parse_version(found), parse_version(built_with)
    if here is None or built is None:
        return conclude(matrix, "unknown", f"one of cuDNN {found} and {built_with} is not a version")
    reason = f"{framework} was built with cuDNN {built_with}, this is {found}"
    if here.numbers[0] != built.numbers[0]:
        change = f"cuDNN {built.numbers[0]}"
        return conclude(matrix, "incompatible", f"{reason}, which has another major version", change=change)
    if here.numbers[:2] >= built.numbers[:2] or len(here.numbers) < 2:
        return conclude(matrix, "compatible", reason)
    if matrix.has_trait(framework, "refuses-older-cudnn"):
        return conclude(matrix, "incompatible", f"{reason}, which is older", change=f"cuDNN >= {built_with}")
    return conclude(matrix, "compatible", f"{reason}, which is older, and it does not insist")


def nvjitlink_serves(matrix: Matrix, jitlink: str, asker: str, asker_version: str) -> Fit:
    """Whether libnvJitLink is as new as the CUDA release of the library that links with it.

    Its functions carry the release's number in their names, so that an older one lacks those that a newer library asks
    for.
    """
    kits = _named(matrix, TOOLKIT)
    same = [row for row in kits if same_version(asker_version, row.bundles.get(asker.lower()), numbers=6)]
    wanted, here = _cuda_of(same[0]) if len(same) == 1 else None, CudaVersion.parse(jitlink)
    if wanted is None or here is None:
        reason = f"the matrix does not know which CUDA {asker} {asker_version} came with"
        return conclude(matrix, "unknown", reason)
    row = next((row for row in kits if _cuda_of(row) == wanted), None)
    reason = f"lib{asker} {asker_version} is of CUDA {wanted}, libnvJitLink is of {here}"
    if here.major != wanted.major or here >= wanted:
        return conclude(matrix, "compatible" if here.major == wanted.major else "incompatible", reason, row)
    return conclude(matrix, "incompatible", f"{reason}, which is older", row, change=f"libnvJitLink >= {wanted}")


def _named(matrix: Matrix, name: str) -> list[ReleaseRow]:
    """The rows of that very name; others may stand for the same component."""
    return [row for row in matrix.rows_of(canonical(name)) if row.name == name]


def _cuda_of(row: ReleaseRow) -> CudaVersion | None:
    numbers = parse_specifier(row.versions).bounds[0].numbers
    return CudaVersion(numbers[0], numbers[1] if len(numbers) > 1 else 0)


TOOLKIT = "cuda-toolkit"
"""NVIDIA's distribution whose extras install wheels of the toolkit; also the name of its releases' rows, and of a
toolkit that was told of.
"""
SPOKEN_OF = ("cuda", "cudnn", "nccl", "tensorrt")  # The kinds that rules and importers know


@cache
def files_of(*kinds: str) -> str:
    """A regular expression for what stands between ``lib`` and ``.so`` in the names of these kinds."""
    return families_pattern(row.files for row in load_matrix().families if row.kind in kinds)


@lru_cache(maxsize=1024)
def row_of(family: str) -> FamilyRow | None:
    """What is known of a family, by a name as files have it, in letters of any case: ``cublas`` of ``cublasLt``."""
    rows = load_matrix().families
    match = re.fullmatch("|".join(f"({row.files})" for row in rows), family, re.IGNORECASE | re.ASCII)
    return rows[match.lastindex - 1] if match and match.lastindex else None
