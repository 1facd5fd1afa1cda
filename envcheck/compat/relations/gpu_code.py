"""GPU and code: whether GPU code compiled for some targets runs on a GPU, as it is or compiled anew by the driver."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from typing import NamedTuple

from envcheck.compat.relations.driver_cuda import cuda_row
from envcheck.compat.relations.fit import Fit, conclude
from envcheck.compat.tables import CapabilityRow, CudaRow, Tables
from envcheck.versions import CodeTarget, ComputeCapability, CudaVersion, PtxVersion


def code_runs_on(
    tables: Tables,
    targets: Sequence[CodeTarget],
    gpu: ComputeCapability,
    *,
    driver_speaks: CudaVersion | None = None,
    built_with: CudaVersion | None = None,
) -> Fit:
    """Whether a binary that holds code for ``targets`` runs on ``gpu``.

    A cubin runs as it is; PTX is compiled by the driver, which must speak a PTX as new as the one written by the
    toolkit that it was ``built_with``.
    """
    row = capability_row(tables, gpu)
    if not targets:
        return conclude(tables, "unknown", f"what GPU code it holds is not known, so {gpu.sm} cannot be judged")
    native = [target for target in targets if runs_natively(tables, target, gpu)]
    if native:
        return conclude(tables, "compatible", f"it holds native code for {gpu.sm} ({max(native)})", row)
    ptx = [target for target in targets if target.ptx and _ptx_serves(tables, target, gpu)]
    if ptx:
        return _compiled_by_driver(tables, max(ptx), gpu, driver_speaks, built_with)
    renamed = [target for target in targets if _same_under_new_name(tables, target, gpu)]
    if renamed:
        reason = f"{renamed[0]} is the former name of {gpu.sm}; whether such code still runs is not documented"
        return conclude(tables, "unknown", reason, row)
    held = " ".join(str(target) for target in targets)
    reason = f"it holds GPU code for {held}, none of which runs on {gpu.sm}"
    if any(_lost_to_tegra(tables, target, gpu) for target in targets):
        reason += "; cubins of discrete GPUs and of Tegra systems do not serve each other"
    return conclude(tables, "incompatible", reason, row, change=f"a build with code for {gpu.sm}")


def runs_natively(tables: Tables, target: CodeTarget, gpu: ComputeCapability) -> bool:
    """Whether a cubin runs on ``gpu`` without being compiled anew."""
    if target.ptx:
        return False
    if target.capability == gpu:
        return True
    if target.suffix == "f":
        return _in_family(tables, target, gpu)
    if target.suffix == "a" or _is_tegra(tables, gpu) or _is_tegra(tables, target.capability):
        return False
    return _no_newer_minor(target, gpu)


def _no_newer_minor(target: CodeTarget, gpu: ComputeCapability) -> bool:
    return target.capability.major == gpu.major and target.capability.minor <= gpu.minor


def _lost_to_tegra(tables: Tables, target: CodeTarget, gpu: ComputeCapability) -> bool:
    """Whether a cubin would run if both capabilities were discrete GPUs'."""
    crossed = _is_tegra(tables, gpu) or _is_tegra(tables, target.capability)
    return crossed and not target.ptx and not target.suffix and _no_newer_minor(target, gpu)


def read_targets(texts: Iterable[str]) -> tuple[CodeTarget, ...]:
    """What GPU code is for; names that are no targets are left out."""
    return tuple(target for text in texts if (target := _target(text)))


_target = cache(CodeTarget.parse)


class _Index(NamedTuple):
    tables: Tables
    rows: dict[ComputeCapability, CapabilityRow]


_latest: list[_Index] = []
"""The index of the Tables that were asked last: rows do not change, and nearly every caller has the same Tables."""


def capability_row(tables: Tables, capability: ComputeCapability) -> CapabilityRow | None:
    if not _latest or _latest[0].tables is not tables:
        read = ((ComputeCapability.parse(row.capability), row) for row in tables.capabilities)
        _latest[:] = [_Index(tables, {parsed: row for parsed, row in read if parsed})]
    return _latest[0].rows.get(capability)


def _ptx_serves(tables: Tables, target: CodeTarget, gpu: ComputeCapability) -> bool:
    if target.suffix == "a":
        return target.capability == gpu
    if target.suffix == "f":
        return target.capability == gpu or _in_family(tables, target, gpu)
    return target.capability <= gpu


def _compiled_by_driver(
    tables: Tables,
    target: CodeTarget,
    gpu: ComputeCapability,
    driver_speaks: CudaVersion | None,
    built_with: CudaVersion | None,
) -> Fit:
    row = capability_row(tables, gpu)
    jit = f"it holds no native code for {gpu.sm}, only PTX ({target}) for the driver to compile"
    if driver_speaks is None or built_with is None:
        missing = "the CUDA that the driver speaks" if driver_speaks is None else "the CUDA it was built with"
        return conclude(tables, "unknown", f"{jit}; {missing} is not known", row)
    speaks, built = cuda_row(tables, driver_speaks), cuda_row(tables, built_with)
    if driver_speaks >= built_with or _ptx_as_new(speaks, built):
        return conclude(tables, "compatible", f"{jit}, which speaks CUDA {driver_speaks}", row)
    reason = f"{jit}, which speaks CUDA {driver_speaks} and cannot read the PTX of CUDA {built_with}"
    change = f"a driver that speaks CUDA {built_with}, or a build with code for {gpu.sm}"
    return conclude(tables, "incompatible", reason, row, speaks, built, change=change)


def _ptx_as_new(speaks: CudaRow | None, built: CudaRow | None) -> bool:
    known = PtxVersion.parse(speaks.ptx if speaks else None)
    needed = PtxVersion.parse(built.ptx if built else None)
    return known is not None and needed is not None and known >= needed


def _in_family(tables: Tables, target: CodeTarget, gpu: ComputeCapability) -> bool:
    row = capability_row(tables, target.capability)
    return row is not None and str(gpu) in row.family


def _is_tegra(tables: Tables, capability: ComputeCapability) -> bool:
    row = capability_row(tables, capability)
    return row is not None and row.tegra


def _same_under_new_name(tables: Tables, target: CodeTarget, gpu: ComputeCapability) -> bool:
    row = capability_row(tables, target.capability)
    return row is not None and row.renamed_to == str(gpu)
