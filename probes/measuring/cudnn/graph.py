"""cuDNN's graph API: operations on tensors, the engines that the heuristics propose for them, and their execution.

Names and numbers are those of ``cudnn_graph_v9.h`` (cuDNN 9) and ``cudnn_backend_v8.h`` (cuDNN 8), which agree. A
descriptor is made, given its attributes, and finished; then it takes no more (cuDNN documentation, "Graph API").
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from ctypes import byref, c_bool, c_double, c_float, c_int, c_int64, c_void_p
from dataclasses import dataclass
from types import TracebackType
from typing import Any, NamedTuple

from ..runtime import LibraryError
from .library import TYPES, Cudnn, IncompleteError, NotSupported

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

MODE_A, MODE_B, FALLBACK = 3, 1, 2
"""Members of ``cudnnBackendHeurMode_t``."""
TENSOR_CORE, DOWN_CONVERT = 0, 1
"""Members of ``cudnnBackendNumericalNote_t``."""
_ALIGNMENT = 16

Values = Mapping[Attribute, Any]
"""An attribute's value, or a sequence of them."""


@dataclass(frozen=True)
class Tensor:
    """A tensor as an operation sees it; a virtual one exists only between two of them, one by value on the host."""

    number: int
    """Its unique ID."""
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
    notes: frozenset[int]
    """``cudnnBackendNumericalNote_t``."""


@dataclass(frozen=True)
class GraphPlan:
    """A proposal that is ready to run."""

    descriptor: c_void_p
    proposal: Proposal
    workspace: int
    """Bytes."""


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
        said: NotSupported | LibraryError | None = None
        for proposal in proposals:
            try:
                plan = self.plan(proposal)
            except IncompleteError:
                raise
            except (NotSupported, LibraryError) as error:
                said = said if isinstance(said, LibraryError) else error
                continue
            yield plan
            found += 1
            if found == most:
                return
        if not found:
            nothing = NotSupported(f"cuDNN {self._library.version} has no engine for this on this GPU")
            raise said or next(iter(self._refusals), nothing)

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
