"""GPU code on a GPU: whether it runs as it is or recompiled by the driver, which toolkits compile for the GPU, and
whether a release with a known flaw has it there.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache

import msgspec

from envcheck.knowledge.matrix import Matrix
from envcheck.knowledge.relations.driver import neighbouring_toolkits
from envcheck.knowledge.relations.fit import Fit, conclude
from envcheck.knowledge.specifier import Version, covered, speaks_of
from envcheck.knowledge.tables.hardware import CudaRow
from envcheck.knowledge.tables.software import FlawRow
from envcheck.model.versions import CodeTarget, ComputeCapability, CudaVersion, PtxVersion


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
        jit = f"it holds no native code for {gpu.sm}, only PTX ({max(ptx)}) for the driver to compile"
        if driver_cuda is None or built_with is None:
            missing = "the CUDA that the driver supports" if driver_cuda is None else "the CUDA it was built with"
            return conclude(matrix, "unknown", f"{jit}; {missing} is not known", row)
        speaks, built = matrix.cuda_rows.get(driver_cuda), matrix.cuda_rows.get(built_with)
        known, needed = (PtxVersion.parse(cuda.ptx if cuda else None) for cuda in (speaks, built))
        if driver_cuda >= built_with or (known and needed and known >= needed):
            return conclude(matrix, "compatible", f"{jit}, which supports CUDA {driver_cuda}", row)
        reason = f"{jit}, which supports CUDA {driver_cuda} and cannot read the PTX of CUDA {built_with}"
        change = f"a driver that supports CUDA {built_with}, or a build with code for {gpu.sm}"
        return conclude(matrix, "incompatible", reason, row, speaks, built, change=change)
    rows = matrix.capability_rows
    renamed = [one for one in targets if (now := rows.get(one.capability)) and now.renamed_to == str(gpu)]
    if renamed:
        reason = f"{renamed[0]} is the former name of {gpu.sm}; whether such code still runs is not documented"
        return conclude(matrix, "unknown", reason, row)
    listed_targets = " ".join(str(target) for target in targets)
    reason = f"it holds GPU code for {listed_targets}, none of which runs on {gpu.sm}"
    plain = [target for target in targets if not target.ptx and not target.suffix and _no_newer_minor(target, gpu)]
    if any(_is_tegra(matrix, gpu) or _is_tegra(matrix, target.capability) for target in plain):
        reason += "; cubins of discrete GPUs and of Tegra systems do not serve each other"
    return conclude(matrix, "incompatible", reason, row, change=f"a build with code for {gpu.sm}")


def compiler_of(matrix: Matrix, isa: str | None) -> CudaVersion | None:
    """The first CUDA version whose compiler writes PTX of this ISA."""
    wanted = PtxVersion.parse(isa)
    return next(
        (cuda for cuda, row in matrix.cuda_rows.items() if wanted and PtxVersion.parse(row.ptx) == wanted), None
    )


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


def _in_family(matrix: Matrix, target: CodeTarget, gpu: ComputeCapability) -> bool:
    row = matrix.capability_rows.get(target.capability)
    return row is not None and str(gpu) in row.family


def _is_tegra(matrix: Matrix, capability: ComputeCapability) -> bool:
    row = matrix.capability_rows.get(capability)
    return row is not None and row.tegra


def cuda_targets(matrix: Matrix, gpu: ComputeCapability, cuda: CudaVersion) -> Fit:
    """Whether nvcc of ``cuda`` accepts the GPU's own target; code for another one may still run on it."""
    row = matrix.cuda_rows.get(cuda)
    having = [other for other in matrix.cuda if gpu.sm in other.targets]
    if row is None or not row.targets:
        if row and not row.toolkit and having and cuda < min(map(_version, having)):
            return _no_target(matrix, gpu, row, having)  # only drivers report it: no later GPU is known to it
        return conclude(matrix, "unknown", f"the matrix does not know what CUDA {cuda} compiles for")
    if gpu.sm in row.targets:
        return conclude(matrix, "compatible", f"CUDA {cuda} compiles for {gpu.sm}", row)
    if gpu.sm in row.disputed_targets:
        reason = f"sources disagree on whether CUDA {cuda} compiles for {gpu.sm} or a later one is the first"
        return conclude(matrix, "unknown", reason, row)
    # The target under the former, or the new, name of the compute capability.
    former = next((other for other in matrix.capabilities if other.renamed_to == str(gpu)), None)
    own = matrix.capability_rows.get(gpu)
    names = (("former", former and former.capability, former), ("new", own and own.renamed_to, own))
    for kind, name, cited in names:
        if name and f"sm_{name.replace('.', '')}" in row.targets:
            reason = f"CUDA {row.version} calls {gpu.sm} by its {kind} compute capability {name}"
            return conclude(matrix, "unknown", reason, row, cited)
    if not having:
        reason = f"no CUDA toolkit in the matrix compiles for {gpu.sm}"
        return conclude(matrix, "unknown", reason, matrix.capability_rows.get(gpu))
    return _no_target(matrix, gpu, row, having)


def _no_target(matrix: Matrix, gpu: ComputeCapability, row: CudaRow, having: list[CudaRow]) -> Fit:
    first, last = min(having, key=_version), max(having, key=_version)
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
    beside = neighbouring_toolkits(matrix, cuda)
    if beside and fit.verdict == "unknown":
        # What holds for the toolkits on both sides of a version that only drivers report holds for it.
        before, after = (cuda_serves(matrix, gpu, one) for one in beside)
        if before.verdict != after.verdict or before.verdict == "unknown":
            return fit
        no_toolkit = f"no toolkit is called CUDA {cuda}, it is what drivers report"
        reason = f"{no_toolkit}; {before.reason}, and so with {beside[1]}"
        return msgspec.structs.replace(before, reason=reason, nearest_change="")
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


def has_flaw(
    matrix: Matrix,
    row: FlawRow,
    version: Version,
    capabilities: Iterable[ComputeCapability],
    code: Sequence[CodeTarget],
) -> bool:
    """Whether the release has the flaw of ``row`` on a GPU with one of ``capabilities``; ``code`` is what it holds."""
    if speaks_of(row.versions, version) != "all":
        return False
    if not row.compute_capability and not row.only_ptx:
        return True
    return any(
        (not row.compute_capability or covered(row.compute_capability, Version(tuple(each))) == "all")
        and (not row.only_ptx or only_ptx_serves(matrix, code, each))
        for each in capabilities
    )
