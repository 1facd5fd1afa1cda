"""Whether a convolution is right: elements drawn at random against sums in FP64 on the CPU, of what lies on the GPU."""

from __future__ import annotations

import math
import os
import random
from collections.abc import Iterator
from operator import mul

from ...kit.figures import Fields, compared
from ..arrays import ELEMENTS, Array
from ..verify import decoded
from .layer_shape import Layer, Precision, W, X, Y

C = 4.0
"""Tolerated error as a multiple of the expected one."""
IMAGES, PER_IMAGE, FILTER_SIDE = 8, 32, 5
"""Elements drawn: so many images and elements of each; of a filter's gradient so many channels of either side."""


Place = tuple[int, int, int]
"""Channel, row, column."""
Pairs = Iterator[tuple[float, float]]
"""Found and exact."""


def tolerance(precision: Precision, terms: int) -> float:
    """Allowed error of an element in units of its size, or of the expected size where that is larger.

    The operands are uniform in [-1, 1): a sum of ``terms`` products is about sqrt(terms) / 3. Its error is random, and
    grows with the roundings of the operands (each relative to a product) and of the sum (each relative to what was
    summed); the tolerance is c * epsilon * sqrt(terms), as for matrix products (``verify``). Algorithms that transform
    what they multiply (Winograd) stay within it with FP32 sums. Rounding to the result's own type comes on top, twice
    where partial sums are kept in it.
    """
    result = 2 * ELEMENTS[precision.kind].epsilon
    return C * (precision.sum_epsilon * math.sqrt(terms) + precision.input_epsilon) + result


def verified(layer: Layer, direction: str, layout: str, precision: Precision, arrays: dict[int, Array]) -> Fields:
    """Compare elements drawn at random with FP64 sums."""
    draw = random.Random(os.urandom(16))  # noqa: S311  no secret
    if direction == "backward filter":
        terms = layer.images * layer.side**2
        pairs = _filter_elements(layer, layout, arrays, draw)
    else:
        source = X if direction == "forward" else Y
        terms = layer.dimensions(source)[1] * layer.window**2
        pairs = _image_elements(layer, direction, layout, arrays, draw)
    size = math.sqrt(terms) / 3
    found = [(value, exact, max(size, abs(exact))) for value, exact in pairs]
    return compared(found, tolerance(precision, terms), f"{len(found):,} random elements against FP64 sums on the CPU")


def _spread(draw: random.Random, count: int, parts: int) -> list[int]:
    """A number below ``count`` from each of so many equal parts: a part of a result that is wrong is not missed."""
    parts = min(parts, count)
    return [draw.randrange(part * count // parts, (part + 1) * count // parts) for part in range(parts)]


def _image_elements(layer: Layer, direction: str, layout: str, arrays: dict[int, Array], draw: random.Random) -> Pairs:
    """Elements of ``Y`` (forward) or of ``X`` (backward data)."""
    source, target = (X, Y) if direction == "forward" else (Y, X)
    size, target_size = (math.prod(layer.dimensions(tensor)[1:]) for tensor in (source, target))
    _, channels, rows, columns = layer.dimensions(target)
    strides = layer.strides(target, layout)[1:]
    filters = arrays[W].values()
    for image in _spread(draw, layer.images, IMAGES):
        numbers = arrays[source].values(image * size, size)
        results = arrays[target].values(image * target_size, target_size)
        for _ in range(PER_IMAGE):
            place = draw.randrange(channels), draw.randrange(rows), draw.randrange(columns)
            found = results[sum(map(mul, place, strides))]
            yield found, _image_element(layer, direction, layout, place, (numbers, filters))


def _image_element(
    layer: Layer, direction: str, layout: str, place: Place, operands: tuple[list[float], list[float]]
) -> float:
    """The sum over the window around a place, and over the channels of the image that is read.

    Backward the window is mirrored, and the filter's other side is summed over.
    """
    numbers, filters = operands
    source, sign, over, fixed = (X, 1, 1, 0) if direction == "forward" else (Y, -1, 0, 1)
    depth = layer.dimensions(source)[1]
    strides, w_strides = layer.strides(source, layout), layer.strides(W, layout)
    channel, row, column = place
    exact = 0.0
    for r in range(layer.window):
        for s in range(layer.window):
            h, w = row + sign * (r - layer.pad), column + sign * (s - layer.pad)
            if not (0 <= h < layer.side and 0 <= w < layer.side):
                continue
            start = h * strides[2] + w * strides[3]
            taken = numbers[start : start + (depth - 1) * strides[1] + 1 : strides[1]]
            start = channel * w_strides[fixed] + r * w_strides[2] + s * w_strides[3]
            weights = filters[start : start + (depth - 1) * w_strides[over] + 1 : w_strides[over]]
            exact += sum(map(mul, taken, weights))
    return exact


def _filter_elements(layer: Layer, layout: str, arrays: dict[int, Array], draw: random.Random) -> Pairs:
    """Elements of the gradient of ``W``."""
    gradients, strides = arrays[W].values(), layer.strides(W, layout)
    filters, channels = _spread(draw, layer.filters, FILTER_SIDE), _spread(draw, layer.channels, FILTER_SIDE)
    outputs = _planes(arrays[Y], layer, Y, layout, filters)
    inputs = _planes(arrays[X], layer, X, layout, channels)
    for k in filters:
        for c in channels:
            r, s = draw.randrange(layer.window), draw.randrange(layer.window)
            place = k * strides[0] + c * strides[1] + r * strides[2] + s * strides[3]
            yield gradients[place], _filter_element(layer, outputs[k], inputs[c], r - layer.pad, s - layer.pad)


def _filter_element(layer: Layer, outputs: list[float], inputs: list[float], down: int, right: int) -> float:
    """The sum, over all places of all images, of the output's gradient times the input ``down`` and ``right`` of it.

    Both hold one channel. Seen as one row of numbers, the input is shifted: what falls off at the top or at the bottom
    is left out, what falls off at the sides is zero in a copy of the gradient.
    """
    side, image = layer.side, layer.side**2
    shift = down * side + right
    low, high = max(0, -down * side, -shift), image - max(0, down * side, shift)
    masked = list(outputs)
    for column in (*range(-right), *range(side - right, side)):
        masked[column::side] = [0.0] * (len(masked) // side)
    return sum(
        sum(map(mul, masked[start + low : start + high], inputs[start + low + shift : start + high + shift]))
        for start in range(0, layer.images * image, image)
    )


def _planes(array: Array, layer: Layer, tensor: int, layout: str, channels: list[int]) -> dict[int, list[float]]:
    """All places of all images, by channel."""
    element, (images, depth, rows, columns) = array.element, layer.dimensions(tensor)
    plane = rows * columns * element.size
    if layout == "NCHW":
        data = {
            channel: array.device.read_strided(array.address + channel * plane, plane, depth * plane, images)
            for channel in channels
        }
    else:
        whole = array.device.read(array.address, array.bytes)
        data = {channel: _picked(whole, element.size, channel, depth) for channel in channels}
    return {channel: list(decoded(each, element.code)) for channel, each in data.items()}


def _picked(data: bytearray, size: int, start: int, stride: int) -> bytearray:
    """Every ``stride``-th element of ``size`` bytes, from ``start`` on."""
    found = bytearray(len(data) // stride)
    for byte in range(size):
        found[byte::size] = data[start * size + byte :: stride * size]
    return found
