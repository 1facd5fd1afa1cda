"""TensorRT's convolution through the API of five releases, computed by engines that the tests play."""

import sys
from types import ModuleType
from typing import Any

import pytest

from probes.bench import tensorrt as bench_tensorrt
from probes.deep import tensorrt as deep_tensorrt
from probes.framework_bench import engine
from probes.framework_bench.convolution import DRAWN, KINDS, ConvolutionShape
from probes.framework_bench.engine import Way, computing, layers_of
from probes.measuring.runtime import Fields, FigureKey, LibraryError, Unavailable
from probes.trials import trial
from probes.trials.trial import NotTriedError
from tests.every import cases
from tests.probes.framework_bench import fake_tensorrt
from tests.probes.framework_bench.fake_tensorrt import BINDINGS

SHAPE = ConvolutionShape(1, 32, 4, 5, 32)


class Played:
    """Measures with a release that is played."""

    def __init__(self, tensorrt: ModuleType) -> None:
        self._engine = engine.Convolver(tensorrt, SHAPE)

    def measured(self, way: Way) -> Fields:
        return bench_tensorrt.measured(self._engine, way)


@pytest.fixture
def play(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Let a release of TensorRT be imported; returns what builds its engines."""

    def with_release(version: str, **faults: Any) -> Played:
        monkeypatch.setitem(sys.modules, "numpy", fake_tensorrt.numpy())
        monkeypatch.setattr(engine, "RuntimeGpu", fake_tensorrt.Gpu)
        return Played(fake_tensorrt.make(version, **faults))

    return with_release


@pytest.mark.parametrize("precision", KINDS)
@pytest.mark.parametrize("version", BINDINGS)
def test_every_release_and_precision_is_verified_fused_and_not(version: str, precision: str, play: Any) -> None:
    played = play(version)
    for fused in (True, False):
        found = played.measured(Way(precision, fused=fused))
        assert found["verification"]["right"], found["verification"]
        assert found["verification"]["checked"] == DRAWN
        assert found["samples"] == [2 * SHAPE.operations, 4 * SHAPE.operations, SHAPE.operations]
        assert found["unit"] == ("OP/s" if precision == "int8" else "FLOP/s")
        words = "convolution, bias and ReLU are one layer" if fused else "2 layers compute"
        assert found["detail"].startswith(f"TensorRT {version}; {words}; built in ")
        assert "for this kind of GPU only" in found["detail"]
    assert not fake_tensorrt.Memory.at


@cases("wrong", "bias", "relu")
@pytest.mark.parametrize("precision", KINDS)
@cases("version", "8.6.0", "11.4.0.106")
def test_a_wrong_result_is_seen(version: str, precision: str, wrong: str, play: Any) -> None:
    assert not play(version, wrong=wrong).measured(Way(precision))["verification"]["right"]


def test_a_result_that_was_not_written_is_wrong(play: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fake_tensorrt.Memory, "write", lambda self, data: None)
    assert play("10.14.1.48.post1").measured(Way("fp32"))["verification"]["wrong"] == DRAWN


@cases("version", "8.6.0", "10.0.1", "11.4.0.106")
def test_a_portable_engine_says_so(version: str, play: Any) -> None:
    found = play(version).measured(Way("fp16", portable=True))
    assert found["verification"]["right"]
    assert "for every GPU from Ampere on" in found["detail"]


def test_before_8_6_there_are_no_portable_engines(play: Any) -> None:
    with pytest.raises(Unavailable, match=r"TensorRT 8\.5\.3\.1 builds engines for one kind of GPU only"):
        play("8.5.3.1").measured(Way("fp16", portable=True))


def test_before_ampere_there_are_no_portable_engines(play: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fake_tensorrt.Gpu, "capable", (7, 5))
    with pytest.raises(Unavailable, match=r"compute capability 8\.0 and newer"):
        play("8.6.0").measured(Way("fp16", portable=True))
    assert play("8.6.0").measured(Way("fp16"))["verification"]["right"]


def test_a_gpu_that_is_not_fast_in_a_precision_is_not_measured_in_it(play: Any) -> None:
    with pytest.raises(Unavailable, match="this GPU is not fast in INT8"):
        play("8.6.0", wrong="slow").measured(Way("int8"))
    assert play("8.6.0", wrong="slow").measured(Way("fp32"))["verification"]["right"]


@cases("call, words",
    ("Builder", "no builder: CUDA initialization failure with error: 35"),
    ("build_serialized_network", "the network could not be built: no implementation of the layer"),
    ("deserialize_cuda_engine", "no engine from the serialized network: TensorRT logs no reason"),
    ("create_execution_context", "no execution context: TensorRT logs no reason"),
    ("set_tensor_address", "the tensor 'given' could not be connected: TensorRT logs no reason"),
    ("execute_async_v3", "the engine could not be run: TensorRT logs no reason"),
)  # fmt: skip
def test_what_returns_nothing_is_refused_in_the_words_of_the_log(call: str, words: str, play: Any) -> None:
    with pytest.raises(LibraryError) as refused:
        play("8.6.0", refuses=call).measured(Way("fp32"))
    assert str(refused.value) == words
    assert not fake_tensorrt.Memory.at


def test_before_10_weights_come_from_numpy_only(play: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    played = play("8.6.0")
    monkeypatch.setitem(sys.modules, "numpy", None)
    with pytest.raises(Unavailable, match=r"TensorRT 8\.6\.0 takes weights from NumPy only"):
        played.measured(Way("fp32"))
    played = play("10.0.1")
    monkeypatch.setitem(sys.modules, "numpy", None)
    assert played.measured(Way("fp32"))["verification"]["right"]


def test_a_release_whose_engines_are_run_otherwise_is_not_measured(play: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(fake_tensorrt.Context, "execute_async_v3")
    with pytest.raises(Unavailable, match="too old for this"):
        play("8.5.3.1").measured(Way("fp32"))


def test_memory_that_others_hold_is_left_alone(play: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fake_tensorrt.Gpu, "free", 100 << 20)
    with pytest.raises(Unavailable, match=r"256 MiB of device memory are needed, 100 MiB are free"):
        play("8.6.0").measured(Way("fp32"))


def test_layers_that_move_data_are_not_counted() -> None:
    layers = [
        {"Name": "Reformatting CopyNode for Input Tensor 0 to layer_convolved + layer_result", "LayerType": "Reformat"},
        {"Name": "layer_convolved + layer_result", "LayerType": "CaskConvolution"},
        {"Name": "Reformatting CopyNode for Output Tensor 0", "LayerType": "NoOp"},
    ]
    assert computing(layers) == ["layer_convolved + layer_result"]
    assert computing(layers_of('{"Layers": ["Reformatting CopyNode for x", "a + b"]}')) == ["a + b"]


@cases("text", "", "{}", "[]", '{"Layers": 3}', "nothing")
def test_an_inspector_that_answers_otherwise_is_refused(text: str) -> None:
    with pytest.raises(LibraryError, match="the inspector's answer cannot be read"):
        layers_of(text)


def test_what_is_measured_and_in_which_order() -> None:
    figures = list(bench_tensorrt.measures(SHAPE))
    assert figures[:3] == [
        FigureKey("tensorrt-convolution", kind, variant="fused") for kind in ("fp32", "fp16", "int8")
    ]
    assert [figure.variant for figure in figures[3:]] == ["unfused"] * 3 + ["fused, portable"]
    assert bench_tensorrt.SHAPE.channels % 32 == bench_tensorrt.SHAPE.filters % 32 == 0


# --- the deep probe -----------------------------------------------------------------------------------------------
@pytest.fixture
def on_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "RuntimeGpu", fake_tensorrt.Gpu)
    monkeypatch.setattr(deep_tensorrt, "_IMAGE", SHAPE)
    monkeypatch.setattr(trial, "is_device_memory", lambda pointer: pointer in fake_tensorrt.Memory.at)


@pytest.mark.usefixtures("on_device")
def test_a_trial_computes_a_verified_convolution() -> None:
    assert deep_tensorrt.convolution(fake_tensorrt.make("10.0.1")).device == "cuda:0"
    with pytest.raises(ArithmeticError, match=f"of {DRAWN} elements are wrong"):
        deep_tensorrt.convolution(fake_tensorrt.make("10.0.1", wrong="bias"))
    with pytest.raises(LibraryError, match="the network could not be built: no implementation of the layer"):
        deep_tensorrt.convolution(fake_tensorrt.make("10.0.1", refuses="build_serialized_network"))


@cases("step", deep_tensorrt.matrix_product, deep_tensorrt.convolution)
@pytest.mark.usefixtures("on_device")
def test_a_trial_says_what_tensorrt_logged(step: Any, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(LibraryError, match="no builder: CUDA initialization failure with error: 35"):
        step(fake_tensorrt.make("8.6.0", refuses="Builder"))
    assert capfd.readouterr().err == "[TRT] [W] CUDA initialization failure with error: 35\n"


@pytest.mark.usefixtures("on_device")
def test_a_trial_that_finds_no_memory_is_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fake_tensorrt.Gpu, "free", 0)
    with pytest.raises(NotTriedError, match="0 MiB are free"):
        deep_tensorrt.convolution(fake_tensorrt.make("10.0.1"))


# --- the probe ----------------------------------------------------------------------------------------------------
def probe(run_probe: Any, monkeypatch: pytest.MonkeyPatch, tensorrt: ModuleType | None, **bench: Any) -> Any:
    monkeypatch.setitem(sys.modules, "tensorrt", tensorrt)
    monkeypatch.setattr(engine, "RuntimeGpu", fake_tensorrt.Gpu)
    monkeypatch.setattr(bench_tensorrt, "SHAPE", SHAPE)
    monkeypatch.setattr(bench_tensorrt, "give_up_making_devices", lambda: None)
    return run_probe("bench.tensorrt", {"bench": {"gpu": "GPU-1", "full": True, "only": [], **bench}})


def test_what_it_sends_fits_the_snapshot(run_probe: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    found, done = probe(run_probe, monkeypatch, fake_tensorrt.make("10.0.1"))
    assert done == {"status": "ok", "detail": ""}
    assert len(found.measurements) == 7
    for figure in found.measurements:
        assert (figure.gpu, figure.method, figure.shape) == ("GPU-1", "tensorrt", SHAPE[:4])
        assert figure.verification.right
    portable = [figure.variant for figure in found.measurements if "every GPU from Ampere on" in figure.detail]
    assert portable == ["fused, portable"]


def test_a_failure_costs_each_figure_and_names_the_library(run_probe: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench_tensorrt, "mapped_files", lambda: ["/lib/libc.so.6", "/env/libnvinfer.so.10"])
    found, done = probe(run_probe, monkeypatch, fake_tensorrt.make("10.0.1", refuses="build_serialized_network"))
    assert done["status"] == "ok"
    for figure in found.measurements:
        assert (figure.value, figure.failed, figure.library) == (None, True, "/env/libnvinfer.so.10")
        assert figure.missing == "the network could not be built: no implementation of the layer"


def test_a_tensorrt_that_cannot_be_imported_is_a_failure(run_probe: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    found, _ = probe(run_probe, monkeypatch, None)
    assert {figure.failed for figure in found.measurements} == {True}
    assert all(figure.missing.startswith("TensorRT cannot be imported: ") for figure in found.measurements)


def test_other_names_start_nothing(run_probe: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    found, _ = probe(run_probe, monkeypatch, None, only=["gemm"])
    assert not found.measurements


def test_where_nothing_is_timed_the_deep_probe_has_done_it(run_probe: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    found, done = probe(run_probe, monkeypatch, None, timing=False)
    assert not found.measurements
    assert done == {"status": "absent", "detail": "tried by the deep probe of TensorRT"}
