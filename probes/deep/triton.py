"""Triton at work: a kernel of its own, compiled and run on PyTorch's memory."""

from __future__ import annotations

import importlib
from functools import partial
from typing import Any

from ..trials.trial import NotTriedError, Step, TrialSubject, Where, attempt, equal, on_gpu

PROBE = {"title": "Triton, imported and run", "seconds": 150.0, "tries": ["triton", "pytorch-triton", "triton-nightly"]}


def kernel(_triton: Any) -> Where:
    """Compiled by Triton and ptxas; its launcher by the machine's C compiler. Memory and stream are PyTorch's."""
    try:
        torch = importlib.import_module("torch")
    except ImportError as error:
        raise NotTriedError(f"Triton computes on PyTorch's arrays, and there is no PyTorch: {error}") from error
    numbers = torch.arange(1000, dtype=torch.float32, device="cuda")
    result = torch.empty_like(numbers)
    importlib.import_module("..trials.triton_kernel", __package__).launch(numbers, numbers, result)
    equal(result.cpu().tolist(), [2.0 * number for number in range(1000)])
    return on_gpu(result.data_ptr(), str(result.device))


def _target(triton: Any) -> str:
    target = triton.runtime.driver.active.get_current_target()
    return f"{target.backend} {target.arch}" if hasattr(target, "arch") else str(target)


SUBJECT = TrialSubject(
    module="triton",
    steps=(Step("a kernel compiled at run time", kernel),),
    build={"version": lambda triton: triton.__version__},
    answers={"target": _target},
)
collect = partial(attempt, subject=SUBJECT)
