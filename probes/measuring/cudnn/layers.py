"""Layers through cuDNN's older functions: pooling, softmax, activations, normalizations, and copies between layouts.

All of them are declared in ``cudnn_ops_v9.h``, most as deprecated, and in the headers of cuDNN 8. Each works on FP32
tensors larger than the L2 and is bound by memory. A layer's convolution is described here too: its tensors, their
strides, the precisions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from ctypes import byref, c_double, c_float, c_uint, c_void_p
from dataclasses import dataclass
from functools import partial

from ...framework_bench.workloads import LayerShape
from ..arrays import ELEMENTS, Array, Arrays, poisoning
from ..measurement import Bench, Plan, Task, Work
from ..runtime import Fields
from . import layer_checks as checks
from .library import TYPES, Cudnn

Shape = tuple[int, int, int, int]  # Images, channels, rows, columns
PLAN = Plan(samples=5, sample_seconds=0.005, warmup_seconds=0.005, pause=0.01, enough=0.03)
IMAGES: Shape = (128, 64, 56, 56)  # 103 MB: what the second stage of ResNet-50 works on
POOLED: Shape = (64, 64, 112, 112)  # What the pooling of ResNet-50 works on
ROWS: Shape = (32768, 1024, 1, 1)  # 134 MB
_BEYOND_L2 = 1.5  # Times the L2 cache that a tensor is larger: a smaller one is read from it in part, and beats memory
_NCHW, _NHWC = 0, 1
_MAX_POOLING, _PROPAGATE_NAN = 0, 1
_ACCURATE, _PER_INSTANCE = 1, 0
_SPATIAL = 1
ACTIVATIONS = {"relu": 1, "sigmoid": 0, "tanh": 2}  # Members of ``cudnnActivationMode_t``
_FP32 = TYPES["fp32"]
EPSILON = 1e-5
LRN = checks.Window(5, 1.0, 0.75, 2.0, across=True)
"""A window of 5 channels; larger factors than in networks, so that the neighbours weigh."""
DIVISIVE = checks.Window(5, 1.0, 0.5, 1.0)


def beyond_cache(shape: Shape, l2_bytes: int) -> Shape:
    """``shape`` with its batch doubled until it is larger than the L2 cache."""
    images, *rest = shape
    while images * math.prod(rest) * ELEMENTS["fp32"].size < _BEYOND_L2 * l2_bytes:
        images *= 2
    channels, rows, columns = rest
    return images, channels, rows, columns


class Layers:
    """The layers on one GPU, each a task: forward, or backward."""

    def __init__(self, bench: Bench, library: Cudnn) -> None:
        self._library, self._arrays = library, Arrays(bench)
        self._factors = c_float(1.0), c_float(0.0)
        l2 = bench.device.l2_bytes
        self._images, self._pooled, self._rows = (beyond_cache(shape, l2) for shape in (IMAGES, POOLED, ROWS))
        self._one, self._zero = map(byref, self._factors)
        """Factors of the result, and of what the output held."""

    # What each needs: tensors, descriptors, calls.

    def _call(self, name: str, *arguments: object) -> Work:
        return partial(self._library.ask, name, self._library.handle, *arguments)

    @contextmanager
    def _described(self, what: str, *arguments: object) -> Iterator[c_void_p]:
        """A descriptor, set by ``cudnnSetWHATDescriptor``."""
        descriptor = c_void_p()
        create = what.removesuffix("2d").removesuffix("4d")
        self._library.ask(f"cudnnCreate{create}Descriptor", byref(descriptor))
        try:
            self._library.ask(f"cudnnSet{what}Descriptor", descriptor, *arguments)
            yield descriptor
        finally:
            self._library.function(f"cudnnDestroy{create}Descriptor")(descriptor)

    def _tensor(self, stack: ExitStack, shape: Shape, layout: int = _NCHW) -> c_void_p:
        return stack.enter_context(self._described("Tensor4d", layout, _FP32, *shape))

    def _random(self, stack: ExitStack, *shapes: Shape) -> list[Array]:
        return [stack.enter_context(self._arrays.random("fp32", checks.size(shape))) for shape in shapes]

    def _empty(self, stack: ExitStack, *shapes: Shape) -> list[Array]:
        return [stack.enter_context(self._arrays.empty("fp32", checks.size(shape))) for shape in shapes]

    def _task(
        self, work: Work, moved: int, written: tuple[Array, ...], check: Callable[..., Fields], *given: object
    ) -> Task:
        """``moved``: bytes at least; ``check`` gets a source of random numbers, then what is ``given``."""
        verified = partial(check, self._arrays.draw, *given)
        return Task(work, moved, verified, self._library.facts("B/s"), poisoning(*written), PLAN)

    def _plain(
        self,
        stack: ExitStack,
        name: str,
        before: tuple[object, ...],
        shapes: tuple[Shape, Shape],
        check: tuple[Callable[..., Fields], Callable[..., Fields]],
        about: tuple[object, ...],
        *,
        backward: bool,
        reads_x: bool = True,
        moved: int,
    ) -> Task:
        """A layer whose functions take the arguments ``before``, then factors and tensors; ``shapes``: input, result.

        Backward it moves ``moved`` times the input's bytes, and twice the result's where that is smaller.
        """
        x_desc, y_desc = (self._tensor(stack, shape) for shape in shapes)
        (x,), (y,) = self._random(stack, shapes[0]), self._empty(stack, shapes[1])
        source, result = (x_desc, at(x)), (y_desc, at(y))
        forward = self._call(f"cudnn{name}Forward", *before, self._one, *source, self._zero, *result)
        if not backward:
            return self._task(forward, x.bytes + y.bytes, (y,), check[0], *about, x, y)
        forward()
        (dy,), (dx,) = self._random(stack, shapes[1]), self._empty(stack, shapes[0])
        given = (*result, y_desc, at(dy), *(source if reads_x else ()))
        work = self._call(f"cudnn{name}Backward", *before, self._one, *given, self._zero, x_desc, at(dx))
        whole = moved * x.bytes + (2 * y.bytes if shapes[0] != shapes[1] else 0)
        return self._task(work, whole, (dx,), check[1], *about, x, dy, dx)

    # The layers.

    def pooling(self, stack: ExitStack, *, backward: bool) -> Task:
        """Maximum of 3 x 3 with stride 2 and padding 1."""
        small: Shape = (*self._pooled[:2], self._pooled[2] // 2, self._pooled[3] // 2)
        pool = stack.enter_context(self._described("Pooling2d", _MAX_POOLING, _PROPAGATE_NAN, 3, 3, 1, 1, 2, 2))
        check, shapes = (checks.pooling_forward, checks.pooling_backward), (self._pooled, small)
        return self._plain(stack, "Pooling", (pool,), shapes, check, (self._pooled,), backward=backward, moved=2)

    def softmax(self, stack: ExitStack, *, backward: bool) -> Task:
        """Over the 1024 channels of each row."""
        kind, shapes = (_ACCURATE, _PER_INSTANCE), (self._rows, self._rows)
        check, about = (checks.softmax_forward, checks.softmax_backward), (self._rows,)
        return self._plain(stack, "Softmax", kind, shapes, check, about, backward=backward, reads_x=False, moved=3)

    def activation(self, stack: ExitStack, *, name: str, backward: bool) -> Task:
        """``relu``, ``sigmoid`` or ``tanh``; what is moved leaves out that the gradient is read with the input."""
        kind = stack.enter_context(self._described("Activation", ACTIVATIONS[name], _PROPAGATE_NAN, c_double(0.0)))
        check, shapes = (checks.activation_forward, checks.activation_backward), (self._images, self._images)
        return self._plain(stack, "Activation", (kind,), shapes, check, (name,), backward=backward, moved=3)

    def lrn(self, stack: ExitStack, *, backward: bool) -> Task:
        """Local response normalization across channels."""
        before, shapes = (self._window(stack, LRN), 0), (self._images, self._images)
        check, about = (checks.normalized_forward, checks.normalized_backward), (self._images, LRN)
        return self._plain(stack, "LRNCrossChannel", before, shapes, check, about, backward=backward, moved=4)

    def batch_norm(self, stack: ExitStack, *, backward: bool) -> Task:
        """Over images, rows and columns of each channel, with statistics of the batch."""
        channels: Shape = (1, self._images[1], 1, 1)
        desc, per_channel = self._tensor(stack, self._images), self._tensor(stack, channels)
        x, scale, bias = self._random(stack, self._images, channels, channels)
        y, mean, deviation = self._empty(stack, self._images, channels, channels)
        norm, one, zero = checks.BatchNorm(self._images, EPSILON, x, scale, bias, y), self._one, self._zero
        forward = self._call(
            "cudnnBatchNormalizationForwardTraining",
            *(_SPATIAL, one, zero, desc, at(x), desc, at(y), per_channel, at(scale), at(bias)),
            *(c_double(1.0), None, None, c_double(EPSILON), at(mean), at(deviation)),
        )
        if not backward:
            return self._task(forward, 2 * x.bytes, (y,), norm.forward)
        forward()
        (dy,) = self._random(stack, self._images)
        dx, scale_gradient, bias_gradient = written = self._empty(stack, self._images, channels, channels)
        work = self._call(
            "cudnnBatchNormalizationBackward",
            *(_SPATIAL, one, zero, one, zero, desc, at(x), desc, at(dy), desc, at(dx), per_channel, at(scale)),
            *(at(scale_gradient), at(bias_gradient), c_double(EPSILON), at(mean), at(deviation)),
        )
        return self._task(work, 3 * x.bytes, tuple(written), norm.backward, dy, dx, (scale_gradient, bias_gradient))

    def divisive(self, stack: ExitStack, *, backward: bool) -> Task:
        """Divisive normalization in space, with means of zero (local contrast normalization without its first step)."""
        desc, window = self._tensor(stack, self._images), self._window(stack, DIVISIVE)
        (x,), (y, temp, temp2) = self._random(stack, self._images), self._empty(stack, *[self._images] * 3)
        before, after = (window, 0, self._one, desc, at(x), None), (at(temp), at(temp2), self._zero, desc)
        if not backward:
            work = self._call("cudnnDivisiveNormalizationForward", *before, *after, at(y))
            return self._task(work, 2 * x.bytes, (y,), checks.normalized_forward, self._images, DIVISIVE, x, y)
        (dy,), (dx,) = self._random(stack, self._images), self._empty(stack, self._images)
        work = self._call("cudnnDivisiveNormalizationBackward", *before, at(dy), *after, at(dx), None)
        return self._task(work, 3 * x.bytes, (dx,), checks.normalized_backward, self._images, DIVISIVE, x, dy, dx)

    def transform(self, stack: ExitStack) -> Task:
        source, target = self._tensor(stack, self._images), self._tensor(stack, self._images, _NHWC)
        (x,), (y,) = self._random(stack, self._images), self._empty(stack, self._images)
        work = self._call("cudnnTransformTensor", self._one, source, at(x), self._zero, target, at(y))
        return self._task(work, 2 * x.bytes, (y,), checks.transform, self._images, x, y)

    def _window(self, stack: ExitStack, window: checks.Window) -> c_void_p:
        factors = (c_double(window.alpha), c_double(window.beta), c_double(window.k))
        return stack.enter_context(self._described("LRN", c_uint(window.size), *factors))


def at(array: Array) -> c_void_p:
    """Its address, as an argument."""
    return c_void_p(array.address)


X, W, Y = 1, 2, 3  # Unique IDs: what is convolved, the filter, the result (or the gradients of these)


@dataclass(frozen=True)
class Precision:
    """Type of the tensors, and how far a sum may be rounded; the epsilons are relative to one."""

    kind: str
    input_epsilon: float  # Rounding of the operands before they are multiplied
    sum_epsilon: float
    least: tuple[int, int]  # First compute capability that has it


PRECISIONS = {
    "fp32": Precision("fp32", 0.0, 2**-22, (5, 0)),
    "tf32": Precision("fp32", 2**-10, 2**-22, (8, 0)),
    "fp16": Precision("fp16", 0.0, 2**-22, (5, 3)),
    "bf16": Precision("bf16", 0.0, 2**-22, (8, 0)),
}


class Layer(LayerShape):
    """A convolution with stride 1 whose result is as large as what is convolved."""

    def __str__(self) -> str:
        """``128x256x28x28, 256 filters of 3x3``."""
        result = f"{self.images}x{self.channels}x{self.side}x{self.side}"
        return f"{result}, {self.filters} filters of {self.window}x{self.window}"

    def dimensions(self, tensor: int) -> tuple[int, int, int, int]:
        """Sizes of ``X``: images, channels, rows, columns; of ``W``: filters, channels, rows, columns."""
        return {
            X: (self.images, self.channels, self.side, self.side),
            W: (self.filters, self.channels, self.window, self.window),
            Y: (self.images, self.filters, self.side, self.side),
        }[tensor]

    def strides(self, tensor: int, layout: str) -> tuple[int, int, int, int]:
        """Distances in elements; ``layout`` is ``NCHW`` or ``NHWC``."""
        _, depth, rows, columns = self.dimensions(tensor)
        size = rows * columns
        return (depth * size, size, columns, 1) if layout == "NCHW" else (depth * size, 1, columns * depth, depth)

    def elements(self, tensor: int) -> int:
        return math.prod(self.dimensions(tensor))
