"""The version that a library would report, read from its file: exported data, constants in code, strings."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from ...common.lazy import lazy_pattern
from ..elf.exported import Exports, constants, stored_through_argument
from ..elf.library import Elf, ElfError

WIDE = 10_000
NARROW = 1_000
"""Factor of the major version. Releases up to cuDNN 8, NCCL 2.8 and TensorRT 8 use the narrow one, newer ones the wide
one; cuFFT, cuRAND, cuSOLVER and cuSPARSE stayed with the narrow one."""
_MOST_OF_NARROW = 2_100  # No release with the narrow factor reached a minor version of 21


def release(number: int, major: int | None = None) -> str | None:
    """``8902`` is 8.9.2, ``91002`` is 9.10.2, ``22105`` is 2.21.5; None for no such number.

    ``major`` (of the library's soname) settles which factor was used. Without it the size of the number does, which
    holds for cuDNN, NCCL, TensorRT and cuTENSOR.
    """
    wide = number >= WIDE if major is None else number // WIDE == major
    first = number // (WIDE if wide else NARROW) if major is None else major
    rest = number - first * (WIDE if wide else NARROW)
    if first < 1 or not 0 <= rest < (WIDE if wide else _MOST_OF_NARROW):
        return None
    return f"{first}.{rest // 100}.{rest % 100}"


def cuda(number: int) -> str | None:
    """``12040`` is 12.4, as ``cudaRuntimeGetVersion`` and ``cudnnGetCudartVersion`` count."""
    return None if number < 2 * NARROW or number % 10 else f"{number // NARROW}.{number % NARROW // 10}"


def packed(number: int) -> str | None:
    """``0x090100`` is 9.1.0: a byte for each part, as cuDNN's parts export it."""
    first, second, third = number >> 16, number >> 8 & 0xFF, number & 0xFF
    return f"{first}.{second}.{third}" if 1 <= first <= 0xFF else None


# Read the version that a library would report from its file.
#
# Nothing is run. What was looked at, and is asked here:
#
# - cuDNN's parts export a number (``cudnn_ops_infer_version`` …) or hold one in ``cudnn…VersionCheck``;
#   ``libcudnn.so`` itself, from release 8 on, asks ``libcudnn_graph`` or ``libcudnn_ops_infer`` beside it.
# - cuBLASLt, cuFFT, cuRAND, cuSOLVER, cuSPARSE, cuTENSOR, CUPTI, NCCL and TensorRT return constants from
#   ``…GetVersion``; cuBLAS only passes cuBLASLt's on. cuDNN and cuTENSOR tell for which CUDA they were built
#   (``…GetCudartVersion``). So does cuBLASLt, but its build for CUDA 12.4 says 12.3.
# - NVRTC, nvJitLink and NVSHMEM store two or three numbers; nvJitLink before 12.3 tells by the names of its functions.
# - libcudart stores its number in an inner function, the only short one that stores a number of that form.
# - NCCL holds ``NCCL version 2.21.5+cuda12.4``, cuFile one text of four numbers.


_MINORS = 32  # Most minor releases of one CUDA major version
_MOST_OF_CUDA = 60_000  # The largest number that can be a CUDA version


class LibraryVersion(NamedTuple):
    """The version in the file; None if there is none, or it is ambiguous."""

    version: str | None = None
    cuda: str | None = None  # The CUDA version that it was built with


class _Library:
    """An open library and the first number of its soname."""

    def __init__(self, elf: Elf, major: int) -> None:
        self.elf = elf
        self.major = major
        self._exports = Exports(elf)

    def number(self, name: str) -> int | None:
        """A 32-bit number that it exports as data."""
        place = self._exports.find(name)
        raw = self.elf.read(place.offset, 4) if place else b""
        little = self.elf.header.order == "<"
        return int.from_bytes(raw, "little" if little else "big") if len(raw) == 4 else None

    def exports(self, name: str) -> bool:
        return self._exports.find(name) is not None

    def constants(self, name: str) -> list[int]:
        """The constants in the code of a function."""
        place = self._exports.find(name)
        if place is None:
            return []
        return constants(self.elf.read(place.offset, min(place.size, 2048)), self.elf.machine)

    def section(self, name: str) -> bytes:
        offset, size = self.elf.sections.get(name, (0, 0))
        return self.elf.read(offset, min(size, 4 << 20))


def _only_one(found: set[str]) -> str | None:
    return found.pop() if len(found) == 1 else None


def _release(library: _Library, function: str) -> str | None:
    numbers = library.constants(function)
    return _only_one({text for number in numbers if (text := release(number, library.major)) is not None})


def _returned(function: str, cudart: str = "", *, data: str = "") -> Callable[[_Library], LibraryVersion]:
    """The version that it exports as ``data``, else that which a function returns; and the CUDA of ``cudart``."""

    def read(library: _Library) -> LibraryVersion:
        number = library.number(data) if data else None
        version = packed(number) if number is not None and number >> 16 == library.major else None
        version = version or _release(library, function)
        # The code of ``cudart`` also contains the library's version, for messages.
        called = library.constants(cudart) if cudart else ()
        numbers = [each for each in called if release(each, library.major) != version]
        return LibraryVersion(
            version, _only_one({text for each in numbers if each < _MOST_OF_CUDA and (text := cuda(each))})
        )

    return read


def _stored(function: str, count: int) -> Callable[[_Library], LibraryVersion]:
    """The version from the first numbers that a function stores."""

    def read(library: _Library) -> LibraryVersion:
        parts = library.constants(function)[:count]
        fits = len(parts) == count and parts[0] == library.major and max(parts) < 1000
        return LibraryVersion(".".join(map(str, parts)) if fits else None)

    return read


def _cudart(library: _Library) -> LibraryVersion:
    numbers = stored_through_argument(library.section(".text"), library.elf.machine)
    texts = {text for number in numbers if (text := cuda(number)) and text.split(".")[0] == str(library.major)}
    return LibraryVersion(_only_one(texts))


def _cupti(library: _Library) -> LibraryVersion:
    """CUPTI's version: the first two of three parts are CUDA's; the third is not in the package's version."""
    version = _release(library, "cuptiGetVersion")
    return LibraryVersion(version.rpartition(".")[0] if version else None)


_NCCL_TEXT = lazy_pattern(rb"NCCL version (\d+\.\d+\.\d+)[^+\0]{0,20}\+cuda(\d+\.\d+)")


def _nccl(library: _Library) -> LibraryVersion:
    match = _NCCL_TEXT.search(library.section(".rodata"))
    version = match[1].decode() if match else _release(library, "ncclGetVersion")
    return LibraryVersion(version, match[2].decode() if match else None)


def _cufile(library: _Library) -> LibraryVersion:
    """The version of cuFile: the only string of four numbers, searched by its dots, which are rarer than digits."""
    data = library.section(".rodata")
    found: set[str] = set()
    for match in re.finditer(rb"\.\d{1,4}\.\d{1,4}\.\d{1,4}\0", data):
        first = re.search(rb"(?:^|[^\d.])(\d{1,4})$", data[max(match.start() - 8, 0) : match.start()])
        if first:
            found.add((first[1] + match[0][:-1]).decode())
    return LibraryVersion(_only_one(found))


def _tensorrt(library: _Library) -> LibraryVersion:
    version = _release(library, "getInferLibVersion")
    build = library.constants("getInferLibBuildVersion")
    return LibraryVersion(f"{version}.{build[0]}" if version and len(build) == 1 and build[0] < 10_000 else version)


def _nvjitlink(library: _Library) -> LibraryVersion:
    """The version of nvJitLink; before 12.3, by its functions, whose names have the numbers of all releases so far."""
    stored = _stored("nvJitLinkVersion", 2)(library)
    if stored.version is not None:
        return stored
    minors = [minor for minor in range(_MINORS) if library.exports(f"__nvJitLinkCreate_{library.major}_{minor}")]
    return LibraryVersion(f"{library.major}.{minors[-1]}" if minors else None)


_READERS: dict[str, Callable[[_Library], LibraryVersion]] = {
    "cudart": _cudart, "cupti": _cupti, "nccl": _nccl, "nvJitLink": _nvjitlink, "cufile": _cufile,
    **{name: _returned(f"{name}GetVersion") for name in ("cublasLt", "cufft", "curand", "cusolver", "cusparse")},
    "cutensor": _returned("cutensorGetVersion", "cutensorGetCudartVersion"),
    "cudnn": _returned("cudnnGetVersion", "cudnnGetCudartVersion"),
    "cudnn_graph": _returned("cudnnGetVersion", "cudnnGetCudartVersion", data="cudnn_graph_version"),
    "cudnn_ops": _returned("cudnnOpsVersionCheck", data="cudnn_ops_infer_version"),
    "cudnn_adv": _returned("cudnnAdvVersionCheck", data="cudnn_adv_infer_version"),
    "cudnn_cnn": _returned("cudnnCnnVersionCheck"),
    "cudnn_ops_infer": _returned("cudnnOpsInferVersionCheck", "cudnnGetCudartVersion", data="cudnn_ops_infer_version"),
    "cudnn_cnn_infer": _returned("cudnnCnnInferVersionCheck", data="cudnn_cnn_infer_version"),
    "cudnn_adv_infer": _returned("cudnnAdvInferVersionCheck", data="cudnn_adv_infer_version"),
    "cudnn_ops_train": _returned("cudnnOpsTrainVersionCheck", data="cudnn_ops_train_version"),
    "cudnn_cnn_train": _returned("cudnnCnnTrainVersionCheck", data="cudnn_cnn_train_version"),
    "cudnn_adv_train": _returned("cudnnAdvTrainVersionCheck", data="cudnn_adv_train_version"),
    **dict.fromkeys(("nvinfer", "nvinfer_lean", "nvinfer_dispatch"), _tensorrt),
    "nvrtc": _stored("nvrtcVersion", 2), "magma": _stored("magma_version", 3),
    "nvshmem_host": _stored("nvshmemx_vendor_get_version_info", 3),
}  # fmt: skip

ASKS_BESIDE = {"cudnn": ("libcudnn_graph.so", "libcudnn_ops_infer.so")}
"""Families whose version is in another file of the same folder: the beginning of that file's name."""


def answer(place: str, family: str, soname: str | None) -> LibraryVersion:
    """The version in the file at ``place`` (on the running system); never raises for its contents."""
    major = re.search(r"\.so\.(\d{1,4})", soname or "")
    reader = _READERS.get(family)
    if reader is None or major is None:
        return LibraryVersion()
    try:
        with Elf(place) as elf:
            return reader(_Library(elf, int(major[1])))
    except (ElfError, ValueError):
        return LibraryVersion()
