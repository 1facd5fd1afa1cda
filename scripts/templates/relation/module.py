"""Which two things the relation joins, and what it says of them."""

from __future__ import annotations

from envcheck.compat.matrix import Matrix
from envcheck.compat.relations.fit import Fit, FitVerdict, conclude
from envcheck.versions import ComputeCapability


def example_thing(matrix: Matrix, gpu: ComputeCapability) -> Fit:
    """Whether GPUs of this compute capability are boards of their own. The rows that decided give the sources."""
    row = matrix.capability_rows.get(gpu)
    if row is None:
        return conclude(matrix, "unknown", f"the matrix does not say where {gpu.sm} is built in")
    verdict: FitVerdict = "incompatible" if row.tegra else "compatible"
    return conclude(matrix, verdict, f"{gpu.sm} is {'part of a Tegra chip' if row.tegra else 'on a board'}", row)
