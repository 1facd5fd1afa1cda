"""A convolution with bias and ReLU in numbers: fresh random operands, and the exact result at single places.

Weights are multiples of 2^-7 below one and biases multiples of 2^-6, which every precision holds exactly; so the same
exact result holds for FP32, FP16 and INT8, and differs by their rounding only.
"""

from __future__ import annotations

import array
import math
import os
import random
import struct
from collections.abc import Callable, Iterator
from typing import NamedTuple

SIDE = 3  # Side of the filters; one row of zeros around the image keeps its size
STEP = 2.0**-7  # What a weight or an input of 1 means in INT8
RESULT_STEP = 0.5  # What a result of 1 means in INT8
_BIAS_STEP = 2.0**-6
_DIFFERENT_IMAGES = 4  # The others repeat them: to draw numbers takes longer than to multiply them
DRAWN = 192  # Elements of the result that are compared


class ConvolutionShape(NamedTuple):
    """Shape of a batch of images and the filters over them."""

    images: int
    channels: int
    height: int
    width: int
    filters: int

    @property
    def inputs(self) -> int:
        return self.images * self.channels * self.height * self.width

    @property
    def results(self) -> int:
        return self.images * self.filters * self.height * self.width

    @property
    def weights(self) -> int:
        return self.filters * self.channels * SIDE * SIDE

    @property
    def operations(self) -> float:
        """Multiplications and additions."""
        return 2.0 * self.results * self.channels * SIDE * SIDE


class ConvolutionKind(NamedTuple):
    """How a precision is stored, and how far its results may be off."""

    size: int  # Bytes of an element
    code: str  # Format of ``struct``
    block: int  # Channels that lie together; 0: each channel is a plane (NCHW)
    epsilon: float  # Unit roundoff; 0 where the sums are exact and only the result is rounded


KINDS = {
    "fp32": ConvolutionKind(4, "<f", 0, 2.0**-24),
    "fp16": ConvolutionKind(2, "<e", 8, 2.0**-11),
    "int8": ConvolutionKind(1, "<b", 32, 0.0),
}
"""NCHW; NHWC with channels filled up to a multiple of 8; planes of 32 channels each: TensorRT's LINEAR, HWC8, CHW32."""
_HALF_A_STEP = 0.55  # Tolerance of the INT8 result, in steps, with room for the FP32 arithmetic before it is rounded


class Convolution:
    """Fresh random operands of a shape, and exact results."""

    def __init__(self, shape: ConvolutionShape) -> None:
        if shape.channels % 32 or shape.filters % 32:
            raise ValueError("INT8 needs channels in groups of 32")
        self.shape = shape
        self._draw = random.Random(os.urandom(16))  # noqa: S311  no secret
        numbers = array.array("b", os.urandom(shape.weights).translate(_WITHOUT_LEAST))
        for first in range(0, shape.weights, shape.channels * SIDE * SIDE):
            numbers[first] = 127  # TensorRT scales each filter by its greatest weight
        self._weights = numbers
        self.bias: list[float] = [self._draw.randrange(-64, 64) * _BIAS_STEP for _ in range(shape.filters)]

    def weights(self) -> list[float]:
        """Filters: filter, channel, row, column."""
        return [number * STEP for number in self._weights]

    def given(self, precision: str) -> bytes:
        """A fresh input in the layout of ``precision``."""
        different = min(_DIFFERENT_IMAGES, self.shape.images)
        while self.shape.images % different:
            different -= 1
        count = self.shape.inputs // self.shape.images * different
        # Signs and mantissas of all values, sizes from 1/8 to 1/2; in INT8 all but -128.
        data = bytearray(os.urandom(count * KINDS[precision].size))
        if precision == "int8":
            data = data.translate(_WITHOUT_LEAST)
        elif precision == "fp32":  # the sign and 7 bits of the exponent, whose last bit stays as drawn
            data[3::4] = data[3::4].translate(bytes([byte & 0x80 | 0x3E for byte in range(256)]))
        else:  # the sign, 4 bits of the exponent, the last one and two bits of the mantissa as drawn
            data[1::2] = data[1::2].translate(bytes([byte & 0x87 | 0x30 for byte in range(256)]))
        return bytes(data) * (self.shape.images // different)

    def triples(
        self, precision: str, given: bytes, result: Callable[[int], float]
    ) -> Iterator[tuple[float, float, float]]:
        """Results found, exact results, and the sizes that errors are measured by, at random places.

        ``result`` gives the element at an index of the result, in the layout of ``precision``, as the number stored.
        """
        shape, whole = self.shape, precision == "int8"
        for _ in range(DRAWN):
            image, row, column = (self._draw.randrange(most) for most in (shape.images, shape.height, shape.width))
            chosen = self._draw.randrange(shape.filters)
            shape, kind = self.shape, KINDS[precision]
            scale = STEP * (STEP if precision == "int8" else 1.0)
            terms = []
            for channel in range(shape.channels):
                first = (chosen * shape.channels + channel) * SIDE * SIDE
                for down in range(SIDE):
                    for right in range(SIDE):
                        y, x = row + down - 1, column + right - 1
                        if 0 <= y < shape.height and 0 <= x < shape.width:
                            place = self.place(precision, shape.channels, image, channel, y, x)
                            (value,) = struct.unpack_from(kind.code, given, place * kind.size)
                            terms.append(value * self._weights[first + down * SIDE + right] * scale)
            exact = max(0.0, math.fsum(terms) + self.bias[chosen])
            size = math.sqrt(math.fsum(term * term for term in terms))
            if whole:
                exact, size = min(exact, 127 * RESULT_STEP), RESULT_STEP
            found = result(self.place(precision, shape.filters, image, chosen, row, column))
            yield found * RESULT_STEP if whole else found, exact, size

    def tolerance(self, precision: str) -> float:
        """What a result may be off, in parts of the size that ``triples`` gives.

        A sum of K rounded terms is off by a random walk of K steps, ``epsilon * sqrt(K)`` of the root of the sum of
        their squares; eight times that leaves room for algorithms that transform their operands first, as Winograd's.
        FP16 may also be summed in FP16, hence its own epsilon. INT8 is summed exactly, and rounded once.
        """
        epsilon = KINDS[precision].epsilon
        return 8 * epsilon * math.sqrt(self.shape.channels * SIDE * SIDE) if epsilon else _HALF_A_STEP

    def place(self, precision: str, channels: int, image: int, channel: int, row: int, column: int) -> int:
        """Index of an element of a batch of images in the layout of ``precision``."""
        height, width, block = self.shape.height, self.shape.width, KINDS[precision].block
        if not block:
            return ((image * channels + channel) * height + row) * width + column
        group = block if precision == "int8" else channels
        plane = image * (channels // group) + channel // group
        return ((plane * height + row) * width + column) * group + channel % group


_WITHOUT_LEAST = bytes([*range(128), 0x81, *range(0x81, 256)])  # -128 becomes -127, whose range is symmetric


def stored(precision: str, data: bytes) -> float:
    """An element of the result, from its bytes."""
    (value,) = struct.unpack(KINDS[precision].code, data)
    return float(value)
