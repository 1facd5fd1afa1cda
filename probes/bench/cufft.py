"""Fourier transforms through cuFFT: long, two-dimensional and batched, complex and real, in FP32 and FP64."""

from __future__ import annotations

import cmath
import math
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from ctypes import byref, c_int, c_longlong, c_size_t, c_void_p
from functools import cache, partial
from itertools import product

from ..framework_bench.workloads import TRANSFORMS, TransformSize
from ..measuring.arrays import ELEMENTS, RESERVE, Array, Arrays
from ..measuring.library import MathLibrary
from ..measuring.measurement import Bench, Task, tasks, with_full
from ..measuring.runtime import Fields, FigureKey, Measures, compared, verification
from ..measuring.verify import encoded

PROBE = {"title": "Fourier transforms (cuFFT)", "seconds": 60.0, "deep": True}

FORWARD, INVERSE = -1, 1

TYPES = {
    ("C2C", "fp32"): (0x29, "C2C"),
    ("R2C", "fp32"): (0x2A, "R2C"),
    ("C2R", "fp32"): (0x2C, "C2R"),
    ("C2C", "fp64"): (0x69, "Z2Z"),
    ("R2C", "fp64"): (0x6A, "D2Z"),
    ("C2R", "fp64"): (0x6C, "Z2D"),
}
"""Members of ``cufftType``, and how calls name them."""
SMALLEST = TransformSize((1024,), 64)
PLACES = 512  # Points of the input that are not zero when bins are compared with direct sums
BINS = 256  # Bins that are compared
POINTS = 1024  # Points that are compared once the inverse has brought them back


def measures(bench: Bench) -> Measures:
    """The measures, by figure; a deep check makes one small transform."""
    arrays, library = Arrays(bench), cache(partial(MathLibrary, bench, "cufft"))
    all_of_them = product(TRANSFORMS, ("C2C", "R2C"), ("fp32", "fp64"))
    makes = {
        FigureKey("cufft", kind, variant=f"{name}, {form}"): partial(transformed, arrays, library, name, form, kind)
        for name, form, kind in (all_of_them if bench.timing else [("1D, batched", "C2C", "fp32")])
    }
    return tasks(bench, makes)


collect = partial(with_full, measures=measures)


class Transform:
    """Transforms of the same size, one behind the other in memory; the caller gives the workspace."""

    def __init__(self, library: MathLibrary, lengths: tuple[int, ...], batch: int, form: str, kind: str) -> None:
        """``form`` is ``C2C``, ``R2C`` or ``C2R``; raise LibraryError where the library refuses."""
        self._library, (number, self._call) = library, TYPES[form, kind]
        self._plan, size = c_int(), c_size_t()
        library.ask("cufftCreate", byref(self._plan))
        library.ask("cufftSetAutoAllocation", self._plan, 0)
        sizes = (c_longlong * len(lengths))(*lengths)
        packed = (None, c_longlong(1), c_longlong(0))
        shape = (len(lengths), sizes, *packed, *packed, number, c_longlong(batch))
        library.ask("cufftMakePlanMany64", self._plan, *shape, byref(size))
        self.workspace = size.value

    def prepare(self, workspace: int, stream: int) -> None:
        self._library.ask("cufftSetWorkArea", self._plan, c_void_p(workspace))
        self._library.ask("cufftSetStream", self._plan, c_void_p(stream))

    def run(self, source: int, target: int, direction: int = FORWARD) -> None:
        """Queue it; only complex to complex has a direction of its own."""
        way = (direction,) if self._call in ("C2C", "Z2Z") else ()
        self._library.ask(f"cufftExec{self._call}", self._plan, c_void_p(source), c_void_p(target), *way)

    def close(self) -> None:
        self._library.function("cufftDestroy")(self._plan)


def transformed(
    arrays: Arrays, library: Callable[[], MathLibrary], name: str, form: str, kind: str, stack: ExitStack
) -> Task:
    """A transform of random numbers; it reads the input and writes the result once at least."""
    bench, cufft, draw = arrays.bench, library(), arrays.draw
    size = fitting(bench, TRANSFORMS[name], kind) if bench.timing else SMALLEST
    real, length = 1 if form == "R2C" else 2, math.prod(size.lengths)

    @contextmanager
    def planned(form: str) -> Iterator[Transform]:
        transform = Transform(cufft, size.lengths, size.batch, form, kind)
        with closing(transform), arrays.workspace(transform.workspace) as workspace:
            transform.prepare(workspace, int(bench.device.stream))
            yield transform

    source = stack.enter_context(arrays.random(kind, real * size.points))
    result = stack.enter_context(arrays.empty(kind, 2 * size.bins(form)))
    run = partial(stack.enter_context(planned(form)).run, source.address, result.address)

    def verified() -> Fields:
        """The way back of the timed result, each of whose points needs every bin; then bins of an input of few."""
        back = "C2R" if form == "R2C" else "C2C"
        with arrays.empty(kind, source.count) as target, planned(back) as inverse:
            inverse.run(result.address, target.address, INVERSE)
            there_and_back = returned(source, target, length, draw)
        places = sorted(draw.sample(range(size.points), min(PLACES, size.points)))
        values = sparse_input(bench, source, places, real, draw)
        result.poison()
        run()
        bins = compared_bins(size, form, list(zip(places, values, strict=True)), result, draw)
        checked, wrong = (there_and_back[key] + bins[key] for key in ("checked", "wrong"))
        how = f"{there_and_back['how']}; {bins['how']}"
        return verification(checked, wrong, how, worst=bins.get("worst"), tolerance=bins["tolerance"])

    points = " x ".join(f"{each:,}" for each in size.lengths) + " points"
    facts = cufft.facts("B/s", points if size.batch == 1 else f"{size.batch:,} of {points}")
    return Task(run, float(source.bytes + result.bytes), verified, facts, result.poison)


def fitting(bench: Bench, size: TransformSize, kind: str) -> TransformSize:
    """As many points as memory holds: input, result, their way back and a workspace."""
    while size.points * ELEMENTS[kind].size * 2 * 5 + RESERVE > bench.device.free_memory() and size.points > 1 << 16:
        if size.batch > 1:
            size = TransformSize(size.lengths, size.batch // 2)
        else:
            size = TransformSize((size.lengths[0] // 2, *size.lengths[1:]))
    return size


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
