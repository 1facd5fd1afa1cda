"""One build of a component against everything else that was named."""

from __future__ import annotations

from collections.abc import Iterator

from envcheck.compat.cuda_rows import minor_compatible
from envcheck.compat.fit import Fit, FitVerdict, conclude
from envcheck.compat.question.candidates import Candidate, of_machine, of_os
from envcheck.compat.question.device import judge_device, judge_system
from envcheck.compat.question.hardware import runner_of, runs
from envcheck.compat.question.judgement import Judgement, retell
from envcheck.compat.question.names import HARDWARE
from envcheck.compat.question.needs import judge_needs
from envcheck.compat.question.question import Question
from envcheck.compat.question.torch import NAME as TORCH
from envcheck.compat.question.wording import listed
from envcheck.compat.tables import ReleaseRow, Tables
from envcheck.versions import CudaVersion


def judge_candidate(tables: Tables, question: Question, candidate: Candidate) -> list[Judgement]:
    """Everything that the rows of a candidate say about what was named."""
    found = [judgement for row in candidate.rows for judgement in _judge_row(tables, question, candidate, row)]
    runner = runner_of(question)
    if candidate.cuda and runner:
        found.append(Judgement((candidate.name, runner), _run(tables, question, candidate, candidate.cuda)))
    return found + _beside_torch(tables, question, candidate)


def _beside_torch(tables: Tables, question: Question, candidate: Candidate) -> list[Judgement]:
    """A build by its tag and PyTorch's, which it is loaded into: code for two majors of CUDA does not mix."""
    torch = question.torch_cuda
    rows = [row for row in candidate.rows if TORCH in row.needs]
    if not candidate.cuda or torch is None or not rows:
        return []
    same = candidate.cuda.major == torch.version.numbers[0]
    verdict: FitVerdict = "compatible" if same else "incompatible"
    reason = f"{candidate.label} and {torch.label} are built with {'one major' if same else 'different majors'} of CUDA"
    return [Judgement((candidate.name, TORCH), conclude(tables, verdict, reason, *rows, torch.row))]


def _judge_row(tables: Tables, question: Question, candidate: Candidate, row: ReleaseRow) -> Iterator[Judgement]:
    yield from _on_system(tables, question, candidate, row)
    if row.cuda == "":
        yield from _without_gpu(tables, question, candidate, row)
    else:
        yield from _built_with(tables, question, candidate, row)
        yield from judge_device(tables, question, candidate, row)
        yield from judge_system(tables, question, candidate, row)
    yield from judge_needs(tables, question, candidate, row)


def _on_system(tables: Tables, question: Question, candidate: Candidate, row: ReleaseRow) -> Iterator[Judgement]:
    """The system, where a row says which; one that is right and was not named goes without saying."""
    parts = (
        ("os", question.os, row.os, of_os(row, question)),
        ("machine", question.machine, row.machine, of_machine(row, question)),
    )
    for name, here, there, right in parts:
        only = listed(there)
        if right and there and name in question.labels:
            fit = conclude(tables, "compatible", f"{candidate.label} is for {only}", row)
            yield Judgement((candidate.name, name), fit)
        if not right:
            reason = f"{candidate.label} is for {only}, not for {here}"
            fit = conclude(tables, "incompatible", reason, row, change=f"{name} {only}")
            yield Judgement((candidate.name, name), fit)


def _without_gpu(tables: Tables, question: Question, candidate: Candidate, row: ReleaseRow) -> Iterator[Judgement]:
    for name in question.labels:
        if name in HARDWARE or name == "cuda":
            reason = f"{candidate.label} is built without support for NVIDIA GPUs{f' ({row.note})' if row.note else ''}"
            yield Judgement((candidate.name, name), conclude(tables, "incompatible", reason, row))


def _built_with(tables: Tables, question: Question, candidate: Candidate, row: ReleaseRow) -> Iterator[Judgement]:
    cuda = None if candidate.cuda else CudaVersion.parse(row.cuda)
    if cuda is None:
        return
    runner = runner_of(question)
    if runner:
        yield Judgement((candidate.name, runner), _run(tables, question, candidate, cuda, row))
    if question.cuda and "cuda" not in row.needs:
        yield Judgement((candidate.name, "cuda"), _named_cuda(tables, question, candidate, row, cuda))


def _run(
    tables: Tables, question: Question, candidate: Candidate, cuda: CudaVersion, row: ReleaseRow | None = None
) -> Fit:
    """Whether what runs CUDA programs here runs this build."""
    fit = runs(tables, question, cuda)
    reason = f"{candidate.label} is built with CUDA {cuda}: {fit.reason}"
    return retell(tables, fit, reason, row)


def _named_cuda(tables: Tables, question: Question, candidate: Candidate, row: ReleaseRow, cuda: CudaVersion) -> Fit:
    """The CUDA that was named and the one that a build was made with, where the row does not say what may be beside."""
    if cuda in question.cuda:
        return conclude(tables, "compatible", f"{candidate.label} is built with CUDA {cuda}", row)
    majors = {member.major for member in question.cuda}
    label = question.labels["cuda"]
    if majors == {cuda.major} and minor_compatible(cuda):
        reason = f"{candidate.label} is built with CUDA {cuda}, of the same major as {label}"
        return conclude(tables, "compatible", reason, row)
    reason = f"{candidate.label} is built with CUDA {cuda}, not for {label}"
    verdict: FitVerdict = "incompatible" if row.build else "unknown"
    return conclude(tables, verdict, reason, row, change=f"CUDA {cuda}")
