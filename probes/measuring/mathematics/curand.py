"""cuRAND by the path of its library: its host API with results on the GPU (cuRAND documentation)."""

from __future__ import annotations

from ctypes import byref, c_double, c_float, c_size_t, c_ulonglong, c_void_p
from typing import Any

from ..arrays import Array
from ..measurement import Bench
from .common import MathLibrary

GENERATORS = {"XORWOW": 101, "MTGP32": 141, "Philox": 161}
"""Members of ``curandRngType_t``."""
_STATUSES = {
    100: "VERSION_MISMATCH",
    101: "NOT_INITIALIZED",
    102: "ALLOCATION_FAILED",
    103: "TYPE_ERROR",
    104: "OUT_OF_RANGE",
    105: "LENGTH_NOT_MULTIPLE",
    106: "DOUBLE_PRECISION_REQUIRED",
    201: "LAUNCH_FAILURE",
    202: "PREEXISTING_FAILURE",
    203: "INITIALIZATION_FAILED",
    204: "ARCH_MISMATCH",
    999: "INTERNAL_ERROR",
}
"""Members of ``curandStatus_t`` without their prefix; the library has no words of its own for them."""


class CuRand(MathLibrary):
    """The library."""

    prefix, statuses = "CURAND_STATUS_", _STATUSES

    def __init__(self, bench: Bench) -> None:
        super().__init__(bench, "curand", "cuRAND")


class Generator:
    """A generator on the bench's stream."""

    def __init__(self, library: CuRand, bench: Bench, name: str, seed: int) -> None:
        self._library, self._generator = library, c_void_p()
        library.ask("curandCreateGenerator", byref(self._generator), GENERATORS[name])
        library.ask("curandSetStream", self._generator, c_void_p(int(bench.device.stream)))
        library.ask("curandSetPseudoRandomGeneratorSeed", self._generator, c_ulonglong(seed))

    def fill(self, target: Array, law: str) -> None:
        """Queue the filling of an array: ``uniform`` in (0, 1], or standard ``normal``."""
        double = target.kind == "fp64"
        number: Any = c_double if double else c_float
        function = f"curandGenerate{law.capitalize()}{'Double' if double else ''}"
        shape = (number(0.0), number(1.0)) if law == "normal" else ()
        self._library.ask(function, self._generator, c_void_p(target.address), c_size_t(target.count), *shape)

    def close(self) -> None:
        """Destroy it."""
        self._library.function("curandDestroyGenerator")(self._generator)
