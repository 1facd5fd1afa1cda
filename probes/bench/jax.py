"""JAX at work: products, convolutions, attention and a training step, under jit and call by call."""

from __future__ import annotations

import importlib
import os
from functools import partial
from typing import Any, Callable, Iterable, List, Sequence

from ..deep.jax import SUBJECT
from ..framework_bench.framework import BenchFramework, tried_and_measured
from ..framework_bench.workloads import STEPS
from ..measuring.runtime import Fields, Unavailable
from ..trials.trial import OnCpuError

PROBE = {"title": "JAX at work", "seconds": 240.0, "tries": ["jax"], "asked": "frameworks"}

EAGER, JIT = "eager", "jit"
FUSED = "jit with cuDNN"


class Jax(BenchFramework):
    name = "jax"
    attention_order = "BLHD"

    def __init__(self, jax: Any) -> None:
        self.jax, self.numpy = jax, importlib.import_module("jax.numpy")
        self.title = f"JAX {jax.__version__}"
        self._key = jax.random.PRNGKey(int.from_bytes(os.urandom(4), "little") >> 1)

    @staticmethod
    def require_gpu(module: Any) -> None:
        platform = module.devices()[0].platform
        if platform not in ("gpu", "cuda"):
            raise OnCpuError(f"JAX computes on the {platform}")

    def random(self, shape: Sequence[int], precision: str) -> Any:
        self._key, key = self.jax.random.split(self._key)
        kind = {"fp16": self.numpy.float16, "bf16": self.numpy.bfloat16}.get(precision, self.numpy.float32)
        return self.jax.random.uniform(key, tuple(shape), kind, -1, 1)

    def take(self, array: Any, *where: Any) -> list[float]:
        numbers: list[float] = self.jax.device_get(array[where]).astype("float64").reshape(-1).tolist()
        return numbers

    def wait(self, result: Any) -> None:
        result.block_until_ready()

    def pointer(self, array: Any) -> int:
        if hasattr(array, "unsafe_buffer_pointer"):
            return int(array.unsafe_buffer_pointer())
        return int(array.device_buffer.unsafe_buffer_pointer())

    def rows(self) -> Iterable[tuple[str, ...]]:
        yield from (("gemm", precision, JIT) for precision in ("fp32", "tf32", "bf16"))
        layers = (("tf32", "NHWC"), ("bf16", "NHWC"), ("bf16", "NCHW"))
        yield from (("convolution", precision, JIT, layout) for precision, layout in layers)
        yield from (("attention", "bf16", way) for way in (JIT, FUSED))
        yield from (("training-step", "bf16", way) for way in (JIT, EAGER))

    def multiplied(self, precision: str, _way: str) -> Fields:
        """A product; outside of jit, JAX compiles ``matmul`` in the same way."""
        jax = self.jax
        # FP32 in whole, or as tensor cores take it; the others have one way only.
        work = partial(
            self.numpy.matmul, precision=jax.lax.Precision.HIGHEST if precision == "fp32" else jax.lax.Precision.DEFAULT
        )
        return self.product(precision, jax.jit(work))

    def convolved(self, precision: str, _way: str, layout: str) -> Fields:
        """A convolution, whose arrays lie in memory as their indices stand."""
        jax = self.jax
        layer = self.layer()
        order = "OIHW" if layout == "NCHW" else "HWIO"

        def convolve(given: Any, weights: Any) -> Any:
            pads = [(layer.pad, layer.pad)] * 2
            numbers = (layout, order, layout)
            return jax.lax.conv_general_dilated(given, weights, (1, 1), pads, dimension_numbers=numbers)

        return self.convolution(precision, layer, jax.jit(convolve), (layout, order))

    def attended(self, precision: str, way: str) -> Fields:
        """Scaled dot-product attention, by XLA's own operations or by cuDNN."""
        jax = self.jax
        attend = getattr(jax.nn, "dot_product_attention", None)
        if attend is None:
            raise Unavailable(f"{self.title} has no dot_product_attention")
        heads = self.heads()
        work = jax.jit(partial(attend, scale=heads.scale, implementation="cudnn" if way == FUSED else "xla"))
        try:
            return self.attention(precision, heads, work)
        except (RuntimeError, ValueError, NotImplementedError) as error:
            if way == FUSED and "cudnn" in str(error).lower():
                raise Unavailable(str(error)) from error  # JAX asks for a GPU and a release of cuDNN that have it
            raise

    def trained(self, _precision: str, way: str) -> Fields:
        """A training step with products in BF16."""
        jax, numpy = self.jax, self.numpy

        def loss(weights: List[Any], given: Any, wanted: Any) -> Any:  # noqa: UP006  read by Python 3.8 too
            flow = given.astype(numpy.bfloat16)
            for place, weight in enumerate(weights):
                flow = flow @ weight.astype(numpy.bfloat16)
                if place < len(weights) - 1:
                    flow = jax.nn.silu(flow)
            return 0.5 * numpy.square(flow.astype(numpy.float32) - wanted).sum() / given.shape[0]

        gradients: Callable[..., Any] = jax.grad(loss)

        def step(weights: List[Any], given: Any, wanted: Any) -> List[Any]:  # noqa: UP006  as above
            found = gradients(weights, given, wanted)
            return [weight - STEPS.rate * gradient for weight, gradient in zip(weights, found)]

        return self.training_step(jax.jit(step) if way == JIT else step, jax.device_get)


collect = partial(tried_and_measured, subject=SUBJECT, framework=Jax)
