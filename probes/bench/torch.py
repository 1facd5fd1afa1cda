"""PyTorch at work: products, convolutions, attention and a training step, compiled beside eager."""

from __future__ import annotations

import sys
import warnings
from contextlib import contextmanager
from itertools import product
from typing import Any, Callable, Iterable, Iterator, List, Sequence

from ..common.out import Out
from ..common.tree import Tree
from ..deep.torch import SUBJECT
from ..framework_bench.framework import BenchFramework, tried_and_measured
from ..framework_bench.workloads import STEPS
from ..measuring.runtime import Fields, LibraryError, Unavailable
from ..trials.trial import OnCpuError

PROBE = {"title": "PyTorch at work", "seconds": 240.0, "tries": ["torch"], "asked": "frameworks"}

EAGER, COMPILED = "eager", "torch.compile"
SEARCHED = "eager with cudnn.benchmark"


def collect(tree: Tree, out: Out) -> None:
    """Try PyTorch as a deep check does, and measure it."""
    try:
        tried_and_measured(tree, out, SUBJECT, PyTorch)
    finally:
        # End the processes that torch.compile has started to compile in.
        module = sys.modules.get("torch._inductor.async_compile")
        end = getattr(module, "shutdown_compile_workers", None)
        if end is not None:
            end()


class PyTorch(BenchFramework):
    """PyTorch, by tensors on the first GPU."""

    name = "torch"

    def __init__(self, torch: Any, device: str = "cuda") -> None:
        self.torch, self.device = torch, device
        self.title = f"PyTorch {torch.__version__}"
        self._types = {"fp16": torch.float16, "bf16": torch.bfloat16}

    @staticmethod
    def require_gpu(module: Any) -> None:
        if not module.cuda.is_available():
            raise OnCpuError("PyTorch finds no GPU")

    def random(self, shape: Sequence[int], precision: str) -> Any:
        kind = self._types.get(precision, self.torch.float32)
        return self.torch.empty(tuple(shape), device=self.device, dtype=kind).uniform_(-1, 1)

    def take(self, array: Any, *where: Any) -> list[float]:
        numbers: list[float] = array[where].reshape(-1).double().cpu().tolist()
        return numbers

    def wait(self, result: Any) -> None:  # noqa: ARG002  PyTorch waits for everything
        if self.device == "cuda":
            self.torch.cuda.synchronize()

    def pointer(self, array: Any) -> int:
        return int(array.data_ptr())

    def release(self) -> None:
        if self.device == "cuda":
            self.torch.cuda.empty_cache()

    def compiled(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """``function`` by torch.compile; raise Unavailable where this PyTorch has none."""
        if not hasattr(self.torch, "compile"):
            raise Unavailable(f"{self.title} has no torch.compile")

        def run(*given: Any) -> Any:
            try:
                return made(*given)
            except Exception as error:
                raise LibraryError(f"torch.compile: {type(error).__name__}: {error}") from error

        made = self.torch.compile(function, dynamic=False)
        return run

    def rows(self) -> Iterable[tuple[str, ...]]:
        yield from (("gemm", precision, EAGER) for precision in ("fp32", "tf32", "fp16", "bf16"))
        layouts = product(("NCHW", "NHWC"), ("tf32", "bf16"))
        yield from (("convolution", precision, EAGER, layout) for layout, precision in layouts)
        yield "convolution", "bf16", SEARCHED, "NHWC"
        yield "attention", "bf16", EAGER
        yield "training-step", "bf16", EAGER
        yield "gemm", "bf16", COMPILED
        yield "training-step", "bf16", COMPILED

    def multiplied(self, precision: str, way: str) -> Fields:
        """A product; FP32 and TF32 by their switch, whatever this environment has it at."""
        torch = self.torch
        work = self.compiled(torch.matmul) if way == COMPILED else torch.matmul
        with torch.inference_mode(), tf32(torch, on=precision == "tf32"):
            return self.product(precision, work)

    def convolved(self, precision: str, way: str, layout: str) -> Fields:
        """A convolution; the indices of its tensors are NCHW in either layout."""
        torch = self.torch
        layer = self.layer()
        order = torch.contiguous_format if layout == "NCHW" else torch.channels_last
        before = torch.backends.cudnn.benchmark
        try:
            torch.backends.cudnn.benchmark = way == SEARCHED or before
            with torch.inference_mode(), tf32(torch, on=precision == "tf32"):
                return self.convolution(
                    precision,
                    layer,
                    lambda given, weights: torch.nn.functional.conv2d(given, weights, padding=layer.pad),
                    operand=lambda array: array.to(memory_format=order),
                    detail=f"cuDNN {torch.backends.cudnn.version()}",
                )
        finally:
            torch.backends.cudnn.benchmark = before

    def attended(self, precision: str, _way: str) -> Fields:
        """Scaled dot-product attention, by the kernel that PyTorch chooses."""
        torch = self.torch
        attend = getattr(torch.nn.functional, "scaled_dot_product_attention", None)
        if attend is None:
            raise Unavailable(f"{self.title} has no scaled_dot_product_attention")
        heads = self.heads()
        # Without the argument scale, which came with 2.1: scaled queries do the same in every release.
        factor = heads.scale * heads.depth**0.5
        with torch.inference_mode():
            return self.attention(precision, heads, attend, factor=factor)

    def trained(self, _precision: str, way: str) -> Fields:
        """A training step under automatic mixed precision."""
        torch = self.torch

        def loss_of(weights: List[Any], given: Any, wanted: Any) -> Any:  # noqa: UP006  read by Python 3.8 too
            flow = given
            with torch.autocast(self.device, dtype=torch.bfloat16):
                for place, weight in enumerate(weights):
                    flow = flow @ weight
                    if place < len(weights) - 1:
                        flow = torch.nn.functional.silu(flow)
            return 0.5 * (flow.float() - wanted).square().sum() / given.shape[0]

        optimizers: List[Any] = []  # noqa: UP006  as above

        def step(weights: List[Any], given: Any, wanted: Any) -> List[Any]:  # noqa: UP006  as above
            if not optimizers:
                optimizers.append(torch.optim.SGD([weight.requires_grad_() for weight in weights], lr=STEPS.rate))
            loss(weights, given, wanted).backward()
            optimizers[0].step()
            optimizers[0].zero_grad(set_to_none=True)
            return weights

        loss = self.compiled(loss_of) if way == COMPILED else loss_of
        return self.training_step(step, lambda tensor: tensor.detach().cpu().numpy().copy())


@contextmanager
def tf32(torch: Any, *, on: bool) -> Iterator[None]:
    """Let FP32 work use tensor cores, or not, as long as the block lasts."""
    places = (torch.backends.cuda.matmul, torch.backends.cudnn)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # newer releases advise other names for the same switches
        before = [place.allow_tf32 for place in places]
        try:
            for place in places:
                place.allow_tf32 = on
            yield
        finally:
            for place, was in zip(places, before):
                place.allow_tf32 = was
