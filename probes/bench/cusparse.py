"""Sparse products through cuSPARSE (CSR, COO, blocks) and, with 2:4 sparsity, through cuSPARSELt."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache, partial
from typing import NamedTuple

from ..common.figures import Fields, FigureKey
from ..common.out import Out
from ..common.tree import Tree
from ..framework_bench.works import PANELS, PER_ROW, WIDE_PANELS, WIDTH
from ..measuring.arrays import RESERVE, Array
from ..measuring.device import LibraryError, Unavailable
from ..measuring.mathematics.common import PLAN, TRIAL, Workshop
from ..measuring.mathematics.cusparse import (
    SIDE,
    BlockProducts,
    Blocks,
    CuSparse,
    Multiplication,
    Panels,
    SparseResult,
    blocks,
    panels,
    verified,
)
from ..measuring.mathematics.cusparselt import KINDS, CuSparseLt, structured_product
from ..measuring.measurement import Bench, Measure, Work, timed, with_full

PROBE = {
    "title": "Sparse products (cuSPARSE, cuSPARSELt)",
    "kind": "bench",
    "seconds": 60.0,
    "uses": "gpu",
    "per": "gpu",
    "scopes": ["node", "env"],
    "deep": True,
    "fills": ["measurements"],
}

REFUSALS = ("CUSPARSE_STATUS_NOT_SUPPORTED", "CUSPARSE_STATUS_INVALID_VALUE")
"""How a release answers that it has no such algorithm."""
BLOCK = 16
BLOCKS_PER_ROW = 4
BLOCK_ROWS = 1 << 15
ALGORITHMS = {
    ("SpMV", "CSR"): {"default": 0, "CSR_ALG1": 2, "CSR_ALG2": 3},
    ("SpMV", "COO"): {"default": 0, "COO_ALG1": 1, "COO_ALG2": 4},
    ("SpMV", "BSR"): {"default": 0},
    ("SpMM", "CSR"): {"default": 0, "CSR_ALG2": 6, "CSR_ALG3": 12},
    ("SpMM", "COO"): {"default": 0, "COO_ALG2": 2, "COO_ALG4": 5},
    ("SpMM", "BSR"): {"default": 0},
}
"""Members of ``cusparseSpMVAlg_t`` and ``cusparseSpMMAlg_t``, of which the fastest is taken."""


@dataclass(frozen=True)
class SparseTask:
    """A product to be made: how, and where its operands lie."""

    call: str
    """``SpMV`` or ``SpMM``."""
    form: str
    kind: str
    pattern: Panels | Blocks
    indices: tuple[Array, Array]
    """Row offsets (COO: rows) and columns."""
    values: Array
    dense: Array
    result: Array

    @property
    def width(self) -> int:
        return WIDTH if self.call == "SpMM" else 1

    @property
    def addresses(self) -> tuple[int, int, int]:
        return self.indices[0].address, self.indices[1].address, self.values.address

    @property
    def bytes(self) -> int:
        """What must be read and written at least."""
        return sum(array.bytes for array in (*self.indices, self.values, self.dense, self.result))


class SparseWay(NamedTuple):
    """A multiplication that can be run."""

    name: str
    run: Work
    result: SparseResult


def collect(tree: Tree, out: Out) -> None:
    """Measure products with vectors and with matrices, in each format."""
    with_full(tree, out, _measures)


def _measures(bench: Bench) -> dict[FigureKey, Measure]:
    runner = cache(lambda: SparseRunner(bench))
    if not bench.timing:
        return {FigureKey("cusparse-spmm", "fp32", variant="CSR"): _product(runner, "SpMM", "CSR", "fp32")}
    measures = {}
    for call in ("SpMV", "SpMM"):
        for form, kind in (("CSR", "fp32"), ("CSR", "fp64"), ("COO", "fp32"), ("BSR", "fp32")):
            figure = FigureKey(f"cusparse-{call.lower()}", kind, variant=form)
            measures[figure] = _product(runner, call, form, kind)
    structured = cache(lambda: CuSparseLt(bench))
    for kind, row in KINDS.items():
        if bench.device.capability >= row.least:
            measures[FigureKey("cusparselt-spmm", kind, variant="2:4")] = _structured(structured, kind)
    return measures


def _product(runner: Callable[[], SparseRunner], call: str, form: str, kind: str) -> Measure:
    return lambda _: runner().product(call, form, kind)


def _structured(library: Callable[[], CuSparseLt], kind: str) -> Measure:
    return lambda bench: structured_product(bench, library(), kind)


class SparseRunner:
    """Sparse products on one GPU; the pattern of the matrices is drawn once."""

    def __init__(self, bench: Bench) -> None:
        self._bench, self._shop = bench, Workshop(bench)
        self._library = CuSparse(bench)
        self._panels = panels(self._shop.draw, PER_ROW, 1)

    def product(self, call: str, form: str, kind: str) -> Fields:
        """One product by the fastest of its algorithms, timed and verified."""
        with ExitStack() as held:
            task = self._task(call, form, kind, held)
            way = self._fastest(self._ways(task, held))
            found = self._bench.rate(
                f"cusparse-{call.lower()}",
                float(task.bytes),
                way.run,
                PLAN,
                poison=task.result.poison,
                unit="B/s",
                method="cusparse",
                detail=f"cuSPARSE {self._library.version}, {way.name}, {_words(task.pattern)}",
                library=self._library.path,
                precision=kind,
                variant=form,
            )
            found["verification"] = verified(
                task.pattern, task.values, task.dense, way.result, task.width, self._shop.draw
            )
        return found

    def _task(self, call: str, form: str, kind: str, held: ExitStack) -> SparseTask:
        width = WIDTH if call == "SpMM" else 1
        pattern = self._pattern(form, kind, width)
        indices = self._indices(pattern, form, held)
        values = held.enter_context(self._shop.random(kind, pattern.entries))
        dense = held.enter_context(self._shop.random(kind, pattern.columns * width))
        result = held.enter_context(self._shop.arrays.empty(kind, pattern.rows * width))
        return SparseTask(call, form, kind, pattern, indices, values, dense, result)

    def _pattern(self, form: str, kind: str, width: int) -> Panels | Blocks:
        """A matrix as large as wanted, or smaller where memory is scarce."""
        free = (self._bench.device.free_memory() - RESERVE) // 2
        size = 8 if kind == "fp64" else 4
        if form == "BSR":
            one = BLOCK * (BLOCKS_PER_ROW * BLOCK + 2 * width) * size
            return blocks(self._shop.draw, BLOCK, BLOCKS_PER_ROW, max(SIDE // BLOCK, min(BLOCK_ROWS, free // one)))
        one = len(self._panels.indices) * (size + 8) + 2 * SIDE * width * size
        wanted = (PANELS if width == 1 else WIDE_PANELS) if self._bench.timing else 1
        return Panels(self._panels.offsets, self._panels.indices, max(1, min(wanted, free // one)))

    def _indices(self, pattern: Panels | Blocks, form: str, held: ExitStack) -> tuple[Array, Array]:
        if isinstance(pattern, Blocks):
            offsets = self._written([pattern.offsets()], pattern.block_rows + 1, held)
            return offsets, self._written([pattern.indices.tobytes()], len(pattern.indices), held)
        offsets = self._written(pattern.all_offsets(), pattern.rows + 1, held)
        columns = self._written(pattern.all_indices(), pattern.entries, held)
        if form == "CSR":
            return offsets, columns
        rows = held.enter_context(self._shop.arrays.empty("int32", pattern.entries))
        self._library.expand_rows(offsets.address, pattern.entries, pattern.rows, rows.address)
        return rows, columns

    def _written(self, pieces: Iterable[bytes], count: int, held: ExitStack) -> Array:
        indices = held.enter_context(self._shop.arrays.empty("int32", count))
        address = indices.address
        for piece in pieces:
            self._bench.device.write(address, piece)
            address += len(piece)
        return indices

    def _ways(self, task: SparseTask, held: ExitStack) -> list[SparseWay]:
        """What this release can do; raise LibraryError for an algorithm that fails, and where there is none."""
        algorithms = ALGORITHMS[task.call, task.form].items()
        attempts = [partial(self._generic, task, name, algorithm, held) for name, algorithm in algorithms]
        if task.form == "BSR":
            attempts.append(partial(self._older, task))
        ways: list[SparseWay] = []
        errors: list[Exception] = []
        for attempt in attempts:
            try:
                ways.append(attempt())
            except Unavailable as error:
                errors.append(error)
            except LibraryError as error:
                # Releases refuse blocks, of which only some have a generic product, with various statuses.
                if task.form != "BSR" and not any(refusal in str(error) for refusal in REFUSALS):
                    raise
                errors.append(error)
        if not ways:
            raise errors[0]
        return ways

    def _generic(self, task: SparseTask, name: str, algorithm: int, held: ExitStack) -> SparseWay:
        """One algorithm of the generic API; it has run once."""
        library, pattern = self._library, task.pattern
        if isinstance(pattern, Blocks):
            shape = (pattern.block_rows, pattern.width, len(pattern.indices))
            matrix = held.enter_context(library.bsr(shape, pattern.side, task.addresses, task.kind))
        else:
            shape = (pattern.rows, pattern.columns, pattern.entries)
            make = library.csr if task.form == "CSR" else library.coo
            matrix = held.enter_context(make(shape, task.addresses, task.kind))
        sides = ((pattern.columns, task.dense), (pattern.rows, task.result))
        if task.width == 1:
            dense, result = (held.enter_context(library.vector(n, array.address, task.kind)) for n, array in sides)
        else:
            dense, result = (
                held.enter_context(library.dense(n, task.width, array.address, task.kind)) for n, array in sides
            )
        product = Multiplication(library, task.call, (matrix, dense, result), task.kind, algorithm)
        workspace = held.enter_context(self._shop.workspace(product.workspace()))
        product.prepare(workspace)
        way = SparseWay(name, partial(product.run, workspace), SparseResult(task.result, task.width, 1))
        way.run()
        return way

    def _older(self, task: SparseTask) -> SparseWay:
        """The functions for blocks that the generic API succeeds."""
        pattern = task.pattern
        assert isinstance(pattern, Blocks)  # noqa: S101
        older = BlockProducts(self._library, task.kind)
        shape = (pattern.block_rows, pattern.width, len(pattern.indices))
        run = partial(
            older.run, shape, pattern.side, task.addresses, task.dense.address, task.result.address, task.width
        )
        result = SparseResult(task.result, 1, pattern.rows)
        run()
        return SparseWay("bsrmv" if task.width == 1 else "bsrmm", run, result)

    def _fastest(self, ways: list[SparseWay]) -> SparseWay:
        if len(ways) == 1 or not self._bench.timing:
            return ways[0]
        return min(ways, key=lambda way: min(timed(self._bench.device, way.run, TRIAL)))


def _words(pattern: Panels | Blocks) -> str:
    return f"{pattern.rows:,} rows, {pattern.entries:,} entries"
