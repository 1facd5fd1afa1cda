"""The CUDA libraries in a trial's memory map, and the versions that they answer."""

from __future__ import annotations

import ctypes
import os
from typing import Any, Callable

from ..common.library_names import family_of
from ..common.system import mapped_files

# The version that a library of CUDA answers when its own version function is called.
#
# Signatures and the way in which each number is put together are those of the libraries' headers and reference pages:
# ``cublasGetProperty(libraryPropertyType, int *)`` and its like (library_types.h: 0 major, 1 minor, 2 patch),
# ``cudnnGetVersion()`` (1000 · major up to 8, 10000 · major from 9 on), ``ncclGetVersion(int *)`` (1000 · major up to
# 2.8, 10000 from 2.9 on), ``getInferLibVersion()`` (1000 · major up to 9, 10000 from 10 on), ``cutensorGetVersion()``
# (10000 · major), ``nvrtcVersion(int *, int *)``, ``nvJitLinkVersion(unsigned *, unsigned *)``,
# ``cudaRuntimeGetVersion(int *)`` (1000 · major + 10 · minor), ``magma_version(int *, int *, int *)``,
# ``nvshmemx_vendor_get_version_info(int *, int *, int *)``.

Ask = Callable[[Any], Any]  # What a loaded library answers: its version as text, or None


def version_of_loaded(path: str, family: str) -> str | None:
    """What the library answers that this process has loaded from ``path``; None when it cannot be asked."""
    try:
        return version_of_file(path, family, getattr(os, "RTLD_NOLOAD", 0) | os.RTLD_LAZY)
    except OSError:
        return None


def version_of_file(path: str, family: str, mode: int = os.RTLD_LAZY) -> str | None:
    """What the library at ``path`` answers once it is loaded; raise OSError when it cannot be loaded."""
    ask = _ASKS.get(family)
    if ask is None:
        return None
    library = ctypes.CDLL(path, mode=mode)
    try:
        answer: str | None = ask(library)
    except (AttributeError, ValueError, ctypes.ArgumentError):
        return None
    return answer


def can_be_asked(family: str) -> bool:
    """Whether libraries of that family have a version function that is known here."""
    return family in _ASKS


def decode(number: int, since_ten_thousands: int) -> str | None:
    """``8902`` as ``8.9.2``, ``91002`` as ``9.10.2``: from that major version on, a major counts 10000 instead of 1000.

    A number below 10000 can only be of the older scheme.
    """
    if number <= 0:
        return None
    unit = 10000 if number >= since_ten_thousands * 10000 else 1000
    return f"{number // unit}.{number % unit // 100}.{number % 100}"


def _property(name: str) -> Ask:
    def ask(library: Any) -> str | None:
        parts = []
        for part in range(3):
            value = ctypes.c_int(-1)
            if getattr(library, name)(ctypes.c_int(part), ctypes.byref(value)) != 0 or value.value < 0:
                return None
            parts.append(str(value.value))
        return ".".join(parts)

    return ask


def _written(library: Any, name: str, count: int, kind: Any = ctypes.c_int) -> list[int]:
    values = [kind(0) for _ in range(count)]
    getattr(library, name)(*map(ctypes.byref, values))
    return [int(value.value) for value in values]


def _joined(name: str, count: int, kind: Any = ctypes.c_int) -> Ask:
    def ask(library: Any) -> str | None:
        numbers = _written(library, name, count, kind)
        return ".".join(map(str, numbers)) if any(numbers) else None

    return ask


def _returned(name: str, kind: Any, since_ten_thousands: int) -> Ask:
    def ask(library: Any) -> str | None:
        function = getattr(library, name)
        function.restype = kind
        return decode(int(function()), since_ten_thousands)

    return ask


def _runtime(library: Any) -> str | None:
    (number,) = _written(library, "cudaRuntimeGetVersion", 1)
    return f"{number // 1000}.{number % 1000 // 10}" if number > 0 else None


_ASKS: dict[str, Ask] = {
    **{
        name: _property(f"{name}GetProperty")
        for name in ("cublas", "cublasLt", "cusparse", "cusparseLt", "cusolver", "cufft", "curand")
    },
    "cudart": _runtime,
    "nvrtc": _joined("nvrtcVersion", 2),
    "nvJitLink": _joined("nvJitLinkVersion", 2, ctypes.c_uint),
    "nccl": lambda library: decode(_written(library, "ncclGetVersion", 1)[0], 2),
    **dict.fromkeys(("cudnn", "cudnn_graph", "cudnn_ops_infer"), _returned("cudnnGetVersion", ctypes.c_size_t, 9)),
    "cutensor": _returned("cutensorGetVersion", ctypes.c_size_t, 1),
    **dict.fromkeys(("nvinfer", "nvinfer_lean", "nvinfer_dispatch"), _returned("getInferLibVersion", ctypes.c_int, 10)),
    "nvonnxparser": _returned("getNvOnnxParserVersion", ctypes.c_int, 10),
    "nvshmem_host": _joined("nvshmemx_vendor_get_version_info", 3),
    "magma": _joined("magma_version", 3),
}

# The CUDA libraries that this process has in its memory map.

_ANSWERS = frozenset({"cudnn_graph", "cudnn_ops_infer"})
"""The parts of cuDNN that know its version (and, before release 8, the whole of it did)."""


def loaded_libraries() -> list[dict[str, Any]]:
    """The CUDA libraries in the map as ``Loaded``, with the versions that they answer.

    The map is read first, and nothing is asked that would load more: ``libcudnn.so`` passes the question on to a part
    of itself, and ends the process when it cannot load that.
    """
    named = [(path, name.family) for path in mapped_files() for name in [family_of(os.path.basename(path))] if name]
    cudnn_version_is_loaded = any(family in _ANSWERS for _, family in named)
    records: list[dict[str, Any]] = []
    for path, family in named:
        text = os.path.realpath(path).encode("utf-8", "surrogateescape").decode("utf-8", "replace")
        record: dict[str, Any] = {"path": text, "family": family, "source": "memory map"}
        version = version_of_loaded(path, family) if family != "cudnn" or cudnn_version_is_loaded else None
        if version:
            record.update(version=version, read={"version": "the library itself"})
        records.append(record)
    return records
