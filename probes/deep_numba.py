"""Numba's CUDA target at work: a kernel, compiled and run."""

from __future__ import annotations

import importlib
from typing import Any

from ._deep import Step, Subject, Where, attempt, equal, module, on_gpu
from ._kit import Out, Request

PROBE = {
    "title": "Numba, imported and put to work",
    "kind": "deep",
    "seconds": 120.0,
    "uses": "gpu",
    "tries": ["numba", "numba-cuda"],
    "scopes": ["env"],
    "fills": ["environments.frameworks.trial", "environments.frameworks.gpu_available"],
}


def collect(request: Request, out: Out) -> None:
    """Send how it went; numba-cuda stands in for the CUDA target of numba, through which both are used."""
    attempt(request, out, SUBJECT)


def kernel(_cuda: Any) -> Where:
    """Compiled by NVVM and nvJitLink."""
    numpy = module("numpy")

    helper = importlib.import_module("._deep_numba_kernel", __package__)
    numbers = numpy.arange(helper.BLOCKS * helper.THREADS, dtype="float32")
    result = helper.doubled(numbers)
    equal(result.copy_to_host().tolist(), (2 * numbers + 1).tolist())
    pointer = int(result.__cuda_array_interface__["data"][0])
    return on_gpu(pointer, "cuda:0")


def _version(_cuda: Any) -> str:
    numba = module("numba")

    return str(numba.__version__)


def _implementation(_cuda: Any) -> str | None:
    """Of numba-cuda, when that is what ``numba.cuda`` is."""
    try:
        numba_cuda = module("numba_cuda")
    except ImportError:
        return None
    return str(numba_cuda.__version__)


def _runtime(cuda: Any) -> str:
    return ".".join(map(str, cuda.runtime.get_version()))


SUBJECT = Subject(
    module="numba.cuda",
    steps=(Step("a kernel compiled on the spot", kernel),),
    build={"version": _version, "numba-cuda": _implementation},
    answers={"cuda": _runtime, "devices": lambda cuda: len(cuda.gpus)},
    available=lambda cuda: bool(cuda.is_available()),
)
