"""Whether the libraries that a build needs leave a GPU out, whichever of the admitted versions is taken."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import msgspec

from envcheck.compat.cuda_rows import admitted_toolkits
from envcheck.compat.fit import Fit, conclude
from envcheck.compat.gpu_cuda import cuda_serves, cuda_targets
from envcheck.compat.question.candidates import Candidate
from envcheck.compat.question.judgement import retell
from envcheck.compat.question.names import canonical
from envcheck.compat.question.question import AskedGpu
from envcheck.compat.question.rows import rows_of
from envcheck.compat.question.wording import readable
from envcheck.compat.specifier import Specifier, Version, parse_specifier
from envcheck.compat.tables import ReleaseRow, Tables
from envcheck.versions import ComputeCapability, CudaVersion

_FOR_A_PART = ("triton",)
"""What only a part of a package runs on: PyTorch computes without Triton, its compiler does not."""
_YET_TO_COME = Version((10**6,))


def stack_refuses(tables: Tables, candidate: Candidate, row: ReleaseRow, gpu: AskedGpu) -> Fit | None:
    """Why no version of a library that the build needs runs on ``gpu``; None when one does, or nobody can tell."""
    if candidate.cuda:
        return None
    by_cuda = _cuda_refuses(tables, candidate, row, gpu)
    return by_cuda or next(_libraries_refuse(tables, candidate, row, gpu), None)


def refused(row: ReleaseRow, gpu: AskedGpu) -> tuple[str, str] | None:
    """What documents require that the GPU does not have, and the change that would help."""
    if row.capabilities and str(gpu.capability) not in row.capabilities:
        listed = ", ".join(row.capabilities)
        return f"supports compute capability {listed}", f"a GPU of compute capability {listed}"
    least, greatest = ComputeCapability.parse(row.capability_min), ComputeCapability.parse(row.capability_max)
    if least is not None and gpu.capability < least:
        return f"needs compute capability {least} or higher", f"a GPU of compute capability >= {least}"
    if greatest is not None and gpu.capability > greatest:
        return f"supports compute capability up to {greatest}", f"a GPU of compute capability <= {greatest}"
    return None


def _cuda_refuses(tables: Tables, candidate: Candidate, row: ReleaseRow, gpu: AskedGpu) -> Fit | None:
    """The toolkits that may be used; or the one it was built with, which can have left no code for what it dropped."""
    if "cuda" in row.needs:
        spec = parse_specifier(row.needs["cuda"])
        admitted = admitted_toolkits(tables, spec)
        fits = [cuda_serves(tables, gpu.capability, version) for version in admitted]
        if not fits or not all(fit.bad for fit in fits) or _open(spec, admitted[-1]):
            return None
        return retell(tables, fits[-1], f"{candidate.label} on {gpu.label}: {fits[-1].reason}", row)
    built = CudaVersion.parse(row.cuda)
    fit = cuda_targets(tables, gpu.capability, built) if built else None
    if fit is None or not fit.bad:
        return None
    dropped = fit.nearest_change.startswith("CUDA <=")
    told = msgspec.structs.replace(fit, verdict="incompatible" if dropped else "unknown")
    return retell(tables, told, f"{candidate.label} on {gpu.label}: {fit.reason}", row) if not row.targets else None


def _open(spec: Specifier, newest: CudaVersion) -> bool:
    """Whether the next toolkit, which nobody knows yet, would be admitted too."""
    return spec.cover(Version((newest.major, newest.minor + 1))) != "none" and spec.cover(_YET_TO_COME) != "none"


def _libraries_refuse(tables: Tables, candidate: Candidate, row: ReleaseRow, gpu: AskedGpu) -> Iterator[Fit]:
    for key, text in row.needs.items():
        if key in _FOR_A_PART:
            continue
        spec = parse_specifier(text)
        rows = [other for other in rows_of(tables, canonical(key)) if _overlap(text, other.versions)]
        refusals = [refused(other, gpu) for other in rows]
        if rows and None not in refusals and spec.cover(_YET_TO_COME) == "none":
            what, _ = refusals[-1] or ("", "")
            reason = f"{candidate.label} needs {readable(key, text)}, which {what}; {gpu.label} has {gpu.capability}"
            yield conclude(tables, "incompatible", reason, row, *rows)


@cache
def _overlap(text: str, other_text: str) -> bool:
    """Whether any version is admitted by both: if there is one, the bound of either is such a one, or starts such."""
    one, other = parse_specifier(text), parse_specifier(other_text)
    ends = [Version(bound.numbers, post=bound.post) for bound in (*one.bounds, *other.bounds)]
    return any(one.cover(end) != "none" and other.cover(end) != "none" for end in ends)
