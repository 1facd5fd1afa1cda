"""Which two things the relation joins, and what it says of them."""

from __future__ import annotations

from envcheck.knowledge.matrix import Matrix
from envcheck.knowledge.relations.fit import Fit, FitVerdict, conclude
from envcheck.model.versions import ComputeCapability


# A relation is one pure function that returns a ``Fit`` and cites the rows that decided. Rules compare no versions;
# they call it. Most knowledge needs a row and no relation: a package that needs another is a ``[[release]]`` row, a
# broken release a ``[[flaw]]``, a variable a ``[[variable]]``. A new field goes on the row's class in
# knowledge/tables/, with a default that means unknown and a line that says so. A new kind of row also is a
# ``Table`` of ``Matrix`` in compat/matrix.py. ``matrix/generated/`` is written by ``envcheck matrix refresh`` alone.
def example_thing(matrix: Matrix, gpu: ComputeCapability) -> Fit:
    """Whether GPUs of this compute capability are boards of their own. The rows that decided give the sources."""
    row = matrix.capability_rows.get(gpu)
    if row is None:
        return conclude(matrix, "unknown", f"the matrix does not say where {gpu.sm} is built in")
    verdict: FitVerdict = "incompatible" if row.tegra else "compatible"
    return conclude(matrix, verdict, f"{gpu.sm} is {'part of a Tegra chip' if row.tegra else 'on a board'}", row)
