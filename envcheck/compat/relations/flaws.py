"""Releases and flaws: whether a release is one that is known to be broken, on the GPUs that it would run on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from envcheck.compat.matrix import Matrix
from envcheck.compat.relations.gpu_code import only_ptx_serves
from envcheck.compat.specifier import Version, covered
from envcheck.compat.tables import FlawRow
from envcheck.versions import CodeTarget, ComputeCapability


def has_flaw(
    matrix: Matrix,
    row: FlawRow,
    version: Version,
    capabilities: Iterable[ComputeCapability],
    code: Sequence[CodeTarget],
) -> bool:
    """Whether the release has the flaw of ``row`` on a GPU with one of ``capabilities``; ``code`` is what it holds."""
    if covered(row.versions, version) != "all":
        return False
    if not row.compute_capability and not row.only_ptx:
        return True
    return any(
        (not row.compute_capability or covered(row.compute_capability, Version(tuple(each))) == "all")
        and (not row.only_ptx or only_ptx_serves(matrix, code, each))
        for each in capabilities
    )
