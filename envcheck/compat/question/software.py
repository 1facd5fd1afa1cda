"""One build of a component against everything else that was named: its needs, and the GPUs that it runs on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache

import msgspec

from envcheck.compat.matrix import Matrix
from envcheck.compat.names import HARDWARE, SETS, SYSTEMS, canonical, scheme
from envcheck.compat.question.candidates import TORCH, Candidate, default_cuda, of_machine, of_os
from envcheck.compat.question.hardware import NAME as FORWARD
from envcheck.compat.question.hardware import driver_cudas, replaces_driver, runner_of, runs
from envcheck.compat.question.question import (
    CONTAINER,
    AskedGpu,
    LibraryWheel,
    Question,
    agree,
    listed,
    readable,
    reworded,
)
from envcheck.compat.question.wheels import gpu_is_asked, serves, tells_pythons, wheel_fits
from envcheck.compat.relations.driver_cuda import minor_compatible
from envcheck.compat.relations.fit import Fit, FitVerdict, conclude
from envcheck.compat.relations.gpu_code import code_runs_on, read_targets, runs_natively
from envcheck.compat.relations.gpu_cuda import cuda_serves, cuda_targets
from envcheck.compat.relations.torch import builds, targets_of
from envcheck.compat.specifier import Cover, Specifier, Version, covered, parse_specifier, parse_version
from envcheck.compat.tables import ExtraRow, ReleaseRow, Row
from envcheck.versions import CodeTarget, ComputeCapability, CudaVersion, DriverRelease

# Whether the libraries that a build needs leave a GPU out, whichever of the admitted versions is taken.

_FOR_A_PART = ("triton",)
"""What only a part of a package runs on: PyTorch computes without Triton, its compiler does not."""
_FOR_A_PART_OF_TORCH = ("nvidia-cudnn", "nvidia-cusparselt")
"""How libraries are called that it needs for its convolutions, or for sparse products, alone."""

_VERDICTS: dict[Cover, FitVerdict] = {"all": "compatible", "some": "unknown", "none": "incompatible"}
BEST_FIRST = ("compatible", "unknown", "incompatible")
_DRIVERS = {"driver-linux": False, "driver-windows": True, "driver": None}
"""Whether Windows' numbers are meant."""
TOOLKIT = "cuda"
"""Its parts have a separate relation."""
_COMPILER = "nvcc"
_OF_GPU_BUILDS = frozenset({"cuda", "cudnn", "nccl", *_DRIVERS})
"""What the package decides that brings the GPU code."""


def is_for_a_part(package: str, name: str) -> bool:
    """Whether only a part of a package needs the other one."""
    return name in _FOR_A_PART or (package == TORCH and name.startswith(_FOR_A_PART_OF_TORCH))


_JETPACK = "jetpack"
_YET_TO_COME = Version((10**6,))


def stack_refuses(question: Question, candidate: Candidate, row: ReleaseRow, gpu: AskedGpu) -> Fit | None:
    """Why no version of a library that the build needs runs on ``gpu``; None when one does, or it is not known."""
    if candidate.cuda:
        return None
    by_cuda = _cuda_refuses(question.matrix, candidate, row, gpu)
    by_library = by_cuda or next(_libraries_refuse(question.matrix, candidate, row, gpu), None)
    return by_library or _torch_refuses(question, candidate, row, gpu)


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


def _cuda_refuses(matrix: Matrix, candidate: Candidate, row: ReleaseRow, gpu: AskedGpu) -> Fit | None:
    """The toolkits that may be used; or the one it was built with, which can have left no code for what it dropped."""
    if "cuda" in row.needs:
        spec = parse_specifier(row.needs["cuda"])
        admitted = matrix.admitted_toolkits(spec)
        fits = [cuda_serves(matrix, gpu.capability, version) for version in admitted]
        if not fits or not all(fit.bad for fit in fits) or _open(spec, admitted[-1]):
            return None
        return reworded(matrix, fits[-1], f"{candidate.label} on {gpu.label}: {fits[-1].reason}", row)
    built = CudaVersion.parse(row.cuda)
    fit = cuda_targets(matrix, gpu.capability, built) if built else None
    if fit is None or not fit.bad:
        return None
    dropped = fit.nearest_change.startswith("CUDA <=")
    told = msgspec.structs.replace(fit, verdict="incompatible" if dropped else "unknown")
    return reworded(matrix, told, f"{candidate.label} on {gpu.label}: {fit.reason}", row) if not row.targets else None


def _open(spec: Specifier, newest: CudaVersion) -> bool:
    """Whether the next toolkit, which nobody knows yet, would be admitted too."""
    return spec.cover(Version((newest.major, newest.minor + 1))) != "none" and spec.cover(_YET_TO_COME) != "none"


def _libraries_refuse(matrix: Matrix, candidate: Candidate, row: ReleaseRow, gpu: AskedGpu) -> Iterator[Fit]:
    chosen = _chosen_from(row)
    for key, text in row.needs.items():
        if is_for_a_part(candidate.name, key) or key in chosen or key in row.optional:
            continue
        spec = parse_specifier(text)
        rows = [other for other in matrix.rows_of(canonical(key)) if _overlap(text, other.versions)]
        refusals = [refused(other, gpu) for other in rows]
        if rows and None not in refusals and spec.cover(_YET_TO_COME) == "none":
            what, _ = refusals[-1] or ("", "")
            reason = f"{candidate.label} needs {readable(key, text)}, which {what}; {gpu.label} has {gpu.capability}"
            yield conclude(matrix, "incompatible", reason, row, *rows)


def _torch_refuses(question: Question, candidate: Candidate, row: ReleaseRow, gpu: AskedGpu) -> Fit | None:
    """Why no build of PyTorch that it admits runs on ``gpu``; None where one does, or a build is not known."""
    matrix, text = question.matrix, row.needs.get(TORCH)
    spec = parse_specifier(text) if text and TORCH not in (*_chosen_from(row), *row.optional) else None
    capability = matrix.capability_rows.get(gpu.capability)
    if spec is None or spec.cover(_YET_TO_COME) != "none" or capability is None or capability.tegra:
        return None
    versions = [(each, parse_version(each.version)) for each in matrix.torch]
    releases = [each for each, version in versions if version is not None and spec.cover(version) != "none"]
    refusals = [
        code_runs_on(matrix, targets_of(build), gpu.capability, built_with=CudaVersion.parse(build.cuda))
        for release in releases
        for build in builds(release, question.os, question.machine)
        if build.cuda
    ]
    if not all(each.all_builds for each in releases) or not refusals or not all(each.bad for each in refusals):
        return None
    reason = f"{candidate.label} needs {readable(TORCH, text or '')}, and no build of it has code for {gpu.label}"
    return reworded(matrix, refusals[0], f"{reason} ({gpu.capability.sm})", row)


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
            fit = code_runs_on(matrix, targets_of(build), gpu.capability, driver_cuda=cuda, built_with=cuda)
            if fit.ok:
                reason = (
                    f"{candidate.label} needs {readable(TORCH, text)}, whose build for CUDA {build.cuda} holds code"
                )
                return reworded(matrix, fit, f"{reason} for {gpu.label} ({gpu.capability.sm})", row, release)
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


# One build of a component against the GPUs that were named: by its documents, and by the code that it holds.


def device_fits(question: Question, candidate: Candidate, row: ReleaseRow) -> Iterator[Fit]:
    """Whether the build runs on each GPU; nothing where its row says nothing of GPUs."""
    for gpu in question.gpus:
        fit = _beside_cuda(question, candidate, row, gpu) or _documented(question.matrix, candidate, row, gpu)
        if fit is None or (fit.ok and not _bounded(row)):
            fit = _by_code(question, candidate, row, gpu) or fit
            fit = (fit if fit and fit.bad else None) or stack_refuses(question, candidate, row, gpu) or fit
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
        serving = [
            one for one in capabilities if any(runs_natively(question.matrix, target, one) for target in targets)
        ]
        listing = listed([one.sm for one in serving or capabilities])
        verdict: FitVerdict = "compatible" if serving else "incompatible"
        reason = f"{candidate.label} holds {'' if serving else 'no '}native code for {listing} of {system.label}"
        yield conclude(question.matrix, verdict, reason, row, system.row).concerning(candidate.name, system.by)


def _documented(matrix: Matrix, candidate: Candidate, row: ReleaseRow, gpu: AskedGpu) -> Fit | None:
    """What the documents say of compute capabilities."""
    refusal = refused(row, gpu)
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
    if not _bounded(row) and _newer_than_toolkit(matrix, row, gpu):
        reason = f"{candidate.label} was built with CUDA {row.cuda}, which is older than {gpu.capability.sm}"
        return conclude(matrix, "unknown", reason, row)
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


def _newer_than_toolkit(matrix: Matrix, row: ReleaseRow, gpu: AskedGpu) -> bool:
    cuda = CudaVersion.parse(row.cuda)
    return cuda is not None and cuda_targets(matrix, gpu.capability, cuda).nearest_change.startswith("CUDA >=")


def _by_code(question: Question, candidate: Candidate, row: ReleaseRow, gpu: AskedGpu) -> Fit | None:
    """What the GPU code that it holds says. Where no driver is named, one that compiles its PTX is no constraint."""
    if row.code:
        return _by_its_code(question, candidate, row, gpu)
    targets = read_targets(row.targets)
    if not targets or candidate.cuda:
        return None
    cuda = CudaVersion.parse(row.cuda)
    spoken: Sequence[CudaVersion | None] = driver_cudas(question) or (cuda,)
    fits = [
        (str(version), code_runs_on(question.matrix, targets, gpu.capability, driver_cuda=version, built_with=cuda))
        for version in spoken
    ]
    fit = agree(fits, question.labels.get("driver", ""))
    if fit.bad and _supported_below(row, gpu, targets):
        return None
    if fit.ok and not question.drivers and not question.compat and not _native(question.matrix, targets, gpu):
        reason = f"{candidate.label} has only PTX for {gpu.label}, which a driver with CUDA {cuda} or newer compiles"
    else:
        reason = f"{candidate.label} on {gpu.label}: {fit.reason}"
    return reworded(question.matrix, fit, reason, row)


def _by_its_code(question: Question, candidate: Candidate, row: ReleaseRow, gpu: AskedGpu) -> Fit | None:
    """The library for the CUDA that was named, or comes with PyTorch; where neither tells, any of them."""
    named = question.cuda or tuple(
        CudaVersion(*implied.version.numbers[:2]) for name, implied in question.implied.items() if name == "cuda"
    )
    loaded = {_loaded(row, cuda) for cuda in named}
    chosen = [(text, targets) for text, targets in row.code.items() if not named or text in loaded]
    fits = [
        (text, code_runs_on(question.matrix, read_targets(targets), gpu.capability, built_with=CudaVersion.parse(text)))
        for text, targets in chosen
    ]
    if not fits:
        return None
    fitting = [text for text, fit in fits if fit.ok]
    if fitting:
        which = (
            f"its libraries for CUDA {listed(fitting)} hold"
            if len(fitting) > 1
            else f"its library for CUDA {fitting[0]} holds"
        )
        reason = f"{candidate.label} on {gpu.label}: {which} code for {gpu.capability.sm}"
        return conclude(question.matrix, "compatible", reason, row)
    text, refusal = fits[-1]
    change = next((other for other, targets in row.code.items() if _holds(question.matrix, targets, gpu)), "")
    reason = f"{candidate.label} on {gpu.label}, its library for CUDA {text}: {refusal.reason}"
    told = reworded(question.matrix, refusal, reason, row)
    return msgspec.structs.replace(told, nearest_change=f"CUDA {change}") if change else told


def _loaded(row: ReleaseRow, cuda: CudaVersion) -> str:
    """The library that is loaded beside a CUDA: its own, else the newest before it of the same major."""
    known = [(version, text) for text in row.code if (version := CudaVersion.parse(text))]
    return max(
        ((version, text) for version, text in known if version.major == cuda.major and version <= cuda),
        default=(cuda, ""),
    )[1]


def _holds(matrix: Matrix, targets: Sequence[str], gpu: AskedGpu) -> bool:
    return _native(matrix, read_targets(targets), gpu)


def _native(matrix: Matrix, targets: Sequence[CodeTarget], gpu: AskedGpu) -> bool:
    return any(runs_natively(matrix, target, gpu.capability) for target in targets)


def _supported_below(row: ReleaseRow, gpu: AskedGpu, targets: Sequence[CodeTarget]) -> bool:
    """Whether documents promise a GPU that is older than some of the code: they outrank what was found in files."""
    return row.capability_min is not None and gpu.capability <= max(target.capability for target in targets)


# What a build needs, and what it brings, against the other components that were named.


def need_fits(question: Question, candidate: Candidate, row: ReleaseRow) -> Iterator[Fit]:
    """Every need whose component is named (or comes with one that is), and everything brought that is named too."""
    left_to_others = {
        key for name in _chosen_from(row) for other in question.matrix.rows_of(name) for key in other.needs
    }
    for key, spec in row.needs.items():
        if key in _OF_GPU_BUILDS and (key in left_to_others or row.instead in question.versions):
            continue
        if candidate.cuda and (key == "cuda" or key in _DRIVERS):
            continue  # the row covers a build for another CUDA
        if key == "python" and not question.systems and _wheels_tell(question, candidate):
            continue  # release by release, and system by system
        if key == "glibc" and row.cuda and not gpu_is_asked(question) and serves(question, candidate.wheels):
            continue  # the row covers a build with GPU code, and another wheel is enough
        if key in _DRIVERS:
            yield from _driver(question, candidate, row, key)
        elif key == "cuda":
            yield from _cuda(question, candidate, row)
        else:
            yield from _version(question, candidate, row, canonical(key), spec)
    for key, version in row.bundles.items() if candidate.name != TOOLKIT else ():
        name = canonical(key)
        if name in question.versions and name not in map(canonical, row.needs):
            yield _brought(question, candidate, row, name, version).concerning(candidate.name, name)


def _wheels_tell(question: Question, candidate: Candidate) -> bool:
    """Whether names of wheels tell the Pythons."""
    return tells_pythons(question, candidate.wheels) or (question.free_threaded and bool(candidate.wheels))


def _chosen_from(row: ReleaseRow) -> list[str]:
    """The packages of which one is enough."""
    return [name for group in row.one_of for name in group]


def _version(question: Question, candidate: Candidate, row: ReleaseRow, name: str, spec: str) -> Iterator[Fit]:
    if name in question.versions:
        fits = [
            (str(version), need_fit(question.matrix, candidate, row, name, spec, version))
            for version in question.versions[name]
        ]
        wheel = question.libraries.get(name)
        if wheel and (refusal := _other_major(question.matrix, candidate, row, wheel)):
            yield refusal.concerning(candidate.name, name)
        fit = agree(fits, question.labels.get(name, name))
        if name == "python" and question.free_threaded and fit.ok:
            reason = f"{fit.reason}; whether there is a build for free-threaded Python is not documented"
            fit = conclude(question.matrix, "unknown", reason, row)
        yield fit.concerning(candidate.name, name)
    elif name in question.implied:
        implied = question.implied[name]
        if not {implied.by, candidate.name} <= SYSTEMS:
            fit = need_fit(question.matrix, candidate, row, name, spec, implied.version)
            beside = not fit.ok and implied.by == CONTAINER and name in _OF_GPU_BUILDS
            if (fit.bad and name in row.optional) or (beside and _brings_libraries(question.matrix, candidate, row)):
                return  # it does without what merely happens to be there
            reason = f"{fit.reason} (it comes with {implied.label})"
            extra = next(_extras_with_libraries(question.matrix, candidate), None) if beside and fit.bad else None
            if extra:
                reason = f"{reason}; {extra.name}[{extra.extras[0]}] brings CUDA libraries of its own"
                fit = msgspec.structs.replace(fit, verdict="unknown")
            rows = (row, implied.row, extra) if extra else (row, implied.row)
            yield reworded(question.matrix, fit, reason, *rows).concerning(candidate.name, implied.by)


def _brings_libraries(matrix: Matrix, candidate: Candidate, row: ReleaseRow) -> bool:
    """Whether pip installs NVIDIA's libraries along with a package, by itself or with PyTorch: those of an image serve
    what is compiled there, or loads them from there.
    """
    if _COMPILER in row.needs:
        return False
    required = [*row.needs, *(key for one in candidate.requirements for key in one.needs)]
    wheels = tuple(f"nvidia-{family.wheel}-cu" for family in matrix.families if family.wheel)
    return TORCH in required or any(key.startswith(wheels) for key in required)


def _extras_with_libraries(matrix: Matrix, candidate: Candidate) -> Iterator[ExtraRow]:
    """The extras that bring NVIDIA's libraries, of the package or of the one that it is a plug-in of."""
    for extra in reversed(matrix.extras):
        if candidate.name == extra.name or candidate.name in extra.brings:
            yield extra


def _other_major(matrix: Matrix, candidate: Candidate, row: ReleaseRow, wheel: LibraryWheel) -> Fit | None:
    """A library that is built for another CUDA major than what loads it."""
    if wheel.major is None:
        return None
    own = CudaVersion.parse(row.cuda)
    spec = row.needs.get("cuda")
    taken = covered(spec, Version((wheel.major,), scheme=scheme("cuda"))) != "none" if spec else None
    if taken or (taken is None and (own is None or own.major == wheel.major)):
        return None
    which = readable("CUDA", spec) if spec else f"CUDA {row.cuda}"
    reason = f"{candidate.label} needs {which}, and {wheel.name} is built for CUDA {wheel.major}"
    return conclude(matrix, "incompatible", reason, row)


def need_fit(matrix: Matrix, candidate: Candidate, row: Row, name: str, spec: str, version: Version) -> Fit:
    verdict = _VERDICTS[covered(spec, version)]
    wanted = readable(name, spec)
    newest, disputed = (row.known.get(name), row.disputed.get(name)) if isinstance(row, ReleaseRow) else (None, None)
    if verdict == "compatible" and newest and covered(f"<={newest}", version) == "none":
        reason = f"{candidate.label} needs {wanted}; its documents name none newer than {newest}, and this is {version}"
        return conclude(matrix, "unknown", reason, row, change=f"{name} {newest}")
    if verdict == "compatible" and disputed and covered(disputed, version) != "none":
        reason = f"{candidate.label} has files for {wanted}, and its documents leave out {readable(name, disputed)}"
        return conclude(matrix, "unknown", f"{reason}; this is {version}", row)
    if verdict == "compatible":
        return conclude(matrix, verdict, f"{candidate.label} needs {wanted}, and this is {version}", row)
    which = f"some releases of {name} {version} match, others do not" if verdict == "unknown" else f"this is {version}"
    return conclude(matrix, verdict, f"{candidate.label} needs {wanted}; {which}", row, change=wanted)


def _driver(question: Question, candidate: Candidate, row: ReleaseRow, key: str) -> Iterator[Fit]:
    windows = _DRIVERS[key]
    if not question.drivers or windows not in (None, question.windows_driver):
        return
    fits = [(str(driver), _driver_need(question.matrix, candidate, row, key, driver)) for driver in question.drivers]
    fit = agree(fits, question.labels["driver"])
    replaced = question.compat is not None and replaces_driver(question, question.compat)
    if fit.bad and candidate.name != FORWARD and replaced:
        reason = f"{fit.reason}; whether cuda-compat compensates for it is not documented"
        fit = conclude(question.matrix, "unknown", reason, row)
    yield fit.concerning(candidate.name, "driver")


def _driver_need(matrix: Matrix, candidate: Candidate, row: ReleaseRow, key: str, driver: DriverRelease) -> Fit:
    spec = row.needs[key]
    verdict = _VERDICTS[covered(spec, Version(tuple(driver)))]
    wanted = readable("driver", spec)
    if verdict == "compatible":
        return conclude(matrix, verdict, f"{candidate.label} needs {wanted}, and this is {driver}", row)
    return conclude(matrix, verdict, f"{candidate.label} needs {wanted}; this is {driver}", row, change=wanted)


def _cuda(question: Question, candidate: Candidate, row: ReleaseRow) -> Iterator[Fit]:
    """CUDA is the one that is named, else nvcc's, else PyTorch's for what runs within it, else any that is admitted."""
    spec = row.needs["cuda"]
    if "cuda" in question.versions:
        yield from _version(question, candidate, row, "cuda", spec)
    elif "nvcc" in question.versions:
        yield from _version(question, candidate, row, "nvcc", spec)
    elif "cuda" in question.implied and (question.implied["cuda"].by != "torch" or "torch" in row.needs):
        yield from _version(question, candidate, row, "cuda", spec)
    runner = runner_of(question)
    if runner and row.cuda is None and "cuda" not in question.versions:
        fit = _any_runs(question, candidate, row)
        own = _own_driver(question, row)
        if fit and fit.bad and own:
            reason = f"documents disagree: {fit.reason}, and {candidate.label} needs {readable('driver', own)}"
            fit = reworded(question.matrix, msgspec.structs.replace(fit, verdict="unknown"), reason, row)
        if fit:
            yield fit.concerning(candidate.name, runner)


def _own_driver(question: Question, row: ReleaseRow) -> str:
    """The drivers that the row itself asks for, where each that was named is one of them; else empty text."""
    here = (key for key, windows in _DRIVERS.items() if windows in (None, question.windows_driver))
    spec = next((row.needs[key] for key in here if key in row.needs), "")
    met = bool(spec) and all(covered(spec, Version(tuple(driver))) == "all" for driver in question.drivers)
    return spec if met else ""


def _any_runs(question: Question, candidate: Candidate, row: ReleaseRow) -> Fit | None:
    """Whether the driver runs any CUDA that the row admits; None when the matrix knows none of them."""
    admitted = question.matrix.admitted_toolkits(parse_specifier(row.needs["cuda"]))
    fits: list[Fit] = []
    for cuda in admitted:
        fits.append(runs(question, cuda))
        if fits[-1].ok:
            break
    if not fits:
        return None
    best = min(fits, key=lambda fit: BEST_FIRST.index(fit.verdict))
    reason = f"{candidate.label} needs {readable('CUDA', row.needs['cuda'])}: {best.reason}"
    return reworded(question.matrix, best, reason, row)


def _brought(question: Question, candidate: Candidate, row: ReleaseRow, name: str, version: str) -> Fit:
    """A copy of its own does no harm to another one; system software is not known to work with another one."""
    label = question.labels.get(name, name)
    wheel, own = question.libraries.get(name), CudaVersion.parse(row.cuda)
    if wheel and wheel.major and own and wheel.major != own.major:
        reason = (
            f"{candidate.label} comes with {name} for CUDA {own.major}; {wheel.name} is built for CUDA {wheel.major}"
        )
        told = f"{reason}, and whether it takes its place is not documented"
        return conclude(question.matrix, "unknown", told, row)
    spec = parse_specifier(version)
    covers = {spec.cover(member) for member in question.versions[name]}
    if covers & {"all", "some"}:
        return conclude(question.matrix, "compatible", f"{candidate.label} comes with {name} {version}", row)
    reason = f"{candidate.label} comes with {name} {version} of its own"
    if candidate.name in SETS:
        return conclude(question.matrix, "unknown", f"{reason}; whether {label} works there is not documented", row)
    return conclude(question.matrix, "compatible", f"{reason}; {label} beside it does not conflict", row)


# One build of a component against everything else that was named.


def candidate_fits(question: Question, candidate: Candidate) -> list[Fit]:
    """Everything that the rows of a candidate say about what was named."""
    found = [fit for row in candidate.rows for fit in _row_fits(question, candidate, row)]
    runner = runner_of(question)
    if candidate.cuda and runner:
        found.append(_run(question, candidate, candidate.cuda).concerning(candidate.name, runner))
    found += wheel_fits(question, candidate.label, candidate.name, candidate.wheels, candidate.rows)
    return found + _beside_torch(question, candidate)


def _beside_torch(question: Question, candidate: Candidate) -> list[Fit]:
    """A build by its tag and PyTorch's, which it is loaded into: code for two majors of CUDA does not mix."""
    torch = question.torch_cuda
    rows = [row for row in candidate.rows if TORCH in row.needs]
    if not candidate.cuda or torch is None or not rows:
        return []
    same = candidate.cuda.major == torch.version.numbers[0]
    verdict: FitVerdict = "compatible" if same else "incompatible"
    majors = "the same major version" if same else "different major versions"
    reason = f"{candidate.label} and {torch.label} are built with {majors} of CUDA"
    return [conclude(question.matrix, verdict, reason, *rows, torch.row).concerning(candidate.name, TORCH)]


def _row_fits(question: Question, candidate: Candidate, row: ReleaseRow) -> Iterator[Fit]:
    yield from _on_system(question, candidate, row)
    if row.cuda == "":
        yield from _without_gpu(question, candidate, row)
    elif not row.one_of:
        yield from _built_with(question, candidate, row)
        yield from device_fits(question, candidate, row)
        yield from system_fits(question, candidate, row)
    yield from need_fits(question, candidate, row)


def _on_system(question: Question, candidate: Candidate, row: ReleaseRow) -> Iterator[Fit]:
    """The system, where a row says which; one that is right and was not named goes without saying.

    Rows are about systems with a GPU: where none is to be used, a wheel is all that is needed. Where there is a source
    archive instead, it may be compiled for another processor, of which the rows of wheels speak.
    """
    served = serves(question, candidate.wheels)
    if served and not gpu_is_asked(question):
        return
    compiled = not served and any(row.archive for row in candidate.wheels)
    parts = (
        ("os", question.os, row.os, of_os(row, question)),
        ("machine", question.machine, row.machine, of_machine(row, question)),
    )
    for name, here, there, right in parts:
        only = listed(there)
        if right and there and name in question.labels:
            fit = conclude(question.matrix, "compatible", f"{candidate.label} is for {only}", row)
            yield fit.concerning(candidate.name, name)
        if not right and not (compiled and name == "machine"):
            reason = f"{candidate.label} is for {only}, not for {here}"
            fit = conclude(question.matrix, "incompatible", reason, row, change=f"{name} {only}")
            yield fit.concerning(candidate.name, name)


def _without_gpu(question: Question, candidate: Candidate, row: ReleaseRow) -> Iterator[Fit]:
    for name in question.labels:
        if name in HARDWARE or name == "cuda":
            reason = f"{candidate.label} is built without support for NVIDIA GPUs{f' ({row.note})' if row.note else ''}"
            yield conclude(question.matrix, "incompatible", reason, row).concerning(candidate.name, name)


def _built_with(question: Question, candidate: Candidate, row: ReleaseRow) -> Iterator[Fit]:
    cuda = None if candidate.cuda else CudaVersion.parse(row.cuda)
    if cuda is None:
        return
    runner = runner_of(question)
    if runner:
        yield _run(question, candidate, cuda, row).concerning(candidate.name, runner)
    if question.cuda and "cuda" not in row.needs:
        yield _named_cuda(question, candidate, row, cuda).concerning(candidate.name, "cuda")


def _run(question: Question, candidate: Candidate, cuda: CudaVersion, row: ReleaseRow | None = None) -> Fit:
    """Whether what runs CUDA programs here runs this build."""
    fit = runs(question, cuda)
    reason = f"{candidate.label} is built with CUDA {cuda}: {fit.reason}"
    return reworded(question.matrix, fit, reason, row)


def _named_cuda(question: Question, candidate: Candidate, row: ReleaseRow, cuda: CudaVersion) -> Fit:
    """The CUDA that was named and the one that a build was made with, where the row does not say what may be beside."""
    if cuda in question.cuda:
        return conclude(question.matrix, "compatible", f"{candidate.label} is built with CUDA {cuda}", row)
    majors = {member.major for member in question.cuda}
    label = question.labels["cuda"]
    if majors == {cuda.major} and minor_compatible(cuda):
        reason = f"{candidate.label} is built with CUDA {cuda}, which has the same major version as {label}"
        return conclude(question.matrix, "compatible", reason, row)
    reason = f"{candidate.label} is built with CUDA {cuda}, not for {label}"
    verdict: FitVerdict = "incompatible" if row.build else "unknown"
    return conclude(question.matrix, verdict, reason, row, change=f"CUDA {cuda}")
