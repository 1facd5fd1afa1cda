"""Sparse products through cuSPARSE (CSR, COO, blocks) and, with 2:4 sparsity, through cuSPARSELt."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from ctypes import byref, c_double, c_float, c_int64, c_size_t, c_void_p
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, NamedTuple

from ..framework_bench.workloads import PANELS, PER_ROW, WIDE_PANELS, WIDTH
from ..measuring.arrays import RESERVE, Array, Arrays
from ..measuring.cusparselt import KINDS, CuSparseLt, structured_product
from ..measuring.library import DATA_TYPES, ROW_ORDER, MathLibrary
from ..measuring.measurement import TRIAL, Bench, Make, Task, Work, late, tasks, timed, with_full
from ..measuring.runtime import FigureKey, LibraryError, Measures, Unavailable
from ..measuring.sparse import SIDE, Blocks, Panels, SparseResult, blocks, panels, verified

PROBE = {"title": "Sparse products (cuSPARSE, cuSPARSELt)", "seconds": 60.0, "deep": True}

INDEX_32 = 2  # Member of ``cusparseIndexType_t``
_SCALARS: dict[str, Any] = {"fp32": c_float, "fp64": c_double}
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


def measures(bench: Bench) -> Measures:
    """The measures, by figure; a deep check makes one small product."""
    arrays = Arrays(bench)
    runner, structured = cache(partial(SparseRunner, arrays)), cache(partial(CuSparseLt, bench))
    forms = (("CSR", "fp32"), ("CSR", "fp64"), ("COO", "fp32"), ("BSR", "fp32"))
    every = [(call, form, kind) for call in ("SpMV", "SpMM") for form, kind in forms]
    makes: dict[FigureKey, Make] = {
        FigureKey(f"cusparse-{call.lower()}", kind, variant=form): late(runner, SparseRunner.product, call, form, kind)
        for call, form, kind in (every if bench.timing else [("SpMM", "CSR", "fp32")])
    }
    for kind, row in KINDS.items():
        if bench.timing and bench.device.capability >= row.least:
            figure = FigureKey("cusparselt-spmm", kind, variant="2:4")
            makes[figure] = partial(structured_product, arrays, structured, kind)
    return tasks(bench, makes)


collect = partial(with_full, measures=measures)


class CuSparse(MathLibrary):
    """The library with a handle on the bench's stream."""

    def __init__(self, bench: Bench) -> None:
        super().__init__(bench, "cusparse")
        self.handle = c_void_p()
        self.ask("cusparseCreate", byref(self.handle))
        self.ask("cusparseSetStream", self.handle, c_void_p(int(bench.device.stream)))

    @contextmanager
    def described(self, what: str, *arguments: object) -> Iterator[c_void_p]:
        """A descriptor of a matrix (``Csr``, ``Coo``, ``Bsr``) or of what is dense, for as long as the block lasts."""
        descriptor = c_void_p()
        self.ask(f"cusparseCreate{what}", byref(descriptor), *arguments)
        try:
            yield descriptor
        finally:
            self.function(f"cusparseDestroy{what if what.startswith('Dn') else 'SpMat'}")(descriptor)


@dataclass(frozen=True)
class SparseTask:
    """A product to be made: how, and where its operands lie."""

    call: str  # ``SpMV`` or ``SpMM``
    form: str
    kind: str
    pattern: Panels | Blocks
    indices: tuple[Array, Array]  # Row offsets (COO: rows) and columns
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


class SparseRunner:
    """Sparse products on one GPU; the pattern of the matrices is drawn once."""

    def __init__(self, arrays: Arrays) -> None:
        self._bench, self._arrays = arrays.bench, arrays
        self._library = CuSparse(arrays.bench)
        self._panels = panels(arrays.draw, PER_ROW, 1)

    def product(self, call: str, form: str, kind: str, stack: ExitStack) -> Task:
        task = self._task(call, form, kind, stack)
        ways, pattern = self._ways(task, stack), task.pattern
        trying = len(ways) > 1 and self._bench.timing
        way = min(ways, key=lambda way: min(timed(self._bench.device, way.run, TRIAL))) if trying else ways[0]
        words = (way.name, f"{pattern.rows:,} rows", f"{pattern.entries:,} entries")
        check = partial(verified, pattern, task.values, task.dense, way.result, task.width, self._arrays.draw)
        return Task(way.run, float(task.bytes), check, self._library.facts("B/s", *words), task.result.poison)

    def _task(self, call: str, form: str, kind: str, stack: ExitStack) -> SparseTask:
        width = WIDTH if call == "SpMM" else 1
        pattern = self._pattern(form, kind, width)
        indices = self._indices(pattern, form, stack)
        values = stack.enter_context(self._arrays.random(kind, pattern.entries))
        dense = stack.enter_context(self._arrays.random(kind, pattern.columns * width))
        result = stack.enter_context(self._arrays.empty(kind, pattern.rows * width))
        return SparseTask(call, form, kind, pattern, indices, values, dense, result)

    def _pattern(self, form: str, kind: str, width: int) -> Panels | Blocks:
        """A matrix as large as wanted, or smaller where memory is scarce."""
        free = (self._bench.device.free_memory() - RESERVE) // 2
        size = 8 if kind == "fp64" else 4
        if form == "BSR":
            one = BLOCK * (BLOCKS_PER_ROW * BLOCK + 2 * width) * size
            return blocks(self._arrays.draw, BLOCK, BLOCKS_PER_ROW, max(SIDE // BLOCK, min(BLOCK_ROWS, free // one)))
        one = len(self._panels.indices) * (size + 8) + 2 * SIDE * width * size
        wanted = (PANELS if width == 1 else WIDE_PANELS) if self._bench.timing else 1
        return Panels(self._panels.offsets, self._panels.indices, max(1, min(wanted, free // one)))

    def _indices(self, pattern: Panels | Blocks, form: str, stack: ExitStack) -> tuple[Array, Array]:
        if isinstance(pattern, Blocks):
            offsets = self._written([pattern.offsets()], pattern.block_rows + 1, stack)
            return offsets, self._written([pattern.indices.tobytes()], len(pattern.indices), stack)
        offsets = self._written(pattern.all_offsets(), pattern.rows + 1, stack)
        columns = self._written(pattern.all_indices(), pattern.entries, stack)
        if form == "CSR":
            return offsets, columns
        rows = stack.enter_context(self._arrays.empty("int32", pattern.entries))
        # Write each entry's row index (COO) from the offsets of the rows (CSR).
        sizes = (pattern.entries, pattern.rows)
        places = c_void_p(offsets.address), c_void_p(rows.address)
        self._library.ask("cusparseXcsr2coo", self._library.handle, places[0], *sizes, places[1], 0)
        return rows, columns

    def _written(self, pieces: Iterable[bytes], count: int, stack: ExitStack) -> Array:
        indices = stack.enter_context(self._arrays.empty("int32", count))
        address = indices.address
        for piece in pieces:
            self._bench.device.write(address, piece)
            address += len(piece)
        return indices

    def _ways(self, task: SparseTask, stack: ExitStack) -> list[SparseWay]:
        """What this release can do; raise LibraryError for an algorithm that fails, and where there is none."""
        algorithms = ALGORITHMS[task.call, task.form].items()
        attempts = [partial(self._generic, task, name, algorithm, stack) for name, algorithm in algorithms]
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

    def _generic(self, task: SparseTask, name: str, algorithm: int, stack: ExitStack) -> SparseWay:
        """One algorithm of the generic API; it has run once."""
        library, pattern, kind = self._library, task.pattern, DATA_TYPES[task.kind]
        in_blocks = isinstance(pattern, Blocks)
        sizes = (*pattern.shape, BLOCK, BLOCK) if in_blocks else pattern.shape
        of_indices = [INDEX_32] * (1 if task.form == "COO" else 2)
        types = (*of_indices, 0, kind, *([ROW_ORDER] if in_blocks else []))
        places = map(c_void_p, task.addresses)
        make = library.described(task.form.capitalize(), *map(c_int64, sizes), *places, *types)
        operands = [stack.enter_context(make)]
        for count, array in ((pattern.columns, task.dense), (pattern.rows, task.result)):
            given = (c_void_p(array.address), kind)
            if task.width == 1:
                make = library.described("DnVec", c_int64(count), *given)
            else:
                columns = c_int64(task.width)
                make = library.described("DnMat", c_int64(count), columns, columns, *given, ROW_ORDER)
            operands.append(stack.enter_context(make))
        function, size = f"cusparse{task.call}", c_size_t()
        untransposed = (0,) if task.call == "SpMV" else (0, 0)
        matrix, dense, result = operands
        scalar = _SCALARS[task.kind]
        data = (byref(scalar(1)), matrix, dense, byref(scalar(0)), result)
        arguments = (library.handle, *untransposed, *data, kind, algorithm)
        library.ask(f"{function}_bufferSize", *arguments, byref(size))
        workspace = c_void_p(stack.enter_context(self._arrays.workspace(size.value)))
        if library.offers(f"{function}_preprocess"):  # this release analyses the matrix first
            library.ask(f"{function}_preprocess", *arguments, workspace)
        run = partial(library.ask, function, *arguments, workspace)
        run()
        return SparseWay(name, run, SparseResult(task.result, task.width, 1))

    def _older(self, task: SparseTask) -> SparseWay:
        """The functions for blocks that the generic API succeeds; a result that is a matrix lies column by column."""
        library, pattern, scalar = self._library, task.pattern, _SCALARS[task.kind]
        assert isinstance(pattern, Blocks)  # noqa: S101
        description = c_void_p()
        library.ask("cusparseCreateMatDescr", byref(description))
        offsets, indices, values = map(c_void_p, task.addresses)
        matrix = (byref(scalar(1)), description, values, offsets, indices, pattern.side, c_void_p(task.dense.address))
        rows, columns, count = pattern.shape
        zero, target = byref(scalar(0)), c_void_p(task.result.address)
        name = "bsrmv"
        arguments: tuple[Any, ...] = (0, 0, rows, columns, count, *matrix, zero, target)
        if task.width > 1:
            sizes = (rows, task.width, columns, count)
            name, arguments = "bsrmm", (0, 0, 1, *sizes, *matrix, task.width, zero, target, rows * pattern.side)
        letter = {"fp32": "S", "fp64": "D"}[task.kind]
        run = partial(library.ask, f"cusparse{letter}{name}", library.handle, *arguments)
        run()
        return SparseWay(name, run, SparseResult(task.result, 1, pattern.rows))
