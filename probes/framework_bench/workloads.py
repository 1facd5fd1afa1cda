"""The work that libraries, frameworks and the processor are measured with, exact results of it, and how it is measured.

Whoever measures it takes the shapes from here, so that the figures can be compared. Operands are uniform in [-1, 1)
and drawn by the framework. A result is compared, at random places, with sums in FP64 of the operands on the GPU.
"""

from __future__ import annotations

import math
import os
import random
import statistics
from collections.abc import Iterable
from typing import Any, Callable, Iterator, List, NamedTuple, Sequence, Tuple

from ..measuring.runtime import Fields

Triple = Tuple[float, float, float]  # Result found, exact result, and the size that its error is measured by
Take = Callable[..., List[float]]  # ``take(array, index, ...)``: the elements at an index (numbers, slices), in C order

SIDES = (8192, 4096, 2048)  # Sides of square matrices
LONGEST_RUN = 0.05  # Seconds that one product on a GPU may take: where it is slower, the matrices are smaller
SAMPLES, LEAST_RUNS = 7, 2
"""Samples of a product on a GPU, and runs in each: a few after a rest, ten at the largest size, so clocks stay up."""
SAMPLE_SECONDS, PAUSE = 0.011, 0.06  # How long the runs of a sample take together, and the rest before them
PER_ROW = 32  # Entries in a row of a sparse matrix, on average. The matrix is block-diagonal, of panels of one pattern
PANELS, WIDE_PANELS = 256, 64
"""For a product with a vector (2^20 rows: 33 million entries, 268 MB in FP32, several times what a second-level cache
holds), and for one with a matrix of ``WIDTH`` columns."""
WIDTH = 64
_LARGE = 60  # Multiprocessors from which on a GPU gets the whole batch; smaller ones, which take longer, get less


class TransformSize(NamedTuple):
    """How many points transforms have, and how many transforms there are."""

    lengths: Tuple[int, ...]  # noqa: UP006  read by Python 3.8 too
    batch: int = 1

    @property
    def points(self) -> int:
        return math.prod(self.lengths) * self.batch

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the array that is transformed, along its last axis or along both."""
        return (self.batch, *self.lengths) if self.batch > 1 else self.lengths

    def bins(self, form: str) -> int:
        """Complex numbers of the result: real input gives those of non-negative frequency of the last axis."""
        return self.points if form == "C2C" else self.points // self.lengths[-1] * (self.lengths[-1] // 2 + 1)


TRANSFORMS = {
    "1D": TransformSize((1 << 24,)),
    "2D": TransformSize((4096, 4096)),
    "1D, batched": TransformSize((1024,), 1 << 14),
}
"""16.8 million points each: 134 MB of complex numbers in FP32, more than a second-level cache holds."""

EPSILON = {"fp64": 2.0**-53, "fp32": 2.0**-24, "tf32": 2.0**-10, "fp16": 2.0**-11, "bf16": 2.0**-8}
"""Unit roundoff: of the sums (FP64, FP32), of the operands (TF32), or of the result and of partial sums."""
SIZE = {"fp64": 8, "fp32": 4, "tf32": 4, "fp16": 2, "bf16": 2}  # Bytes of an element

DRAW = random.Random(os.urandom(16))  # noqa: S311  no secret


class LayerShape(NamedTuple):
    """A convolution of stride 1 that keeps the size: the third stage of ResNet-50, with a batch that fills an H200."""

    images: int = 128
    channels: int = 256
    filters: int = 256
    side: int = 28
    window: int = 3

    @property
    def pad(self) -> int:
        return self.window // 2

    @property
    def operations(self) -> float:
        """Multiplications and additions, those with padding included."""
        return 2.0 * self.images * self.filters * self.channels * self.side**2 * self.window**2

    def given(self, layout: str) -> tuple[int, ...]:
        """Shape of the input in ``NCHW`` or ``NHWC``."""
        if layout == "NCHW":
            return self.images, self.channels, self.side, self.side
        return self.images, self.side, self.side, self.channels


class Heads(NamedTuple):
    """Queries, keys and values of attention, all of one shape."""

    batch: int = 8
    heads: int = 16
    length: int = 2048
    depth: int = 128
    scale: float = 0.5  # Factor of the scores: above 1 / sqrt(depth), so that the softmax of random numbers has peaks

    @property
    def operations(self) -> float:
        """Operations of the two products forward."""
        return 4.0 * self.batch * self.heads * self.length**2 * self.depth


def layer_for(multiprocessors: int) -> LayerShape:
    return LayerShape() if multiprocessors >= _LARGE else LayerShape(images=LayerShape().images // 8)


def heads_for(multiprocessors: int) -> Heads:
    return Heads() if multiprocessors >= _LARGE else Heads(batch=1)


def tolerance(precision: str, terms: int) -> float:
    """How far off a sum of ``terms`` products may be, in parts of the root of the sum of their squares.

    In FP64 and FP32 each addition rounds its partial sum, and these errors add up as a random walk. Shorter operands or
    results are rounded once each, relative to themselves. No correct result is eight times as far off.
    """
    growth = math.sqrt(terms) if precision in ("fp64", "fp32") else 1.0
    return 8 * EPSILON[precision] * growth


ROWS = 10  # Rows and columns of a product that are compared where they cross


def product_triples(take: Take, left: Any, right: Any, result: Any, shape: Sequence[int]) -> Iterator[Triple]:
    """Elements of ``left @ right`` at ``ROWS`` random rows and columns; ``shape`` is M, N, K."""
    rows = sorted(DRAW.sample(range(shape[0]), ROWS))
    columns = sorted(DRAW.sample(range(shape[1]), ROWS))
    lines = [take(right, slice(None), column) for column in columns]
    for row in rows:
        line = take(left, row, slice(None))
        found = take(result, row, slice(None))
        for column, other in zip(columns, lines):
            exact, size = exact_sum(line, other)
            yield found[column], exact, size


PLACES, FILTERS = 6, 8  # Places of a convolution's result, and filters at each, that are compared


def convolution_triples(
    take: Take, given: Any, weights: Any, result: Any, layer: LayerShape, layout: str, order: str = "OIHW"
) -> Iterator[Triple]:
    """Elements of a convolution's result; ``order`` is how the weights lie: ``OIHW`` or ``HWIO``."""
    chosen = sorted(DRAW.sample(range(layer.filters), FILTERS))
    whole = slice(None)
    filters: dict[int, list[list[float]]] = {}  # for each place of the window the weights of all channels
    places, channels = layer.window**2, layer.channels
    for each in chosen:
        if order == "OIHW":
            numbers = take(weights, each, whole, whole, whole)
            filters[each] = [numbers[place::places] for place in range(places)]
        else:
            numbers = take(weights, whole, whole, whole, each)
            filters[each] = [numbers[place * channels : (place + 1) * channels] for place in range(places)]
    for _ in range(PLACES):
        image, row, column = DRAW.randrange(layer.images), DRAW.randrange(layer.side), DRAW.randrange(layer.side)
        patch: list[float] = []
        kept: list[int] = []
        for down in range(layer.window):
            for right in range(layer.window):
                y, x = row + down - layer.pad, column + right - layer.pad
                if 0 <= y < layer.side and 0 <= x < layer.side:
                    patch += take(given, *_pixel(layout, image, y, x))
                    kept.append(down * layer.window + right)
        found = take(result, *_pixel(layout, image, row, column))
        for each in chosen:
            line = [number for place in kept for number in filters[each][place]]
            exact, size = exact_sum(patch, line)
            yield found[each], exact, size


def _pixel(layout: str, image: int, row: int, column: int) -> tuple[Any, ...]:
    """Index of all channels at a place."""
    return (image, slice(None), row, column) if layout == "NCHW" else (image, row, column, slice(None))


QUERIES = 3  # Queries of attention that are compared, each at every element of its result


def attention_triples(
    take: Take, tensors: Sequence[Any], result: Any, heads: Heads, order: str = "BHLD"
) -> Iterator[Triple]:
    """Results of attention for some queries; ``order`` is ``BHLD`` or ``BLHD``."""
    queries, keys, values = tensors
    for _ in range(QUERIES):
        batch, head, row = (DRAW.randrange(most) for most in (heads.batch, heads.heads, heads.length))
        line = take(queries, *_line(order, batch, head, row))
        flat = [take(each, *_line(order, batch, head, slice(None))) for each in (keys, values)]
        lists = [[numbers[at : at + heads.depth] for at in range(0, len(numbers), heads.depth)] for numbers in flat]
        scores = [heads.scale * exact_sum(line, key)[0] for key in lists[0]]
        most = max(scores)
        weights = [math.exp(score - most) for score in scores]
        total = math.fsum(weights)
        found = take(result, *_line(order, batch, head, row))
        for place in range(heads.depth):
            terms = [weight / total * value[place] for weight, value in zip(weights, lists[1])]
            yield found[place], math.fsum(terms), math.sqrt(math.fsum(term * term for term in terms))


def _line(order: str, batch: int, head: int, row: Any) -> tuple[Any, ...]:
    return (batch, head, row, slice(None)) if order == "BHLD" else (batch, row, head, slice(None))


def exact_sum(left: Sequence[float], right: Sequence[float]) -> tuple[float, float]:
    """The exact sum of products, and the root of the sum of their squares."""
    terms = [a * b for a, b in zip(left, right)]
    return math.fsum(terms), math.sqrt(math.fsum(term * term for term in terms))


class Steps(NamedTuple):
    """A training step: layers of one width with SiLU between them, squared error, gradient descent.

    Weights are FP32 and multiplied in BF16, as automatic mixed precision does it.
    """

    layers: int = 4
    width: int = 2048
    batch: int = 2048
    rate: float = 0.01  # Learning rate

    @property
    def operations(self) -> float:
        """Operations of the matrix products: one a layer forward, two backward, of which the first layer needs one."""
        return 2.0 * self.batch * self.width**2 * (3 * self.layers - 1)

    @property
    def spread(self) -> float:
        """Factor of the random weights that keeps the size of what the layers compute."""
        return math.sqrt(6.0 / self.width)


STEPS = Steps()
DRAWN = 64  # Elements of a gradient that are compared, of the first and of the last layer each
STEP_TOLERANCE = 0.12
"""What they may be off, in parts of the gradient's root mean square.

Eight roundings to BF16 (2^-9 each, of operands whose errors are independent) are about 1 % of it; no correct gradient
is ten times that off.
"""


def step_triples(
    numpy: Any, weights: Sequence[Any], after: Sequence[Any], given: Any, wanted: Any, steps: Steps = STEPS
) -> Iterator[Triple]:
    """Gradients, as one step of ``rate`` has changed the weights, against those in FP64; all as arrays of NumPy."""
    exact = gradients(numpy, [each.astype("float64") for each in weights], given, wanted)
    for place in (0, len(exact) - 1):
        size = float(numpy.sqrt((exact[place] ** 2).mean()))
        for _ in range(DRAWN):
            where = DRAW.randrange(steps.width), DRAW.randrange(steps.width)
            moved = (float(weights[place][where]) - float(after[place][where])) / steps.rate
            yield moved, float(exact[place][where]), size


def gradients(numpy: Any, weights: Sequence[Any], given: Any, wanted: Any) -> list[Any]:
    """Gradients of the mean over the batch of half the squared error, in the precision of ``weights``."""
    entering, raw = [given.astype(weights[0].dtype)], []
    for place, weight in enumerate(weights):
        raw.append(entering[-1] @ weight)
        if place < len(weights) - 1:
            entering.append(raw[-1] / (1 + numpy.exp(-raw[-1])))
    change = (raw[-1] - wanted) / given.shape[0]
    found: list[Any] = []
    for place in range(len(weights) - 1, -1, -1):
        found.insert(0, entering[place].T @ change)
        if place:
            squashed = 1 / (1 + numpy.exp(-raw[place - 1]))
            change = (change @ weights[place].T) * (squashed * (1 + raw[place - 1] * (1 - squashed)))
    return found


def rate(amount: float, seconds: Iterable[float], unit: str) -> Fields:
    """``amount`` a second, from the seconds that single runs took; the value is the median."""
    samples = [amount / each for each in seconds]
    return {"value": statistics.median(samples), "samples": samples, "unit": unit}
