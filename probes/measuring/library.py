"""A CUDA library by the path of its file, loaded without dying of it and called through ctypes."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from contextlib import suppress
from ctypes import byref, c_char_p, c_int
from typing import TYPE_CHECKING, Any, NamedTuple

from ..files.elf.info import elf_info
from .runtime import Fields, LibraryError, Unavailable

if TYPE_CHECKING:
    from .measurement import Bench  # which compiles kernels, and so needs this module


def check(path: str) -> None:
    """Raise OSError for a file that the loader refuses, or maps and then ends the process (one that is cut off)."""
    found = elf_info(path)
    if found and found.refused:
        raise OSError(f"{path}: {found.refused}")


def opened(name: str) -> ctypes.CDLL:
    """Load a library by its path, or by its name as the loader finds it; raise OSError where that cannot be."""
    check(name)
    return ctypes.CDLL(name)


class CudaLibrary:
    """The library of a family that the examined environment would load.

    A library that is not there raises Unavailable; one that cannot be loaded, or whose call fails, LibraryError.
    ``first`` names the families whose libraries it opens by name while it works: in the environment's process those are
    loaded already.
    """

    def __init__(self, bench: Bench, family: str, title: str, first: tuple[str, ...] = (), path: str = "") -> None:
        paths = [path] if path else bench.libraries.get(family, [])
        if not paths:
            raise Unavailable(f"no {title} was found: neither the examined environment nor a toolkit holds one")
        self.family, self.title, self.path = family, title, paths[0]
        file = self.path
        try:
            for file in (found[0] for each in first if (found := bench.libraries.get(each))):
                check(file)
                with suppress(OSError):  # what the library cannot do without it, its own calls say
                    ctypes.CDLL(file)
            file = self.path
            self._library = opened(file)
        except OSError as error:
            raise LibraryError(f"{title} cannot be loaded: {error}", file) from error

    @property
    def version(self) -> str:
        """``12.0.4``."""
        raise NotImplementedError

    def facts(self, unit: str, *words: str) -> Fields:
        """What a measurement says of the library; ``words`` are further ones of its detail."""
        detail = ", ".join((f"{self.title} {self.version}", *words))
        return {"unit": unit, "method": self.family, "detail": detail, "library": self.path}

    def offers(self, function: str) -> bool:
        return hasattr(self._library, function)

    def function(self, name: str) -> Any:
        """A function as ctypes has it; raise Unavailable where this release has none of that name."""
        try:
            return getattr(self._library, name)
        except AttributeError:
            raise Unavailable(f"this release of {self.title} has no {name}") from None

    def ask(self, name: str, *arguments: object) -> None:
        """Call a function that returns a status; raise LibraryError where that is not 0."""
        status = int(self.function(name)(*arguments))
        if status != 0:
            raise LibraryError(f"{name}: {self.describe(status)}", self.path)

    def describe(self, status: int) -> str:
        """A status in the library's own words, with its number."""
        return f"status {status}"


DATA_TYPES = {"fp32": 0, "fp64": 1, "fp16": 2, "int8": 3, "int32": 10, "bf16": 14, "fp8": 28}  # Of ``cudaDataType``
ROW_ORDER = 2  # Member of ``cusparseOrder_t``


class MathFamily(NamedTuple):
    """A library whose functions begin with the name of its family."""

    title: str
    prefix: str  # What the names of its statuses begin with
    statuses: Mapping[int, str]  # The names by number, without the prefix: most releases have no own words for them
    first: tuple[str, ...] = ()  # As of ``CudaLibrary``


_OF_CUSPARSE = {
    1: "NOT_INITIALIZED", 2: "ALLOC_FAILED", 3: "INVALID_VALUE", 4: "ARCH_MISMATCH", 5: "MAPPING_ERROR",
    6: "EXECUTION_FAILED", 7: "INTERNAL_ERROR", 8: "MATRIX_TYPE_NOT_SUPPORTED", 9: "ZERO_PIVOT", 10: "NOT_SUPPORTED",
    11: "INSUFFICIENT_RESOURCES",
}  # fmt: skip
"""Members of ``cusparseStatus_t``, which cuSPARSELt returns too."""
FAMILIES = {
    "cufft": MathFamily("cuFFT", "CUFFT_", {
        1: "INVALID_PLAN", 2: "ALLOC_FAILED", 3: "INVALID_TYPE", 4: "INVALID_VALUE", 5: "INTERNAL_ERROR",
        6: "EXEC_FAILED", 7: "SETUP_FAILED", 8: "INVALID_SIZE", 9: "UNALIGNED_DATA", 10: "INCOMPLETE_PARAMETER_LIST",
        11: "INVALID_DEVICE", 12: "PARSE_ERROR", 13: "NO_WORKSPACE", 14: "NOT_IMPLEMENTED", 15: "LICENSE_ERROR",
        16: "NOT_SUPPORTED", 17: "MISSING_DEPENDENCY", 18: "NVRTC_FAILURE", 19: "NVJITLINK_FAILURE",
        20: "NVSHMEM_FAILURE",
    }, ("nvJitLink",)),
    "curand": MathFamily("cuRAND", "CURAND_STATUS_", {
        100: "VERSION_MISMATCH", 101: "NOT_INITIALIZED", 102: "ALLOCATION_FAILED", 103: "TYPE_ERROR",
        104: "OUT_OF_RANGE", 105: "LENGTH_NOT_MULTIPLE", 106: "DOUBLE_PRECISION_REQUIRED", 201: "LAUNCH_FAILURE",
        202: "PREEXISTING_FAILURE", 203: "INITIALIZATION_FAILED", 204: "ARCH_MISMATCH", 999: "INTERNAL_ERROR",
    }),
    "cusolver": MathFamily("cuSOLVER", "CUSOLVER_STATUS_", {
        1: "NOT_INITIALIZED", 2: "ALLOC_FAILED", 3: "INVALID_VALUE", 4: "ARCH_MISMATCH", 5: "MAPPING_ERROR",
        6: "EXECUTION_FAILED", 7: "INTERNAL_ERROR", 8: "MATRIX_TYPE_NOT_SUPPORTED", 9: "NOT_SUPPORTED",
        10: "ZERO_PIVOT", 11: "INVALID_LICENSE", 31: "INVALID_WORKSPACE",
    }, ("nvJitLink", "cublasLt", "cublas", "cusparse")),
    "cusparse": MathFamily("cuSPARSE", "CUSPARSE_STATUS_", _OF_CUSPARSE, ("nvJitLink",)),
    "cusparseLt": MathFamily("cuSPARSELt", "CUSPARSE_STATUS_", _OF_CUSPARSE, ("nvJitLink", "cusparse")),
}  # fmt: skip
"""The statuses are the members of ``cufftResult``, ``curandStatus_t`` and ``cusolverStatus_t``."""


class MathLibrary(CudaLibrary):
    """A library of ``FAMILIES``."""

    def __init__(self, bench: Bench, family: str) -> None:
        self._row = FAMILIES[family]
        super().__init__(bench, family, self._row.title, self._row.first)

    @property
    def version(self) -> str:
        parts = [c_int() for _ in range(3)]
        for number, part in enumerate(parts):
            self.ask(f"{self.family}GetProperty", number, byref(part))
        return ".".join(str(part.value) for part in parts)

    def describe(self, status: int) -> str:
        """``CUSPARSE_STATUS_ARCH_MISMATCH (4): architecture mismatch``, by its own functions if it has them."""
        name = self._error_text(f"{self.family}GetErrorName", status)
        if not name and status in self._row.statuses:
            name = f"{self._row.prefix}{self._row.statuses[status]}"
        known = f"{name} ({status})" if name else f"status {status}"
        meaning = self._error_text(f"{self.family}GetErrorString", status)
        return f"{known}: {meaning}" if meaning else known

    def _error_text(self, function: str, status: int) -> str:
        if not self.offers(function):
            return ""
        called = self.function(function)
        called.restype = c_char_p
        return (called(status) or b"").decode("utf-8", "replace")
