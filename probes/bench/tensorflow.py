"""TensorFlow at work: products, convolutions, attention and a training step, as functions and call by call."""

from __future__ import annotations

from functools import partial
from typing import Any, Callable, Iterable, List, Sequence

from ..deep.tensorflow import SUBJECT, gpus, pointer
from ..framework_bench.framework import BenchFramework, tried_and_measured
from ..framework_bench.workloads import STEPS
from ..measuring.runtime import Fields
from ..trials.trial import OnCpuError

PROBE = {
    "title": "TensorFlow at work",
    "seconds": 240.0,
    "tries": ["tensorflow", "tensorflow-*", "tf-nightly*", "intel-tensorflow*"],
    "asked": "frameworks",
}

EAGER, FUNCTION, XLA = "eager", "tf.function", "tf.function with XLA"


class TensorFlow(BenchFramework):
    """TensorFlow 2, by tensors on the first GPU."""

    name = "tensorflow"

    def __init__(self, tensorflow: Any) -> None:
        self.tensorflow, self.title = tensorflow, f"TensorFlow {tensorflow.__version__}"
        self._draw = tensorflow.random.Generator.from_non_deterministic_state()

    @staticmethod
    def require_gpu(module: Any) -> None:
        if not gpus(module):
            raise OnCpuError("TensorFlow lists no GPU, and computes on the CPU")

    def random(self, shape: Sequence[int], precision: str) -> Any:
        kind = {"fp16": "float16", "bf16": "bfloat16"}.get(precision, "float32")
        return self.tensorflow.cast(self._draw.uniform(tuple(shape), -1, 1), kind)

    def take(self, array: Any, *where: Any) -> list[float]:
        numbers: list[float] = self.tensorflow.cast(array[where], "float64").numpy().reshape(-1).tolist()
        return numbers

    def wait(self, result: Any) -> None:  # noqa: ARG002  TensorFlow waits for everything
        self.tensorflow.test.experimental.sync_devices()

    def pointer(self, array: Any) -> int:
        return int(pointer(self.tensorflow, array))

    def made(self, function: Callable[..., Any], way: str) -> Callable[..., Any]:
        """``function`` as it is, as a graph, or compiled by XLA."""
        if way == EAGER:
            return function
        made: Callable[..., Any] = self.tensorflow.function(function, jit_compile=way == XLA)
        return made

    def rows(self) -> Iterable[tuple[str, ...]]:
        yield from (("gemm", precision, EAGER) for precision in ("fp32", "tf32", "fp16", "bf16"))
        yield "gemm", "bf16", XLA
        layers = (("tf32", "NHWC"), ("bf16", "NHWC"), ("bf16", "NCHW"))
        yield from (("convolution", precision, EAGER, layout) for precision, layout in layers)
        yield from (("attention", "bf16", way) for way in (EAGER, XLA))
        yield from (("training-step", "bf16", way) for way in (EAGER, FUNCTION, XLA))

    def multiplied(self, precision: str, way: str) -> Fields:
        tensorflow = self.tensorflow
        work = self.made(tensorflow.matmul, way)
        return _with_tf32(tensorflow, precision, partial(self.product, precision, work))

    def convolved(self, precision: str, _way: str, layout: str) -> Fields:
        """A convolution; weights lie as TensorFlow has them, window first."""
        tensorflow = self.tensorflow
        work = partial(tensorflow.nn.conv2d, strides=1, padding="SAME", data_format=layout)
        layer = self.layer()
        return _with_tf32(tensorflow, precision, partial(self.convolution, precision, layer, work, (layout, "HWIO")))

    def attended(self, precision: str, way: str) -> Fields:
        """Attention by two products and a softmax: TensorFlow has no operation for it."""
        tensorflow = self.tensorflow
        heads = self.heads()

        def attend(queries: Any, keys: Any, values: Any) -> Any:
            scores = tensorflow.matmul(queries, keys, transpose_b=True)
            return tensorflow.matmul(tensorflow.nn.softmax(scores), values)

        work = self.made(attend, way)
        return self.attention(precision, heads, work, "two products and a softmax", factor=heads.scale)

    def trained(self, _precision: str, way: str) -> Fields:
        """A training step with products in BF16."""
        tensorflow = self.tensorflow

        def step(weights: List[Any], given: Any, wanted: Any) -> List[Any]:  # noqa: UP006  read by Python 3.8 too
            with tensorflow.GradientTape() as tape:
                tape.watch(weights)
                flow = tensorflow.cast(given, "bfloat16")
                for place, weight in enumerate(weights):
                    flow = tensorflow.matmul(flow, tensorflow.cast(weight, "bfloat16"))
                    if place < len(weights) - 1:
                        flow = tensorflow.nn.silu(flow)
                error = tensorflow.cast(flow, "float32") - wanted
                loss = 0.5 * tensorflow.reduce_sum(tensorflow.square(error)) / given.shape[0]
            pairs = zip(weights, tape.gradient(loss, weights))
            return [weight - STEPS.rate * gradient for weight, gradient in pairs]

        return self.training_step(self.made(step, way), lambda tensor: tensor.numpy())


def _with_tf32(tensorflow: Any, precision: str, measure: Callable[[], Fields]) -> Fields:
    """Measure with TF32 on for ``tf32`` alone."""
    switch = tensorflow.config.experimental
    before = switch.tensor_float_32_execution_enabled()
    try:
        switch.enable_tensor_float_32_execution(precision == "tf32")
        return measure()
    finally:
        switch.enable_tensor_float_32_execution(before)


collect = partial(tried_and_measured, subject=SUBJECT, framework=TensorFlow)
