"""The pairs among driver, kernel module, GPU, CUDA and nvcc."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from envcheck.compat.driver_cuda import driver_runs_cuda, speaks_at_least
from envcheck.compat.fit import Fit
from envcheck.compat.gpu_code import capability_row
from envcheck.compat.gpu_cuda import cuda_serves, cuda_targets
from envcheck.compat.gpu_driver import driver_drives, module_drives
from envcheck.compat.question.forward import compat_fits, compat_runs, replaces_driver
from envcheck.compat.question.judgement import Judgement, agree
from envcheck.compat.question.question import AskedGpu, Question
from envcheck.compat.question.tegra import tegra_serves
from envcheck.compat.tables import Tables
from envcheck.versions import ComputeCapability, CudaVersion

T = TypeVar("T")


def judge_hardware(tables: Tables, question: Question) -> Iterator[Judgement]:
    """Every relation among the hardware, the driver and CUDA that were named."""
    for gpu in question.gpus:
        yield from _judge_gpu(tables, question, gpu)
    if question.compat:
        yield from compat_fits(tables, question, question.compat)
    for name, members in (("cuda", question.cuda), ("nvcc", question.nvcc)):
        runner = runner_of(question)
        if members and runner:
            versions = question.versions[name] if len(members) == 1 else ()
            release = versions[0].numbers if versions else ()
            fits = [(str(cuda), runs(tables, question, cuda, release)) for cuda in members]
            yield Judgement((runner, name), agree(fits, question.labels[name]))


def _judge_gpu(tables: Tables, question: Question, gpu: AskedGpu) -> Iterator[Judgement]:
    labels = question.labels
    if question.drivers:
        fit = _each(
            question.drivers,
            lambda driver: driver_drives(tables, gpu.capability, driver, question.os, model=gpu.model),
            labels["driver"],
        )
        yield Judgement(("driver", "gpu"), fit)
    if question.flavour:
        module = module_drives(tables, gpu.capability, question.flavour, model=gpu.model)
        yield Judgement(("kernel-module", "gpu"), module)
    if question.cuda:
        serves = _each(question.cuda, lambda cuda: _served(tables, gpu.capability, cuda), labels["cuda"])
        yield Judgement(("cuda", "gpu"), serves)
    if question.nvcc:
        compiles = _each(question.nvcc, lambda cuda: cuda_targets(tables, gpu.capability, cuda), labels["nvcc"])
        yield Judgement(("nvcc", "gpu"), compiles)


def _served(tables: Tables, gpu: ComputeCapability, cuda: CudaVersion) -> Fit:
    """Whether software built with ``cuda`` runs on a GPU; that of a Jetson has the CUDA of its system software."""
    fit = cuda_serves(tables, gpu, cuda)
    row = capability_row(tables, gpu)
    return tegra_serves(tables, gpu, cuda) or fit if fit.ok and row and row.tegra else fit


def runner_of(question: Question) -> str | None:
    """What runs CUDA programs here: the driver, or the package of forward compatibility; None when neither is named."""
    if question.compat:
        return "cuda-compat"
    return "driver" if question.drivers else None


def runs(tables: Tables, question: Question, cuda: CudaVersion, release: Sequence[int] = ()) -> Fit:
    """Whether what was named runs programs built with ``cuda`` (with this release of it); it must be named."""
    if question.compat and replaces_driver(tables, question, question.compat):
        return compat_runs(tables, question.compat, cuda)
    return _each(
        question.drivers,
        lambda driver: driver_runs_cuda(tables, driver, cuda, question.os, release=release),
        question.labels.get("driver", ""),
    )


def speaks(tables: Tables, question: Question) -> tuple[CudaVersion | None, ...]:
    """The CUDA that each named driver, or the package, speaks: whose PTX it compiles."""
    if question.compat and replaces_driver(tables, question, question.compat):
        return (question.compat,)
    return tuple(speaks_at_least(tables, driver, question.os) for driver in question.drivers)


def _each(members: Sequence[T], ask: Callable[[T], Fit], what: str) -> Fit:
    return agree([(str(member), ask(member)) for member in members], what)
