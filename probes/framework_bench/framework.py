"""A framework at work on the GPU of this process: what it computes is timed, proved to be on the GPU, and verified."""

from __future__ import annotations

import gc
import importlib
import time
from functools import partial
from typing import Any, Callable, Dict, Iterable, Iterator, List, Sequence

from ..common.out import Out
from ..common.tree import Tree
from ..measuring.runtime import Fields, FigureKey, LibraryError, Measures, Unavailable, compared, run_all
from ..trials.driver import RuntimeGpu, is_device_memory
from ..trials.trial import OnCpuError, TrialSubject, attempt
from . import workloads
from .workloads import SAMPLES, SIDES, SIZE, STEPS, Heads, LayerShape, Triple, convolution_triples, rate

MOST_RUNS = 1000
UNCOUNTED = 2  # Runs before each sample, as ``torch.utils.benchmark.Timer.timeit`` has them
_RESERVE = 512 << 20  # Bytes of device memory left to others

Run = Callable[[], Any]  # Queues what is timed, and returns its result
Check = Callable[[Any], Iterator[Triple]]
Multiply = Callable[[Any, Any], Any]
_sides: Dict[str, int] = {}  # noqa: UP006  read by Python 3.8 too
_METHODS = {
    "gemm": "multiplied", "convolution": "convolved", "attention": "attended", "training-step": "trained"
}  # fmt: skip
"""What measures a work: given a precision, the framework's own name for the way, and of convolutions the layout."""
Step = Callable[[List[Any], Any, Any], List[Any]]
"""Weights, input and wanted output to the weights after one step; it may change and return those given."""


class BenchFramework:
    """What the measurements need of a framework; each has its own."""

    name = ""  # As quantities begin with it
    title = ""  # With its version: ``PyTorch 2.11.0``
    attention_order = "BHLD"

    def __init__(self, module: Any) -> None:
        """With the module that was imported."""

    @staticmethod
    def require_gpu(module: Any) -> None:
        """Raise OnCpuError where the module would compute on the CPU."""

    def rows(self) -> Iterable[tuple[str, ...]]:
        """Work (a key of ``_METHODS``), precision and way of each figure, and of convolutions the layout."""
        raise NotImplementedError

    def measures(self) -> Measures:
        figures: Measures = {}
        for work, precision, way, *layout in self.rows():
            variant = ", ".join(("forward", *layout, way)) if work in ("convolution", "attention") else way
            figure = FigureKey(f"{self.name}-{work}", precision, variant=variant)
            figures[figure] = partial(getattr(self, _METHODS[work]), precision, way, *layout)
        return figures

    def random(self, shape: Sequence[int], precision: str) -> Any:
        """Uniform in [-1, 1), in the GPU's memory."""
        raise NotImplementedError

    def scaled(self, array: Any, factor: float) -> Any:
        return array * factor

    def take(self, array: Any, *where: Any) -> list[float]:
        """Elements at an index of numbers and slices, in C order."""
        raise NotImplementedError

    def wait(self, result: Any) -> None:
        """Return when all that was queued, ``result`` last, has been computed."""
        raise NotImplementedError

    def pointer(self, array: Any) -> int:
        """Address of its elements."""
        raise NotImplementedError

    def layer(self) -> LayerShape:
        return workloads.layer_for(RuntimeGpu().multiprocessors())

    def heads(self) -> Heads:
        return workloads.heads_for(RuntimeGpu().multiprocessors())

    def release(self) -> None:
        """Give memory back that nothing holds."""

    def measured(
        self, operations: float, run: Run, triples: Check, allowed: float, *, what: str = "elements", detail: str = ""
    ) -> Fields:
        """Run, prove, time and verify what ``run`` queues; raise LibraryError for a result outside the GPU's memory.

        ``triples`` gives, for ``what`` is drawn of a result, the numbers found, the exact ones, and the error's size.
        """
        result = run()
        self.wait(result)
        if not is_device_memory(self.pointer(result)):
            raise LibraryError(f"{self.title} left the result outside the GPU's memory: the CPU computed it")
        seconds, result = timed(run, self.wait)
        verdict = compared(triples(result), allowed, f"random {what} against FP64 in Python")
        facts = {"method": self.name, "detail": ", ".join(filter(None, (self.title, detail))), "verification": verdict}
        return {**rate(operations, seconds, "FLOP/s"), **facts}

    def product(self, precision: str, multiply: Multiply, detail: str = "") -> Fields:
        """A square matrix product; ``multiply`` computes it in ``precision``."""
        # The largest side whose product fits and takes no longer than LONGEST_RUN, judged by the smallest.
        if precision not in _sides:
            least = SIDES[-1]
            needing(3 * least**2 * SIZE[precision])
            left, right = (self.random((least, least), precision) for _ in range(2))
            self.wait(multiply(left, right))
            one, _ = _sample(lambda: multiply(left, right), self.wait, 2)
            room = free_memory() - _RESERVE
            # A result is made for every run, and the next may be made before the last is given back.
            fits = [side for side in SIDES if 6 * side**2 * SIZE[precision] <= room]
            quick = (side for side in fits if one * (side / least) ** 3 <= workloads.LONGEST_RUN)
            _sides[precision] = next(quick, least)
        side = _sides[precision]
        needing(6 * side**2 * SIZE[precision])
        shape = (side, side, side)
        left, right = (self.random((side, side), precision) for _ in range(2))
        check = partial(workloads.product_triples, self.take, left, right, shape=shape)
        allowed = workloads.tolerance(precision, side)
        found = self.measured(2.0 * side**3, lambda: multiply(left, right), check, allowed, detail=detail)
        return {**found, "shape": list(shape)}

    def convolution(
        self,
        precision: str,
        layer: LayerShape,
        convolve: Multiply,
        shown: tuple[str, str] = ("NCHW", "OIHW"),
        operand: Callable[[Any], Any] = lambda array: array,
        detail: str = "",
    ) -> Fields:
        """A convolution of arrays whose indices stand in the order ``shown``, of images and of weights.

        ``operand`` is applied to both before anything is timed: in PyTorch it changes the order in memory alone.
        """
        layout, order = shown
        numbers = layer.images * layer.side**2 * (layer.channels + 3 * layer.filters)
        needing(2 * numbers * SIZE[precision])
        window = (layer.window, layer.window)
        kernel = (
            (layer.filters, layer.channels, *window) if order == "OIHW" else (*window, layer.channels, layer.filters)
        )
        given, weights = (operand(self.random(shape, precision)) for shape in (layer.given(layout), kernel))
        triples = partial(convolution_triples, self.take, given, weights, layer=layer, layout=layout, order=order)
        allowed = workloads.tolerance(precision, layer.channels * layer.window**2)
        return self.measured(layer.operations, lambda: convolve(given, weights), triples, allowed, detail=detail)

    def attention(
        self, precision: str, heads: Heads, attend: Callable[..., Any], detail: str = "", factor: float = 1.0
    ) -> Fields:
        """Scaled dot-product attention, forward.

        The queries are multiplied by ``factor``: by the scale times the root of the depth for an ``attend`` that
        divides by that root itself.
        """
        order = self.attention_order
        one = heads.batch * heads.heads * heads.length * heads.depth * SIZE[precision]
        needing(6 * one)
        b, h, length, d = heads[:4]
        shape = (b, h, length, d) if order == "BHLD" else (b, length, h, d)
        tensors = [self.random(shape, precision) for _ in range(3)]
        tensors[0] = tensors[0] if factor == 1 else self.scaled(tensors[0], factor)
        scaled, allowed = heads._replace(scale=heads.scale / factor), workloads.tolerance(precision, heads.length)
        triples = partial(workloads.attention_triples, self.take, tensors, heads=scaled, order=order)
        return self.measured(heads.operations, lambda: attend(*tensors), triples, allowed, what="rows", detail=detail)

    def training_step(self, step: Step, to_numpy: Callable[[Any], Any]) -> Fields:
        """A training step; its first one is verified, and those that follow are timed."""
        try:
            numpy = importlib.import_module("numpy")
        except ImportError as error:
            raise Unavailable("NumPy, which the step is verified with, is not in this environment") from error
        steps = STEPS
        needing(64 * steps.width**2 * steps.layers + 32 * steps.batch * steps.width * steps.layers)
        weights = [self.scaled(self.random((steps.width,) * 2, "fp32"), steps.spread) for _ in range(steps.layers)]
        given, wanted = (self.random((steps.batch, steps.width), "fp32") for _ in range(2))
        before = [to_numpy(each) for each in weights]
        state: list[list[Any]] = [step(weights, given, wanted)]
        self.wait(state[0][-1])
        if not is_device_memory(self.pointer(state[0][-1])):
            raise LibraryError(f"{self.title} left the weights outside the GPU's memory: the CPU trained")
        after = [to_numpy(each) for each in state[0]]
        triples = workloads.step_triples(numpy, before, after, to_numpy(given), to_numpy(wanted), steps)
        how = "random elements of the first step's gradients against FP64 in NumPy"
        verdict = compared(triples, workloads.STEP_TOLERANCE, how)

        def run() -> Any:
            state[0] = step(state[0], given, wanted)
            return state[0][-1]

        seconds, _ = timed(run, self.wait)
        milliseconds = 1e3 * sorted(seconds)[SAMPLES // 2]
        shape = f"{steps.layers} layers of {steps.width}, batch {steps.batch}, {milliseconds:.3g} ms"
        facts = {"method": self.name, "detail": f"{self.title}, {shape}", "verification": verdict}
        return {**rate(steps.operations, seconds, "FLOP/s"), **facts}


def timed(run: Run, wait: Callable[[Any], None]) -> tuple[list[float], Any]:
    """Seconds of one run, once for each sample after a rest, and the last result.

    A sample is as many runs as fit, queued one after the other; the time ends when the last has been computed. Some
    runs go before that are not counted: the rest leaves the caches and clocks low of the processor that queues work.
    """
    result = run()
    wait(result)
    one, result = _sample(run, wait, 2)
    runs = max(workloads.LEAST_RUNS, min(MOST_RUNS, round(workloads.SAMPLE_SECONDS / max(one, 1e-7))))
    _, result = _sample(run, wait, runs)
    seconds = []
    for _ in range(SAMPLES):
        each, result = rested_sample(run, wait, runs)
        seconds.append(each)
    return seconds, result


def rested_sample(run: Run, wait: Callable[[Any], None], runs: int) -> tuple[float, Any]:
    """Seconds of one of so many runs after a rest, and the last result."""
    time.sleep(workloads.PAUSE)
    _sample(run, wait, UNCOUNTED)
    return _sample(run, wait, runs)


def _sample(run: Run, wait: Callable[[Any], None], runs: int) -> tuple[float, Any]:
    collecting = gc.isenabled()
    gc.disable()  # as timeit does: a collection belongs to no run
    try:
        began = time.perf_counter()
        for _ in range(runs):
            result = run()
        wait(result)
        return (time.perf_counter() - began) / runs, result
    finally:
        if collecting:
            gc.enable()


def free_memory() -> int:
    """Bytes of the GPU's memory that can still be allocated, about."""
    return RuntimeGpu().free_memory()


def needing(size: int) -> None:
    """Raise Unavailable where ``size`` bytes of device memory are not free."""
    free = free_memory()
    if size + _RESERVE > free:
        raise Unavailable(f"{(size + _RESERVE) >> 20} MiB of device memory are needed, {free >> 20} MiB are free")


def tried_and_measured(tree: Tree, out: Out, subject: TrialSubject, framework: type[BenchFramework]) -> None:
    """Try a framework as a deep check does, and make the measurements that its module allows."""
    attempt(tree, out, subject)
    try:
        module = importlib.import_module(subject.module)
        framework.require_gpu(module)
    except OnCpuError as reason:
        out.absent(str(reason))
        return
    except BaseException as error:
        out.absent(f"{subject.module} cannot be used: {type(error).__name__}")
        return
    made = framework(module)
    asked = tree.request["bench"]
    run_all(out, made.measures(), asked.get("gpu"), asked.get("only") or (), made.release, inside=True)
