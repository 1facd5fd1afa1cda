"""cuBLASLt by the path of its library: the products that it has an algorithm for, and their execution.

Called through ctypes: the bindings of nvmath-python bring NumPy and choose the library themselves, while here it is the
one file that the examined environment would load, of whatever version (cuBLAS documentation, "Using the cublasLt API").
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from ctypes import byref, c_double, c_float, c_int, c_int32, c_size_t, c_uint64, c_void_p
from dataclasses import dataclass
from typing import Any

from .library import DATA_TYPES, opened
from .runtime import Unavailable

WORKSPACE = 64 << 20
CHOICES = 8

_COMPUTE = {"32f": 68, "32f_tf32": 77, "64f": 70, "32i": 72}  # Members of ``cublasComputeType_t``
_TRANSPOSE_LEFT, _SCALE_LEFT, _SCALE_RIGHT, _FAST_ACCUMULATION = 3, 17, 18, 25
"""Members of ``cublasLtMatmulDescAttributes_t``."""
_MOST_WORKSPACE = 1
_CONFIGURATION: tuple[tuple[int, Any], ...] = (
    *((attribute, c_int32) for attribute in range(7)),
    *((attribute, ctypes.c_uint16) for attribute in (7, 8)),
)
"""Members of ``cublasLtMatmulAlgoConfigAttributes_t``: id, tile, split-K, reduction, swizzling, custom option, stages;
inner shape and cluster shape."""
_TRANSPOSED = 1
_SCALARS: dict[str, Any] = {"fp64": c_double, "fp32": c_float, "int32": c_int32}


class Heuristic(ctypes.Structure):
    """``cublasLtMatmulHeuristicResult_t``."""

    _fields_ = (
        ("algorithm", c_uint64 * 8), ("workspace", c_size_t), ("state", c_int), ("waves", c_float),
        ("reserved", c_int * 4),
    )  # fmt: skip


@dataclass(frozen=True)
class Kind:
    """The types of a product."""

    operands: str
    result: str
    compute: str
    scale: str
    fast: bool = False  # FP8: accumulate in the tensor core's own, shorter registers


class CublasLt:
    """The library; raises Unavailable when it cannot be used."""

    def __init__(self, path: str) -> None:
        try:
            self._library = opened(path)
        except OSError as error:
            raise Unavailable(f"cuBLASLt cannot be loaded: {error}") from error
        if not hasattr(self._library, "cublasLtMatmulAlgoGetHeuristic"):
            raise Unavailable(f"{path} is not a cuBLASLt that proposes algorithms")
        self.path = path
        self._library.cublasLtGetVersion.restype = c_size_t
        self.handle = c_void_p()
        self.ask("cublasLtCreate", byref(self.handle))

    @property
    def version(self) -> str:
        """``13.1.0``: major, minor and patch; since CUDA 12 the number is major * 10000 + minor * 100 + patch."""
        number = int(self._library.cublasLtGetVersion())
        return f"{number // 10000}.{number // 100 % 100}.{number % 100}"

    def function(self, name: str) -> Any:
        """A function as ctypes has it; None where this release has none of that name."""
        return getattr(self._library, name, None)

    def ask(self, name: str, *arguments: object) -> None:
        """Call a function; raise Unavailable with its status when it fails."""
        status = int(getattr(self._library, name)(*arguments))
        if status != 0:
            raise Unavailable(f"{name} of cuBLASLt {self.version}: status {status}")


class Product:
    """``result = left . right``; see ``kernels/gemm.cu`` for how the operands lie.

    In the layout ``TN`` both have K contiguous, in ``NN`` the left one has M contiguous.
    """

    def __init__(
        self, library: CublasLt, kind: Kind, shape: tuple[int, int, int], unit_scale: int, layout: str = "TN"
    ) -> None:
        """``unit_scale`` is the address of a float 1.0 on the GPU, which FP8 wants."""
        m, n, k = shape
        self.layout = layout
        self._library = library
        self._scalar = _SCALARS[kind.scale]
        self._description = c_void_p()
        library.ask(
            "cublasLtMatmulDescCreate", byref(self._description), _COMPUTE[kind.compute], DATA_TYPES[kind.scale]
        )
        if layout == "TN":
            self._set(_TRANSPOSE_LEFT, c_int32(_TRANSPOSED))
        if kind.operands == "fp8":
            self._set(_SCALE_LEFT, c_void_p(unit_scale))
            self._set(_SCALE_RIGHT, c_void_p(unit_scale))
            self._set(_FAST_ACCUMULATION, ctypes.c_int8(kind.fast))
        self._left = self._layout(kind.operands, *((k, m) if layout == "TN" else (m, k)))
        self._right = self._layout(kind.operands, k, n)
        self._result = self._layout(kind.result, m, n)

    def _set(self, attribute: int, value: Any) -> None:
        self._library.ask(
            "cublasLtMatmulDescSetAttribute", self._description, attribute, byref(value), c_size_t(ctypes.sizeof(value))
        )

    def _layout(self, kind: str, rows: int, columns: int) -> c_void_p:
        layout, sizes = c_void_p(), (c_uint64(rows), c_uint64(columns), ctypes.c_int64(rows))
        self._library.ask("cublasLtMatrixLayoutCreate", byref(layout), DATA_TYPES[kind], *sizes)
        return layout

    def algorithms(self) -> Iterator[Heuristic]:
        """What cuBLASLt proposes, best first by its own estimate; raise Unavailable when it has nothing."""
        preference, found = c_void_p(), c_int()
        proposals = (Heuristic * CHOICES)()
        self._library.ask("cublasLtMatmulPreferenceCreate", byref(preference))
        most = c_size_t(WORKSPACE)
        self._library.ask("cublasLtMatmulPreferenceSetAttribute", preference, _MOST_WORKSPACE, byref(most), c_size_t(8))
        layouts = (self._left, self._right, self._result, self._result)
        before = (self._library.handle, self._description, *layouts)
        self._library.ask("cublasLtMatmulAlgoGetHeuristic", *before, preference, CHOICES, proposals, byref(found))
        yield from (proposal for proposal in proposals[: found.value] if proposal.state == 0)

    def named(self, algorithm: Heuristic) -> str | None:
        """``TN 66-20-1-0-0-0-35-0-2``: layout and configuration; None where this release does not tell it."""
        read = self._library.function("cublasLtMatmulAlgoConfigGetAttribute")
        if read is None:
            return None
        numbers = []
        for attribute, kind in _CONFIGURATION:
            value, size = kind(), c_size_t(ctypes.sizeof(kind))
            status = read(byref(algorithm.algorithm), attribute, byref(value), size, byref(c_size_t()))
            numbers.append("?" if status else str(value.value))
        return None if numbers[0] == "?" else f"{self.layout} {'-'.join(numbers)}"

    def run(self, algorithm: Heuristic, addresses: tuple[int, int, int], workspace: int, stream: int) -> None:
        """Queue it; ``addresses`` are those of left, right and result."""
        left, right, result = (c_void_p(address) for address in addresses)
        one, zero = self._scalar(1), self._scalar(0)
        operands = (byref(one), left, self._left, right, self._right)
        results = (byref(zero), result, self._result, result, self._result)
        how = (byref(algorithm.algorithm), c_void_p(workspace), c_size_t(WORKSPACE), c_void_p(stream))
        self._library.ask("cublasLtMatmul", self._library.handle, self._description, *operands, *results, *how)


# The precisions of matrix products: their types in cuBLASLt and in ``kernels/gemm.cu``, and their rounding.


@dataclass(frozen=True)
class GemmPrecision:
    """One precision and what rounding it allows; the epsilons are units in the last place, relative to one."""

    kind: Kind
    code: int  # ``KIND`` of the kernels
    result_code: int  # ``RESULT`` of the kernels
    size: int  # Bytes of an operand's element
    result_size: int
    input_epsilon: float  # Rounding of the operands inside the tensor core
    sum_epsilon: float  # Rounding of the accumulator
    result_epsilon: float
    least: tuple[int, int]  # First compute capability that has it
    layouts: tuple[str, ...] = ("TN",)  # Ways in which the operands may lie; the fastest is taken (``Product``)


BOTH = ("TN", "NN")  # On an H200 cuBLASLt is up to 3 % faster with NN in FP64 and TF32, and nowhere else

PRECISIONS = {
    "fp64": GemmPrecision(Kind("fp64", "fp64", "64f", "fp64"), 0, 0, 8, 8, 0, 2**-53, 2**-53, (5, 0), BOTH),
    "fp32": GemmPrecision(Kind("fp32", "fp32", "32f", "fp32"), 1, 1, 4, 4, 0, 2**-24, 2**-24, (5, 0)),
    "tf32": GemmPrecision(Kind("fp32", "fp32", "32f_tf32", "fp32"), 1, 1, 4, 4, 2**-10, 2**-22, 2**-24, (8, 0), BOTH),
    "fp16": GemmPrecision(Kind("fp16", "fp16", "32f", "fp32"), 2, 2, 2, 2, 0, 2**-22, 2**-11, (5, 3)),
    "bf16": GemmPrecision(Kind("bf16", "bf16", "32f", "fp32"), 3, 3, 2, 2, 0, 2**-22, 2**-8, (8, 0)),
    "fp8": GemmPrecision(Kind("fp8", "bf16", "32f", "fp32", fast=True), 4, 3, 1, 2, 0, 2**-13, 2**-8, (8, 9)),
    "int8": GemmPrecision(Kind("int8", "int32", "32i", "int32"), 5, 5, 1, 4, 0, 0, 0, (6, 1)),
}
"""By the matrix's names. Tensor cores keep a few bits fewer than FP32 while they add, Hopper's FP8 ones about 14."""
