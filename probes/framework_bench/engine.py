"""TensorRT engines of a convolution with bias and ReLU: built, loaded, inspected, run and verified (8.5 to 11).

What releases differ in was read from the bindings of 8.5.3, 8.6.0, 10.0.1, 10.14.1 and 11.4.0: up to 10 the builder
chooses precisions by flags, from 11 on a network is strongly typed and INT8 is written as layers that quantize. Weights
are taken from an address from 10 on, before from NumPy only. 8.6 brought engines for more than one kind of GPU.
"""

from __future__ import annotations

import array
import ctypes
import importlib
import json
import struct
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from ..measuring.runtime import Fields, LibraryError, Unavailable, compared
from ..trials.driver import RuntimeGpu, RuntimeMemory
from .convolution import DRAWN, KINDS, RESULT_STEP, SIDE, STEP, Convolution, ConvolutionShape, stored

GIVEN, BETWEEN, RESULT = "given", "convolved", "result"  # Names of the tensors: of the input, the convolution, the ReLU
_FORMATS = {0: "LINEAR", 8: "HWC8", 32: "CHW32"}
_TYPES = {"fp32": "FLOAT", "fp16": "HALF", "int8": "INT8"}
_BORROWED = ("CUBLAS", "CUBLAS_LT", "CUDNN")  # Tactic sources that are other libraries; separate probes measure those
_MOVES = ("Reformat", "NoOp", "Copy", "Shuffle")  # Layer types that compute nothing
_WORKSPACE = 1 << 30
_RESERVE = 256 << 20  # Bytes of device memory left to others
_PORTABLE = (8, 0)  # What ``HardwareCompatibilityLevel.AMPERE_PLUS`` begins with
_HOW = f"{DRAWN} random elements against FP64 in Python, by the saved and loaded engine"


class Way(NamedTuple):
    """How an engine is built."""

    precision: str
    fused: bool = True  # False: what the convolution leaves to the ReLU is an output too, so that they cannot be one
    portable: bool = False  # Whether it shall run on every GPU from Ampere on


class Log:
    """Makes the logger of ``tensorrt``, which prints as its own one does and keeps what it says.

    Calls of TensorRT that fail return nothing, or raise an error without the reason.
    """

    def __init__(self, tensorrt: Any) -> None:
        self._said: dict[str, str] = {}
        logged, severity = self._said, tensorrt.ILogger.Severity
        words = {severity.INTERNAL_ERROR: "error", severity.ERROR: "error", severity.WARNING: "warning"}

        class _Logger(tensorrt.ILogger):  # type: ignore[misc]  # the base class is the environment's
            def __init__(self) -> None:
                tensorrt.ILogger.__init__(self)

            def log(self, severity: Any, message: str) -> None:
                if severity in words:
                    logged[words[severity]] = message
                    sys.stderr.write(f"[TRT] [{words[severity][0].upper()}] {message}\n")

        self.logger = _Logger()

    def forget(self) -> None:
        """Start on something new."""
        self._said.clear()

    def given(self, value: Any, otherwise: str) -> Any:
        """``value``; where it is nothing or false, raise LibraryError with the last error, else the last warning.

        That CUDA does not start is a warning.
        """
        if value is None or value is False:
            reason = self._said.get("error") or self._said.get("warning") or "TensorRT logs no reason"
            raise LibraryError(f"{otherwise}: {reason}")
        return value

    def made(self, kind: Any, otherwise: str) -> Any:
        """An object of a class that takes the logger; raise LibraryError where TensorRT makes none."""
        try:
            return kind(self.logger)
        except TypeError:  # what the bindings make of a null pointer
            return self.given(None, otherwise)


def build(tensorrt: Any, log: Log, convolution: Convolution, way: Way, workspace: int) -> tuple[bytes, float]:
    """A serialized engine with at most ``workspace`` bytes of scratch memory, and the seconds that building it took.

    Raises LibraryError where TensorRT does not build it, and Unavailable where this release offers nothing of the kind.
    """
    if not hasattr(tensorrt.IExecutionContext, "execute_async_v3"):
        raise Unavailable(f"TensorRT {tensorrt.__version__} is too old for this: execute_async_v3 came with 8.5")
    builder = log.made(tensorrt.Builder, "no builder")
    if not getattr(builder, f"platform_has_fast_{way.precision}", True):  # asked up to 10
        raise Unavailable(f"TensorRT says that this GPU is not fast in {way.precision.upper()}")
    name = "EXPLICIT_BATCH" if _weakly_typed(tensorrt) else "STRONGLY_TYPED"
    flag = getattr(tensorrt.NetworkDefinitionCreationFlag, name, None)
    network = log.given(builder.create_network(0 if flag is None else 1 << int(flag)), "no network")
    config = log.given(builder.create_builder_config(), "no builder configuration")
    config.set_memory_pool_limit(tensorrt.MemoryPoolType.WORKSPACE, workspace)
    config.profiling_verbosity = tensorrt.ProfilingVerbosity.DETAILED
    config.clear_flag(tensorrt.BuilderFlag.TF32)
    # Leave out kernels of cuBLAS and cuDNN: a figure means the same in every release, a failure is TensorRT's own.
    sources = config.get_tactic_sources()
    for borrowed in _BORROWED:
        source = getattr(tensorrt.TacticSource, borrowed, None)  # 11 has none, and gives their numbers to others
        if source is not None:
            sources &= ~(1 << int(source))
    config.set_tactic_sources(sources)
    if _weakly_typed(tensorrt) and way.precision != "fp32":
        config.set_flag(tensorrt.BuilderFlag.FP16 if way.precision == "fp16" else tensorrt.BuilderFlag.INT8)
        config.set_flag(tensorrt.BuilderFlag.OBEY_PRECISION_CONSTRAINTS)
    if way.portable:
        if not hasattr(config, "hardware_compatibility_level"):
            raise Unavailable(f"TensorRT {tensorrt.__version__} builds engines for one kind of GPU only")
        config.hardware_compatibility_level = tensorrt.HardwareCompatibilityLevel.AMPERE_PLUS
    weights = _Weights(tensorrt)
    if way.precision == "int8" and not _weakly_typed(tensorrt):
        _quantized(tensorrt, network, convolution, way, weights)
    else:
        _plain(tensorrt, network, convolution, way, weights)
    began = time.monotonic()
    plan = log.given(builder.build_serialized_network(network, config), "the network could not be built")
    return bytes(plan), time.monotonic() - began


def _weakly_typed(tensorrt: Any) -> bool:
    """Whether flags of the builder choose the precisions, as up to 10."""
    return hasattr(tensorrt.BuilderFlag, "INT8")


class _Weights:
    """Weights as TensorRT takes them; what they lie in is kept until the network is built."""

    def __init__(self, tensorrt: Any) -> None:
        self._tensorrt = tensorrt
        self._held: list[Any] = []

    def floats(self, values: list[float]) -> Any:
        return self._of("FLOAT", array.array("f", values).tobytes())

    def halves(self, values: list[float]) -> Any:
        return self._of("HALF", struct.pack(f"<{len(values)}e", *values))

    def _of(self, kind: str, data: bytes) -> Any:
        """``data`` as weights of ``DataType`` ``kind``."""
        count = len(data) // {"FLOAT": 4, "HALF": 2}[kind]
        buffer = ctypes.create_string_buffer(data, len(data))
        self._held.append(buffer)
        try:
            weights = self._tensorrt.Weights(getattr(self._tensorrt.DataType, kind), ctypes.addressof(buffer), count)
        except TypeError:
            try:
                np = importlib.import_module("numpy")
            except ImportError as error:
                text = f"TensorRT {self._tensorrt.__version__} takes weights from NumPy only, which cannot be imported"
                raise Unavailable(f"{text}: {error}") from error
            numbers = np.frombuffer(bytearray(data), {"FLOAT": np.float32, "HALF": np.float16}[kind])
            self._held.append(numbers)
            weights = self._tensorrt.Weights(numbers)
        self._held.append(weights)
        return weights


def _plain(tensorrt: Any, network: Any, convolution: Convolution, way: Way, weights: _Weights) -> None:
    """A network without layers that quantize; INT8 by the ranges of its tensors, which calibration would find."""
    shape, kind = convolution.shape, getattr(tensorrt.DataType, _TYPES[way.precision])
    weak = _weakly_typed(tensorrt)
    half = way.precision == "fp16" and not weak
    given = network.add_input(GIVEN, tensorrt.float32 if weak else kind, tuple(convolution.shape[:4]))
    given.dtype = kind
    stored_as = weights.halves if half else weights.floats
    kernel, shift = stored_as(convolution.weights()), stored_as(convolution.bias)
    layer = network.add_convolution_nd(given, shape.filters, (SIDE, SIDE), kernel, shift)
    layer.padding_nd = (1, 1)
    rectified = network.add_activation(layer.get_output(0), tensorrt.ActivationType.RELU)
    layers = {BETWEEN: layer, RESULT: rectified}
    for name, each in layers.items():
        each.name = f"layer_{name}"
        each.get_output(0).name = name
        if weak:
            each.precision = kind
            each.set_output_type(0, kind)
    if way.precision == "int8":
        for tensor, step in ((given, STEP), (layer.get_output(0), RESULT_STEP), (rectified.get_output(0), RESULT_STEP)):
            tensor.set_dynamic_range(-127 * step, 127 * step)
    for name in _outputs(way):
        _mark(tensorrt, network, layers[name].get_output(0), way, kind if weak else None)
    given.allowed_formats = _format(tensorrt, way)


def _quantized(tensorrt: Any, network: Any, convolution: Convolution, way: Way, weights: _Weights) -> None:
    """A strongly typed network in INT8: what is stored is INT8, and layers say where that is a number again."""
    shape, whole, real = convolution.shape, tensorrt.DataType.INT8, tensorrt.DataType.FLOAT
    given = network.add_input(GIVEN, whole, tuple(convolution.shape[:4]))

    def constant(dims: tuple[int, ...], values: list[float]) -> Any:
        return network.add_constant(dims, weights.floats(values)).get_output(0)

    step, result_step = constant((), [STEP]), constant((), [RESULT_STEP])
    steps = constant((shape.filters,), [STEP] * shape.filters)
    kernel = constant((shape.filters, shape.channels, SIDE, SIDE), convolution.weights())
    to_whole = network.add_quantize(kernel, steps, whole)
    to_whole.axis = 0
    to_real = network.add_dequantize(to_whole.get_output(0), steps, real)
    to_real.axis = 0
    numbers = network.add_dequantize(given, step, real).get_output(0)
    bias = weights.floats(convolution.bias)
    layer = network.add_convolution_nd(numbers, shape.filters, (SIDE, SIDE), tensorrt.Weights(), bias)
    layer.set_input(1, to_real.get_output(0))
    layer.padding_nd = (1, 1)
    rectified = network.add_activation(layer.get_output(0), tensorrt.ActivationType.RELU)
    layer.name, rectified.name = f"layer_{BETWEEN}", f"layer_{RESULT}"
    between = network.add_quantize(layer.get_output(0), result_step, whole)
    result = network.add_quantize(rectified.get_output(0), result_step, whole)
    for name, each in ((BETWEEN, between), (RESULT, result)):
        if name in _outputs(way):
            each.get_output(0).name = name
            _mark(tensorrt, network, each.get_output(0), way, None)
    given.allowed_formats = _format(tensorrt, way)


def _outputs(way: Way) -> tuple[str, ...]:
    return (RESULT,) if way.fused else (BETWEEN, RESULT)


def _mark(tensorrt: Any, network: Any, tensor: Any, way: Way, kind: Any) -> None:
    network.mark_output(tensor)
    if kind is not None:
        tensor.dtype = kind
    tensor.allowed_formats = _format(tensorrt, way)


def _format(tensorrt: Any, way: Way) -> int:
    return 1 << int(getattr(tensorrt.TensorFormat, _FORMATS[KINDS[way.precision].block]))


class Engine:
    """An engine that was loaded, saved to a file, and loaded again from that."""

    def __init__(self, tensorrt: Any, log: Log, plan: bytes) -> None:
        self._log = log
        runtime = log.made(tensorrt.Runtime, "no runtime")
        first = log.given(runtime.deserialize_cuda_engine(plan), "no engine from the serialized network")
        with tempfile.TemporaryFile() as file:
            file.write(bytes(log.given(first.serialize(), "the engine could not be serialized")))
            file.seek(0)
            saved = file.read()
        self.size = len(saved)
        loaded = runtime.deserialize_cuda_engine(saved)
        self._engine = log.given(loaded, "the saved engine could not be loaded")
        self._context = log.given(self._engine.create_execution_context(), "no execution context")
        self._format = tensorrt.LayerInformationFormat.JSON
        self._runtime = runtime

    def layers(self) -> list[dict[str, Any]]:
        """The engine's layers as the inspector describes them."""
        information = self._engine.create_engine_inspector().get_engine_information(self._format)
        return layers_of(self._log.given(information, "the inspector says nothing"))

    def portability(self) -> str:
        """Where it runs, by its own word."""
        level = getattr(self._engine, "hardware_compatibility_level", None)
        name = getattr(level, "name", "NONE")
        return {"NONE": "for this kind of GPU only", "AMPERE_PLUS": "for every GPU from Ampere on"}.get(name, name)

    def connect(self, memory: dict[str, RuntimeMemory]) -> None:
        """Say where the tensors lie, by their names."""
        for name, place in memory.items():
            connected = self._context.set_tensor_address(name, place.address)
            self._log.given(connected, f"the tensor {name!r} could not be connected")

    def run(self, stream: int) -> None:
        self._log.given(self._context.execute_async_v3(stream), "the engine could not be run")


def layers_of(text: str) -> list[dict[str, Any]]:
    """Layers in the inspector's JSON: names alone where an engine keeps no more; raise LibraryError for other text."""
    try:
        found = json.loads(text)["Layers"]
        return [{"Name": each} if isinstance(each, str) else dict(each) for each in found]
    except (ValueError, KeyError, TypeError) as error:
        raise LibraryError(f"the inspector's answer cannot be read: {error}") from error


def computing(layers: list[dict[str, Any]]) -> list[str]:
    """Names of the layers that compute: one where convolution, bias and ReLU were fused."""
    kinds = ((str(layer.get("Name", "")), str(layer.get("LayerType", ""))) for layer in layers)
    return [
        name for name, kind in kinds if not kind.startswith(_MOVES) and not name.startswith("Reformatting CopyNode")
    ]


def tactic(layers: list[dict[str, Any]]) -> str:
    """The kernel of the convolution, as far as the inspector names it."""
    names = (layer.get("TacticName") for layer in layers if layer.get("Name") in computing(layers))
    return next((name for name in names if isinstance(name, str) and name), "")


class Made(NamedTuple):
    """An engine that was saved, loaded and run once."""

    engine: Engine
    seconds: float  # That building took
    result: RuntimeMemory
    verification: Fields


class Convolver:
    """Makes engines of ``shape`` with the module ``tensorrt``; raises LibraryError or DriverError where one fails."""

    def __init__(self, tensorrt: Any, shape: ConvolutionShape) -> None:
        self.shape, self.version, self.gpu = shape, tensorrt.__version__, RuntimeGpu()
        self._tensorrt, self._log = tensorrt, Log(tensorrt)
        self._convolution = Convolution(shape)

    @contextmanager
    def made(self, way: Way) -> Iterator[Made]:
        """An engine and its memory, for as long as the block lasts; raise Unavailable where memory is short."""
        self._log.forget()
        if way.portable and self.gpu.capability() < _PORTABLE:
            raise Unavailable("engines for more than one kind of GPU are for compute capability 8.0 and newer")
        size = KINDS[way.precision].size
        sizes = {GIVEN: self.shape.inputs * size, RESULT: self.shape.results * size}
        if not way.fused:
            sizes[BETWEEN] = sizes[RESULT]
        free, needed = self.gpu.free_memory(), sum(sizes.values()) + _RESERVE
        if needed > free:
            raise Unavailable(f"{needed >> 20} MiB of device memory are needed, {free >> 20} MiB are free")
        workspace = min(_WORKSPACE, (free - needed) // 2 + 1)
        plan, seconds = build(self._tensorrt, self._log, self._convolution, way, workspace)
        engine = Engine(self._tensorrt, self._log, plan)
        memory: dict[str, RuntimeMemory] = {}
        try:
            for name, count in sizes.items():
                memory[name] = self.gpu.memory(count)
            engine.connect(memory)
            given = self._convolution.given(way.precision)
            memory[GIVEN].write(given)
            engine.run(self.gpu.stream)
            self.gpu.synchronize()
            read = memory[RESULT].read
            triples = self._convolution.triples(
                way.precision, given, lambda place: stored(way.precision, read(place * size, size))
            )
            verification = compared(triples, self._convolution.tolerance(way.precision), _HOW)
            yield Made(engine, seconds, memory[RESULT], verification)
        finally:
            for each in memory.values():
                each.free()
