"""One build of a component against the GPUs that were named: by its documents, by the code that it holds, and by the
libraries that it needs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache

import msgspec

from envcheck.compat.candidates import TORCH, Candidate, default_cuda
from envcheck.compat.hardware import driver_cudas
from envcheck.compat.question import AskedGpu, Question, agree, listed, readable, reworded
from envcheck.knowledge.matrix import Matrix
from envcheck.knowledge.names import SYSTEMS, scheme
from envcheck.knowledge.relations.fit import Fit, FitVerdict, conclude
from envcheck.knowledge.relations.gpu_code import (
    code_runs_on,
    compiler_of,
    cuda_serves,
    cuda_targets,
    has_flaw,
    read_targets,
    runs_natively,
)
from envcheck.knowledge.relations.torch import builds
from envcheck.knowledge.specifier import Version, covered, parse_specifier, parse_version
from envcheck.knowledge.tables.software import ReleaseRow
from envcheck.model.versions import CodeTarget, ComputeCapability, CudaVersion

_JETPACK = "jetpack"
_YET_TO_COME = Version((10**6,))


def device_fits(question: Question, candidate: Candidate, row: ReleaseRow) -> Iterator[Fit]:
    """Whether the build runs on each GPU; nothing where its row says nothing of GPUs."""
    for gpu in question.gpus:
        fit = _beside_cuda(question, candidate, row, gpu) or _documented(question.matrix, candidate, row, gpu)
        if fit is None or (fit.ok and not _bounded(row)):
            fit = _by_code(question, candidate, row, gpu) or fit
            if not (fit and fit.bad) and not candidate.cuda:
                by_library = _libraries_refuse(question.matrix, candidate, row, gpu)
                fit = (
                    _cuda_refuses(question.matrix, candidate, row, gpu)
                    or next(by_library, None)
                    or (_torch_refuses(question, candidate, row, gpu) or fit)
                )
            fit = fit or _as_torch(question, candidate, row, gpu) or _as_jetpack(question, candidate, row, gpu)
        if fit is not None:
            yield fit.concerning(candidate.name, "gpu")


def system_fits(question: Question, candidate: Candidate, row: ReleaseRow) -> Iterator[Fit]:
    """Whether the build runs on a Jetson that was named by its system software alone."""
    targets = read_targets(row.targets)
    for system in question.systems:
        capabilities = [one for text in system.row.capabilities if (one := ComputeCapability.parse(text))]
        if question.gpus or candidate.name in SYSTEMS or not targets or not capabilities:
            continue
        matrix = question.matrix
        serving = [one for one in capabilities if any(runs_natively(matrix, target, one) for target in targets)]
        listing = listed([one.sm for one in serving or capabilities])
        verdict: FitVerdict = "compatible" if serving else "incompatible"
        reason = f"{candidate.label} holds {'' if serving else 'no '}native code for {listing} of {system.label}"
        yield conclude(question.matrix, verdict, reason, row, system.row).concerning(candidate.name, system.by)


def _documented(matrix: Matrix, candidate: Candidate, row: ReleaseRow, gpu: AskedGpu) -> Fit | None:
    """What the documents say of compute capabilities."""
    refusal = refused(matrix, row, gpu)
    if refusal is not None:
        what, change = refusal
        reason = f"{candidate.label} {what}; {gpu.label} has {gpu.capability}"
        return conclude(matrix, "incompatible", reason, row, change=change)
    if row.capability_min is None and not row.capabilities:
        return None
    known = ComputeCapability.parse(row.capability_known)
    if known is not None and gpu.capability > known:
        reason = f"{candidate.label} knows compute capabilities up to {known}; {gpu.label} has {gpu.capability}"
        return conclude(matrix, "unknown", f"{reason}, on which it may run code for an older one", row)
    disputed = row.disputed.get("capability")
    if disputed and covered(disputed, Version(tuple(gpu.capability))) != "none":
        reason = f"whether {candidate.label} supports compute capability {gpu.capability} of {gpu.label} is disputed"
        return conclude(matrix, "unknown", f"{reason}: {row.note}", row)
    toolkit = None if _bounded(row) else CudaVersion.parse(row.cuda)
    if not _bounded(row) and "cuda" in row.needs and not (row.cuda or row.targets or row.code):
        # Where neither the CUDA of the build nor its code is known: the last of those that it is for.
        spec = parse_specifier(row.needs["cuda"])
        admitted = matrix.admitted_toolkits(spec) if spec.cover(_YET_TO_COME) == "none" else []
        toolkit = admitted[-1] if admitted else None
    if toolkit is not None and _comes_later(matrix, gpu, toolkit):
        built = "was built with CUDA" if row.cuda else "is for no CUDA after"
        reason = f"{candidate.label} {built} {toolkit}, which is older than {gpu.capability.sm}"
        none_compiles = None if row.cuda or candidate.cuda else _cuda_refuses(matrix, candidate, row, gpu)
        return none_compiles or conclude(matrix, "unknown", reason, row)
    reason = f"{candidate.label} supports compute capability {gpu.capability} of {gpu.label}"
    return conclude(matrix, "compatible", reason, row)


def _beside_cuda(question: Question, candidate: Candidate, row: ReleaseRow, gpu: AskedGpu) -> Fit | None:
    """What documents list of GPUs for the CUDA that was named."""
    for text, greatest in row.capability_max_with.items():
        spec, most = parse_specifier(text), ComputeCapability.parse(greatest)
        meant = [cuda for cuda in question.cuda if spec.cover(Version(tuple(cuda), scheme=scheme("cuda"))) == "all"]
        if meant and len(meant) == len(question.cuda) and most is not None and gpu.capability > most:
            reason = f"with {readable('CUDA', text)}, {candidate.label} supports compute capability up to {greatest}"
            reason += f"; {gpu.label} has {gpu.capability}"
            return conclude(question.matrix, "incompatible", reason, row)
    return None


def _bounded(row: ReleaseRow) -> bool:
    """Whether documents say on which GPUs it runs, at both ends."""
    return bool(row.capabilities) or row.capability_max is not None


def _comes_later(matrix: Matrix, gpu: AskedGpu, cuda: CudaVersion) -> str:
    """The CUDA that first compiles for the GPU, as ``CUDA >= 13.4``, where that is a later one."""
    change = cuda_targets(matrix, gpu.capability, cuda).nearest_change
    return change if change.startswith("CUDA >=") else ""


def _by_code(question: Question, candidate: Candidate, row: ReleaseRow, gpu: AskedGpu) -> Fit | None:
    """What the GPU code that it holds says. Where no driver is named, one that compiles its PTX is no constraint."""
    if row.code:
        return _by_its_code(question, candidate, row, gpu)
    targets = read_targets(row.targets)
    if not targets or candidate.cuda:
        return None
    cuda = compiler_of(question.matrix, row.ptx) or CudaVersion.parse(row.cuda)
    spoken: Sequence[CudaVersion | None] = driver_cudas(question) or (cuda,)
    fits = [
        (str(version), code_runs_on(question.matrix, targets, gpu.capability, driver_cuda=version, built_with=cuda))
        for version in spoken
    ]
    fit = agree(fits, question.labels.get("driver", ""))
    if fit.bad and row.capability_min is not None and gpu.capability <= max(target.capability for target in targets):
        return None  # documents promise a GPU older than some of the code: they outrank what was found in files
    versions = question.versions.get(candidate.name, ())
    flaws = (one for one in question.matrix.flaws if one.only_ptx and one.name == candidate.name)
    for flaw in flaws if fit.ok and versions else ():
        # Why the driver does not compile its PTX, where that is known of all that the version stands for.
        having = (has_flaw(question.matrix, flaw, version, [gpu.capability], targets) for version in versions)
        if flaw.status == "fail" and all(having):
            reason = f"{candidate.label} does not run on {gpu.label}. {flaw.problem.rstrip('.')}"
            return conclude(question.matrix, "incompatible", reason, flaw, row, change=flaw.change)
    if fit.ok and not question.drivers and not question.compat and not _native(question.matrix, targets, gpu):
        reason = f"{candidate.label} has only PTX for {gpu.label}, which a driver with CUDA {cuda} or newer compiles"
        reason += " at the first start"
    else:
        reason = f"{candidate.label} on {gpu.label}: {fit.reason}"
    return reworded(question.matrix, fit, reason, row)


def _by_its_code(question: Question, candidate: Candidate, row: ReleaseRow, gpu: AskedGpu) -> Fit | None:
    """The library for the CUDA that was named, or comes with PyTorch; where neither tells, any of them."""
    named = question.cuda or tuple(
        CudaVersion(*implied.version.numbers[:2]) for name, implied in question.implied.items() if name == "cuda"
    )
    # The library that is loaded beside a CUDA: its own, else the newest before it of the same major.
    known = [(version, text) for text in row.code if (version := CudaVersion.parse(text))]
    loaded = {
        max(((own, text) for own, text in known if own.major == cuda.major and own <= cuda), default=(cuda, ""))[1]
        for cuda in named
    }
    chosen = [(text, targets) for text, targets in row.code.items() if not named or text in loaded]
    fits = [
        (text, code_runs_on(question.matrix, read_targets(targets), gpu.capability, built_with=CudaVersion.parse(text)))
        for text, targets in chosen
    ]
    if not fits:
        return None
    fitting = [text for text, fit in fits if fit.ok]
    if fitting:
        which, hold = ("libraries", "hold") if len(fitting) > 1 else ("library", "holds")
        which = f"its {which} for CUDA {listed(fitting)} {hold} code for {gpu.capability.sm}"
        reason = f"{candidate.label} on {gpu.label}: {which}"
        return conclude(question.matrix, "compatible", reason, row)
    text, refusal = fits[-1]
    by_cuda = ((other, read_targets(targets)) for other, targets in row.code.items())
    change = next((other for other, targets in by_cuda if _native(question.matrix, targets, gpu)), "")
    reason = f"{candidate.label} on {gpu.label}, its library for CUDA {text}: {refusal.reason}"
    refused = reworded(question.matrix, refusal, reason, row)
    return msgspec.structs.replace(refused, nearest_change=f"CUDA {change}") if change else refused


def _native(matrix: Matrix, targets: Sequence[CodeTarget], gpu: AskedGpu) -> bool:
    return any(runs_natively(matrix, target, gpu.capability) for target in targets)


def is_for_a_part(matrix: Matrix, package: str, name: str) -> bool:
    """Whether only a part of a package needs the other one: PyTorch computes without Triton, its compiler does not."""
    return not {package, name}.isdisjoint(matrix.projects(name, "for-a-part"))


def refused(matrix: Matrix, row: ReleaseRow, gpu: AskedGpu) -> tuple[str, str] | None:
    """What documents require that the GPU does not have, and the change that would help."""
    toolkit = CudaVersion.parse(row.capability_toolkit)
    if toolkit is not None and (later := _comes_later(matrix, gpu, toolkit)):
        return f"holds code only for the GPUs that CUDA {toolkit} knows", f"a release that was made with {later}"
    if row.capabilities and str(gpu.capability) not in row.capabilities:
        listed = ", ".join(row.capabilities)
        return f"supports compute capability {listed}", f"a GPU of compute capability {listed}"
    least, greatest = ComputeCapability.parse(row.capability_min), ComputeCapability.parse(row.capability_max)
    if least is not None and gpu.capability < least:
        return f"needs compute capability {least} or higher", f"a GPU of compute capability >= {least}"
    if greatest is not None and gpu.capability > greatest:
        return f"supports compute capability up to {greatest}", f"a GPU of compute capability <= {greatest}"
    return None


def _cuda_refuses(matrix: Matrix, candidate: Candidate, row: ReleaseRow, gpu: AskedGpu) -> Fit | None:
    """The toolkits that may be used; or the one it was built with, which can have left no code for what it dropped."""
    if "cuda" in row.needs:
        spec = parse_specifier(row.needs["cuda"])
        admitted = matrix.admitted_toolkits(spec)
        fits = [cuda_serves(matrix, gpu.capability, version) for version in admitted]
        if not fits or not all(fit.bad for fit in fits):
            return None
        following = Version((admitted[-1].major, admitted[-1].minor + 1))
        if spec.cover(following) != "none" and spec.cover(_YET_TO_COME) != "none":
            return None  # the next toolkit, which nobody knows yet, would be admitted too
        return reworded(matrix, fits[-1], f"{candidate.label} on {gpu.label}: {fits[-1].reason}", row)
    built = CudaVersion.parse(row.cuda)
    fit = cuda_targets(matrix, gpu.capability, built) if built else None
    if fit is None or not fit.bad:
        return None
    dropped = fit.nearest_change.startswith("CUDA <=")
    refused = msgspec.structs.replace(fit, verdict="incompatible" if dropped else "unknown")
    return (
        reworded(matrix, refused, f"{candidate.label} on {gpu.label}: {fit.reason}", row) if not row.targets else None
    )


def _libraries_refuse(matrix: Matrix, candidate: Candidate, row: ReleaseRow, gpu: AskedGpu) -> Iterator[Fit]:
    chosen = row.alternatives
    for key, text in row.needs.items():
        if is_for_a_part(matrix, candidate.name, key) or key in chosen or key in row.optional:
            continue
        spec = parse_specifier(text)
        rows = [other for other in matrix.rows_of(key) if _overlap(text, other.versions)]
        refusals = [refused(matrix, other, gpu) for other in rows]
        if rows and None not in refusals and spec.cover(_YET_TO_COME) == "none":
            what, _ = refusals[-1] or ("", "")
            reason = f"{candidate.label} needs {readable(key, text)}, which {what}; {gpu.label} has {gpu.capability}"
            yield conclude(matrix, "incompatible", reason, row, *rows)


def _torch_refuses(question: Question, candidate: Candidate, row: ReleaseRow, gpu: AskedGpu) -> Fit | None:
    """Why no build of PyTorch that it admits runs on ``gpu``; None where one does, or a build is not known."""
    matrix, text = question.matrix, row.needs.get(TORCH)
    spec = parse_specifier(text) if text and TORCH not in (*row.alternatives, *row.optional) else None
    capability = matrix.capability_rows.get(gpu.capability)
    if spec is None or spec.cover(_YET_TO_COME) != "none" or capability is None or capability.tegra:
        return None
    versions = [(each, parse_version(each.version)) for each in matrix.torch]
    releases = [each for each, version in versions if version is not None and spec.cover(version) != "none"]
    refusal = None
    for build in (build for each in releases for build in builds(each, question.os, question.machine) if build.cuda):
        cuda = CudaVersion.parse(build.cuda)
        fit = code_runs_on(matrix, read_targets(build.targets), gpu.capability, built_with=cuda)
        refusal = refusal or fit
        if not fit.bad:
            return None
    if refusal is None or not all(each.all_builds for each in releases):
        return None
    reason = f"{candidate.label} needs {readable(TORCH, text or '')}, and no build of it has code for {gpu.label}"
    return reworded(matrix, refusal, f"{reason} ({gpu.capability.sm})", row)


def _as_torch(question: Question, candidate: Candidate, row: ReleaseRow, gpu: AskedGpu) -> Fit | None:
    """What is built along with PyTorch serves the GPUs of PyTorch's build on PyPI, or of any, where that has no CUDA.

    Where PyTorch itself is named, its rows say it.
    """
    matrix, text = question.matrix, row.needs.get(TORCH)
    if text is None or TORCH in question.versions or not matrix.has_trait(candidate.name, "cuda-of-torch"):
        return None
    for release in matrix.torch:
        version = parse_version(release.version)
        if version is None or covered(text, version) != "all":
            continue
        own = default_cuda(release, question)
        known = builds(release, question.os, question.machine)
        for build in (build for build in known if build.cuda and build.cuda == (own or build.cuda)):
            cuda = CudaVersion.parse(build.cuda)
            fit = code_runs_on(matrix, read_targets(build.targets), gpu.capability, driver_cuda=cuda, built_with=cuda)
            if fit.ok:
                holds = f"whose build for CUDA {build.cuda} holds code for {gpu.label} ({gpu.capability.sm})"
                reason = f"{candidate.label} needs {readable(TORCH, text)}, {holds}"
                return reworded(matrix, fit, reason, row, release)
    return None


def _as_jetpack(question: Question, candidate: Candidate, row: ReleaseRow, gpu: AskedGpu) -> Fit | None:
    """What needs a JetPack runs on the modules of each that it admits; where one is named, that one's rows say it."""
    text = row.needs.get(_JETPACK)
    if text is None or question.systems or gpu.model is None or candidate.name in SYSTEMS:
        return None
    for other in reversed(question.matrix.rows_of(_JETPACK)):
        admitted = _overlap(text, other.versions) and _overlap(gpu.model.jetpack or text, other.versions)
        if admitted and str(gpu.capability) in other.capabilities:
            release = other.versions.removeprefix("==")
            reason = f"{candidate.label} needs {readable(_JETPACK, text)}, and JetPack {release} is for {gpu.label}"
            return conclude(question.matrix, "compatible", reason, row, other)
    return None


@cache
def _overlap(text: str, other_text: str) -> bool:
    """Whether any version is admitted by both: if there is one, the bound of either is such a one, or starts such."""
    one, other = parse_specifier(text), parse_specifier(other_text)
    ends = [Version(bound.numbers, post=bound.post) for bound in (*one.bounds, *other.bounds)]
    return any(one.cover(end) != "none" and other.cover(end) != "none" for end in ends)
