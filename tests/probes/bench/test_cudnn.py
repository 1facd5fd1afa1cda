"""Verification of cuDNN's results: right ones pass, a wrong one does not. Memory of the GPU is the host's here.

What is right comes from sums written out in full, and for gradients from differences of the function itself.
"""

import math
import random
from collections.abc import Callable, Sequence
from ctypes import c_void_p
from itertools import product
from typing import Any

import pytest

from probes.measuring.cudnn import attention, convolution, layer_checks
from probes.measuring.cudnn.convolution import KINDS
from probes.measuring.cudnn.layer_checks import BatchNorm, Window
from probes.measuring.cudnn.layers import IMAGES, POOLED, PRECISIONS, ROWS, Layer, W, X, Y, beyond_cache
from probes.measuring.cudnn.library import Proposal
from tests.every import cases

from .host_gpu import HostDevice


def numbers(count: int, kind: str = "fp32") -> list[float]:
    """Random numbers as the type has them."""
    given = [random.uniform(-1, 1) for _ in range(count)]
    return HostDevice().array(kind, given).values()


def spoiled(values: Sequence[float]) -> list[float]:
    """All a little wrong: any element that is looked at tells."""
    return [value + 0.3 for value in values]


MIB = 1 << 20


@cases("l2, images", (0, 128), (4 * MIB, 128), (50 * MIB, 128), (60 * MIB, 128), (72 * MIB, 256), (126 * MIB, 256))
def test_layers_work_on_more_than_the_cache_holds(l2: int, images: int) -> None:
    """As on an A100, H100, H200, RTX 4090 and B200: up to the H200, the shapes that bands were measured with."""
    assert beyond_cache(IMAGES, l2) == (images, *IMAGES[1:])
    for shape in (IMAGES, POOLED, ROWS):
        assert math.prod(beyond_cache(shape, l2)) * 4 >= 1.5 * l2


# --- convolutions -------------------------------------------------------------------------------------------------
LAYER = Layer(images=3, channels=4, filters=5, side=6, window=3)


def place(layer: Layer, tensor: int, layout: str, *index: int) -> int:
    return sum(a * b for a, b in zip(index, layer.strides(tensor, layout), strict=True))


def convolved(layer: Layer, direction: str, layout: str, x: list[float], w: list[float], y: list[float]) -> list[float]:
    """The tensor that a direction writes, from the two others."""
    written = KINDS[direction][2]
    result = [0.0] * layer.elements(written)
    sides = range(layer.side)
    for n, k, c in product(range(layer.images), range(layer.filters), range(layer.channels)):
        for p, q, r, s in product(sides, sides, range(layer.window), range(layer.window)):
            row, column = p + r - layer.pad, q + s - layer.pad
            if row not in sides or column not in sides:
                continue
            at = {
                X: place(layer, X, layout, n, c, row, column),
                W: place(layer, W, layout, k, c, r, s),
                Y: place(layer, Y, layout, n, k, p, q),
            }
            factors = {X: x[at[X]], W: w[at[W]], Y: y[at[Y]]}
            result[at[written]] += math.prod(factors[each] for each in (X, W, Y) if each != written)
    return result


@cases("window", 1, 3)
@cases("layout", "NCHW", "NHWC")
@pytest.mark.parametrize("direction", list(KINDS))
def test_a_convolution_is_right_and_a_wrong_one_is_seen(direction: str, layout: str, window: int) -> None:
    layer = Layer(LAYER.images, LAYER.channels, LAYER.filters, LAYER.side, window)
    given = {tensor: numbers(layer.elements(tensor)) for tensor in (X, W, Y)}
    written = KINDS[direction][2]
    result = convolved(layer, direction, layout, given[X], given[W], given[Y])
    for values, right in ((result, True), (spoiled(result), False)):
        device = HostDevice()
        arrays = {tensor: device.array("fp32", {**given, written: values}[tensor]) for tensor in (X, W, Y)}
        found = convolution.verified(layer, direction, layout, PRECISIONS["fp32"], arrays)
        assert found["right"] is right
        assert found["checked"] > 10
        assert right or found["wrong"] == found["checked"]


@pytest.mark.parametrize("name", list(PRECISIONS))
def test_a_missing_product_of_a_large_sum_is_beyond_the_tolerance(name: str) -> None:
    """One that lost 1 of 48 blocks of its 2304 products is off by a seventh of its size."""
    assert convolution.tolerance(PRECISIONS[name], 2304) < math.sqrt(1 / 48) / 2


def test_fp32_takes_no_engine_with_tensor_cores() -> None:
    def proposal(*notes: int) -> Proposal:
        return Proposal(c_void_p(), 0, frozenset(notes))

    assert convolution._allowed("fp32", proposal(5))
    assert not convolution._allowed("fp32", proposal(0))
    assert not convolution._allowed("fp32", proposal(1))
    assert convolution._allowed("tf32", proposal(0, 1))


# --- layers -------------------------------------------------------------------------------------------------------
Shape = tuple[int, int, int, int]
SMALL: Shape = (2, 7, 8, 8)


def gradient(function: Callable[[list[float]], list[float]], x: list[float], dy: list[float]) -> list[float]:
    """By differences of the function, in FP64."""
    step, result = 1e-5, []
    for index in range(len(x)):
        above, below = list(x), list(x)
        above[index] += step
        below[index] -= step
        change = (a - b for a, b in zip(function(above), function(below), strict=True))
        result.append(sum(g * c for g, c in zip(dy, change, strict=True)) / (2 * step))
    return result


def indices(shape: Shape) -> list[Shape]:
    n, c, h, w = shape
    return list(product(range(n), range(c), range(h), range(w)))


def pooled(shape: Shape) -> Callable[[list[float]], list[float]]:
    at = dict(zip(indices(shape), range(math.prod(shape)), strict=True))

    def function(x: list[float]) -> list[float]:
        def window(n: int, c: int, p: int, q: int) -> list[float]:
            near = product(range(2 * p - 1, 2 * p + 2), range(2 * q - 1, 2 * q + 2))
            return [x[at[n, c, row, column]] for row, column in near if (n, c, row, column) in at]

        return [max(window(*each)) for each in indices((shape[0], shape[1], shape[2] // 2, shape[3] // 2))]

    return function


def softmax(shape: Shape) -> Callable[[list[float]], list[float]]:
    width = shape[1]

    def function(x: list[float]) -> list[float]:
        rows = [[math.exp(value) for value in x[start : start + width]] for start in range(0, len(x), width)]
        return [value / sum(row) for row in rows for value in row]

    return function


def normalized(shape: Shape, window: Window, *, across: bool) -> Callable[[list[float]], list[float]]:
    """Local response normalization across channels, or divisive normalization in space."""
    at = dict(zip(indices(shape), range(math.prod(shape)), strict=True))
    near = range(-(window.size // 2), window.size // 2 + 1)

    def function(x: list[float]) -> list[float]:
        def value(n: int, c: int, h: int, w: int) -> float:
            around: list[Shape]
            if across:
                around = [(n, c + step, h, w) for step in near]
            else:
                around = [(n, c, h + down, w + right) for down, right in product(near, near)]
            squares = sum(x[at[each]] ** 2 for each in around if each in at)
            return x[at[n, c, h, w]] * math.pow(window.k + window.alpha / len(around) * squares, -window.beta)

        return [value(*each) for each in at]

    return function


LRN, DIVISIVE = Window(5, 1.0, 0.75, 2.0, across=True), Window(3, 1.0, 0.5, 1.0)
FEW: Shape = (6, 40, 1, 1)
FUNCTIONS: dict[str, tuple[Shape, Callable[[list[float]], list[float]]]] = {
    "pooling": ((2, 2, 8, 8), pooled((2, 2, 8, 8))),
    "softmax": (FEW, softmax(FEW)),
    "relu": (SMALL, lambda x: [max(value, 0.0) for value in x]),
    "sigmoid": (SMALL, lambda x: [1 / (1 + math.exp(-value)) for value in x]),
    "tanh": (SMALL, lambda x: [math.tanh(value) for value in x]),
    "lrn": ((1, 9, 3, 3), normalized((1, 9, 3, 3), LRN, across=True)),
    "divisive": ((1, 2, 8, 8), normalized((1, 2, 8, 8), DIVISIVE, across=False)),
}


def checked(name: str, *, backward: bool, x: list[float], dy: list[float], result: list[float]) -> dict[str, Any]:
    """The verdict on a result."""
    device, shape = HostDevice(), FUNCTIONS[name][0]
    inputs = (x, dy) if backward else (x,)
    arrays = [device.array("fp32", values) for values in (*inputs, result)]
    windows = {"lrn": (LRN,), "divisive": (DIVISIVE,)}
    elementwise = name in ("relu", "sigmoid", "tanh")
    family = "activation" if elementwise else "normalized" if name in windows else name
    check = getattr(layer_checks, f"{family}_{'backward' if backward else 'forward'}")
    about = (name,) if elementwise else (shape, *windows.get(name, ()))
    verdict: dict[str, Any] = check(random.Random(), *about, *arrays)
    return verdict


@cases("backward", False, True)
@pytest.mark.parametrize("name", list(FUNCTIONS))
def test_a_layer_is_right_and_a_wrong_one_is_seen(name: str, backward: bool) -> None:  # noqa: FBT001
    shape, function = FUNCTIONS[name]
    # Apart from each other and from 0, or a difference would see the maximum move.
    x = [(2 * each + 1) / 2048 for each in random.sample(range(-1024, 1024), math.prod(shape))]
    result = function(x)
    dy = numbers(len(result))
    if backward:
        result = gradient(function, x, dy)
    found = checked(name, backward=backward, x=x, dy=dy, result=result)
    exact = backward and name in ("relu", "pooling")
    assert found["right"] or (exact and found["worst"] < 1e-6)
    wrong = checked(name, backward=backward, x=x, dy=dy, result=spoiled(result))
    assert (wrong["right"], wrong["wrong"]) == (False, wrong["checked"])


@cases("backward", False, True)
def test_a_batch_norm_is_right_and_a_wrong_one_is_seen(backward: bool) -> None:  # noqa: FBT001
    shape, epsilon = (4, 3, 5, 5), 1e-5
    scale, bias = numbers(3), numbers(3)
    channels = [index[1] for index in indices(shape)]

    def function(x: list[float], factors: list[float] = scale, shifts: list[float] = bias) -> list[float]:
        groups = [[value for value, at in zip(x, channels, strict=True) if at == channel] for channel in range(3)]
        means = [sum(group) / len(group) for group in groups]
        spreads = [
            math.sqrt(sum((value - mean) ** 2 for value in group) / len(group) + epsilon)
            for group, mean in zip(groups, means, strict=True)
        ]
        return [
            (value - means[at]) / spreads[at] * factors[at] + shifts[at] for value, at in zip(x, channels, strict=True)
        ]

    x = numbers(math.prod(shape))
    y, dy = function(x), numbers(math.prod(shape))
    results = {
        "dx": gradient(function, x, dy),
        "scale": gradient(lambda factors: function(x, factors), scale, dy),
        "bias": gradient(lambda shifts: function(x, scale, shifts), bias, dy),
    }

    def verdict(y: list[float], results: dict[str, list[float]]) -> dict[str, Any]:
        device = HostDevice()
        norm = BatchNorm(shape, epsilon, *[device.array("fp32", values) for values in (x, scale, bias, y)])
        if not backward:
            return norm.forward(random.Random())
        given, dx, first, second = (device.array("fp32", values) for values in (dy, *results.values()))
        return norm.backward(random.Random(), given, dx, (first, second))

    assert verdict(y, results)["right"]
    assert verdict(spoiled(y), results)["right"] is backward
    if backward:
        for name, values in results.items():
            assert not verdict(y, {**results, name: spoiled(values)})["right"], name


def test_a_transposed_copy_is_compared_bit_by_bit() -> None:
    x = numbers(math.prod(SMALL))
    n, c, h, w = SMALL
    at = dict(zip(indices(SMALL), x, strict=True))
    y = [at[a, b, row, column] for a, row, column, b in product(range(n), range(h), range(w), range(c))]
    for values, right in ((y, True), ([math.nextafter(value, 2) + 2**-23 for value in y], False), (x, False)):
        device = HostDevice()
        found = layer_checks.transform(random.Random(), SMALL, device.array("fp32", x), device.array("fp32", values))
        assert found["right"] is right


# --- attention ----------------------------------------------------------------------------------------------------
ATTENTION = attention.Shape(batch=1, heads=2, length=12, depth=4, scale=0.5)


def attended(shape: attention.Shape, q: list[float], k: list[float], v: list[float]) -> tuple[list[float], list[float]]:
    """Result and logarithms of the sums."""
    result, totals = [], []
    s, d = shape.length, shape.depth
    for head in range(shape.batch * shape.heads):
        rows = {
            name: [values[(head * s + row) * d : (head * s + row + 1) * d] for row in range(s)]
            for name, values in (("q", q), ("k", k), ("v", v))
        }
        for query in rows["q"]:
            scores = [sum(a * b for a, b in zip(query, key, strict=True)) for key in rows["k"]]
            powers = [math.exp(shape.scale * score) for score in scores]
            total = sum(powers)
            totals.append(math.log(total))
            result += [sum(p * value[i] for p, value in zip(powers, rows["v"], strict=True)) / total for i in range(d)]
    return result, totals


@cases("wrong", None, "O", "STATS", "DQ", "DK", "DV")
def test_attention_is_right_and_a_wrong_one_is_seen(wrong: str | None) -> None:
    shape = ATTENTION
    q, k, v, dy = (numbers(shape.elements, "fp16") for _ in range(4))
    o, stats = attended(shape, q, k, v)
    values = {
        "Q": q, "K": k, "V": v, "O": o, "STATS": stats, "DO": dy,
        "DQ": gradient(lambda given: attended(shape, given, k, v)[0], q, dy),
        "DK": gradient(lambda given: attended(shape, q, given, v)[0], k, dy),
        "DV": gradient(lambda given: attended(shape, q, k, given)[0], v, dy),
    }  # fmt: skip
    if wrong:
        values[wrong] = spoiled(values[wrong])
    device = HostDevice()
    arrays = {
        getattr(attention, name): device.array("fp32" if name == "STATS" else "fp16", each)
        for name, each in values.items()
    }
    direction = "forward" if wrong in ("O", "STATS") else "backward"
    assert attention.verified(shape, "fp16", direction, arrays)["right"] is (wrong is None)
    if wrong is None:
        assert attention.verified(shape, "fp16", "forward", arrays)["right"]
