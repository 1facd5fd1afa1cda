"""Numba's CUDA target at work: a kernel, compiled and run."""

from __future__ import annotations

import importlib
from typing import Any

from ..common.out import Out
from ..common.tree import Tree
from ..trials.trial import NotTriedError, Step, TrialSubject, Where, attempt, equal, module, on_gpu

PROBE = {
    "title": "Numba, imported and run",
    "seconds": 120.0,
    "tries": ["numba", "numba-cuda"],
    "fills": ["environments.frameworks.trial", "environments.frameworks.gpu_available"],
}

KERNEL = "a kernel compiled at run time"


def collect(tree: Tree, out: Out) -> None:
    """Send how it went. numba-cuda is used through ``numba.cuda`` too, in whose place its ``.pth`` file puts it."""
    separate = tree.request["framework"]["name"] == "numba-cuda"
    step = Step(KERNEL, kernel_of_numba_cuda if separate else kernel)
    attempt(tree, out, SUBJECT._replace(steps=(step,)))


def kernel_of_numba_cuda(cuda: Any) -> Where:
    """As ``kernel``, where that is numba-cuda's."""
    if "numba_cuda" not in (cuda.__file__ or "").split("/"):
        raise NotTriedError(
            f"numba.cuda is Numba's own here ({cuda.__file__}), not numba-cuda's: its .pth file is not read"
        )
    return kernel(cuda)


def kernel(_cuda: Any) -> Where:
    """Compiled by NVVM and nvJitLink."""
    numpy = module("numpy")
    helper = importlib.import_module("..trials.numba_kernel", __package__)
    numbers = numpy.arange(helper.BLOCKS * helper.THREADS, dtype="float32")
    result = helper.doubled(numbers)
    equal(result.copy_to_host().tolist(), (2 * numbers + 1).tolist())
    return on_gpu(int(result.__cuda_array_interface__["data"][0]), "cuda:0")


def _implementation(cuda: Any) -> str | None:
    """Version of numba-cuda, when that is what ``numba.cuda`` is."""
    return str(module("numba_cuda").__version__) if "numba_cuda" in (cuda.__file__ or "").split("/") else None


SUBJECT = TrialSubject(
    module="numba.cuda",
    steps=(Step(KERNEL, kernel),),
    build={"version": lambda _: str(module("numba").__version__), "numba-cuda": _implementation},
    answers={
        "cuda": lambda cuda: ".".join(map(str, cuda.runtime.get_version())),
        "devices": lambda cuda: len(cuda.gpus),
    },
    available=lambda cuda: bool(cuda.is_available()),
)
