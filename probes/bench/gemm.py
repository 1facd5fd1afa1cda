"""Throughput of matrix products through cuBLASLt, in every precision that the GPU has."""

from __future__ import annotations

import ctypes
import math
import random
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import cache, partial
from typing import Any

from ..framework_bench.workloads import LEAST_RUNS, LONGEST_RUN, PAUSE, SAMPLE_SECONDS, SAMPLES, SIDES
from ..measuring.arrays import POISON
from ..measuring.cublaslt import PRECISIONS, WORKSPACE, CublasLt, GemmPrecision, Heuristic, Product
from ..measuring.kernels import CompiledKernel, Module, number, pointer
from ..measuring.measurement import Bench, Plan, Task, late, on_gpu, tasks, timed
from ..measuring.runtime import Fields, FigureKey, Measures, Unavailable
from ..measuring.verify import Operands, all_elements, drawn_elements

PROBE = {"title": "Matrix products (cuBLASLt)", "seconds": 150.0, "scopes": ["node"]}

QUICK = ("fp32", "bf16", "fp8")
COMPARED = ("tf32", "fp16")  # What else frameworks are compared with
SHAPES = ((4096, 4096, 4096), (16384, 8192, 1024), (1024, 1024, 16384))
"""M, N, K of further products of ``--full``: small, flat, and long."""
Way = tuple[Product, Heuristic]  # A product as its operands lie, and an algorithm for it
BURST = Plan(samples=SAMPLES, sample_seconds=SAMPLE_SECONDS, warmup_seconds=0.005, pause=PAUSE, least_runs=LEAST_RUNS)
"""As in a program with pauses."""
SUSTAINED = Plan(samples=6, sample_seconds=0.3, warmup_seconds=1.0, most_runs=5000)
PROBING = Plan(samples=1, sample_seconds=0.001, warmup_seconds=0.0)
TRIAL = Plan(samples=2, sample_seconds=0.003, warmup_seconds=0.0, pause=0.02, enough=0.015)
FINAL = Plan(samples=3, sample_seconds=0.006, warmup_seconds=0.0, pause=0.06, enough=0.015)
FINALISTS = 2
"""Proposals for square products, which are judged, that are tried a second time, with more rest: the first round is as
much about heat as about them."""


def measures(bench: Bench) -> Measures:
    paths = bench.libraries.get("cublasLt", [])
    if not paths:
        return {FigureKey("gemm"): _no_library}
    few = (*QUICK, *COMPARED) if bench.frameworks else QUICK
    chosen = [name for name in PRECISIONS if bench.full or name in few]
    able = [name for name in chosen if bench.device.capability >= PRECISIONS[name].least]
    if bench.wants("gemm"):
        bench.compiler.ahead(*(("gemm", *_options(PRECISIONS[name])) for name in able))
    runner = cache(lambda: CublasRunner(bench, CublasLt(paths[0])))
    figures = [FigureKey("gemm", name, burst=True) for name in able]
    if bench.full:
        figures += [FigureKey("gemm", name, burst=False) for name in able]
        figures += [FigureKey("gemm", name, shape) for name in able for shape in SHAPES]
    return tasks(bench, {figure: late(runner, CublasRunner.product, figure) for figure in figures})


collect = partial(on_gpu, measures=measures)


def _no_library() -> Fields:
    raise Unavailable("no cuBLASLt was found: neither the examined environment nor a toolkit holds one")


class CublasRunner:
    """Products on one GPU. Operands are allocated for each and freed again."""

    def __init__(self, bench: Bench, library: CublasLt) -> None:
        self._bench, self._library = bench, library
        self._workspace = bench.device.allocate(WORKSPACE)
        self._one = bench.device.allocate(4)
        bench.device.write(self._one, bytes(ctypes.c_float(1.0)))
        self._best: dict[tuple[str, tuple[int, int, int]], Way] = {}
        self._sides: dict[str, int] = {}
        self._checked: set[str] = set()
        self._modules: dict[tuple[str, ...], Module] = {}

    def product(self, figure: FigureKey, stack: ExitStack) -> Task:
        """One product, square where the figure has no shape, by the fastest algorithm."""
        name, burst = str(figure.precision), figure.burst is not False
        m, n, k = figure.shape or (self._side(name),) * 3
        operands = stack.enter_context(self._operands(PRECISIONS[name], (m, n, k)))
        product, algorithm = self._fastest(name, operands)
        facts: Fields = {"unit": "OP/s" if name == "int8" else "FLOP/s", "method": "cublasLt"}
        facts |= {"detail": f"cuBLASLt {self._library.version}, {product.layout}", "library": self._library.path}
        facts |= {"algorithm": product.named(algorithm), "shape": [m, n, k], "burst": burst}
        work = partial(self._run, product, algorithm, operands)
        check = partial(self._verified, name, replace(operands, layout=product.layout))
        size = m * n * PRECISIONS[name].result_size
        poison = partial(self._bench.device.fill, operands.addresses[2], size, POISON)
        return Task(work, 2.0 * m * n * k, check, facts, poison, BURST if burst else SUSTAINED)

    def _verified(self, name: str, operands: Operands) -> Fields:
        """Every element on the GPU with ``--full``; for each precision, a thousand on the CPU judge that check once."""
        precision = PRECISIONS[name]
        if name not in self._checked or not self._bench.full:
            self._checked.add(name)
            draw = random.Random(operands.shape[0])  # noqa: S311  no secret
            drawn = drawn_elements(self._bench.device, precision, operands, draw)
            if not (self._bench.full and drawn["right"]):
                return drawn
        return all_elements(self._bench.device, self._kernel("check_product", precision), precision, operands)

    def _run(self, product: Product, algorithm: Heuristic, operands: Operands) -> None:
        product.run(algorithm, operands.addresses, self._workspace, int(self._bench.device.stream))

    def _fastest(self, name: str, operands: Operands) -> Way:
        """Time what cuBLASLt proposes and keep the best; its own first choice is not always that."""
        if (name, operands.shape) not in self._best:
            kind = PRECISIONS[name].kind
            layouts = PRECISIONS[name].layouts
            products = [Product(self._library, kind, operands.shape, self._one, layout) for layout in layouts]
            self._first(products[0], name)
            proposed = [(product, algorithm) for product in products for algorithm in product.algorithms()]
            ranked = self._ranked(proposed, operands, TRIAL)
            if len(set(operands.shape)) == 1:
                ranked = self._ranked([way for _, way in ranked[:FINALISTS]], operands, FINAL)
            seconds, best = ranked[0]
            if seconds == math.inf:
                version = self._library.version
                raise Unavailable(f"cuBLASLt {version} refused each algorithm that it proposed for {name}")
            self._best[name, operands.shape] = best
        return self._best[name, operands.shape]

    def _ranked(self, ways: Iterable[Way], operands: Operands, plan: Plan) -> list[tuple[float, Way]]:
        """``ways`` with the seconds that each takes, the fastest first."""
        return sorted(((self._seconds(way, operands, plan), way) for way in ways), key=lambda each: each[0])

    def _seconds(self, way: Way, operands: Operands, plan: Plan) -> float:
        """The shortest sample: what a proposal can do, whatever held the clocks down; infinite where it is refused."""
        try:
            return min(timed(self._bench.device, partial(self._run, *way, operands), plan))
        except Unavailable:
            return math.inf

    def _side(self, name: str) -> int:
        """The largest side whose product takes no longer than ``LONGEST_RUN``, judged by the smallest.

        Where it is the largest of all, narrower operands, which are not multiplied more slowly, are not tried.
        """
        wider = [other for other in self._sides if PRECISIONS[other].size >= PRECISIONS[name].size]
        if any(self._sides[other] == SIDES[0] for other in wider):
            return SIDES[0]
        if name not in self._sides:
            least = SIDES[-1]
            with self._operands(PRECISIONS[name], (least, least, least)) as operands:
                product = Product(self._library, PRECISIONS[name].kind, operands.shape, self._one)
                one = self._seconds((product, self._first(product, name)), operands, PROBING)
            fitting = (side for side in SIDES if one * (side / least) ** 3 <= LONGEST_RUN)
            self._sides[name] = next(fitting, least)
        return self._sides[name]

    def _first(self, product: Product, name: str) -> Heuristic:
        first = next(product.algorithms(), None)
        if first is None:
            raise Unavailable(f"cuBLASLt {self._library.version} has no algorithm for {name} on this GPU")
        return first

    @contextmanager
    def _operands(self, precision: GemmPrecision, shape: tuple[int, int, int]) -> Iterator[Operands]:
        """Memory for a product; the operands are random numbers."""
        m, n, k = shape
        device = self._bench.device
        result_size = m * n * precision.result_size
        with ExitStack() as stack:
            sizes = (m * k * precision.size, n * k * precision.size, result_size)
            left, right, result = (stack.enter_context(device.buffer(size)) for size in sizes)
            fill = self._kernel("fill_random", precision)
            for seed, (address, count) in enumerate(((left, m * k), (right, n * k)), 1):
                word: Any = (seed << 56, ctypes.c_ulonglong)
                fill.launch(device.sms * 8, 256, pointer(address), number(count), word)
            device.synchronize()
            device.fill(result, result_size, POISON)
            yield Operands((left, right, result), shape)

    def _kernel(self, kernel: str, precision: GemmPrecision) -> CompiledKernel:
        options = _options(precision)
        if options not in self._modules:
            self._modules[options] = Module(self._bench.device, self._bench.compiler.module("gemm", options))
        return self._modules[options].kernel(kernel)


def _options(precision: GemmPrecision) -> tuple[str, ...]:
    return f"-DKIND={precision.code}", f"-DRESULT={precision.result_code}"
