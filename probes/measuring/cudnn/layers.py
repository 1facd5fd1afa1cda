"""Layers through cuDNN's older functions: pooling, softmax, activations, normalizations, and copies between layouts.

All of them are declared in ``cudnn_ops_v9.h``, most as deprecated, and in the headers of cuDNN 8. Each works on FP32
tensors larger than the L2 and is bound by memory. A layer's convolution is described here too: its tensors, their
strides, the precisions.
"""

from __future__ import annotations

import math
import os
import random
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from ctypes import byref, c_double, c_float, c_uint, c_void_p
from dataclasses import dataclass
from functools import partial
from typing import Any

from ...common.figures import Fields
from ..arrays import Array, Arrays
from ..measurement import Bench, Plan
from . import layer_checks as checks
from .library import TYPES, Cudnn

Shape = tuple[int, int, int, int]
"""Images, channels, rows, columns."""
PLAN = Plan(samples=5, sample_seconds=0.005, warmup_seconds=0.005, pause=0.01, enough=0.03)
IMAGES: Shape = (128, 64, 56, 56)
"""103 MB: what the second stage of ResNet-50 works on, with a batch larger than the L2."""
POOLED: Shape = (64, 64, 112, 112)
"""What the pooling of ResNet-50 works on."""
ROWS: Shape = (32768, 1024, 1, 1)
"""134 MB."""
_NCHW, _NHWC = 0, 1
_MAX_POOLING, _PROPAGATE_NAN = 0, 1
_ACCURATE, _PER_INSTANCE = 1, 0
_SPATIAL = 1
ACTIVATIONS = {"relu": 1, "sigmoid": 0, "tanh": 2}
"""Members of ``cudnnActivationMode_t``."""
_FP32 = TYPES["fp32"]
EPSILON = 1e-5
LRN = checks.Window(5, 1.0, 0.75, 2.0)
"""A window of 5 channels; larger factors than in networks, so that the neighbours weigh."""
DIVISIVE = checks.Window(5, 1.0, 0.5, 1.0)


@dataclass(frozen=True)
class Task:
    """One function on tensors: what it does, what it moves at least, what it writes, how its result is verified."""

    work: Callable[[], None]
    moved: int
    """Bytes."""
    written: tuple[Array, ...]
    verified: Callable[[], Fields]

    def poison(self) -> None:
        for array in self.written:
            array.poison()


class Layers:
    """The layers on one GPU."""

    def __init__(self, bench: Bench, library: Cudnn) -> None:
        self._bench, self._library = bench, library
        self._arrays = Arrays(bench)
        self._one, self._zero = c_float(1.0), c_float(0.0)
        self._draw = random.Random(os.urandom(16))  # noqa: S311  no secret

    def measured(self, name: str, variant: str, make: Callable[[Layers, ExitStack], Task]) -> Fields:
        """Run, time and verify one."""
        bench = self._bench
        with ExitStack() as held:
            task = make(self, held)
            found = bench.rate(
                name,
                task.moved,
                task.work,
                PLAN,
                poison=task.poison,
                unit="B/s",
                method="cudnn",
                detail=f"cuDNN {self._library.version}",
                library=self._library.path,
                precision="fp32",
                variant=variant,
            )
            found["verification"] = task.verified()
        return found

    # What each needs: tensors, descriptors, calls.

    def ask(self, name: str, *arguments: object) -> None:
        self._library.ask(name, self._library.handle, *arguments)

    @contextmanager
    def described(self, what: str, *arguments: object, setter: str = "") -> Iterator[c_void_p]:
        """A descriptor, set by ``cudnnSetWHATDescriptor`` or ``setter``."""
        descriptor = c_void_p()
        create = what.removesuffix("2d").removesuffix("4d")
        self._library.ask(f"cudnnCreate{create}Descriptor", byref(descriptor))
        try:
            if arguments:
                self._library.ask(setter or f"cudnnSet{what}Descriptor", descriptor, *arguments)
            yield descriptor
        finally:
            self._library.function(f"cudnnDestroy{create}Descriptor")(descriptor)

    def tensor(self, held: ExitStack, shape: Shape, layout: int = _NCHW) -> c_void_p:
        return held.enter_context(self.described("Tensor4d", layout, _FP32, *shape))

    def random(self, held: ExitStack, shape: Shape) -> Array:
        return held.enter_context(self._arrays.random("fp32", checks.size(shape)))

    def empty(self, held: ExitStack, shape: Shape) -> Array:
        return held.enter_context(self._arrays.empty("fp32", checks.size(shape)))

    def blend(self) -> tuple[Any, Any]:
        """Factors of the result and of what the output held."""
        return byref(self._one), byref(self._zero)

    # The layers.

    def pooling(self, held: ExitStack, *, backward: bool) -> Task:
        """Maximum of 3 x 3 with stride 2 and padding 1."""
        small: Shape = (*POOLED[:2], POOLED[2] // 2, POOLED[3] // 2)
        x_desc, y_desc = self.tensor(held, POOLED), self.tensor(held, small)
        pool = held.enter_context(self.described("Pooling2d", _MAX_POOLING, _PROPAGATE_NAN, 3, 3, 1, 1, 2, 2))
        x, y = self.random(held, POOLED), self.empty(held, small)
        one, zero = self.blend()
        forward = partial(self.ask, "cudnnPoolingForward", pool, one, x_desc, at(x), zero, y_desc, at(y))
        if not backward:
            check = partial(checks.pooling_forward, self._draw, POOLED, x, y)
            return Task(forward, x.bytes + y.bytes, (y,), check)
        forward()
        dy, dx = self.random(held, small), self.empty(held, POOLED)
        work = partial(
            self.ask,
            "cudnnPoolingBackward",
            *(pool, one, y_desc, at(y), y_desc, at(dy), x_desc, at(x), zero, x_desc, at(dx)),
        )
        check = partial(checks.pooling_backward, self._draw, POOLED, x, dy, dx)
        return Task(work, 2 * x.bytes + 2 * y.bytes, (dx,), check)

    def softmax(self, held: ExitStack, *, backward: bool) -> Task:
        """Over the 1024 channels of each row."""
        desc = self.tensor(held, ROWS)
        x, y = self.random(held, ROWS), self.empty(held, ROWS)
        one, zero = self.blend()
        kind = (_ACCURATE, _PER_INSTANCE)
        forward = partial(self.ask, "cudnnSoftmaxForward", *kind, one, desc, at(x), zero, desc, at(y))
        if not backward:
            return Task(forward, 2 * x.bytes, (y,), partial(checks.softmax_forward, self._draw, ROWS, x, y))
        forward()
        dy, dx = self.random(held, ROWS), self.empty(held, ROWS)
        work = partial(self.ask, "cudnnSoftmaxBackward", *kind, one, desc, at(y), desc, at(dy), zero, desc, at(dx))
        return Task(work, 3 * x.bytes, (dx,), partial(checks.softmax_backward, self._draw, ROWS, x, dy, dx))

    def activation(self, held: ExitStack, *, name: str, backward: bool) -> Task:
        desc = self.tensor(held, IMAGES)
        kind = held.enter_context(self.described("Activation", ACTIVATIONS[name], _PROPAGATE_NAN, c_double(0.0)))
        x, y = self.random(held, IMAGES), self.empty(held, IMAGES)
        one, zero = self.blend()
        forward = partial(self.ask, "cudnnActivationForward", kind, one, desc, at(x), zero, desc, at(y))
        if not backward:
            check = partial(checks.activation_forward, self._draw, name, x, y)
            return Task(forward, 2 * x.bytes, (y,), check)
        forward()
        dy, dx = self.random(held, IMAGES), self.empty(held, IMAGES)
        work = partial(
            self.ask,
            "cudnnActivationBackward",
            *(kind, one, desc, at(y), desc, at(dy), desc, at(x), zero, desc, at(dx)),
        )
        check = partial(checks.activation_backward, self._draw, name, x, dy, dx)
        return Task(work, 3 * x.bytes, (dx,), check)

    def batch_norm(self, held: ExitStack, *, backward: bool) -> Task:
        """Over images, rows and columns of each channel, with statistics of the batch."""
        channels: Shape = (1, IMAGES[1], 1, 1)
        desc, per_channel = self.tensor(held, IMAGES), self.tensor(held, channels)
        x, y = self.random(held, IMAGES), self.empty(held, IMAGES)
        scale, bias = self.random(held, channels), self.random(held, channels)
        mean, deviation = self.empty(held, channels), self.empty(held, channels)
        norm = checks.BatchNorm(IMAGES, EPSILON, x, scale, bias, y)
        one, zero = self.blend()
        forward = partial(
            self.ask,
            "cudnnBatchNormalizationForwardTraining",
            *(_SPATIAL, one, zero, desc, at(x), desc, at(y), per_channel, at(scale), at(bias)),
            *(c_double(1.0), None, None, c_double(EPSILON), at(mean), at(deviation)),
        )
        if not backward:
            check = partial(norm.forward, self._draw)
            return Task(forward, 2 * x.bytes, (y,), check)
        forward()
        dy, dx = self.random(held, IMAGES), self.empty(held, IMAGES)
        scale_gradient, bias_gradient = self.empty(held, channels), self.empty(held, channels)
        work = partial(
            self.ask,
            "cudnnBatchNormalizationBackward",
            *(_SPATIAL, one, zero, one, zero, desc, at(x), desc, at(dy), desc, at(dx), per_channel, at(scale)),
            *(at(scale_gradient), at(bias_gradient), c_double(EPSILON), at(mean), at(deviation)),
        )
        check = partial(norm.backward, self._draw, dy, dx, (scale_gradient, bias_gradient))
        return Task(work, 3 * x.bytes, (dx, scale_gradient, bias_gradient), check)

    def lrn(self, held: ExitStack, *, backward: bool) -> Task:
        """Local response normalization across channels."""
        desc, window = self.tensor(held, IMAGES), self.window(held, LRN)
        x, y = self.random(held, IMAGES), self.empty(held, IMAGES)
        one, zero = self.blend()
        forward = partial(self.ask, "cudnnLRNCrossChannelForward", window, 0, one, desc, at(x), zero, desc, at(y))
        if not backward:
            return Task(forward, 2 * x.bytes, (y,), partial(checks.lrn_forward, self._draw, IMAGES, LRN, x, y))
        forward()
        dy, dx = self.random(held, IMAGES), self.empty(held, IMAGES)
        work = partial(
            self.ask,
            "cudnnLRNCrossChannelBackward",
            *(window, 0, one, desc, at(y), desc, at(dy), desc, at(x), zero, desc, at(dx)),
        )
        return Task(work, 4 * x.bytes, (dx,), partial(checks.lrn_backward, self._draw, IMAGES, LRN, x, dy, dx))

    def divisive(self, held: ExitStack, *, backward: bool) -> Task:
        """Divisive normalization in space, with means of zero (local contrast normalization without its first step)."""
        desc, window = self.tensor(held, IMAGES), self.window(held, DIVISIVE)
        x, y = self.random(held, IMAGES), self.empty(held, IMAGES)
        temp, temp2 = self.empty(held, IMAGES), self.empty(held, IMAGES)
        one, zero = self.blend()
        forward = partial(
            self.ask,
            "cudnnDivisiveNormalizationForward",
            *(window, 0, one, desc, at(x), None, at(temp), at(temp2), zero, desc, at(y)),
        )
        if not backward:
            check = partial(checks.divisive_forward, self._draw, IMAGES, DIVISIVE, x, y)
            return Task(forward, 2 * x.bytes, (y,), check)
        dy, dx = self.random(held, IMAGES), self.empty(held, IMAGES)
        work = partial(
            self.ask,
            "cudnnDivisiveNormalizationBackward",
            *(window, 0, one, desc, at(x), None, at(dy), at(temp), at(temp2), zero, desc, at(dx), None),
        )
        check = partial(checks.divisive_backward, self._draw, IMAGES, DIVISIVE, x, dy, dx)
        return Task(work, 3 * x.bytes, (dx,), check)

    def transform(self, held: ExitStack) -> Task:
        """Copy from NCHW to NHWC."""
        source, target = self.tensor(held, IMAGES), self.tensor(held, IMAGES, _NHWC)
        x, y = self.random(held, IMAGES), self.empty(held, IMAGES)
        one, zero = self.blend()
        work = partial(self.ask, "cudnnTransformTensor", one, source, at(x), zero, target, at(y))
        return Task(work, 2 * x.bytes, (y,), partial(checks.transform, self._draw, IMAGES, x, y))

    def window(self, held: ExitStack, window: checks.Window) -> c_void_p:
        factors = (c_double(window.alpha), c_double(window.beta), c_double(window.k))
        return held.enter_context(self.described("LRN", c_uint(window.size), *factors))


def at(array: Array) -> c_void_p:
    """Its address, as an argument."""
    return c_void_p(array.address)


X, W, Y = 1, 2, 3
"""Unique IDs: what is convolved (or its gradient), the filter (or its gradient), the result (or its gradient)."""


@dataclass(frozen=True)
class Precision:
    """Type of the tensors, and how far a sum may be rounded; the epsilons are relative to one."""

    kind: str
    input_epsilon: float
    """Rounding of the operands before they are multiplied."""
    sum_epsilon: float
    least: tuple[int, int]
    """First compute capability that has it."""


PRECISIONS = {
    "fp32": Precision("fp32", 0.0, 2**-22, (5, 0)),
    "tf32": Precision("fp32", 2**-10, 2**-22, (8, 0)),
    "fp16": Precision("fp16", 0.0, 2**-22, (5, 3)),
    "bf16": Precision("bf16", 0.0, 2**-22, (8, 0)),
}


@dataclass(frozen=True)
class Layer:
    """A convolution with stride 1 whose result is as large as what is convolved."""

    images: int
    channels: int
    filters: int
    side: int
    window: int

    def __str__(self) -> str:
        """``128x256x28x28, 256 filters of 3x3``."""
        result = f"{self.images}x{self.channels}x{self.side}x{self.side}"
        return f"{result}, {self.filters} filters of {self.window}x{self.window}"

    @property
    def pad(self) -> int:
        return self.window // 2

    @property
    def operations(self) -> float:
        """Multiplications and additions, those with padding included (as everybody counts)."""
        return 2.0 * self.images * self.filters * self.channels * self.side**2 * self.window**2

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

    def count(self, tensor: int) -> int:
        return math.prod(self.dimensions(tensor))
