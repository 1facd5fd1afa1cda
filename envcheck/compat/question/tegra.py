"""Jetsons and CUDA: the toolkits that their system software, JetPack, comes with or takes."""

from __future__ import annotations

from envcheck.compat.fit import Fit, conclude
from envcheck.compat.question.rows import rows_of
from envcheck.compat.specifier import Version, parse_specifier, parse_version
from envcheck.compat.tables import ReleaseRow, Tables
from envcheck.versions import ComputeCapability, CudaVersion


def tegra_serves(tables: Tables, gpu: ComputeCapability, cuda: CudaVersion) -> Fit | None:
    """Whether any JetPack for a Jetson's GPU takes ``cuda``; None where its rows do not tell.

    A JetPack that is yet to come may take another CUDA, unless JetPack has left the GPU behind.
    """
    every = sorted(rows_of(tables, "jetpack"), key=_age)
    own = [row for row in every if str(gpu) in row.capabilities and "cuda" in row.needs]
    taking = [row for row in own if parse_specifier(row.needs["cuda"]).cover(Version(tuple(cuda))) != "none"]
    if taking:
        reason = f"JetPack {taking[-1].versions.removeprefix('==')} for {gpu.sm} takes CUDA {cuda}"
        return conclude(tables, "compatible", reason, taking[-1])
    if not own or cuda < _oldest(own[0]):
        return None
    if own[-1] is every[-1]:
        return conclude(tables, "unknown", f"no JetPack in the matrix takes CUDA {cuda} for {gpu.sm}", own[-1])
    last = own[-1].versions.removeprefix("==")
    reason = f"no JetPack for {gpu.sm} takes CUDA {cuda}; JetPack {last} is the last for it"
    return conclude(tables, "incompatible", reason, own[-1], every[-1])


def _age(row: ReleaseRow) -> tuple[int, ...]:
    version = parse_version(row.versions.removeprefix("=="))
    return version.numbers if version else ()


def _oldest(row: ReleaseRow) -> CudaVersion:
    """The least CUDA version that a row names."""
    numbers = min(bound.numbers for bound in parse_specifier(row.needs["cuda"]).bounds)
    return CudaVersion(*(*numbers, 0)[:2])
