"""CUDA's libraries by the toolkit that brings them: cuBLAS 12.4.5.8 is of CUDA 12.4."""

from __future__ import annotations

from collections.abc import Iterator

from envcheck.compat.names import canonical
from envcheck.compat.question.hardware import runner_of, runs
from envcheck.compat.question.question import Question, agree, reworded
from envcheck.compat.question.software import TOOLKIT
from envcheck.compat.relations.fit import Fit, conclude
from envcheck.compat.relations.gpu_cuda import cuda_serves
from envcheck.compat.specifier import Version, parse_specifier, parse_version
from envcheck.compat.tables import ReleaseRow
from envcheck.versions import CudaVersion


def part_fits(question: Question) -> Iterator[Fit]:
    """Each library of the toolkit that was named, against CUDA, what runs CUDA programs, and the GPUs."""
    for name, versions in question.versions.items():
        found = _bringing(question, name)
        if not found or len(versions) != 1 or versions[0].family:
            continue
        cuda, row, known = _toolkit_of(found, versions[0])
        if cuda is None or row is None:
            yield conclude(
                question.matrix, "unknown", f"no toolkit in the matrix brings {name} {versions[0]}"
            ).concerning(name)
            continue
        label = f"{name} {versions[0]} comes with CUDA {cuda}"
        if question.cuda:
            fits = [(str(one), _beside(question, label, cuda, one, row, known=known)) for one in question.cuda]
            yield agree(fits, question.labels["cuda"]).concerning(name, "cuda")
        runner = runner_of(question)
        if runner and known:
            fit = runs(question, cuda)
            yield reworded(question.matrix, fit, f"{label}: {fit.reason}", row).concerning(name, runner)
        for gpu in question.gpus if known else ():
            fit = cuda_serves(question.matrix, gpu.capability, cuda)
            yield reworded(question.matrix, fit, f"{label}: {fit.reason}", row).concerning(name, "gpu")


def _bringing(question: Question, name: str) -> list[tuple[CudaVersion, Version, ReleaseRow]]:
    """The toolkits that bring a library, ascending, each with the library's version in its newest update."""
    found = []
    for row in question.matrix.rows_of(TOOLKIT):
        brought = {canonical(key): text for key, text in row.bundles.items()}.get(name)
        version = parse_version(brought or "")
        numbers = parse_specifier(row.versions).bounds[0].numbers
        if version:
            found.append((CudaVersion(*numbers[:2]), version, row))
    return sorted(found, key=lambda item: item[0])


def _toolkit_of(
    found: list[tuple[CudaVersion, Version, ReleaseRow]], version: Version
) -> tuple[CudaVersion | None, ReleaseRow | None, bool]:
    """The toolkit that brings this very version, else the first whose newest update has no older one; whether that is
    known, or it may be older than all of them.
    """
    having = [(cuda, row) for cuda, own, row in found if own.numbers[: len(version.numbers)] == version.numbers]
    if having:
        return *having[0], len({cuda for cuda, _ in having}) == 1
    for place, (cuda, newest, row) in enumerate(found):
        shown = newest.numbers[: len(version.numbers)]
        if version.numbers <= shown:
            return cuda, row, place > 0
    return None, None, False


def _beside(
    question: Question, label: str, own: CudaVersion, cuda: CudaVersion, row: ReleaseRow, *, known: bool
) -> Fit:
    if own == cuda and known:
        return conclude(question.matrix, "compatible", label, row)
    if own.major != cuda.major and known:
        return conclude(question.matrix, "incompatible", f"{label}, not with CUDA {cuda}", row, change=f"CUDA {own}")
    reason = f"{label}; whether it works beside CUDA {cuda} is not documented"
    return conclude(question.matrix, "unknown", reason, row)
