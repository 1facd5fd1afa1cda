"""GPU and code: whether GPU code compiled for some targets runs on a GPU, as it is or recompiled by the driver."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache

from envcheck.compat.matrix import Matrix
from envcheck.compat.relations.fit import Fit, conclude
from envcheck.compat.tables import CudaRow
from envcheck.versions import CodeTarget, ComputeCapability, CudaVersion, PtxVersion


def code_runs_on(
    matrix: Matrix,
    targets: Sequence[CodeTarget],
    gpu: ComputeCapability,
    *,
    driver_cuda: CudaVersion | None = None,
    built_with: CudaVersion | None = None,
) -> Fit:
    """Whether a binary that holds code for ``targets`` runs on ``gpu``.

    A cubin runs as it is; PTX is compiled by the driver, which must support a PTX as new as the one written by the
    toolkit that it was ``built_with``.
    """
    row = matrix.capability_rows.get(gpu)
    if not targets:
        return conclude(matrix, "unknown", f"what GPU code it holds is not known, so {gpu.sm} cannot be judged")
    native = [target for target in targets if runs_natively(matrix, target, gpu)]
    if native:
        return conclude(matrix, "compatible", f"it holds native code for {gpu.sm} ({max(native)})", row)
    ptx = [target for target in targets if target.ptx and _ptx_serves(matrix, target, gpu)]
    if ptx:
        return _compiled_by_driver(matrix, max(ptx), gpu, driver_cuda, built_with)
    rows = matrix.capability_rows
    renamed = [one for one in targets if (now := rows.get(one.capability)) and now.renamed_to == str(gpu)]
    if renamed:
        reason = f"{renamed[0]} is the former name of {gpu.sm}; whether such code still runs is not documented"
        return conclude(matrix, "unknown", reason, row)
    held = " ".join(str(target) for target in targets)
    reason = f"it holds GPU code for {held}, none of which runs on {gpu.sm}"
    if any(_crosses_tegra(matrix, target, gpu) for target in targets):
        reason += "; cubins of discrete GPUs and of Tegra systems do not serve each other"
    return conclude(matrix, "incompatible", reason, row, change=f"a build with code for {gpu.sm}")


def only_ptx_serves(matrix: Matrix, targets: Sequence[CodeTarget], gpu: ComputeCapability) -> bool:
    """Whether all that ``gpu`` runs of some code is PTX, which the driver compiles at the first start."""
    native = any(runs_natively(matrix, target, gpu) for target in targets)
    return not native and any(target.ptx and _ptx_serves(matrix, target, gpu) for target in targets)


def runs_natively(matrix: Matrix, target: CodeTarget, gpu: ComputeCapability) -> bool:
    """Whether a cubin runs on ``gpu`` without being recompiled."""
    if target.ptx:
        return False
    if target.capability == gpu:
        return True
    if target.suffix == "f":
        return _in_family(matrix, target, gpu)
    if target.suffix == "a" or _is_tegra(matrix, gpu) or _is_tegra(matrix, target.capability):
        return False
    return _no_newer_minor(target, gpu)


def _no_newer_minor(target: CodeTarget, gpu: ComputeCapability) -> bool:
    return target.capability.major == gpu.major and target.capability.minor <= gpu.minor


def _crosses_tegra(matrix: Matrix, target: CodeTarget, gpu: ComputeCapability) -> bool:
    """Whether a cubin would run if both capabilities were discrete GPUs'."""
    crossed = _is_tegra(matrix, gpu) or _is_tegra(matrix, target.capability)
    return crossed and not target.ptx and not target.suffix and _no_newer_minor(target, gpu)


def read_targets(texts: Iterable[str]) -> tuple[CodeTarget, ...]:
    """What GPU code is for; names that are no targets are left out."""
    return tuple(target for text in texts if (target := _target(text)))


_target = cache(CodeTarget.parse)


def _ptx_serves(matrix: Matrix, target: CodeTarget, gpu: ComputeCapability) -> bool:
    if target.suffix == "a":
        return target.capability == gpu
    if target.suffix == "f":
        return target.capability == gpu or _in_family(matrix, target, gpu)
    return target.capability <= gpu


def _compiled_by_driver(
    matrix: Matrix,
    target: CodeTarget,
    gpu: ComputeCapability,
    driver_cuda: CudaVersion | None,
    built_with: CudaVersion | None,
) -> Fit:
    row = matrix.capability_rows.get(gpu)
    jit = f"it holds no native code for {gpu.sm}, only PTX ({target}) for the driver to compile"
    if driver_cuda is None or built_with is None:
        missing = "the CUDA that the driver supports" if driver_cuda is None else "the CUDA it was built with"
        return conclude(matrix, "unknown", f"{jit}; {missing} is not known", row)
    speaks, built = matrix.cuda_rows.get(driver_cuda), matrix.cuda_rows.get(built_with)
    if driver_cuda >= built_with or _ptx_as_new(speaks, built):
        return conclude(matrix, "compatible", f"{jit}, which supports CUDA {driver_cuda}", row)
    reason = f"{jit}, which supports CUDA {driver_cuda} and cannot read the PTX of CUDA {built_with}"
    change = f"a driver that supports CUDA {built_with}, or a build with code for {gpu.sm}"
    return conclude(matrix, "incompatible", reason, row, speaks, built, change=change)


def _ptx_as_new(speaks: CudaRow | None, built: CudaRow | None) -> bool:
    known = PtxVersion.parse(speaks.ptx if speaks else None)
    needed = PtxVersion.parse(built.ptx if built else None)
    return known is not None and needed is not None and known >= needed


def _in_family(matrix: Matrix, target: CodeTarget, gpu: ComputeCapability) -> bool:
    row = matrix.capability_rows.get(target.capability)
    return row is not None and str(gpu) in row.family


def _is_tegra(matrix: Matrix, capability: ComputeCapability) -> bool:
    row = matrix.capability_rows.get(capability)
    return row is not None and row.tegra
