"""One build of a component against the GPUs that were named: by its documents, and by the code that it holds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from envcheck.compat.fit import Fit, FitVerdict, conclude
from envcheck.compat.gpu_code import code_runs_on, read_targets, runs_natively
from envcheck.compat.gpu_cuda import cuda_targets
from envcheck.compat.question.candidates import Candidate
from envcheck.compat.question.hardware import speaks
from envcheck.compat.question.judgement import Judgement, agree, retell
from envcheck.compat.question.names import SYSTEMS
from envcheck.compat.question.question import AskedGpu, Question
from envcheck.compat.question.stack import refused, stack_refuses
from envcheck.compat.question.wording import listed
from envcheck.compat.tables import ReleaseRow, Tables
from envcheck.versions import CodeTarget, ComputeCapability, CudaVersion


def judge_device(tables: Tables, question: Question, candidate: Candidate, row: ReleaseRow) -> Iterator[Judgement]:
    """Whether the build runs on each GPU; nothing where its row says nothing of GPUs."""
    for gpu in question.gpus:
        fit = _documented(tables, candidate, row, gpu)
        if fit is None or (fit.ok and not _bounded(row)):
            fit = _by_code(tables, question, candidate, row, gpu) or fit
            fit = (fit if fit and fit.bad else None) or stack_refuses(tables, candidate, row, gpu) or fit
        if fit is not None:
            yield Judgement((candidate.name, "gpu"), fit)


def judge_system(tables: Tables, question: Question, candidate: Candidate, row: ReleaseRow) -> Iterator[Judgement]:
    """Whether the build runs on a Jetson that was named by its system software alone."""
    targets = read_targets(row.targets)
    for system in question.systems:
        capabilities = [one for text in system.row.capabilities if (one := ComputeCapability.parse(text))]
        if question.gpus or candidate.name in SYSTEMS or not targets or not capabilities:
            continue
        serving = [one for one in capabilities if any(runs_natively(tables, target, one) for target in targets)]
        listing = listed([one.sm for one in serving or capabilities])
        verdict: FitVerdict = "compatible" if serving else "incompatible"
        reason = f"{candidate.label} holds {'' if serving else 'no '}native code for {listing} of {system.label}"
        yield Judgement((candidate.name, system.by), conclude(tables, verdict, reason, row, system.row))


def _documented(tables: Tables, candidate: Candidate, row: ReleaseRow, gpu: AskedGpu) -> Fit | None:
    """What the documents say of compute capabilities."""
    refusal = refused(row, gpu)
    if refusal is not None:
        what, change = refusal
        reason = f"{candidate.label} {what}; {gpu.label} has {gpu.capability}"
        return conclude(tables, "incompatible", reason, row, change=change)
    if row.capability_min is None and not row.capabilities:
        return None
    known = ComputeCapability.parse(row.capability_known)
    if known is not None and gpu.capability > known:
        reason = f"{candidate.label} knows compute capabilities up to {known}; {gpu.label} has {gpu.capability}"
        return conclude(tables, "unknown", f"{reason}, on which it may run code for an older one", row)
    if not _bounded(row) and _newer_than_toolkit(tables, row, gpu):
        reason = f"{candidate.label} was built with CUDA {row.cuda}, which is older than {gpu.capability.sm}"
        return conclude(tables, "unknown", reason, row)
    reason = f"{candidate.label} supports compute capability {gpu.capability} of {gpu.label}"
    return conclude(tables, "compatible", reason, row)


def _bounded(row: ReleaseRow) -> bool:
    """Whether documents say on which GPUs it runs, at both ends."""
    return bool(row.capabilities) or row.capability_max is not None


def _newer_than_toolkit(tables: Tables, row: ReleaseRow, gpu: AskedGpu) -> bool:
    cuda = CudaVersion.parse(row.cuda)
    return cuda is not None and cuda_targets(tables, gpu.capability, cuda).nearest_change.startswith("CUDA >=")


def _by_code(tables: Tables, question: Question, candidate: Candidate, row: ReleaseRow, gpu: AskedGpu) -> Fit | None:
    """What the GPU code that it holds says. Where no driver is named, one that compiles its PTX is no constraint."""
    targets = read_targets(row.targets)
    if not targets or candidate.cuda:
        return None
    cuda = CudaVersion.parse(row.cuda)
    spoken: Sequence[CudaVersion | None] = speaks(tables, question) or (cuda,)
    fits = [
        (str(version), code_runs_on(tables, targets, gpu.capability, driver_speaks=version, built_with=cuda))
        for version in spoken
    ]
    fit = agree(fits, question.labels.get("driver", ""))
    if fit.bad and _supported_below(row, gpu, targets):
        return None
    if fit.ok and not question.drivers and not question.compat and not _native(tables, targets, gpu):
        reason = (
            f"{candidate.label} has only PTX for {gpu.label}, for a driver that speaks CUDA {cuda} or newer to compile"
        )
    else:
        reason = f"{candidate.label} on {gpu.label}: {fit.reason}"
    return retell(tables, fit, reason, row)


def _native(tables: Tables, targets: Sequence[CodeTarget], gpu: AskedGpu) -> bool:
    return any(runs_natively(tables, target, gpu.capability) for target in targets)


def _supported_below(row: ReleaseRow, gpu: AskedGpu, targets: Sequence[CodeTarget]) -> bool:
    """Whether documents promise a GPU that is older than some of the code: they outrank what was found in files."""
    return row.capability_min is not None and gpu.capability <= max(target.capability for target in targets)
