"""Random sparse matrices, and whether a product with one is right.

A matrix is block-diagonal: panels of ``SIDE`` rows and columns, each with the same pattern and with values of its own.
A row's columns thus lie close to each other, as in the matrices of grids, and a pattern of some 100,000 entries, drawn
on the host, makes one of tens of millions.
"""

from __future__ import annotations

import random
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from .arrays import Array
from .runtime import Fields, compared

SIDE = 4096  # Rows and columns of a panel
DRAWN = 256  # Elements of a result that are checked


@dataclass(frozen=True)
class Panels:
    """Single entries, row after row (CSR); the offsets and columns are those of one panel.

    ``row`` gives runs of a row's values: the place of the first, and the columns of all.
    """

    offsets: array[int]  # Offsets of ``SIDE`` rows, and the end of the last
    indices: array[int]
    count: int  # Panels

    @property
    def shape(self) -> tuple[int, int, int]:
        """Rows, columns, entries."""
        return self.rows, self.columns, self.entries

    @property
    def rows(self) -> int:
        return SIDE * self.count

    @property
    def columns(self) -> int:
        return SIDE * self.count

    @property
    def entries(self) -> int:
        return len(self.indices) * self.count

    def row(self, index: int) -> Iterable[tuple[int, Sequence[int]]]:
        panel, inside = divmod(index, SIDE)
        first, last = self.offsets[inside], self.offsets[inside + 1]
        columns = [panel * SIDE + column for column in self.indices[first:last]]
        return [(panel * len(self.indices) + first, columns)]

    def all_offsets(self) -> Iterator[bytes]:
        """Row offsets as 32-bit integers, piece by piece."""
        yield from shifted(self.offsets[:-1], len(self.indices), self.count)
        yield array("i", [self.entries]).tobytes()

    def all_indices(self) -> Iterator[bytes]:
        """Column indices as 32-bit integers, piece by piece."""
        yield from shifted(self.indices, SIDE, self.count)


@dataclass(frozen=True)
class Blocks:
    """Dense square blocks, row of blocks after row of blocks (BSR); inside a block the values lie row by row.

    ``row`` is as of ``Panels``; the entries of blocks count in full.
    """

    side: int
    per_row: int  # Blocks in each row of blocks
    indices: array[int]  # Columns of blocks
    width: int  # Columns of blocks that the matrix has

    @property
    def shape(self) -> tuple[int, int, int]:
        """Rows of blocks, columns of blocks, blocks."""
        return self.block_rows, self.width, len(self.indices)

    @property
    def block_rows(self) -> int:
        return len(self.indices) // self.per_row

    @property
    def rows(self) -> int:
        return self.block_rows * self.side

    @property
    def columns(self) -> int:
        return self.width * self.side

    @property
    def entries(self) -> int:
        return len(self.indices) * self.side**2

    def row(self, index: int) -> Iterable[tuple[int, Sequence[int]]]:
        block_row, inside = divmod(index, self.side)
        for place in range(block_row * self.per_row, (block_row + 1) * self.per_row):
            first = self.indices[place] * self.side
            yield place * self.side**2 + inside * self.side, range(first, first + self.side)

    def offsets(self) -> bytes:
        """Offsets of the rows of blocks as 32-bit integers."""
        return array("i", range(0, len(self.indices) + 1, self.per_row)).tobytes()


def panels(draw: random.Random, per_row: int, count: int) -> Panels:
    """Rows of half to one and a half times ``per_row`` entries, sorted, and one row without any."""
    offsets, indices = array("i", [0]), array("i")
    empty = draw.randrange(SIDE)
    for row in range(SIDE):
        length = 0 if row == empty else draw.randint(per_row // 2, per_row + per_row // 2)
        indices.extend(sorted(draw.sample(range(SIDE), length)))
        offsets.append(len(indices))
    return Panels(offsets, indices, count)


def blocks(draw: random.Random, side: int, per_row: int, block_rows: int) -> Blocks:
    """``per_row`` blocks in each row of blocks, within a window of ``SIDE`` columns."""
    window = SIDE // side
    width = max(block_rows, window)
    indices = array("i")
    for row in range(block_rows):
        first = min(row // window * window, width - window)
        indices.extend(sorted(draw.sample(range(first, first + window), per_row)))
    return Blocks(side, per_row, indices, width)


def shifted(base: array[int], step: int, times: int) -> Iterator[bytes]:
    """``base``, then ``base`` with ``step`` added to each number, and so on, as 32-bit integers.

    The numbers are added as one long integer, whose digits never carry: all of them stay below 2^31.
    """
    number = int.from_bytes(base.tobytes(), "little")
    each = step * int.from_bytes(array("i", [1]).tobytes() * len(base), "little")
    for _ in range(times):
        yield number.to_bytes(len(base) * 4, "little")
        number += each


@dataclass(frozen=True)
class SparseResult:
    """A product as it lies on the GPU: element (row, column) is ``row * row_step + column * column_step``."""

    array: Array
    row_step: int
    column_step: int


def verified(
    pattern: Panels | Blocks, values: Array, dense: Array, result: SparseResult, width: int, draw: random.Random
) -> Fields:
    """Check drawn elements of ``result = matrix . dense`` against FP64 sums on the CPU.

    ``dense`` lies row by row, ``width`` elements each (1: a vector). An element may be off by ``4 * epsilon * sqrt(K)``
    of the sum of the sizes of its K products: the rounding of K sums adds up like a random walk.
    """
    rows = [draw.randrange(pattern.rows) for _ in range(DRAWN if width == 1 else DRAWN // 4)]
    columns = [draw.randrange(width) for _ in range(1 if width == 1 else 4)]
    triples, longest = [], 1
    for row in rows:
        runs = [(values.values(start, len(places)), places) for start, places in pattern.row(row) if places]
        longest = max(longest, sum(len(places) for _, places in runs))
        for column in columns:
            products: list[float] = []
            for factors, places in runs:
                first, count = places[0], places[-1] - places[0] + 1
                span = dense.strided(first * width + column, width, count)
                products += [factor * span[place - first] for factor, place in zip(factors, places, strict=True)]
            (found,) = result.array.values(row * result.row_step + column * result.column_step, 1)
            triples.append((found, sum(products), sum(map(abs, products))))
    tolerance = 4 * result.array.element.epsilon * longest**0.5
    return compared(triples, tolerance, f"{len(triples):,} random elements against FP64 sums on the CPU")
