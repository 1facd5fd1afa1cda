"""One build of a component against everything else that was named: its needs, what it brings, and the toolkit that a
library comes with (cuBLAS 12.4.5.8 is of CUDA 12.4).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from functools import lru_cache, partial
from typing import TypeAlias

import msgspec

from envcheck.compat.candidates import TORCH, Candidate, named_by, of_os
from envcheck.compat.devices import device_fits, system_fits
from envcheck.compat.hardware import NAME as FORWARD
from envcheck.compat.hardware import replaces_driver, runner_of, runs
from envcheck.compat.question import CONTAINER, LibraryWheel, Question, agree, listed, readable, reworded
from envcheck.compat.wheels import gpu_is_asked, serves, tells_pythons, wheel_fits
from envcheck.knowledge.matrix import Matrix
from envcheck.knowledge.names import HARDWARE, SETS, SYSTEMS, scheme
from envcheck.knowledge.relations.driver import minor_compatible
from envcheck.knowledge.relations.fit import VERDICTS, Fit, FitVerdict, conclude
from envcheck.knowledge.relations.gpu_code import cuda_serves
from envcheck.knowledge.specifier import Version, covered, parse_specifier, parse_version
from envcheck.knowledge.tables import Row
from envcheck.knowledge.tables.software import ReleaseRow
from envcheck.model.versions import CudaVersion

BEST_FIRST = ("compatible", "unknown", "incompatible")
_DRIVERS = {"driver-linux": False, "driver-windows": True, "driver": None}  # Whether Windows' numbers are meant
TOOLKIT = "cuda"  # Its parts have a separate relation
_OF_GPU_BUILDS = frozenset({"cuda", "cudnn", "nccl", *_DRIVERS})
"""What the package decides that brings the GPU code."""


def need_fits(question: Question, candidate: Candidate, row: ReleaseRow) -> Iterator[Fit]:
    """Every need whose component is named (or comes with one that is), and everything brought that is named too."""
    of_others = {key for name in row.alternatives for other in question.matrix.rows_of(name) for key in other.needs}
    for key, spec in row.needs.items():
        if key in _OF_GPU_BUILDS and (key in of_others or row.instead in question.versions):
            continue
        if candidate.cuda and (key == "cuda" or key in _DRIVERS):
            continue  # the row covers a build for another CUDA
        by_wheels = tells_pythons(question, candidate.wheels) or (question.free_threaded and candidate.wheels)
        if key == "python" and not question.systems and by_wheels:
            continue  # the names of wheels tell it, release by release, and system by system
        if key == "glibc" and row.cuda and not gpu_is_asked(question) and serves(question, candidate.wheels):
            continue  # the row covers a build with GPU code, and another wheel is enough
        if key in _DRIVERS:
            yield from _driver(question, candidate, row, key)
        elif key == "cuda":
            yield from _cuda(question, candidate, row)
        else:
            yield from _version(question, candidate, row, key, spec)
    for name, version in row.bundles.items() if candidate.name != TOOLKIT else ():
        if name in question.versions and name not in row.needs:
            yield _brought(question, candidate, row, name, version).concerning(candidate.name, name)


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
            extras = (
                one for one in reversed(question.matrix.extras) if candidate.name in (one.name, *one.brings)
            )  # of the package, or of the one that it is a plug-in of
            extra = next(extras, None) if beside and fit.bad else None
            if extra:
                reason = f"{reason}; {extra.name}[{extra.extras[0]}] brings CUDA libraries of its own"
                fit = msgspec.structs.replace(fit, verdict="unknown")
            rows = (row, implied.row, extra) if extra else (row, implied.row)
            yield reworded(question.matrix, fit, reason, *rows).concerning(candidate.name, implied.by)


def _brings_libraries(matrix: Matrix, candidate: Candidate, row: ReleaseRow) -> bool:
    """Whether pip installs NVIDIA's libraries along with a package, by itself or with PyTorch: those of an image serve
    what is compiled there, or loads them from there.
    """
    if "nvcc" in row.needs:
        return False
    required = [*row.needs, *(key for one in candidate.requirements for key in one.needs)]
    wheels = tuple(f"nvidia-{family.wheel}-cu" for family in matrix.families if family.wheel)
    return TORCH in required or any(key.startswith(wheels) for key in required)


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
    verdict = VERDICTS[covered(spec, version)]
    wanted = readable(name, spec)
    newest, disputed = (row.known.get(name), row.disputed.get(name)) if isinstance(row, ReleaseRow) else (None, None)
    if verdict == "compatible" and newest and covered(f"<={newest}", version) == "none":
        reason = f"{candidate.label} needs {wanted}; its documents name none newer than {newest}, and this is {version}"
        return conclude(matrix, "unknown", reason, row, change=f"{name} {newest}")
    if verdict == "compatible" and disputed and covered(disputed, version) != "none":
        reason = f"one source of {candidate.label} admits {wanted}, another leaves out {readable(name, disputed)}"
        return conclude(matrix, "unknown", f"{reason}; this is {version}", row)
    if verdict == "compatible":
        return conclude(matrix, verdict, f"{candidate.label} needs {wanted}, and this is {version}", row)
    which = f"some releases of {name} {version} match, others do not" if verdict == "unknown" else f"this is {version}"
    return conclude(matrix, verdict, f"{candidate.label} needs {wanted}; {which}", row, change=wanted)


def _driver(question: Question, candidate: Candidate, row: ReleaseRow, key: str) -> Iterator[Fit]:
    if not question.drivers or _DRIVERS[key] not in (None, question.windows_driver):
        return
    wanted = readable("driver", row.needs[key])
    fits = []
    for driver in question.drivers:
        verdict = VERDICTS[covered(row.needs[key], Version(tuple(driver)))]
        sign, change = (", and", "") if verdict == "compatible" else (";", wanted)
        reason = f"{candidate.label} needs {wanted}{sign} this is {driver}"
        fits.append((str(driver), conclude(question.matrix, verdict, reason, row, change=change)))
    fit = agree(fits, question.labels["driver"])
    replaced = question.compat is not None and replaces_driver(question, question.compat)
    if fit.bad and candidate.name != FORWARD and replaced:
        reason = f"{fit.reason}; whether cuda-compat compensates for it is not documented"
        fit = conclude(question.matrix, "unknown", reason, row)
    yield fit.concerning(candidate.name, "driver")


def _cuda(question: Question, candidate: Candidate, row: ReleaseRow) -> Iterator[Fit]:
    """CUDA is the one that is named, else nvcc's, else PyTorch's for what runs within it, else any that is admitted."""
    spec = row.needs["cuda"]
    name = next((each for each in ("cuda", "nvcc") if each in question.versions), None)
    implied = question.implied.get("cuda")
    if name or (implied and (implied.by != TORCH or TORCH in named_by(candidate.name, question.matrix))):
        yield from _version(question, candidate, row, name or "cuda", spec)
    runner = runner_of(question)
    if runner and row.cuda is None and "cuda" not in question.versions:
        fit = _any_runs(question, candidate, row)
        numbered = (key for key, windows in _DRIVERS.items() if windows in (None, question.windows_driver))
        own = next((row.needs[key] for key in numbered if key in row.needs), "")
        served = all(covered(own, Version(tuple(driver))) == "all" for driver in question.drivers if own)
        if fit and fit.bad and own and served:
            reason = f"documents disagree: {fit.reason}, and {candidate.label} needs {readable('driver', own)}"
            fit = reworded(question.matrix, msgspec.structs.replace(fit, verdict="unknown"), reason, row)
        if fit:
            yield fit.concerning(candidate.name, runner)


def _any_runs(question: Question, candidate: Candidate, row: ReleaseRow) -> Fit | None:
    """Whether the driver runs any CUDA that the row admits; None when the matrix knows none of them."""
    fits: list[Fit] = []
    for cuda in question.matrix.admitted_toolkits(parse_specifier(row.needs["cuda"])):
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
        reason = f"{candidate.label} comes with {name} for CUDA {own.major}; {wheel.name} is built for CUDA"
        reason = f"{reason} {wheel.major}, and whether it takes its place is not documented"
        return conclude(question.matrix, "unknown", reason, row)
    spec = parse_specifier(version)
    covers = {spec.cover(member) for member in question.versions[name]}
    if covers & {"all", "some"}:
        return conclude(question.matrix, "compatible", f"{candidate.label} comes with {name} {version}", row)
    reason = f"{candidate.label} comes with {name} {version} of its own"
    if candidate.name in SETS:
        return conclude(question.matrix, "unknown", f"{reason}; whether {label} works there is not documented", row)
    return conclude(question.matrix, "compatible", f"{reason}; {label} beside it does not conflict", row)


def candidate_fits(question: Question, candidate: Candidate) -> list[Fit]:
    """Everything that the rows of a candidate say about what was named."""
    found = [fit for row in candidate.rows for fit in _row_fits(question, candidate, row)]
    runner = runner_of(question)
    if candidate.cuda and runner:
        found.append(_run(question, candidate, candidate.cuda).concerning(candidate.name, runner))
    if candidate.cuda:  # of the build's code nothing is known, but what its CUDA cannot compile it does not hold
        served = (cuda_serves(question.matrix, gpu.capability, candidate.cuda) for gpu in question.gpus)
        found += [fit.concerning(candidate.name, "gpu") for fit in served if fit.bad]
    found += wheel_fits(question, candidate.label, candidate.name, candidate.wheels, candidate.rows)
    # A build by its tag and PyTorch's, which it is loaded into: code for two majors of CUDA does not mix.
    torch, rows = question.torch_cuda, [row for row in candidate.rows if TORCH in row.needs]
    if candidate.cuda and torch and rows:
        same = candidate.cuda.major == torch.version.numbers[0]
        verdict: FitVerdict = "compatible" if same else "incompatible"
        majors = "the same major version" if same else "different major versions"
        reason = f"{candidate.label} and {torch.label} are built with {majors} of CUDA"
        fit = conclude(question.matrix, verdict, reason, *rows, torch.row)
        found.append(fit.concerning(candidate.name, TORCH))
    return found


def _row_fits(question: Question, candidate: Candidate, row: ReleaseRow) -> Iterator[Fit]:
    yield from _on_system(question, candidate, row)
    if row.cuda == "":
        reason = f"{candidate.label} is built without support for NVIDIA GPUs{f' ({row.note})' if row.note else ''}"
        for name in question.labels:
            if name in HARDWARE or name == "cuda":
                yield conclude(question.matrix, "incompatible", reason, row).concerning(candidate.name, name)
    elif not row.one_of:
        cuda, runner = None if candidate.cuda else CudaVersion.parse(row.cuda), runner_of(question)
        if cuda and runner:
            yield _run(question, candidate, cuda, row).concerning(candidate.name, runner)
        if cuda and question.cuda and "cuda" not in row.needs:
            yield _named_cuda(question, candidate, row, cuda).concerning(candidate.name, "cuda")
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
    # What is for Windows, and for Linux on Arm, need not be for Windows on Arm.
    on_arm = (question.os, question.machine) == ("windows", "aarch64") and "windows" in row.os
    if not served and on_arm and (not row.machine or ("aarch64" in row.machine and len(row.os) > 1)):
        reason = f"{candidate.label} is for {listed(row.os)}; whether it is for Windows on Arm is not known"
        yield conclude(question.matrix, "unknown", reason, row).concerning(candidate.name, "machine")
        return
    parts = (
        ("os", question.os, row.os, of_os(row, question.os)),
        ("machine", question.machine, row.machine, not row.machine or question.machine in row.machine),
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


def part_fits(question: Question) -> Iterator[Fit]:
    """Each library of the toolkit that was named, against CUDA, what runs CUDA programs, and the GPUs."""
    for name, versions in question.versions.items():
        found = _toolkits_by_library(question.matrix).get(name)
        if not found or len(versions) != 1 or versions[0].family:
            continue
        if (toolkit := _toolkit_of(found, versions[0])) is None:
            if question.cuda or question.drivers or question.gpus:
                reason = f"no toolkit in the matrix brings {name} {versions[0]}"
                yield Fit(verdict="unknown", reason=reason, about=(name,))
            continue
        cuda, row, known = toolkit
        label = f"{name} {versions[0]} comes with CUDA {cuda}"
        if question.cuda:
            fits, answer = [], partial(conclude, question.matrix)
            for one in question.cuda:
                if known and one == cuda:
                    fit = answer("compatible", label, row)
                elif known and one.major != cuda.major:
                    fit = answer("incompatible", f"{label}, not with CUDA {one}", row, change=f"CUDA {cuda}")
                else:
                    fit = answer("unknown", f"{label}; whether it works beside CUDA {one} is not documented", row)
                fits.append((str(one), fit))
            yield agree(fits, question.labels["cuda"]).concerning(name, "cuda")
        runner = runner_of(question)
        if runner and known:
            fit = runs(question, cuda)
            yield reworded(question.matrix, fit, f"{label}: {fit.reason}", row).concerning(name, runner)
        for gpu in question.gpus if known else ():
            fit = cuda_serves(question.matrix, gpu.capability, cuda)
            yield reworded(question.matrix, fit, f"{label}: {fit.reason}", row).concerning(name, "gpu")


_Brought: TypeAlias = list[tuple[CudaVersion, Version, ReleaseRow]]


@lru_cache(maxsize=8)
def _toolkits_by_library(matrix: Matrix) -> dict[str, _Brought]:
    """By library, the toolkits that bring it, ascending, each with the library's version in the newest update."""
    found: dict[str, _Brought] = defaultdict(list)
    for row in matrix.rows_of(TOOLKIT):
        for library, text in row.bundles.items():
            if own := parse_version(text):
                cuda = CudaVersion(*parse_specifier(row.versions).bounds[0].numbers[:2])
                found[library].append((cuda, own, row))
    return {name: sorted(rows, key=lambda item: item[0]) for name, rows in found.items()}


def _toolkit_of(found: _Brought, version: Version) -> tuple[CudaVersion, ReleaseRow, bool] | None:
    """The toolkit that brings this very version, else the first whose newest update has no older one; whether that is
    known, or it may be older than all of them.
    """
    having = [(cuda, row) for cuda, own, row in found if own.numbers[: len(version.numbers)] == version.numbers]
    if having:
        return *having[0], len({cuda for cuda, _ in having}) == 1
    for place, (cuda, newest, row) in enumerate(found):
        if version.numbers <= newest.numbers[: len(version.numbers)]:
            return cuda, row, place > 0
    return None
