"""The families of CUDA's libraries, by the names of their files; the rows are those that came with envcheck."""

from __future__ import annotations

import re
from functools import cache, lru_cache

from envcheck.compat.load import load_matrix
from envcheck.compat.tables import FamilyRow

TOOLKIT = "cuda-toolkit"
"""NVIDIA's distribution whose extras install wheels of the toolkit; also the name of its releases' rows, and of a
toolkit that was told of.
"""
SPOKEN_OF = ("cuda", "cudnn", "nccl", "tensorrt")
"""The kinds that rules and importers know."""


@cache
def files_of(*kinds: str) -> str:
    """A regular expression for what stands between ``lib`` and ``.so``, as short as can be: what follows decides."""
    short = (re.sub(r"\\w([*+])", r"\\w\1?", row.files) for row in load_matrix().families if row.kind in kinds)
    return "(?:" + "|".join(short) + ")"


@lru_cache(maxsize=1024)
def row_of(family: str) -> FamilyRow | None:
    """What is known of a family, by a name as files have it, in letters of any case: ``cublas`` of ``cublasLt``."""
    rows = load_matrix().families
    match = re.fullmatch("|".join(f"({row.files})" for row in rows), family, re.IGNORECASE | re.ASCII)
    return rows[match.lastindex - 1] if match and match.lastindex else None
