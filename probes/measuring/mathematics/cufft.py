"""cuFFT by the path of its library (cuFFT documentation)."""

from __future__ import annotations

from ctypes import byref, c_int, c_longlong, c_size_t, c_void_p

from ..measurement import Bench
from .common import MathLibrary

FORWARD, INVERSE = -1, 1

TYPES = {
    ("C2C", "fp32"): 0x29,
    ("R2C", "fp32"): 0x2A,
    ("C2R", "fp32"): 0x2C,
    ("C2C", "fp64"): 0x69,
    ("R2C", "fp64"): 0x6A,
    ("C2R", "fp64"): 0x6C,
}
"""Members of ``cufftType``; in double precision they are called Z2Z, D2Z and Z2D."""
_CALLS = {0x29: "C2C", 0x2A: "R2C", 0x2C: "C2R", 0x69: "Z2Z", 0x6A: "D2Z", 0x6C: "Z2D"}
_STATUSES = {
    1: "INVALID_PLAN",
    2: "ALLOC_FAILED",
    3: "INVALID_TYPE",
    4: "INVALID_VALUE",
    5: "INTERNAL_ERROR",
    6: "EXEC_FAILED",
    7: "SETUP_FAILED",
    8: "INVALID_SIZE",
    9: "UNALIGNED_DATA",
    10: "INCOMPLETE_PARAMETER_LIST",
    11: "INVALID_DEVICE",
    12: "PARSE_ERROR",
    13: "NO_WORKSPACE",
    14: "NOT_IMPLEMENTED",
    15: "LICENSE_ERROR",
    16: "NOT_SUPPORTED",
    17: "MISSING_DEPENDENCY",
    18: "NVRTC_FAILURE",
    19: "NVJITLINK_FAILURE",
    20: "NVSHMEM_FAILURE",
}
"""Members of ``cufftResult`` without their prefix; the library has no words of its own for them."""


class CuFft(MathLibrary):
    """The library."""

    prefix, statuses = "CUFFT_", _STATUSES

    def __init__(self, bench: Bench) -> None:
        super().__init__(bench, "cufft", "cuFFT", first=("nvJitLink",))


class Transform:
    """Transforms of the same size, one behind the other in memory; the caller gives the workspace."""

    def __init__(self, library: CuFft, lengths: tuple[int, ...], batch: int, form: str, kind: str) -> None:
        """``form`` is ``C2C``, ``R2C`` or ``C2R``; raise LibraryError where the library refuses."""
        self._library, self._type = library, TYPES[form, kind]
        self._plan, size = c_int(), c_size_t()
        library.ask("cufftCreate", byref(self._plan))
        library.ask("cufftSetAutoAllocation", self._plan, 0)
        each = c_longlong(1)
        sizes = (c_longlong * len(lengths))(*lengths)
        packed = (None, each, c_longlong(0))
        self._library.ask(
            "cufftMakePlanMany64",
            self._plan,
            len(lengths),
            sizes,
            *packed,
            *packed,
            self._type,
            c_longlong(batch),
            byref(size),
        )
        self.workspace = size.value

    def prepare(self, workspace: int, stream: int) -> None:
        self._library.ask("cufftSetWorkArea", self._plan, c_void_p(workspace))
        self._library.ask("cufftSetStream", self._plan, c_void_p(stream))

    def run(self, source: int, target: int, direction: int = FORWARD) -> None:
        """Queue it; only complex to complex has a direction of its own."""
        call = _CALLS[self._type]
        way = (direction,) if call in ("C2C", "Z2Z") else ()
        self._library.ask(f"cufftExec{call}", self._plan, c_void_p(source), c_void_p(target), *way)

    def close(self) -> None:
        """Destroy the plan."""
        self._library.function("cufftDestroy")(self._plan)
