"""Forward compatibility: a newer libcuda from the package cuda-compat, over an older driver.

It is for data center GPUs, on Linux, and never older than the CUDA that the driver itself speaks. Which driver branches
each package may sit on is in the rows of ``cuda-compat``.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from envcheck.compat.cuda_rows import cuda_row, minor_compatible
from envcheck.compat.driver_cuda import speaks_at_least
from envcheck.compat.fit import Fit, FitVerdict, conclude
from envcheck.compat.gpu_driver import driver_drives
from envcheck.compat.question.judgement import Judgement, agree, retell
from envcheck.compat.question.question import AskedGpu, BranchHead, Question
from envcheck.compat.question.rows import rows_of
from envcheck.compat.tables import ReleaseRow, Row, Tables
from envcheck.versions import CudaVersion, DriverRelease

NAME = "cuda-compat"


def compat_fits(tables: Tables, question: Question, package: CudaVersion) -> Iterator[Judgement]:
    """The package beside the system, the GPUs and the driver that were named. (What it needs, its rows say.)"""
    if question.os != "linux":
        verdict: FitVerdict = "unknown" if question.os == "wsl" else "incompatible"
        reason = f"the package of forward compatibility is for Linux, not for {question.os}"
        yield Judgement((NAME, "os"), conclude(tables, verdict, reason, *_citable(tables), change="os linux"))
    for gpu in question.gpus:
        yield Judgement((NAME, "gpu"), _on_gpu(tables, package, gpu))
    if question.drivers:
        fits = [(str(driver), _over(tables, package, driver)) for driver in question.drivers]
        yield Judgement((NAME, "driver"), agree(fits, question.labels["driver"]))


def replaces_driver(tables: Tables, question: Question, package: CudaVersion) -> bool:
    """Whether programs find the package's libcuda in place of the driver's."""
    return all(not judgement.fit.bad for judgement in compat_fits(tables, question, package)) or not question.drivers


def compat_runs(tables: Tables, package: CudaVersion, cuda: CudaVersion) -> Fit:
    """Whether the package's libcuda runs what was built with ``cuda``."""
    row = cuda_row(tables, package)
    if package >= cuda:
        return conclude(tables, "compatible", f"cuda-compat {package} speaks CUDA {package}, as new as {cuda}", row)
    if package.major == cuda.major and minor_compatible(cuda):
        reason = f"cuda-compat {package} runs every minor of CUDA {cuda.major}, so CUDA {cuda} too"
        return conclude(tables, "compatible", reason, row, cuda_row(tables, cuda))
    reason = f"cuda-compat {package} speaks CUDA {package}, which does not run CUDA {cuda}"
    return conclude(tables, "incompatible", reason, row, cuda_row(tables, cuda), change=f"cuda-compat >= {cuda.major}")


def _on_gpu(tables: Tables, package: CudaVersion, gpu: AskedGpu) -> Fit:
    answer = partial(conclude, tables)
    rows = _citable(tables)
    dropped = _dropped(tables, package, gpu, rows)
    if dropped is not None:
        return dropped
    kinds = _kinds(tables, gpu)
    if kinds == {"data-center"}:
        return answer("compatible", f"forward compatibility is for data center GPUs, as {gpu.label} is", *rows)
    if kinds == {"geforce"}:
        reason = f"forward compatibility is for data center GPUs; {gpu.label} is a GeForce"
        return answer("incompatible", reason, *rows, change="a driver as new as the CUDA that is needed")
    if kinds == {"workstation"}:
        reason = "forward compatibility is for data center GPUs and selected boards in certified servers; whether "
        return answer("unknown", f"{reason}{gpu.label} is one is not known", *rows)
    if kinds == {"tegra"}:
        return answer("unknown", f"{gpu.label} takes a cuda-compat of its own system, which is not this one", *rows)
    return answer("unknown", f"whether {gpu.label} is a data center GPU is not known", *rows)


def _dropped(tables: Tables, package: CudaVersion, gpu: AskedGpu, rows: list[Row]) -> Fit | None:
    """A package is made from the driver branch that speaks its CUDA, and drives what that branch drives."""
    branch = next((row.branch for row in tables.drivers if row.os == "linux" and row.cuda == str(package)), None)
    if branch is None:
        return None
    fit = driver_drives(tables, gpu.capability, BranchHead.of(branch), model=gpu.model)
    if not fit.bad:
        return None
    return retell(tables, fit, f"cuda-compat {package} is made from R{branch}: {fit.reason}", *rows)


def _kinds(tables: Tables, gpu: AskedGpu) -> set[str | None]:
    """The kind of the model, or of all models that have the named compute capability."""
    if gpu.model:
        return {gpu.model.kind}
    return {row.kind for row in tables.gpus if row.compute_capability == str(gpu.capability)}


def _over(tables: Tables, package: CudaVersion, driver: DriverRelease) -> Fit:
    own = speaks_at_least(tables, driver)
    rows = _citable(tables)
    if own is None:
        reason = f"the CUDA that driver {driver} speaks is not known; an older cuda-compat must not be laid over it"
        return conclude(tables, "unknown", reason, *rows)
    if own > package:
        reason = f"driver {driver} speaks CUDA {own}; cuda-compat {package} is older, and must not take its place"
        return conclude(tables, "incompatible", reason, *rows, change="no cuda-compat")
    return conclude(tables, "compatible", f"cuda-compat {package} is no older than driver {driver}", *rows)


def _citable(tables: Tables) -> list[Row]:
    """One row of the package, for its source."""
    rows: list[ReleaseRow] = rows_of(tables, NAME)
    return list(rows[:1])
