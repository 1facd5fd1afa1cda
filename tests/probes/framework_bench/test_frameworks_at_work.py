"""Frameworks at work: shapes, exact references, how they are timed, and what is refused; no framework is needed.

tests/lab runs the figures themselves with real wheels.
"""

import math
import random
import sys
import time
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from probes.bench import onnxruntime as bench_onnxruntime
from probes.bench import torch_all_reduce
from probes.bench.onnxruntime import ArrayOnGpu
from probes.framework_bench import all_reduce, workloads
from probes.framework_bench import framework as measuring
from probes.framework_bench.framework import BenchFramework
from probes.measuring.cudnn import attention as own_attention
from probes.measuring.cudnn.layers import Layer
from probes.measuring.runtime import LibraryError, Unavailable, compared
from probes.trials.onnx_models import node, work_model
from tests.every import cases


class Nested:
    """An array of nested lists that is indexed as NumPy's are."""

    def __init__(self, shape: Sequence[int], value: Any) -> None:
        self.shape, self.value = tuple(shape), value

    def at(self, where: tuple[int, ...]) -> float:
        return float(self.value(*where))


def take(array: Nested, *where: Any) -> list[float]:
    places: list[tuple[int, ...]] = [()]
    for size, index in zip(array.shape, where, strict=True):
        chosen = range(size)[index] if isinstance(index, slice) else [index]
        places = [(*place, each) for place in places for each in chosen]
    return [array.at(place) for place in places]


def noise(*shape: int, salt: int = 0) -> Nested:
    return Nested(shape, lambda *where: random.Random(f"{shape} {salt} {where}").uniform(-1, 1))


def verdict(triples: Any, tolerance: float) -> bool:
    return bool(compared(triples, tolerance, "")["right"])


def test_a_product_is_compared_where_rows_and_columns_cross() -> None:
    left, right = noise(16, 32), noise(32, 16)

    def exact(row: int, column: int) -> float:
        return math.fsum(left.at((row, k)) * right.at((k, column)) for k in range(32))

    shape = (16, 16, 32)
    tolerance = workloads.tolerance("fp32", 32)
    assert verdict(workloads.product_triples(take, left, right, Nested((16, 16), exact), shape), tolerance)
    turned = Nested((16, 16), lambda row, column: exact(column, row))
    assert not verdict(workloads.product_triples(take, left, right, turned, shape), tolerance)


@cases("layout, order", ("NCHW", "OIHW"), ("NHWC", "HWIO"), ("NHWC", "OIHW"))
def test_a_convolution_is_compared_in_its_layout(layout: str, order: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workloads, "PLACES", 40)
    layer = workloads.LayerShape(2, 3, 8, 4, 3)
    given = noise(*layer.given(layout))
    weights = noise(8, 3, 3, 3) if order == "OIHW" else noise(3, 3, 3, 8)

    def element(image: int, chosen: int, row: int, column: int, *, padded: bool) -> float:
        total = 0.0
        for channel in range(3):
            for down in range(3):
                for right in range(3):
                    y, x = row + down - 1, column + right - 1
                    if not (0 <= y < 4 and 0 <= x < 4):
                        if padded:
                            continue
                        y, x = y % 4, x % 4
                    pixel = (image, channel, y, x) if layout == "NCHW" else (image, y, x, channel)
                    place = (chosen, channel, down, right) if order == "OIHW" else (down, right, channel, chosen)
                    total += given.at(pixel) * weights.at(place)
        return total

    def result(*, padded: bool) -> Nested:
        shape = (2, 8, 4, 4) if layout == "NCHW" else (2, 4, 4, 8)
        order = (0, 1, 2, 3) if layout == "NCHW" else (0, 3, 1, 2)
        return Nested(shape, lambda *where: element(*(where[each] for each in order), padded=padded))

    tolerance = workloads.tolerance("fp32", 27)
    assert verdict(
        workloads.convolution_triples(take, given, weights, result(padded=True), layer, layout, order), tolerance
    )
    wrapped = workloads.convolution_triples(take, given, weights, result(padded=False), layer, layout, order)
    assert not verdict(wrapped, tolerance)


@cases("order", "BHLD", "BLHD")
def test_attention_is_compared_by_whole_rows(order: str) -> None:
    heads = workloads.Heads(2, 3, 8, 4, 0.7)
    shape = (2, 3, 8, 4) if order == "BHLD" else (2, 8, 3, 4)
    queries, keys, values = (noise(*shape, salt=salt) for salt in range(3))

    def at(array: Nested, batch: int, head: int, row: int, place: int) -> float:
        return array.at((batch, head, row, place) if order == "BHLD" else (batch, row, head, place))

    def attend(scale: float) -> Nested:
        def element(*where: int) -> float:
            batch, head, row, place = where if order == "BHLD" else (where[0], where[2], where[1], where[3])
            scores = [
                scale * sum(at(queries, batch, head, row, d) * at(keys, batch, head, key, d) for d in range(4))
                for key in range(8)
            ]
            weights = [math.exp(score) for score in scores]
            terms = (weight * at(values, batch, head, key, place) for key, weight in enumerate(weights))
            return sum(terms) / sum(weights)

        return Nested(shape, element)

    tensors = (queries, keys, values)
    assert verdict(workloads.attention_triples(take, tensors, attend(0.7), heads, order), 1e-6)
    assert not verdict(
        workloads.attention_triples(take, tensors, attend(0.5), heads, order), workloads.tolerance("bf16", 8)
    )


def test_its_work_counts_as_that_of_cudnn() -> None:
    layer, heads = workloads.layer_for(132), workloads.heads_for(132)
    own, shape = Layer(*layer), own_attention.Shape(*heads)
    assert (own.side, own.window, shape.length, shape.scale) == (layer.side, layer.window, heads.length, heads.scale)
    assert layer.operations == own.operations
    assert heads.operations == shape.work("forward")
    assert (workloads.layer_for(20).images, workloads.heads_for(20).batch) == (layer.images // 8, 1)


def test_a_training_step_counts_its_products() -> None:
    steps = workloads.Steps(layers=2, width=8, batch=4)
    assert steps.operations == 2.0 * 4 * 64 * 5  # forward two, weights two, and what enters the second layer


class Clock:
    """A framework whose work takes a known time once somebody waits for it."""

    def __init__(self, seconds: float) -> None:
        self.seconds, self.queued, self.runs = seconds, 0, 0

    def run(self) -> int:
        self.queued += 1
        self.runs += 1
        return self.runs

    def wait(self, _result: Any) -> None:
        time.sleep(self.queued * self.seconds)
        self.queued = 0


def test_a_sample_is_as_many_runs_as_fit_and_waits_for_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workloads, "PAUSE", 0.0)
    clock = Clock(0.002)
    seconds, last = measuring.timed(clock.run, clock.wait)
    assert len(seconds) == workloads.SAMPLES
    assert all(0.002 <= each < 0.02 for each in seconds)
    assert last == clock.runs
    assert clock.queued == 0


class OnCpu(BenchFramework):
    """A framework that leaves its results in host memory."""

    name, title = "torch", "PyTorch 2.9.1"

    def wait(self, result: Any) -> None:
        pass

    def pointer(self, array: Any) -> int:
        return 1


def test_a_result_outside_the_gpus_memory_is_no_figure() -> None:
    with pytest.raises(
        LibraryError, match=r"PyTorch 2\.9\.1 left the result outside the GPU's memory: the CPU computed it"
    ):
        OnCpu(None).measured(1.0, lambda: None, lambda _: iter(()), 1.0)


def test_memory_is_asked_for_within_what_is_free(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measuring, "free_memory", lambda: 1 << 30)
    measuring.needing(1 << 28)
    with pytest.raises(Unavailable, match="1536 MiB of device memory are needed, 1024 MiB are free"):
        measuring.needing(1 << 30)


def test_the_models_of_onnx_runtime_name_their_operations() -> None:
    model = work_model("fp16", [node("Conv", ("A", "B"), "Y", pads=(1, 1, 1, 1))], {"A": (1, 2), "B": (3,)}, (4,))
    assert model.count(b"Conv") == 1
    assert b"pads" in model
    assert len(bench_onnxruntime._products("fp32", 64)) < 200


class Recorded:
    """ONNX Runtime's session, of which only what is bound at a run counts."""

    __version__ = "1"

    def __init__(self) -> None:
        self.ran: list[list[str]] = []
        self.bindings = 0
        self.OrtValue = SimpleNamespace(ortvalue_from_shape_and_type=lambda *_: object())

    def get_inputs(self) -> list[Any]:
        return [SimpleNamespace(name=name) for name in "AB"]

    def io_binding(self) -> Any:
        self.bindings += 1
        bound: list[str] = []
        return SimpleNamespace(
            bound=bound,
            bind_ortvalue_input=lambda name, value: bound.append(value.text),
            bind_ortvalue_output=lambda name, value: None,
        )

    def run_with_iobinding(self, binding: Any) -> None:
        self.ran.append(list(binding.bound))


class Value:
    def __init__(self, text: str) -> None:
        self.text = text


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch) -> Recorded:
    runtime = Recorded()
    random = SimpleNamespace(default_rng=lambda: None)
    monkeypatch.setitem(sys.modules, "numpy", SimpleNamespace(random=random, float16="half", float32="single"))
    monkeypatch.setattr(bench_onnxruntime, "session_for", lambda *_: runtime)
    return runtime


def held(text: str) -> ArrayOnGpu:
    return ArrayOnGpu(Value(text))


def test_onnx_runtime_computes_with_the_arrays_given_even_in_the_place_of_freed_ones(recorded: Recorded) -> None:
    run = bench_onnxruntime.OnnxRuntime(recorded).work(b"", "fp16", (1, 1))
    wanted = [[f"left {turn}", f"right {turn}"] for turn in range(20)]
    for left, right in wanted:
        run(held(left), held(right))
    assert recorded.ran == wanted


def test_onnx_runtime_binds_the_same_arrays_once(recorded: Recorded) -> None:
    run = bench_onnxruntime.OnnxRuntime(recorded).work(b"", "fp16", (1, 1))
    given = held("left"), held("right")
    run(*given)
    run(*given)
    assert (recorded.bindings, len(recorded.ran)) == (1, 2)


# The ranks of an all-reduce, played by small programs.


def played(monkeypatch: pytest.MonkeyPatch, tmp_path: Any, program: str) -> None:
    rank = tmp_path / "rank.py"
    rank.write_text(f"import sys, time, os, json\nrank = int(sys.argv[2])\n{program}\n")
    monkeypatch.setattr(all_reduce, "__file__", str(rank))
    monkeypatch.setattr(torch_all_reduce, "_GRACE", 0.1)
    monkeypatch.chdir(tmp_path)


TOLD = {"torch": "2.9", "nccl": "2.28", "large": [0.01], "small": [1e-5, 3e-5, 2e-5], "bytes": 1 << 30, "checked": 4}


def test_bus_bandwidth_is_that_of_nccl_tests(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    told = {**TOLD, "wrong": 0}
    played(monkeypatch, tmp_path, f"if rank == 0: print('noise'); print(json.dumps({told!r}))")
    found = torch_all_reduce.reduced([0, 1, 2, 3], 1 << 30)
    assert torch_all_reduce.bandwidth(found, 4)["value"] == pytest.approx(1.5 * 2**30 / 0.01)
    assert torch_all_reduce.bandwidth(found, 2)["value"] == pytest.approx(2**30 / 0.01)
    assert torch_all_reduce.latency(found)["value"] == 2e-5
    assert torch_all_reduce.bandwidth({**found, "wrong": 1}, 2)["verification"]["right"] is False


@cases("program, said",
    ("if rank == 1: sys.exit('ValueError: no such GPU')\ntime.sleep(60)", "rank 1 ended with status 1: ValueError"),
    ("if rank == 1: os.kill(os.getpid(), 9)\ntime.sleep(60)", "rank 1 was ended by signal 9"),
)  # fmt: skip
def test_a_rank_that_dies_is_named_and_the_others_end(
    program: str, said: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    played(monkeypatch, tmp_path, program)
    began = time.monotonic()
    with pytest.raises(LibraryError, match=said):
        torch_all_reduce.reduced([0, 1], 8)
    assert time.monotonic() - began < 10


def test_a_rank_that_hangs_is_ended(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    played(monkeypatch, tmp_path, "time.sleep(60)")
    monkeypatch.setattr(torch_all_reduce, "_LIMIT", 0.5)
    with pytest.raises(LibraryError, match="rank 0 did not end within"):
        torch_all_reduce.reduced([0, 1], 8)


def test_a_build_without_cuda_is_nobodys_fault(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    played(monkeypatch, tmp_path, """print('{"absent": "PyTorch finds no GPU"}')""")
    with pytest.raises(Unavailable, match="PyTorch finds no GPU"):
        torch_all_reduce.reduced([0, 1], 8)
