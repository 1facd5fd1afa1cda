"""What is compiled where it is installed, against PyTorch, whose tools refuse an nvcc of another major of CUDA.

Such a package is one whose rows need both ``nvcc`` and ``torch``. Rows of ``torch-extension``, by releases of PyTorch,
say for which that holds. PyTorch itself runs without nvcc: where nothing is compiled, another major settles nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

from envcheck.compat.fit import Fit, conclude
from envcheck.compat.question.judgement import Judgement, agree
from envcheck.compat.question.question import Implied, Question
from envcheck.compat.question.rows import rows_of
from envcheck.compat.question.torch import NAME as TORCH
from envcheck.compat.specifier import Version, parse_specifier
from envcheck.compat.tables import ReleaseRow, Tables
from envcheck.versions import CudaVersion

NAME = "torch-extension"
_NVCC = "nvcc"


def judge_extension(tables: Tables, question: Question) -> Iterator[Judgement]:
    """The nvcc beside PyTorch, for each package that is compiled against it; for none, whether one could be."""
    torch = question.torch_cuda
    checks = [row for version in question.versions.get(TORCH, ()) for row in _covering(tables, NAME, version)]
    if torch is None or not question.nvcc or not checks:
        return
    label = question.labels[_NVCC]
    compiled = list(_compiled(tables, question))
    for name, package, row in compiled:
        fits = [(str(nvcc), _compiles(tables, nvcc, torch, package, [row, *checks])) for nvcc in question.nvcc]
        yield Judgement((name, _NVCC, TORCH), agree(fits, label))
    if not compiled:
        fits = [(str(nvcc), _could_compile(tables, nvcc, torch, checks)) for nvcc in question.nvcc]
        yield Judgement((_NVCC, TORCH), agree(fits, label))


def _compiled(tables: Tables, question: Question) -> Iterator[tuple[str, str, ReleaseRow]]:
    for name, versions in question.versions.items():
        for version in versions:
            for row in _covering(tables, name, version):
                if {_NVCC, TORCH} <= row.needs.keys():
                    yield name, f"{name} {version}", row


def _covering(tables: Tables, name: str, version: Version) -> Iterator[ReleaseRow]:
    yield from (row for row in rows_of(tables, name) if parse_specifier(row.versions).cover(version) == "all")


def _compiles(tables: Tables, nvcc: CudaVersion, torch: Implied, package: str, rows: list[ReleaseRow]) -> Fit:
    here = f"{package} is compiled where it is installed, against {_told(torch)}"
    if nvcc.major == torch.version.numbers[0]:
        return conclude(tables, "compatible", f"{here}; nvcc {nvcc} is of the same major", torch.row, *rows)
    reason = f"{here}; PyTorch refuses nvcc {nvcc}, which is of another major"
    return conclude(tables, "incompatible", reason, torch.row, *rows, change=f"nvcc {torch.version}")


def _could_compile(tables: Tables, nvcc: CudaVersion, torch: Implied, rows: list[ReleaseRow]) -> Fit:
    if nvcc.major == torch.version.numbers[0]:
        reason = f"nvcc {nvcc} compiles extensions of {_told(torch)}"
        return conclude(tables, "compatible", reason, torch.row, *rows)
    reason = f"{_told(torch)} runs without nvcc, but refuses to have extensions compiled by nvcc {nvcc}"
    return conclude(tables, "unknown", f"{reason}; whether one is to be, was not said", torch.row, *rows)


def _told(torch: Implied) -> str:
    return f"{torch.label} (CUDA {torch.version})"
