"""Fourier transforms through cuFFT: long, two-dimensional and batched, complex and real, in FP32 and FP64."""

from __future__ import annotations

import cmath
import math
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import cache, partial
from itertools import product

from ..common.figures import Fields, FigureKey, compared, verification
from ..common.out import Out
from ..common.tree import Tree
from ..framework_bench.works import TRANSFORMS, TransformSize
from ..measuring.arrays import ELEMENTS, RESERVE, Array
from ..measuring.mathematics.common import PLAN, Workshop
from ..measuring.mathematics.cufft import INVERSE, CuFft, Transform
from ..measuring.measurement import Bench, Measure, with_full
from ..measuring.verify import encoded

PROBE = {
    "title": "Fourier transforms (cuFFT)",
    "kind": "bench",
    "seconds": 60.0,
    "uses": "gpu",
    "per": "gpu",
    "scopes": ["node", "env"],
    "deep": True,
    "fills": ["measurements"],
}


SMALLEST = TransformSize((1024,), 64)
PLACES = 512
"""Points of the input that are not zero when bins are compared with direct sums."""
BINS = 256
"""Bins that are compared."""
POINTS = 1024
"""Points that are compared once the inverse has brought them back."""


def collect(tree: Tree, out: Out) -> None:
    """Measure transforms of each size."""
    with_full(tree, out, _measures)


def _measures(bench: Bench) -> dict[FigureKey, Measure]:
    runner = cache(lambda: TransformRunner(bench))
    if not bench.timing:
        return {
            FigureKey("cufft", "fp32", variant="1D, batched, C2C"): _transform(runner, "1D, batched", "C2C", "fp32")
        }
    return {
        FigureKey("cufft", kind, variant=f"{name}, {form}"): _transform(runner, name, form, kind)
        for name, form, kind in product(TRANSFORMS, ("C2C", "R2C"), ("fp32", "fp64"))
    }


def _transform(runner: Callable[[], TransformRunner], name: str, form: str, kind: str) -> Measure:
    return lambda _: runner().transform(name, form, kind)


class TransformRunner:
    """Transforms on one GPU."""

    def __init__(self, bench: Bench) -> None:
        self._bench, self._shop = bench, Workshop(bench)
        self._library = CuFft(bench)

    def transform(self, name: str, form: str, kind: str) -> Fields:
        """Time a transform of random numbers; it reads the input and writes the result once at least."""
        size = self._fitting(TRANSFORMS[name], kind) if self._bench.timing else SMALLEST
        real = 1 if form == "R2C" else 2
        with ExitStack() as held:
            source = held.enter_context(self._shop.random(kind, real * size.points))
            result = held.enter_context(self._shop.arrays.empty(kind, 2 * size.bins(form)))
            forward = held.enter_context(self._planned(size, form, kind))
            run = partial(forward.run, source.address, result.address)
            found = self._bench.rate(
                "cufft",
                float(source.bytes + result.bytes),
                run,
                PLAN,
                poison=result.poison,
                unit="B/s",
                method="cufft",
                detail=f"cuFFT {self._library.version}, {_words(size)}",
                library=self._library.path,
                precision=kind,
                variant=f"{name}, {form}",
            )
            there_and_back = self._there_and_back(size, form, kind, source, result)
            draw = self._shop.draw
            places = sorted(draw.sample(range(size.points), min(PLACES, size.points)))
            values = sparse_input(self._bench, source, places, real, draw)
            result.poison()
            run()
            bins = compared_bins(size, form, list(zip(places, values, strict=True)), result, draw)
        found["verification"] = verification(
            there_and_back["checked"] + bins["checked"],
            there_and_back["wrong"] + bins["wrong"],
            f"{there_and_back['how']}; {bins['how']}",
            worst=bins.get("worst"),
            tolerance=bins["tolerance"],
        )
        return found

    def _fitting(self, size: TransformSize, kind: str) -> TransformSize:
        """As many points as memory holds: input, result, their way back and a workspace."""
        while size.points * ELEMENTS[kind].size * 2 * 5 + RESERVE > self._bench.device.free_memory():
            if size.points <= 1 << 16:
                break
            size = (
                TransformSize(size.lengths, size.batch // 2)
                if size.batch > 1
                else TransformSize((size.lengths[0] // 2, *size.lengths[1:]))
            )
        return size

    @contextmanager
    def _planned(self, size: TransformSize, form: str, kind: str) -> Iterator[Transform]:
        transform = Transform(self._library, size.lengths, size.batch, form, kind)
        try:
            with self._shop.workspace(transform.workspace) as workspace:
                transform.prepare(workspace, int(self._bench.device.stream))
                yield transform
        finally:
            transform.close()

    def _there_and_back(self, size: TransformSize, form: str, kind: str, source: Array, result: Array) -> Fields:
        """Compare drawn points of the inverse of the timed result with the input: each needs every bin."""
        back = "C2R" if form == "R2C" else "C2C"
        with self._shop.arrays.empty(kind, source.count) as target, self._planned(size, back, kind) as inverse:
            inverse.run(result.address, target.address, INVERSE)
            return returned(source, target, math.prod(size.lengths), self._shop.draw)


def returned(source: Array, target: Array, length: int, draw: random.Random) -> Fields:
    """Compare drawn numbers of an inverse transform with what was transformed.

    cuFFT leaves out the division by the length. The rounding of two transforms adds up to about
    ``epsilon * sqrt(2 * log2(N))`` of the numbers' mean size (N. J. Higham, Accuracy and Stability of Numerical
    Algorithms, chapter 24, bounds it by a multiple of ``log2(N)``); ten times as much is allowed.
    """
    drawn = [draw.randrange(source.count) for _ in range(POINTS)]
    pairs = [(target.values(place, 1)[0] / length, source.values(place, 1)[0]) for place in drawn]
    tolerance = 10 * source.element.epsilon * math.sqrt(2 * math.log2(length))
    size = math.sqrt(1 / 3)
    return compared(
        [(found, exact, size) for found, exact in pairs], tolerance, f"{POINTS:,} random points through the inverse"
    )


def sparse_input(bench: Bench, source: Array, places: Sequence[int], real: int, draw: random.Random) -> list[complex]:
    """Make the input zero but for ``places``, which get random numbers; return those as the GPU has them."""
    element = source.element
    bench.device.fill(source.address, source.bytes, 0)
    values = []
    for place in places:
        parts = [draw.uniform(-1, 1) for _ in range(real)]
        bench.device.write(source.address + real * place * element.size, encoded(parts, element.code))
        values.append(complex(*source.values(real * place, real)))
    return values


def compared_bins(
    size: TransformSize, form: str, points: list[tuple[int, complex]], result: Array, draw: random.Random
) -> Fields:
    """Compare drawn bins with direct sums in FP64 over the points that are not zero.

    The error of a bin is about ``epsilon * sqrt(log2(N))`` of the root of the summed squares of the input; ten times as
    much is allowed.
    """
    length = math.prod(size.lengths)
    by_batch: dict[int, list[tuple[int, complex]]] = {}
    for place, value in points:
        by_batch.setdefault(place // length, []).append((place % length, value))
    triples = []
    for _ in range(BINS):
        batch = draw.choice(list(by_batch))
        width = size.lengths[-1] if form == "C2C" else size.lengths[-1] // 2 + 1
        frequency = (*(draw.randrange(each) for each in size.lengths[:-1]), draw.randrange(width))
        exact = direct_bin(size.lengths, frequency, by_batch[batch])
        row = frequency[0] if len(frequency) == 2 else 0
        place = (batch * (length // size.lengths[-1]) + row) * width + frequency[-1]
        found = complex(*result.values(2 * place, 2))
        norm = math.sqrt(sum(abs(value) ** 2 for _, value in by_batch[batch]))
        triples += [(found.real, exact.real, norm), (found.imag, exact.imag, norm)]
    tolerance = 10 * result.element.epsilon * math.sqrt(math.log2(length))
    return compared(triples, tolerance, f"{BINS} random bins against direct sums in FP64 on the CPU")


def direct_bin(lengths: tuple[int, ...], frequency: tuple[int, ...], points: list[tuple[int, complex]]) -> complex:
    """The sum of ``value * exp(-2 pi i * place . frequency / length)``, its phases reduced exactly, as integers."""
    terms = []
    last = lengths[-1]
    for place, value in points:
        row, column = divmod(place, last)
        turns = column * frequency[-1] % last * lengths[0] if len(lengths) == 2 else column * frequency[-1]
        if len(lengths) == 2:
            turns += row * frequency[0] % lengths[0] * last
        terms.append(value * turned(turns, math.prod(lengths)))
    return complex(math.fsum(term.real for term in terms), math.fsum(term.imag for term in terms))


def turned(part: int, whole: int) -> complex:
    """``exp(-2 pi i * part / whole)``, from an angle of at most an eighth of a turn, exact to FP64's last bits."""
    quarter, rest = divmod(8 * (part % whole) + whole, 2 * whole)
    return cmath.exp(-2j * math.pi * ((rest - whole) / (8 * whole))) * (1, -1j, -1, 1j)[quarter % 4]


def _words(size: TransformSize) -> str:
    points = " x ".join(f"{length:,}" for length in size.lengths)
    return f"{points} points" if size.batch == 1 else f"{size.batch:,} of {points} points"
