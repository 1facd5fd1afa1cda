"""cuDNN 8 and 9 by the path of the library: its handle, its errors in its own words, its sub-libraries, its graph API.

The functions and their types are those of ``cudnn_ops_v9.h`` and ``cudnn_graph_v9.h`` (9.0 to 9.28) and of their
predecessors of 8.5 to 8.9, in which what is used here is declared alike. In a graph, operations work on tensors, the
heuristics propose engines for them, and a descriptor is made, given its attributes, and finished; then it takes no more
(cuDNN documentation, "Graph API").
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from ctypes import byref, c_bool, c_char_p, c_double, c_float, c_int, c_int64, c_size_t, c_void_p
from dataclasses import dataclass
from types import TracebackType
from typing import Any, NamedTuple

from ..library import CudaLibrary, check, opened
from ..measurement import Bench
from ..runtime import LibraryError, Unavailable

TYPES = {"fp32": 0, "fp64": 1, "fp16": 2, "bf16": 9}  # Members of ``cudnnDataType_t``
_NOT_SUPPORTED = {8: range(9, 10), 9: range(3000, 4000)}
_INCOMPLETE = {8: {14}, 9: {1002, 1008, 3009}}
"""Statuses by major release: what an engine cannot do, and sub-libraries that are missing or of another release."""
_PARTS = {8: ("ops_infer", "ops_train", "cnn_infer", "cnn_train"), 9: ("graph", "engines_runtime_compiled")}
"""Sub-libraries that every cuDNN of a major release has. Without some of them it ends the process at the first call."""
_WHOLE = {8: (), 9: ("ops", "cnn", "engines_precompiled", "heuristic")}
"""More of them, of which cuDNN 9 has all or, where it compiles every kernel itself (nvidia-cudnn-jit), none."""
_CHECKS = {8: ("OpsInfer", "OpsTrain", "CnnInfer", "CnnTrain"), 9: ("Graph", "Ops", "Cnn")}
"""Sub-libraries that compare their release with those that they need."""
_UNAVAILABLE = 3009  # A sub-library is missing, which where cuDNN compiles every kernel itself is no fault


class NotSupported(Unavailable):
    """cuDNN says that it cannot do this: on this GPU, of this shape or type, or in this release."""


class Cudnn(CudaLibrary):
    """A cuDNN with a handle that works on the stream of the bench."""

    def __init__(self, bench: Bench, path: str = "") -> None:
        super().__init__(bench, "cudnn", "cuDNN", ("cublasLt", "cublas", "nvrtc"), path)
        # The major by what it exports, which needs none of its sub-libraries.
        of_8 = self.offers("cudnnBackendExecute") and self.offers("cudnnCnnInferVersionCheck")
        self.major = 9 if self.offers("cudnnGraphVersionCheck") else 8 if of_8 else 0
        if not self.major:
            raise Unavailable(f"{self.path} is not a cuDNN 8 or 9")
        self._load_parts({} if path else bench.libraries)
        self.function("cudnnGetVersion").restype = c_size_t
        self.function("cudnnGetErrorString").restype = c_char_p
        self.number = int(self.function("cudnnGetVersion")())
        # Let each sub-library compare releases; of one that is missing the function that needs it will tell.
        for part in _CHECKS[self.major]:
            status = int(self.function(f"cudnn{part}VersionCheck")())
            if status not in (0, _UNAVAILABLE):
                raise self._incomplete(f"cudnn{part}VersionCheck: {self.describe(status)}")
        with self.required():
            self.handle = self.new_handle(int(bench.device.stream))

    @property
    def version(self) -> str:
        """``9.19.0``: ``CUDNN_VERSION`` is major * 10000 + minor * 100 + patch, with 1000 instead up to cuDNN 8."""
        unit = 10000 if self.number >= 10000 else 1000
        return f"{self.number // unit}.{self.number % unit // 100}.{self.number % 100}"

    def describe(self, status: int) -> str:
        """``CUDNN_STATUS_BAD_PARAM (2000)`` and, from cuDNN 9 on, its last message."""
        name = self.function("cudnnGetErrorString")(c_int(status))
        text = f"{name.decode(errors='replace')} ({status})"
        if not self.offers("cudnnGetLastErrorString"):
            return text
        message = ctypes.create_string_buffer(1024)
        self.function("cudnnGetLastErrorString")(message, c_size_t(len(message)))
        details = " ".join(message.value.decode(errors="replace").split())
        return f"{text}: {details}" if details else text

    def ask(self, name: str, *arguments: object) -> None:
        """Call a function; raise NotSupported where cuDNN says so, else LibraryError, for any status but success."""
        status = int(self.function(name)(*arguments))
        if status == 0:
            return
        text = f"{name}: {self.describe(status)}"
        if status in _INCOMPLETE[self.major] and (self._whole or status != _UNAVAILABLE):
            raise IncompleteError(text + self._lacking, self.path)
        if status in _NOT_SUPPORTED[self.major]:
            raise NotSupported(f"cuDNN {self.version} does not support this: {text}")
        raise LibraryError(text + self._lacking, self.path)

    @contextmanager
    def required(self) -> Iterator[None]:
        """For what every cuDNN can do: one that does not support it has failed (no code for this GPU, for instance)."""
        try:
            yield
        except NotSupported as error:
            raise LibraryError(f"{error}{self._lacking}", self.path) from error

    def new_handle(self, stream: int = 0) -> c_void_p:
        """A handle for the current context, whose work goes to ``stream``."""
        handle = c_void_p()
        self.ask("cudnnCreate", byref(handle))
        self.ask("cudnnSetStream", handle, c_void_p(stream))
        return handle

    def _load_parts(self, found: dict[str, list[str]]) -> None:
        """Load sub-libraries as cuDNN does: the one that the loader finds for the environment (LD_LIBRARY_PATH comes
        before cuDNN's own RUNPATH), else from beside itself, or by name.
        """
        folder = os.path.dirname(os.path.realpath(self.path))
        before, after = "libcudnn_", f".so.{self.major}"
        names = sorted(os.listdir(folder)) if os.path.isdir(folder) else ()
        ours = [name for name in names if name.startswith(before) and name.endswith(after)]
        beside = [name[len(before) : -len(after)] for name in ours]
        self._whole = any(part in beside for part in _WHOLE[self.major])
        needed = _PARTS[self.major] + (_WHOLE[self.major] if self._whole else ())
        self._elsewhere = [f"libcudnn_{part}.so.{self.major}" for part in needed if part not in beside]
        for part in dict.fromkeys((*needed, *beside)):
            name = f"libcudnn_{part}.so.{self.major}"
            try:
                if part in needed:
                    own = os.path.join(folder, name) if part in beside else name
                    opened(next(iter(found.get(f"cudnn_{part}", [])), own))
                else:
                    check(os.path.join(folder, name))
            except OSError as error:
                raise self._incomplete(str(error)) from error

    @property
    def _lacking(self) -> str:
        """Sub-libraries that the loader took from elsewhere, maybe of another release; empty where there are none."""
        return f" (missing beside it: {', '.join(self._elsewhere)})" if self._elsewhere else ""

    def _incomplete(self, error: str) -> IncompleteError:
        """A fault of the sub-libraries, with its cause as far as it shows."""
        why = self._lacking or (" (they are of different releases)" if "undefined symbol" in error else "")
        return IncompleteError(f"cuDNN {self.major} cannot use its sub-libraries{why}: {error}", self.path)


class IncompleteError(LibraryError):
    """A sub-library is missing or of another release."""


# Members of cudnnBackendAttributeType_t, and of cudnnBackendAttributeName_t with the type of each.

_HANDLE, _DATA_TYPE, _BOOLEAN, _INT64, _FLOAT, _DOUBLE, _POINTER = range(7)
_CONVOLUTION_MODE, _HEURISTIC_MODE, _NUMERICAL_NOTE, _POINTWISE_MODE, _DESCRIPTOR, _REDUCTION = 7, 8, 11, 14, 15, 18
_C_TYPES: dict[int, Any] = {_BOOLEAN: c_bool, _INT64: c_int64, _FLOAT: c_float, _DOUBLE: c_double}
_C_TYPES |= dict.fromkeys((_HANDLE, _POINTER, _DESCRIPTOR), c_void_p)
"""What an element is in C; the rest are enumerations."""


class Attribute(NamedTuple):
    """What a descriptor can be given."""

    number: int
    type: int


POINTWISE_MODE, POINTWISE_TYPE = Attribute(0, _POINTWISE_MODE), Attribute(1, _DATA_TYPE)
CONVOLUTION_TYPE, CONVOLUTION_MODE = Attribute(100, _DATA_TYPE), Attribute(101, _CONVOLUTION_MODE)
CONVOLUTION_DILATIONS, CONVOLUTION_STRIDES = Attribute(102, _INT64), Attribute(103, _INT64)
CONVOLUTION_AFTER, CONVOLUTION_BEFORE = Attribute(104, _INT64), Attribute(105, _INT64)
CONVOLUTION_DIMENSIONS = Attribute(106, _INT64)
HEURISTIC_MODE, HEURISTIC_GRAPH = Attribute(200, _HEURISTIC_MODE), Attribute(201, _DESCRIPTOR)
HEURISTIC_RESULTS = Attribute(202, _DESCRIPTOR)
CONFIGURATION_ENGINE = Attribute(300, _DESCRIPTOR)
PLAN_HANDLE, PLAN_CONFIGURATION = Attribute(400, _HANDLE), Attribute(401, _DESCRIPTOR)
PLAN_WORKSPACE = Attribute(402, _INT64)
POINTWISE, POINTWISE_X, POINTWISE_B, POINTWISE_Y = (Attribute(number, _DESCRIPTOR) for number in range(750, 754))
GRAPH_HANDLE, GRAPH_OPERATIONS = Attribute(800, _HANDLE), Attribute(801, _DESCRIPTOR)
TENSOR_ALIGNMENT, TENSOR_TYPE = Attribute(900, _INT64), Attribute(901, _DATA_TYPE)
TENSOR_DIMENSIONS, TENSOR_STRIDES = Attribute(902, _INT64), Attribute(903, _INT64)
TENSOR_ID, TENSOR_VIRTUAL, TENSOR_BY_VALUE = Attribute(906, _INT64), Attribute(907, _BOOLEAN), Attribute(908, _BOOLEAN)
PACK_IDS, PACK_POINTERS, PACK_WORKSPACE = Attribute(1000, _INT64), Attribute(1001, _POINTER), Attribute(1003, _POINTER)
ENGINE_NUMBER, ENGINE_NOTES = Attribute(1301, _INT64), Attribute(1303, _NUMERICAL_NOTE)
MATMUL_TYPE = Attribute(1500, _DATA_TYPE)
MATMUL_A, MATMUL_B, MATMUL_C, MATMUL = (Attribute(number, _DESCRIPTOR) for number in range(1520, 1524))
REDUCTION_OPERATOR, REDUCTION_TYPE = Attribute(1600, _REDUCTION), Attribute(1601, _DATA_TYPE)
REDUCTION_X, REDUCTION_Y, REDUCTION = (Attribute(number, _DESCRIPTOR) for number in range(1610, 1613))
RESHAPE_X, RESHAPE_Y = Attribute(2200, _DESCRIPTOR), Attribute(2201, _DESCRIPTOR)

# Members of cudnnBackendDescriptorType_t.

POINTWISE_KIND, CONVOLUTION_KIND, _ENGINE, _CONFIGURATION, _HEURISTIC, _PLAN = range(6)
FORWARD_KIND, BACKWARD_FILTER_KIND, BACKWARD_DATA_KIND, POINTWISE_OPERATION = 10, 11, 12, 13
_GRAPH, _PACK, _TENSOR, MATMUL_KIND, MATMUL_OPERATION, REDUCTION_KIND, REDUCTION_OPERATION = 15, 16, 17, 18, 19, 21, 22
RESHAPE_OPERATION = 31

MODE_A, MODE_B, FALLBACK = 3, 1, 2  # Members of ``cudnnBackendHeurMode_t``
TENSOR_CORE, DOWN_CONVERT = 0, 1  # Members of ``cudnnBackendNumericalNote_t``
_ALIGNMENT = 16

Values = Mapping[Attribute, Any]  # An attribute's value, or a sequence of them


@dataclass(frozen=True)
class Tensor:
    """A tensor as an operation sees it; a virtual one exists only between two of them, one by value on the host."""

    number: int  # Its unique ID
    kind: str
    dimensions: tuple[int, ...]
    strides: tuple[int, ...]
    virtual: bool = False
    by_value: bool = False


@dataclass(frozen=True)
class Proposal:
    """An engine and how to run it, as a heuristic proposes it."""

    configuration: c_void_p
    engine: int
    notes: frozenset[int]  # ``cudnnBackendNumericalNote_t``


@dataclass(frozen=True)
class GraphPlan:
    descriptor: c_void_p
    proposal: Proposal
    workspace: int  # Bytes


class Graph:
    """Operations on tensors. Its descriptors live as long as the block ``with Graph(library) as graph``."""

    def __init__(self, library: Cudnn) -> None:
        self._library = library
        self._made: list[c_void_p] = []
        self._tensors: dict[int, c_void_p] = {}
        self._operations: list[c_void_p] = []
        self._refusals: list[NotSupported] = []

    def __enter__(self) -> Graph:  # noqa: PYI034  nothing derives from it
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for made in reversed(self._made):
            self._library.function("cudnnBackendDestroyDescriptor")(made)

    def made(self, kind: int, values: Values) -> c_void_p:
        descriptor = self._empty(kind)
        for attribute, value in values.items():
            given = list(value) if isinstance(value, Sequence) else [value]
            elements = (_C_TYPES.get(attribute.type, c_int) * len(given))(*given)
            self._library.ask("cudnnBackendSetAttribute", descriptor, *attribute, c_int64(len(given)), byref(elements))
        self._library.ask("cudnnBackendFinalize", descriptor)
        return descriptor

    def tensor(self, tensor: Tensor) -> c_void_p:
        """The descriptor of a tensor, one for each."""
        if tensor.number not in self._tensors:
            self._tensors[tensor.number] = self.made(_TENSOR, {
                TENSOR_TYPE: TYPES[tensor.kind], TENSOR_DIMENSIONS: tensor.dimensions, TENSOR_STRIDES: tensor.strides,
                TENSOR_ID: tensor.number, TENSOR_ALIGNMENT: _ALIGNMENT, TENSOR_VIRTUAL: tensor.virtual,
                TENSOR_BY_VALUE: tensor.by_value,
            })  # fmt: skip
        return self._tensors[tensor.number]

    def add(self, kind: int, values: Values) -> None:
        self._operations.append(self.made(kind, values))

    def proposals(self, *modes: int) -> Iterator[Proposal]:
        """What the heuristics propose for the operations, best first by their own estimate, mode by mode."""
        handle = self._library.handle
        graph = self.made(_GRAPH, {GRAPH_HANDLE: handle, GRAPH_OPERATIONS: self._operations})
        for mode in modes:
            try:
                heuristic = self.made(_HEURISTIC, {HEURISTIC_GRAPH: graph, HEURISTIC_MODE: mode})
                configurations = self._descriptors(heuristic, HEURISTIC_RESULTS, _CONFIGURATION)
            except NotSupported as error:
                self._refusals.append(error)
                continue
            for configuration in configurations:
                engine = next(iter(self._descriptors(configuration, CONFIGURATION_ENGINE, _ENGINE, 1)))
                number = self._get(engine, ENGINE_NUMBER, 1)[0]
                yield Proposal(configuration, number, frozenset(self._get(engine, ENGINE_NOTES, 64)))

    def plan(self, proposal: Proposal) -> GraphPlan:
        """Make a proposal ready, which may compile a kernel; raise NotSupported or LibraryError where it cannot be."""
        plan = self.made(_PLAN, {PLAN_HANDLE: self._library.handle, PLAN_CONFIGURATION: proposal.configuration})
        return GraphPlan(plan, proposal, self._get(plan, PLAN_WORKSPACE, 1)[0])

    def plans(self, proposals: Iterator[Proposal], most: int) -> Iterator[GraphPlan]:
        """Up to ``most`` plans; raise what cuDNN said where there is none, and at once where cuDNN is incomplete."""
        found = 0
        refusal: NotSupported | LibraryError | None = None
        for proposal in proposals:
            try:
                plan = self.plan(proposal)
            except IncompleteError:
                raise
            except (NotSupported, LibraryError) as error:
                refusal = refusal if isinstance(refusal, LibraryError) else error
                continue
            yield plan
            found += 1
            if found == most:
                return
        if not found:
            nothing = NotSupported(f"cuDNN {self._library.version} has no engine for this on this GPU")
            raise refusal or next(iter(self._refusals), nothing)

    def pack(self, pointers: Mapping[int, int], workspace: int) -> c_void_p:
        """Where the tensors lie, by their unique IDs."""
        values = {PACK_IDS: list(pointers), PACK_POINTERS: list(pointers.values()), PACK_WORKSPACE: workspace}
        return self.made(_PACK, values)

    def run(self, plan: GraphPlan, pack: c_void_p) -> None:
        """Queue a plan on the handle's stream."""
        self._library.ask("cudnnBackendExecute", self._library.handle, plan.descriptor, pack)

    def _empty(self, kind: int) -> c_void_p:
        descriptor = c_void_p()
        self._library.ask("cudnnBackendCreateDescriptor", kind, byref(descriptor))
        self._made.append(descriptor)
        return descriptor

    def _get(self, descriptor: c_void_p, attribute: Attribute, most: int, *given: Any) -> list[int]:
        elements, count = (_C_TYPES.get(attribute.type, c_int) * most)(*given), c_int64()
        places = c_int64(most), byref(count), byref(elements)
        self._library.ask("cudnnBackendGetAttribute", descriptor, *attribute, *places)
        return list(elements[: min(most, count.value)])

    def _descriptors(self, descriptor: c_void_p, attribute: Attribute, kind: int, most: int = 64) -> list[c_void_p]:
        """Descriptors that an attribute holds: cuDNN fills such as were made for it."""
        made = [self._empty(kind) for _ in range(most)]
        return made[: len(self._get(descriptor, attribute, most, *(each.value for each in made)))]


def packed(dimensions: Sequence[int]) -> tuple[int, ...]:
    """Strides of a tensor whose last dimension is contiguous, without gaps."""
    strides, step = [], 1
    for size in reversed(dimensions):
        strides.append(step)
        step *= size
    return tuple(reversed(strides))


def scratch(size: int) -> int:
    """Bytes to allocate for a workspace: at least one."""
    return max(size, 1)
