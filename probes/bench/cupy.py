"""CuPy at work: products, and a training step whose gradients are written out, as CuPy derives none."""

from __future__ import annotations

import os
from functools import partial
from typing import Any, Iterable, List, Sequence

from ..deep.cupy import SUBJECT
from ..framework_bench.framework import BenchFramework, tried_and_measured
from ..framework_bench.workloads import STEPS, gradients
from ..measuring.runtime import Fields
from ..trials.trial import OnCpuError

PROBE = {"title": "CuPy at work", "seconds": 120.0, "tries": ["cupy", "cupy-*"], "asked": "frameworks"}

EAGER = "eager"


class CuPy(BenchFramework):
    name = "cupy"

    def __init__(self, cupy: Any) -> None:
        self.cupy, self.title = cupy, f"CuPy {cupy.__version__}"
        self._draw = cupy.random.default_rng()

    @staticmethod
    def require_gpu(module: Any) -> None:
        if not module.cuda.is_available():
            raise OnCpuError("CuPy finds no GPU")

    def random(self, shape: Sequence[int], precision: str) -> Any:
        numbers = self._draw.random(tuple(shape), dtype="float32") * 2 - 1
        return numbers.astype({"fp16": "float16"}.get(precision, "float32"))

    def take(self, array: Any, *where: Any) -> list[float]:
        numbers: list[float] = array[where].astype("float64").reshape(-1).tolist()
        return numbers

    def wait(self, result: Any) -> None:  # noqa: ARG002  the stream has it last
        self.cupy.cuda.get_current_stream().synchronize()

    def pointer(self, array: Any) -> int:
        return int(array.data.ptr)

    def release(self) -> None:
        self.cupy.get_default_memory_pool().free_all_blocks()

    def rows(self) -> Iterable[tuple[str, ...]]:
        yield from (("gemm", precision, EAGER) for precision in (_of_floats(), "fp16"))
        yield "training-step", _of_floats(), EAGER

    def multiplied(self, precision: str, _way: str) -> Fields:
        return self.product(precision, self.cupy.matmul)

    def trained(self, _precision: str, _way: str) -> Fields:
        """A training step in the precision that CuPy multiplies FP32 in."""
        cupy = self.cupy

        def step(weights: List[Any], given: Any, wanted: Any) -> List[Any]:  # noqa: UP006  read by Python 3.8 too
            found = gradients(cupy, weights, given, wanted)
            return [weight - STEPS.rate * gradient for weight, gradient in zip(weights, found)]

        return self.training_step(step, cupy.asnumpy)


def _of_floats() -> str:
    """What CuPy multiplies FP32 in: CUPY_TF32 decides, and nothing else can."""
    return "tf32" if os.environ.get("CUPY_TF32", "0") not in ("", "0") else "fp32"


collect = partial(tried_and_measured, subject=SUBJECT, framework=CuPy)
