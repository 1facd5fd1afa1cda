"""GPU and CUDA toolkit: whether the toolkit compiles for the GPU."""

from __future__ import annotations

import msgspec

from envcheck.compat.matrix import Matrix
from envcheck.compat.relations.driver_cuda import around
from envcheck.compat.relations.fit import Fit, conclude
from envcheck.compat.relations.gpu_code import read_targets, runs_natively
from envcheck.compat.tables import CudaRow
from envcheck.versions import CodeTarget, ComputeCapability, CudaVersion


def cuda_targets(matrix: Matrix, gpu: ComputeCapability, cuda: CudaVersion) -> Fit:
    """Whether nvcc of ``cuda`` accepts the GPU's own target; code for another one may still run on it."""
    row = matrix.cuda_rows.get(cuda)
    if row is None or not row.targets:
        return _before_any(matrix, gpu, cuda) or conclude(
            matrix, "unknown", f"the matrix does not know what CUDA {cuda} compiles for"
        )
    if gpu.sm in row.targets:
        return conclude(matrix, "compatible", f"CUDA {cuda} compiles for {gpu.sm}", row)
    if gpu.sm in row.disputed_targets:
        reason = f"sources disagree on whether CUDA {cuda} compiles for {gpu.sm} or a later one is the first"
        return conclude(matrix, "unknown", reason, row)
    renamed = _under_another_name(matrix, gpu, row)
    if renamed:
        return renamed
    having = [other for other in matrix.cuda if gpu.sm in other.targets]
    if not having:
        reason = f"no CUDA toolkit in the matrix compiles for {gpu.sm}"
        return conclude(matrix, "unknown", reason, matrix.capability_rows.get(gpu))
    return _no_target(matrix, gpu, row, having)


def _under_another_name(matrix: Matrix, gpu: ComputeCapability, row: CudaRow) -> Fit | None:
    """That a toolkit has the target under the former, or the new, name of the compute capability."""
    former = next((other for other in matrix.capabilities if other.renamed_to == str(gpu)), None)
    if former is not None and f"sm_{former.capability.replace('.', '')}" in row.targets:
        reason = f"CUDA {row.version} calls {gpu.sm} by its former compute capability {former.capability}"
        return conclude(matrix, "unknown", reason, row, former)
    own = matrix.capability_rows.get(gpu)
    if own is not None and own.renamed_to and f"sm_{own.renamed_to.replace('.', '')}" in row.targets:
        reason = f"CUDA {row.version} calls {gpu.sm} by its new compute capability {own.renamed_to}"
        return conclude(matrix, "unknown", reason, row, own)
    return None


def _no_target(matrix: Matrix, gpu: ComputeCapability, row: CudaRow, having: list[CudaRow]) -> Fit:
    first = min(having, key=_version)
    last = max(having, key=_version)
    if _version(row) < _version(first):
        reason = f"CUDA {row.version} is older than {gpu.sm}; CUDA {first.version} is the first that compiles for it"
        return conclude(matrix, "incompatible", reason, row, first, change=f"CUDA >= {first.version}")
    if _version(row) > _version(last):
        reason = f"CUDA {row.version} has dropped {gpu.sm}; CUDA {last.version} is the last that compiles for it"
        return conclude(matrix, "incompatible", reason, row, last, change=f"CUDA <= {last.version}")
    return conclude(matrix, "incompatible", f"CUDA {row.version} does not compile for {gpu.sm}", row)


def targets_of(matrix: Matrix, cuda: CudaVersion) -> tuple[CodeTarget, ...]:
    """The targets that the toolkit compiles for; empty when the matrix does not know."""
    row = matrix.cuda_rows.get(cuda)
    return read_targets(row.targets) if row else ()


def _version(row: CudaRow) -> CudaVersion:
    return CudaVersion.parse(row.version) or CudaVersion(0, 0)


def cuda_serves(matrix: Matrix, gpu: ComputeCapability, cuda: CudaVersion) -> Fit:
    """Whether software built with ``cuda`` can hold native code for the GPU, if only for an older one of its major.

    A toolkit older than the GPU's major leaves PTX alone, which a newer driver may compile; its own libraries hold no
    code for the GPU, so that this counts as incompatible.
    """
    fit = cuda_targets(matrix, gpu, cuda)
    beside = around(matrix, cuda)
    if beside and fit.verdict == "unknown":
        return _between(matrix, gpu, cuda, beside) or fit
    if not fit.bad:
        return fit
    serving = [target for target in targets_of(matrix, cuda) if runs_natively(matrix, target, gpu)]
    if serving:
        reason = f"CUDA {cuda} has no target {gpu.sm}, but its code for {max(serving)} runs on it"
        return conclude(matrix, "compatible", reason, matrix.cuda_rows.get(cuda), matrix.capability_rows.get(gpu))
    if fit.nearest_change.startswith("CUDA >="):
        reason = f"{fit.reason}; of what is built with {cuda} only PTX could run there, and its libraries hold no code"
        return msgspec.structs.replace(fit, reason=reason)
    return fit


def _before_any(matrix: Matrix, gpu: ComputeCapability, cuda: CudaVersion) -> Fit | None:
    """A version that only drivers report knows no GPU that later toolkits brought."""
    row = matrix.cuda_rows.get(cuda)
    having = [other for other in matrix.cuda if gpu.sm in other.targets]
    if row is None or row.toolkit or not having or cuda >= min(map(_version, having)):
        return None
    return _no_target(matrix, gpu, row, having)


def _between(
    matrix: Matrix, gpu: ComputeCapability, cuda: CudaVersion, beside: tuple[CudaVersion, CudaVersion]
) -> Fit | None:
    """What holds for the toolkits on both sides of a version holds for it."""
    before, after = (cuda_serves(matrix, gpu, one) for one in beside)
    if before.verdict != after.verdict or before.verdict == "unknown":
        return None
    reason = f"no toolkit is called CUDA {cuda}, it is what drivers report; {before.reason}, and so with {beside[1]}"
    return msgspec.structs.replace(before, reason=reason, nearest_change="")
