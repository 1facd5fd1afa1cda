"""Whether the result of a layer is right: elements drawn at random against FP64 on the CPU.

All arrays are FP32 in NCHW unless said otherwise, and their numbers uniform in [-1, 1). A tolerance is some 2^-24 for
each rounding that a result goes through, in units of the result's size or of the largest term that enters it.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from typing import ParamSpec

from ..arrays import Array
from ..runtime import Fields, compared

_P = ParamSpec("_P")
Shape = tuple[int, int, int, int]
Triples = Iterator[tuple[float, float, float]]
Place = tuple[int, int, int, int]
Near = dict[tuple[int, ...], float]  # Elements by their row and column, or by their channel
DRAWN = 256
ROWS_DRAWN = 4
CHANNELS_DRAWN = 1
_U = 2.0**-24  # Unit roundoff of FP32


@dataclass(frozen=True)
class Window:
    """Parameters of local response and of divisive normalization."""

    size: int
    alpha: float
    beta: float
    k: float
    across: bool = False  # Whether it lies across channels, and not in space

    def middle(self, place: Place) -> tuple[int, ...]:
        """What tells a place from those that it lies in a window with."""
        return place[1:2] if self.across else place[2:]


def size(shape: Shape) -> int:
    return math.prod(shape)


def _judged(triples: Triples, tolerance: float) -> Fields:
    found = list(triples)
    return compared(found, tolerance, f"{len(found):,} random elements against FP64 on the CPU")


def _check(tolerance: float) -> Callable[[Callable[_P, Triples]], Callable[_P, Fields]]:
    """Make a check of what yields results, exact results, and the sizes that errors are measured by."""

    def decorated(triples: Callable[_P, Triples]) -> Callable[_P, Fields]:
        return lambda *args, **kwargs: _judged(triples(*args, **kwargs), tolerance)

    return decorated


def _drawn(draw: random.Random, shape: Shape, count: int = DRAWN) -> list[Place]:
    n, c, h, w = shape
    return [(draw.randrange(n), draw.randrange(c), draw.randrange(h), draw.randrange(w)) for _ in range(count)]


def _offset(shape: Shape, place: Place) -> int:
    _, c, h, w = shape
    return ((place[0] * c + place[1]) * h + place[2]) * w + place[3]


def _one(array: Array, offset: int) -> float:
    return array.values(offset, 1)[0]


def _region(array: Array, shape: Shape, place: Place, rows: range, columns: range) -> Near:
    """Elements of the image and channel of ``place``, as far as the rows and columns exist."""
    found: Near = {}
    inside = range(max(0, columns.start), min(shape[3], columns.stop))
    for row in range(max(0, rows.start), min(shape[2], rows.stop)):
        start = _offset(shape, (place[0], place[1], row, inside.start))
        found |= {(row, column): value for column, value in zip(inside, array.values(start, len(inside)), strict=True)}
    return found


# Pooling: maximum of 3 x 3, stride 2, padding 1.


@_check(0.0)
def pooling_forward(draw: random.Random, shape: Shape, x: Array, y: Array) -> Triples:
    """Every maximum must be exact."""
    small = (*shape[:2], shape[2] // 2, shape[3] // 2)
    for place in _drawn(draw, small):
        window = _region(x, shape, place, *_pool_window(place[2], place[3]))
        yield _one(y, _offset(small, place)), max(window.values()), 1.0


def _pool_window(row: int, column: int) -> tuple[range, range]:
    return range(2 * row - 1, 2 * row + 2), range(2 * column - 1, 2 * column + 2)


@_check(4 * _U)
def pooling_backward(draw: random.Random, shape: Shape, x: Array, dy: Array, dx: Array) -> Triples:
    """An element's gradient is the sum of those of the windows whose maximum it is."""
    small = (*shape[:2], shape[2] // 2, shape[3] // 2)
    for place in _drawn(draw, shape):
        row, column = place[2], place[3]
        near = _region(x, shape, place, range(row - 2, row + 3), range(column - 2, column + 3))
        own, exact = near[row, column], 0.0
        for above, left in product({row // 2, (row + 1) // 2}, {column // 2, (column + 1) // 2}):
            if above >= small[2] or left >= small[3]:
                continue
            rows, columns = _pool_window(above, left)
            window = [near[each] for each in product(rows, columns) if each in near]
            if own == max(window):
                exact += _one(dy, _offset(small, (place[0], place[1], above, left)))
        yield _one(dx, _offset(shape, place)), exact, 1.0


# Softmax over the second dimension of (rows, channels, 1, 1).


def _softmax(row: list[float]) -> list[float]:
    powers = [math.exp(value) for value in row]
    total = math.fsum(powers)
    return [power / total for power in powers]


@_check(64 * _U)
def softmax_forward(draw: random.Random, shape: Shape, x: Array, y: Array) -> Triples:
    """Whole rows; an error is relative to the element."""
    for row in draw.sample(range(shape[0]), ROWS_DRAWN):
        exact = _softmax(x.values(row * shape[1], shape[1]))
        yield from ((a, b, b) for a, b in zip(y.values(row * shape[1], shape[1]), exact, strict=True))


@_check(64 * _U)
def softmax_backward(draw: random.Random, shape: Shape, x: Array, dy: Array, dx: Array) -> Triples:
    """Whole rows; an error is relative to the softmax, as the gradients that it multiplies are about one."""
    for row in draw.sample(range(shape[0]), ROWS_DRAWN):
        powers = _softmax(x.values(row * shape[1], shape[1]))
        gradients = dy.values(row * shape[1], shape[1])
        common = math.fsum(a * b for a, b in zip(powers, gradients, strict=True))
        found = dx.values(row * shape[1], shape[1])
        for a, power, gradient in zip(found, powers, gradients, strict=True):
            yield a, power * (gradient - common), power


# Activations.


def _sigmoid(x: float) -> tuple[float, float]:
    y = 1 / (1 + math.exp(-x))
    return y, y * (1 - y)


_ACTIVATIONS: dict[str, tuple[Callable[[float], tuple[float, float]], float]] = {
    "relu": (lambda x: (max(x, 0.0), float(x > 0)), 0.0),
    "sigmoid": (_sigmoid, 16 * _U),
    "tanh": (lambda x: (math.tanh(x), 1 - math.tanh(x) ** 2), 16 * _U),
}
"""Value and derivative, and a tolerance relative to one."""


def activation_forward(draw: random.Random, name: str, x: Array, y: Array) -> Fields:
    function, tolerance = _ACTIVATIONS[name]
    places = [draw.randrange(x.count) for _ in range(DRAWN)]
    return _judged(((_one(y, place), function(_one(x, place))[0], 1.0) for place in places), tolerance)


def activation_backward(draw: random.Random, name: str, x: Array, dy: Array, dx: Array) -> Fields:
    function, tolerance = _ACTIVATIONS[name]
    places = [draw.randrange(x.count) for _ in range(DRAWN)]
    found = ((_one(dx, place), _one(dy, place) * function(_one(x, place))[1], 1.0) for place in places)
    return _judged(found, tolerance)


# Batch normalization: statistics of one channel over all images.


def _channel(array: Array, shape: Shape, channel: int) -> list[float]:
    """All its elements, image by image."""
    images, channels, rows, columns = shape
    plane = rows * columns
    parts = (array.values((image * channels + channel) * plane, plane) for image in range(images))
    return [value for part in parts for value in part]


def _statistics(values: list[float], epsilon: float) -> tuple[float, float]:
    """Mean, and one over the standard deviation."""
    mean = math.fsum(values) / len(values)
    variance = math.fsum(value * value for value in values) / len(values) - mean * mean
    return mean, 1 / math.sqrt(variance + epsilon)


@dataclass(frozen=True)
class BatchNorm:
    """What batch normalization reads and writes; ``dx`` and the gradients of scale and bias are written backward."""

    shape: Shape
    epsilon: float
    x: Array
    scale: Array
    bias: Array
    y: Array

    @_check(256 * _U)
    def forward(self, draw: random.Random) -> Triples:
        """Elements of whole channels; cuDNN sums 400,000 numbers in FP32, in parts, which costs some roundings."""
        for channel in draw.sample(range(self.shape[1]), CHANNELS_DRAWN):
            mean, inverse = _statistics(_channel(self.x, self.shape, channel), self.epsilon)
            factor, shift = _one(self.scale, channel), _one(self.bias, channel)
            for offset in self._offsets(draw, channel):
                yield _one(self.y, offset), (_one(self.x, offset) - mean) * inverse * factor + shift, 1.0

    @_check(256 * _U)
    def backward(self, draw: random.Random, dy: Array, dx: Array, gradients: tuple[Array, Array]) -> Triples:
        """Elements of whole channels, and the gradients of scale and bias, sums of 400,000 numbers."""
        for channel in draw.sample(range(self.shape[1]), CHANNELS_DRAWN):
            values, given = (_channel(array, self.shape, channel) for array in (self.x, dy))
            mean, inverse = _statistics(values, self.epsilon)
            count, total = len(values), math.fsum(given)
            along = (math.fsum(map(float.__mul__, values, given)) - mean * total) * inverse
            yield _one(gradients[0], channel), along, math.sqrt(count)
            yield _one(gradients[1], channel), total, math.sqrt(count)
            factor = _one(self.scale, channel) * inverse
            for offset in self._offsets(draw, channel):
                normal = (_one(self.x, offset) - mean) * inverse
                exact = factor * (_one(dy, offset) - total / count - normal * along / count)
                yield _one(dx, offset), exact, 1.0

    def _offsets(self, draw: random.Random, channel: int) -> list[int]:
        places = _drawn(draw, self.shape, DRAWN // CHANNELS_DRAWN)
        return [_offset(self.shape, (image, channel, row, column)) for image, _, row, column in places]


# Normalization over a window of channels, or of rows and columns.


def _near(array: Array, shape: Shape, place: Place, window: Window, times: int) -> Near:
    """Elements within so many times the window's reach of a place, as far as these exist."""
    reach = times * (window.size // 2)
    if not window.across:
        rows, columns = (range(middle - reach, middle + reach + 1) for middle in place[2:])
        return _region(array, shape, place, rows, columns)
    inside = range(max(0, place[1] - reach), min(shape[1], place[1] + reach + 1))
    start = _offset(shape, (place[0], inside.start, place[2], place[3]))
    return dict(zip(zip(inside), array.strided(start, shape[2] * shape[3], len(inside)), strict=True))


def _base(window: Window, near: Near, middle: tuple[int, ...]) -> float:
    """``k + alpha / n * sum x^2`` over the n elements of the window around the middle."""
    reach = window.size // 2
    around = product(*(range(each - reach, each + reach + 1) for each in middle))
    squares = sum(near[each] ** 2 for each in around if each in near)
    return window.k + window.alpha / float(window.size ** len(middle)) * squares


@_check(64 * _U)
def normalized_forward(draw: random.Random, shape: Shape, window: Window, x: Array, y: Array) -> Triples:
    """``y = x * (k + alpha / n * sum x^2) ^ -beta``."""
    for place in _drawn(draw, shape):
        near, middle = _near(x, shape, place, window, 1), window.middle(place)
        exact = near[middle] * _base(window, near, middle) ** -window.beta
        yield _one(y, _offset(shape, place)), exact, 1.0


@_check(64 * _U)
def normalized_backward(draw: random.Random, shape: Shape, window: Window, x: Array, dy: Array, dx: Array) -> Triples:
    """The derivative of the above."""
    for place in _drawn(draw, shape):
        near, middle = _near(x, shape, place, window, 2), window.middle(place)
        gradients = _near(dy, shape, place, window, 1)
        exact = gradients[middle] * _base(window, near, middle) ** -window.beta
        share = 2 * window.alpha * window.beta / window.size ** len(middle)
        for other, gradient in gradients.items():
            power = _base(window, near, other) ** (-window.beta - 1)
            exact -= share * near[middle] * gradient * near[other] * power
        yield _one(dx, _offset(shape, place)), exact, 1.0


# Copies.


@_check(0.0)
def transform(draw: random.Random, shape: Shape, x: Array, y: Array) -> Triples:
    """``y`` is ``x`` with the channels last."""
    _, channels, rows, columns = shape
    for place in _drawn(draw, shape):
        n, c, h, w = place
        offset = ((n * rows + h) * columns + w) * channels + c
        yield _one(y, offset), _one(x, _offset(shape, place)), 1.0
