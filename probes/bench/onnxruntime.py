"""ONNX Runtime at work under its CUDA provider: products, convolutions, and attention of single operations."""

from __future__ import annotations

import importlib
import operator
from functools import partial
from typing import Any, Iterable, NamedTuple, Sequence

from ..deep.onnxruntime import SUBJECT, session_for
from ..framework_bench.framework import BenchFramework, tried_and_measured
from ..measuring.runtime import Fields
from ..trials.onnx_models import node, work_model

PROBE = {
    "title": "ONNX Runtime at work",
    "seconds": 120.0,
    "tries": ["onnxruntime", "onnxruntime-*", "ort-*"],
    "asked": "frameworks",
}

SESSION = "session"


class ArrayOnGpu(NamedTuple):
    """An array in the GPU's memory, and the same on the host where it was drawn there."""

    value: Any
    host: Any = None


class OnnxRuntime(BenchFramework):
    """ONNX Runtime, by values bound to the inputs and outputs of a session."""

    name = "onnxruntime"

    def __init__(self, runtime: Any) -> None:
        self.runtime, self.title = runtime, f"ONNX Runtime {runtime.__version__}"
        self.numpy = importlib.import_module("numpy")
        self._draw = self.numpy.random.default_rng()
        self._read: tuple[Any, Any] = (None, None)

    @staticmethod
    def require_gpu(module: Any) -> None:
        session_for(module, _products("fp32", 64))

    def random(self, shape: Sequence[int], precision: str) -> ArrayOnGpu:
        numbers = self._draw.random(tuple(shape), dtype="float32")
        numbers *= 2
        numbers -= 1
        return self._on_gpu(numbers.astype("float16") if precision == "fp16" else numbers)

    def scaled(self, array: ArrayOnGpu, factor: float) -> ArrayOnGpu:
        return self._on_gpu((array.host * factor).astype(array.host.dtype))

    def take(self, array: Any, *where: Any) -> list[float]:
        host = array.host
        if host is None:
            if self._read[0] is not array.value:
                self._read = array.value, array.value.numpy()
            host = self._read[1]
        numbers: list[float] = host[where].astype("float64").reshape(-1).tolist()
        return numbers

    def wait(self, result: Any) -> None:
        """Nothing: a session's run returns when its results are there."""

    def pointer(self, array: Any) -> int:
        return int(array.value.data_ptr())

    def release(self) -> None:
        self._read = (None, None)

    def work(self, model: bytes, precision: str, result: Sequence[int]) -> Any:
        """What runs ``model`` on arrays bound to its inputs ``A``, ``B`` …, and returns its output."""
        session = session_for(self.runtime, model, {"use_tf32": "1" if precision == "tf32" else "0"})
        names = [each.name for each in session.get_inputs()]
        kind = self.numpy.float16 if precision == "fp16" else self.numpy.float32
        output = self.runtime.OrtValue.ortvalue_from_shape_and_type(list(result), kind, "cuda", 0)
        bound: tuple[ArrayOnGpu, ...] = ()
        binding: Any = None

        def run(*given: ArrayOnGpu) -> ArrayOnGpu:
            nonlocal bound, binding
            if len(given) != len(bound) or any(map(operator.is_not, given, bound)):
                binding = session.io_binding()
                for name, each in zip(names, given):
                    binding.bind_ortvalue_input(name, each.value)
                binding.bind_ortvalue_output("Y", output)
                # What is bound is held: an array that takes the place of a freed one is another one.
                bound = given
            session.run_with_iobinding(binding)
            return ArrayOnGpu(output)

        return run

    def _on_gpu(self, numbers: Any) -> ArrayOnGpu:
        return ArrayOnGpu(self.runtime.OrtValue.ortvalue_from_numpy(numbers, "cuda", 0), numbers)

    def rows(self) -> Iterable[tuple[str, ...]]:
        yield from (("gemm", precision, SESSION) for precision in ("fp32", "tf32", "fp16"))
        yield from (("convolution", precision, SESSION, "NCHW") for precision in ("tf32", "fp16"))
        yield "attention", "fp16", SESSION

    def multiplied(self, precision: str, _way: str) -> Fields:
        """A product, of whatever side the GPU is fast enough for."""
        made: dict[int, Any] = {}

        def multiply(left: ArrayOnGpu, right: ArrayOnGpu) -> ArrayOnGpu:
            side = left.value.shape()[0]
            if side not in made:
                made.clear()
                made[side] = self.work(_products(precision, side), precision, (side, side))
            found: ArrayOnGpu = made[side](left, right)
            return found

        return self.product(precision, multiply)

    def convolved(self, precision: str, _way: str, layout: str) -> Fields:
        """A convolution, which ONNX lays out as NCHW."""
        layer = self.layer()
        given = layer.given(layout)
        weights = (layer.filters, layer.channels, layer.window, layer.window)
        result = (layer.images, layer.filters, layer.side, layer.side)
        model = work_model(
            precision, [node("Conv", ("A", "B"), "Y", pads=(layer.pad,) * 4)], {"A": given, "B": weights}, result
        )
        return self.convolution(precision, layer, self.work(model, precision, result))

    def attended(self, precision: str, _way: str) -> Fields:
        """Attention by two products and a softmax."""
        heads = self.heads()
        shape = heads[:4]
        nodes = [
            node("Transpose", ("B",), "T", perm=(0, 1, 3, 2)),
            node("MatMul", ("A", "T"), "S"),
            node("Softmax", ("S",), "P", axis=3),
            node("MatMul", ("P", "C"), "Y"),
        ]
        model = work_model(precision, nodes, dict.fromkeys("ABC", shape), shape)
        work = self.work(model, precision, shape)
        return self.attention(precision, heads, work, "two products and a softmax", factor=heads.scale)


def _products(precision: str, side: int) -> bytes:
    shape = (side, side)
    return work_model(precision, [node("MatMul", ("A", "B"), "Y")], {"A": shape, "B": shape}, shape)


collect = partial(tried_and_measured, subject=SUBJECT, framework=OnnxRuntime)
