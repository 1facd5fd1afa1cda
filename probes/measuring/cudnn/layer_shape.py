"""The convolution of a layer of a network: its tensors, their strides in either layout, and the precisions."""

from __future__ import annotations

import math
from dataclasses import dataclass

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
