"""TensorRT's Python API over Python numbers, with exactly the members that the bindings of a release have.

``tensorrt_bindings.json`` lists those members and the values of enumerations, as read from the bindings in NVIDIA's
wheels of 8.5.3.1, 8.6.0, 10.0.1, 10.14.1 and 11.4.0. An engine computes its network plainly, in NCHW, and stores it in
the format that was asked for.
"""

import ctypes
import itertools
import json
import math
import operator
import struct
from collections.abc import Callable, Iterator
from enum import IntEnum
from pathlib import Path
from types import ModuleType
from typing import Any

BINDINGS: dict[str, Any] = json.loads((Path(__file__).parent / "tensorrt_bindings.json").read_text())
CODES = {"FLOAT": "<f", "HALF": "<e", "INT8": "<b"}
Values = dict[tuple[int, ...], float]


class Memory:
    """Memory of a GPU that the tests play, with addresses that nothing else has."""

    at: dict[int, "Memory"] = {}
    _next = itertools.count(1 << 40, 1 << 30)

    def __init__(self, size: int) -> None:
        self.size, self.address, self.data = size, next(self._next), bytearray(b"\xff" * size)
        self.at[self.address] = self

    def write(self, data: bytes) -> None:
        assert len(data) <= self.size
        self.data[: len(data)] = data

    def read(self, start: int, size: int) -> bytes:
        return bytes(self.data[start : start + size])

    def free(self) -> None:
        del self.at[self.address]


class Gpu:
    """Has ``free`` bytes; what is timed runs once."""

    free = 1 << 33
    stream = 7
    capable = (9, 0)

    def capability(self) -> tuple[int, int]:
        return self.capable

    def memory(self, size: int) -> Memory:
        return Memory(size)

    def free_memory(self) -> int:
        return self.free

    def synchronize(self) -> None:
        pass

    def timed(self, work: Callable[[], None]) -> list[float]:
        work()
        return [0.5, 0.25, 1.0]


class Release:
    """A release, and what is wrong with its engines."""

    def __init__(self, version: str, wrong: str, refuses: str, layers: list[Any] | None) -> None:
        self.version, self.wrong, self.refuses, self.layers = version, wrong, refuses, layers
        bindings = BINDINGS[version]
        self.members = {name: frozenset(listed.split()) for name, listed in bindings["classes"].items()}
        self.enums: dict[str, Any] = {name: enumeration(name, members) for name, members in bindings["enums"].items()}
        self.weights_by_address = bindings["weights"] == "address"
        self.strongly_typed = "INT8" not in bindings["enums"]["BuilderFlag"]
        self.types, self.severity = self.enums["DataType"], self.enums["Severity"]

    def answered(self, call: str, value: Any) -> Any:
        return None if self.refuses == call else value


def enumeration(name: str, members: dict[str, int]) -> Any:
    return IntEnum(name, members)


class Guarded:
    """An object of a class of the bindings: other members cannot be used."""

    kind = ""
    release: Any = None

    def __init_subclass__(cls, kind: str = "", **more: Any) -> None:
        super().__init_subclass__(**more)
        cls.kind = kind or cls.kind

    def __getattribute__(self, name: str) -> Any:
        found = object.__getattribute__(self, name)
        if not name.startswith("_") and name not in ("kind", "release"):
            self._allow(name)
        return found

    def __setattr__(self, name: str, value: Any) -> None:
        if not name.startswith("_") and name != "release":
            self._allow(name)
        object.__setattr__(self, name, value)

    def _allow(self, name: str) -> None:
        if name not in self.release.members[self.kind]:
            raise AttributeError(f"{self.kind} of this release has no {name}")


class ILogger(Guarded, kind="ILogger"):
    Severity: Any = None

    def __init__(self) -> None:
        pass

    def log(self, severity: Any, message: str) -> None:
        raise NotImplementedError


class Numbers:
    """What ``numpy.frombuffer`` makes here."""

    def __init__(self, data: bytearray, kind: str) -> None:
        self.type, self.values = kind, decoded(kind, bytes(data))


class Weights:
    release: Any = None

    def __init__(self, first: Any = None, address: int | None = None, count: int = 0) -> None:
        self.values: list[float] = []
        if isinstance(first, Numbers):
            assert not self.release.weights_by_address
            self.type, self.values = first.type, first.values
        elif address is not None:
            if not self.release.weights_by_address:
                raise TypeError("incompatible constructor arguments")
            self.type = self.release.types(first).name
            self.values = decoded(self.type, ctypes.string_at(address, count * struct.calcsize(CODES[self.type])))


class Tensor(Guarded, kind="ITensor"):
    def __init__(self, release: Release, shape: tuple[int, ...], kind: Any, values: Callable[[Values], Values]) -> None:
        self.release = release
        self._shape, self._values = shape, values
        self._range: tuple[float, float] | None = None
        self.name, self.dtype, self.allowed_formats = "", kind, 1

    def set_dynamic_range(self, low: float, high: float) -> bool:
        self._range = (low, high)
        return True

    @property
    def _step(self) -> float:
        """What 1 means in INT8."""
        return max(map(abs, self._range)) / 127 if self._type == "INT8" and self._range else 1.0

    @property
    def _type(self) -> str:
        return str(self.release.types(self.dtype).name)

    @property
    def _format(self) -> str:
        chosen = [entry.name for entry in self.release.enums["TensorFormat"] if self.allowed_formats == 1 << entry]
        return str(chosen[0])

    def _bytes(self, given: Values) -> bytes:
        values = self._values(given)
        if self._type == "INT8" and self._range:
            values = {place: rounded(value / self._step) for place, value in values.items()}
        return stored(values, self._shape, self._type, self._format)


class Layer(Guarded):
    def __init__(self, output: Tensor) -> None:
        self.release = output.release
        self._output = output
        self._inputs: dict[int, Tensor] = {}

    def get_output(self, index: int) -> Tensor:
        assert index == 0
        return self._output

    def set_output_type(self, index: int, kind: Any) -> None:
        assert index == 0
        assert kind in self.release.types


class Constant(Layer, kind="IConstantLayer"):
    pass


class Quantize(Layer, kind="IQuantizeLayer"):
    axis = -1


class Dequantize(Layer, kind="IDequantizeLayer"):
    axis = -1


class Activation(Layer, kind="IActivationLayer"):
    pass


class ConvolutionLayer(Layer, kind="IConvolutionLayer"):
    padding_nd: tuple[int, int] = (0, 0)

    def set_input(self, index: int, tensor: Tensor) -> None:
        assert index == 1
        self._inputs[1] = tensor


class Network(Guarded, kind="INetworkDefinition"):
    def __init__(self, release: Release) -> None:
        self.release = release
        self._marked: list[Tensor] = []
        self._given: list[Tensor] = []

    def add_input(self, name: str, kind: Any, shape: tuple[int, ...]) -> Tensor:
        if not self.release.strongly_typed:
            assert self.release.types(kind).name != "INT8", "so says the documentation up to 10"
        tensor = Tensor(self.release, shape, kind, lambda given: given)
        tensor.name = name
        self._given.append(tensor)
        return tensor

    def add_constant(self, shape: tuple[int, ...], weights: Weights) -> Layer:
        assert len(weights.values) == math.prod(shape)
        values = dict(zip(places(shape), weights.values, strict=True))
        return Constant(Tensor(self.release, shape, self.release.types["FLOAT"], lambda _: values))

    def add_quantize(self, tensor: Tensor, scale: Tensor, kind: Any) -> Layer:
        def values(given: Values) -> Values:
            return scaled(given, tensor, scale, layer.axis, lambda value, step: rounded(value / step))

        layer = Quantize(Tensor(self.release, tensor._shape, kind, values))
        return layer

    def add_dequantize(self, tensor: Tensor, scale: Tensor, kind: Any) -> Layer:
        def values(given: Values) -> Values:
            return scaled(given, tensor, scale, layer.axis, lambda value, step: value * step)

        layer = Dequantize(Tensor(self.release, tensor._shape, kind, values))
        return layer

    def add_convolution_nd(
        self, tensor: Tensor, count: int, size: tuple[int, int], kernel: Weights, bias: Weights
    ) -> Layer:
        images, channels, height, width = tensor._shape
        result = (images, count, height, width)
        if self.release.strongly_typed and kernel.values:
            assert kernel.type == tensor._type

        def values(given: Values) -> Values:
            assert (layer.padding_nd, size) == ((1, 1), (3, 3))
            source, step = tensor._values(given), tensor._step
            replaced, shape = layer._inputs.get(1), (count, channels, 3, 3)
            filters = replaced._values({}) if replaced else dict(zip(places(shape), kernel.values, strict=True))
            added = [0.0] * count if self.release.wrong == "bias" else bias.values
            weights = [
                [filters[k, c, down, right] for c, down, right in places((channels, 3, 3))] for k in range(count)
            ]
            found: Values = {}
            for n, y, x in places((images, height, width)):
                seen = [
                    step * source.get((n, c, y + down - 1, x + right - 1), 0.0)
                    for c, down, right in places((channels, 3, 3))
                ]
                for k in range(count):
                    found[n, k, y, x] = added[k] + sum(map(operator.mul, seen, weights[k]))
            return found

        layer = ConvolutionLayer(Tensor(self.release, result, tensor.dtype, values))
        return layer

    def add_activation(self, tensor: Tensor, kind: Any) -> Layer:
        assert kind == self.release.enums["ActivationType"]["RELU"]
        low = -math.inf if self.release.wrong == "relu" else 0.0

        def values(given: Values) -> Values:
            return {place: max(low, value) for place, value in tensor._values(given).items()}

        return Activation(Tensor(self.release, tensor._shape, tensor.dtype, values))

    def mark_output(self, tensor: Tensor) -> None:
        self._marked.append(tensor)


class Config(Guarded, kind="IBuilderConfig"):
    def __init__(self, release: Release) -> None:
        self.release = release
        self._flags = {"TF32"}
        self._sources: int = sum(1 << source for source in release.enums["TacticSource"])
        self.profiling_verbosity = None
        if "HardwareCompatibilityLevel" in release.enums:
            self.hardware_compatibility_level = release.enums["HardwareCompatibilityLevel"]["NONE"]

    def set_flag(self, flag: Any) -> None:
        self._flags.add(self.release.enums["BuilderFlag"](flag).name)

    def clear_flag(self, flag: Any) -> None:
        self._flags.discard(self.release.enums["BuilderFlag"](flag).name)

    def get_tactic_sources(self) -> int:
        return self._sources

    def set_tactic_sources(self, sources: int) -> bool:
        self._sources = sources
        return True

    def set_memory_pool_limit(self, pool: Any, size: int) -> None:
        assert pool == self.release.enums["MemoryPoolType"]["WORKSPACE"]
        assert size > 0


class Builder(Guarded, kind="Builder"):
    def __init__(self, logger: Any) -> None:
        if self.release.refuses == "Builder":
            logger.log(self.release.severity.WARNING, "CUDA initialization failure with error: 35")
            raise TypeError("factory function returned nullptr")
        self._logger = logger
        if not self.release.strongly_typed:
            self.platform_has_fast_fp16 = self.platform_has_fast_int8 = self.release.wrong != "slow"

    def create_network(self, flags: int = 0) -> Network:
        name = "STRONGLY_TYPED" if self.release.strongly_typed else "EXPLICIT_BATCH"
        assert flags == 1 << self.release.enums["NetworkDefinitionCreationFlag"][name]
        return Network(self.release)

    def create_builder_config(self) -> Config:
        return Config(self.release)

    def build_serialized_network(self, network: Network, config: Config) -> Any:
        assert "TF32" not in config._flags
        assert config._sources == sum(1 << each for each in self.release.enums["TacticSource"] if "_CONV" in each.name)
        assert config.profiling_verbosity == self.release.enums["ProfilingVerbosity"]["DETAILED"]
        if self.release.refuses == "build_serialized_network":
            self._logger.log(self.release.severity.INFO, "trying")
            self._logger.log(self.release.severity.ERROR, "no implementation of the layer")
            return None
        kinds = {tensor._type for tensor in (*network._given, *network._marked)}
        needed = {flag for kind, flag in (("HALF", "FP16"), ("INT8", "INT8")) if kind in kinds}
        assert self.release.strongly_typed or needed <= config._flags
        PLANS.append((network, config))
        return str(len(PLANS) - 1).encode()


class Runtime(Guarded, kind="Runtime"):
    def __init__(self, logger: Any) -> None:
        pass

    def deserialize_cuda_engine(self, plan: bytes) -> Any:
        return self.release.answered("deserialize_cuda_engine", CudaEngine(bytes(plan), *PLANS[int(plan)]))


class CudaEngine(Guarded, kind="ICudaEngine"):
    def __init__(self, plan: bytes, network: Network, config: Config) -> None:
        self.release = network.release
        self._network, self._plan = network, plan
        if hasattr(config, "hardware_compatibility_level"):
            self.hardware_compatibility_level = config.hardware_compatibility_level

    def serialize(self) -> bytes:
        return self._plan

    def create_execution_context(self) -> Any:
        return self.release.answered("create_execution_context", Context(self._network))

    def create_engine_inspector(self) -> Any:
        return Inspector(self._network)


class Inspector(Guarded, kind="EngineInspector"):
    def __init__(self, network: Network) -> None:
        self.release = network.release
        self._network = network

    def get_engine_information(self, form: Any) -> str:
        assert form == self.release.enums["LayerInformationFormat"]["JSON"]
        kind = {"LayerType": "CaskConvolution", "TacticName": "xmma_fprop"}
        apart = [{"Name": f"layer_{tensor.name}", **kind} for tensor in self._network._marked]
        shown = [{"Name": "layer_convolved + layer_result", **kind}] if len(apart) == 1 else apart
        return json.dumps({"Layers": shown if self.release.layers is None else self.release.layers})


class Context(Guarded, kind="IExecutionContext"):
    def __init__(self, network: Network) -> None:
        self.release = network.release
        self._network = network
        self._addresses: dict[str, int] = {}

    def set_tensor_address(self, name: str, address: int) -> bool:
        assert name in {tensor.name for tensor in (*self._network._given, *self._network._marked)}
        self._addresses[name] = address
        return bool(self.release.refuses != "set_tensor_address")

    def execute_async_v3(self, stream: int) -> bool:
        assert stream == Gpu.stream
        (given,) = self._network._given
        values = loaded(bytes(Memory.at[self._addresses[given.name]].data), given._shape, given._type, given._format)
        for tensor in self._network._marked:
            Memory.at[self._addresses[tensor.name]].write(tensor._bytes(values))
        return bool(self.release.refuses != "execute_async_v3")


def make(version: str, wrong: str = "", refuses: str = "", layers: list[Any] | None = None) -> ModuleType:
    """The module ``tensorrt`` of a release.

    ``wrong`` names what an engine gets wrong (``bias``, ``relu``) or that the GPU is ``slow``, ``refuses`` the call
    that returns nothing, and ``layers`` is what the inspector shows instead of one fused layer.
    """
    release = Release(version, wrong, refuses, layers)
    module = ModuleType("tensorrt")
    for each in (ILogger, Weights, Builder, Runtime):
        module.__dict__[each.__name__] = type(each.__name__, (each,), {"release": release})
    module.__dict__["ILogger"].Severity = release.severity
    module.__dict__["IExecutionContext"] = Context
    module.__dict__.update(__version__=version, float32=release.types["FLOAT"], **release.enums)
    return module


PLANS: list[tuple[Network, Config]] = []


def numpy() -> ModuleType:
    """As much of NumPy as makes weights."""
    module = ModuleType("numpy")
    module.__dict__.update(frombuffer=Numbers, float32="FLOAT", float16="HALF")
    return module


def places(shape: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    return itertools.product(*map(range, shape))


def rounded(value: float) -> float:
    return float(max(-128, min(127, round(value))))


def scaled(given: Values, tensor: Any, scale: Any, axis: int, change: Callable[[float, float], float]) -> Values:
    """Each value changed with the scale of its place along ``axis``; a scale without dimensions is everybody's."""
    scales, values = scale._values({}), tensor._values(given)
    steps = {place: scales[(place[axis],) if scale._shape else ()] for place in values}
    return {place: change(value, steps[place]) for place, value in values.items()}


def decoded(kind: str, data: bytes) -> list[float]:
    return [float(value) for (value,) in struct.iter_unpack(CODES[kind], data)]


def order(shape: tuple[int, ...], form: str) -> Iterator[tuple[int, ...]]:
    """The places of a batch of images in the order in which a format stores them."""
    images, channels, height, width = shape
    if form == "LINEAR":
        yield from places(shape)
    elif form == "HWC8":
        assert channels % 8 == 0
        yield from ((n, c, y, x) for n, y, x, c in places((images, height, width, channels)))
    else:
        assert form == "CHW32"
        grouped = places((images, channels // 32, height, width, 32))
        yield from ((n, group * 32 + c, y, x) for n, group, y, x, c in grouped)


def stored(values: Values, shape: tuple[int, ...], kind: str, form: str) -> bytes:
    numbers = (values[place] for place in order(shape, form))
    return b"".join(struct.pack(CODES[kind], int(number) if kind == "INT8" else number) for number in numbers)


def loaded(data: bytes, shape: tuple[int, ...], kind: str, form: str) -> Values:
    return dict(zip(order(shape, form), decoded(kind, data), strict=True))
