"""Recognise the libraries of CUDA's families by their file names.

Family names, and the folders of NVIDIA's wheels (``cuda_libraries/search.py``), were compared with the catalogue of
NVIDIA's cuda-pathfinder. auditwheel adds eight hexadecimal digits of a hash to file names
(``libcudart-d0da41ae.so.11.0``).
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from .lazy import lazy_pattern


class LibraryFamily(NamedTuple):
    """The part of a row of ``families.toml`` that probes need; a test compares them."""

    name: str
    files: str  # A regular expression for what stands between ``lib`` and ``.so``
    numbered: str  # The first number of a soname is CUDA's major (``cuda``), its ``own``, or, of a file, ``apart``
    wheel: str = ""
    """``nvidia-WHEEL`` and ``nvidia-WHEEL-cuNN``, where the first number of its version is that of its ``sonames``."""
    sonames: tuple[str, ...] = ()
    part: str = ""  # In a toolkit's ``version.json``; else ``lib`` and the name
    owners: str = ""  # The beginnings of the names of packages that provide it; by default its own name


FAMILIES = (
    LibraryFamily("cudart", "cudart", "cuda", wheel="cuda-runtime", sonames=("cudart",), part="cuda_cudart",
        owners="cuda-runtime|cuda-cudart|cudart"),
    LibraryFamily("nvrtc", r"nvrtc(?:-builtins)?(?:\.alt)?", "cuda", wheel="cuda-nvrtc", sonames=("nvrtc",),
        part="cuda_nvrtc", owners="cuda-nvrtc|nvrtc"),
    LibraryFamily("nvJitLink", "nvJitLink", "cuda", wheel="nvjitlink", sonames=("nvJitLink",)),
    LibraryFamily("nvfatbin", "nvfatbin", "cuda"),
    LibraryFamily("nvvm", "nvvm", "apart", part="cuda_nvcc", owners="cuda-nvvm|nvvm|cuda-nvcc"),
    LibraryFamily("cublasmp", "cublas[Mm]p", "own"),
    LibraryFamily("cublas", r"cublas\w*|nvblas", "cuda", wheel="cublas", sonames=("cublas", "cublasLt"),
        owners="cublas|nvblas"),
    LibraryFamily("cusparseLt", "cusparseLt", "own"),
    LibraryFamily("cusparse", r"cusparse\w*", "own", wheel="cusparse", sonames=("cusparse",)),
    LibraryFamily("cusolver", r"cusolver\w*", "own", wheel="cusolver", sonames=("cusolver",)),
    LibraryFamily("cufft", r"cufft\w*", "own", wheel="cufft", sonames=("cufft",)),
    LibraryFamily("curand", "curand", "own", wheel="curand", sonames=("curand",)),
    LibraryFamily("cufile", r"cufile\w*", "own"),
    LibraryFamily("cupti", "cupti", "apart", wheel="cuda-cupti", sonames=("cupti",), part="cuda_cupti",
        owners="cuda-cupti|cupti"),
    LibraryFamily("nvToolsExt", "nvToolsExt", "apart", part="cuda_nvtx", owners="nvtx|cuda-nvtx|nvtoolsext"),
    LibraryFamily("npp", r"npp\w+", "cuda", owners="npp|cuda-npp"),
    LibraryFamily("nvjpeg", "nvjpeg", "cuda"),
    LibraryFamily("nvjpeg2k", r"nvjpeg\w+", "own"),
    LibraryFamily("cudss", r"cudss\w*", "own"),
    LibraryFamily("cudnn", r"cudnn\w*", "own", wheel="cudnn", sonames=("cudnn",)),
    LibraryFamily("nccl", "nccl", "own", wheel="nccl", sonames=("nccl",)),
    LibraryFamily("nvshmem_host", r"nvshmem\w*", "own", wheel="nvshmem", sonames=("nvshmem_host",), owners="nvshmem"),
    LibraryFamily("cutensor", r"cutensor\w*", "own"),
    LibraryFamily("nvinfer", r"nvinfer\w*", "own", owners="tensorrt|nvinfer"),
    LibraryFamily("nvonnxparser", r"nvonnxparser\w*", "own", owners="tensorrt|nvinfer|nvonnxparsers?"),
    LibraryFamily("nvparsers", "nvparsers|nvcaffe_parser", "own", owners="tensorrt|nvinfer|nvparsers"),
    LibraryFamily("magma", r"magma\w*", "own"),
    LibraryFamily("nvds", r"nvds\w+", "own", owners="deepstream"),
    LibraryFamily("cuda", "cuda", "own",
        owners=r"cuda1|cuda-compat|nvidia-compute|nvidia-driver-cuda-libs|nvidia-l4t-cuda|nvidia-tesla-\d+-cuda1"),
    LibraryFamily("nvidia-ml", "nvidia-ml", "own",
        owners=r"nvidia-ml1|nvidia-compute|nvidia-driver-libs|nvidia-tesla-\d+-ml1"),
)  # fmt: skip
_FILES = "|".join(f"({family.files})" for family in FAMILIES)  # A group for each, behind that of all

_NAME = lazy_pattern(rf"lib(?P<family>{_FILES})(?:[-.][0-9a-f]{{8}})?\.so(?P<version>(?:\.\d{{1,6}}){{0,6}})", re.ASCII)

MAYBE = lazy_pattern(rb"/lib(?:cu|nv|nccl|npp|magma)[^/\n]*\.so")
"""A pattern for lines of a file list that may name a library of a family; a quick filter before ``family_of``."""

GPU_CODE_LISTED = (
    "nccl", "cudnn_ops", "cudnn_ops_infer", "cudnn", "cudnn_cnn", "cudnn_cnn_infer", "curand", "nvshmem_host", "cufft",
    "cusparse",
)  # fmt: skip
"""Families whose GPU code is listed; first those that omit GPUs and are quick to list."""


class LibraryFileName(NamedTuple):
    family: str  # ``cudnn_ops`` of ``libcudnn_ops.so.9``
    numbers: str  # The numbers after ``.so.``: ``9.1.0``, ``9`` or nothing


def family_of(name: str) -> LibraryFileName | None:
    """The family and version in a file name (without folder), or None for any other file."""
    match = _NAME.fullmatch(name)
    return LibraryFileName(match["family"], match["version"].lstrip(".")) if match else None


def is_of_family(name: str) -> bool:
    """Whether a file name (without folder) is a family's, whatever follows the first dot behind ``.so``."""
    match = _NAME.match(name)
    return match is not None and name[match.start("version") :][:1] in ("", ".")


@lru_cache(maxsize=256)
def row_of(family: str) -> LibraryFamily | None:
    """The row of a family by a name from a file: ``cublas`` for ``cublasLt``."""
    match = _NAME.fullmatch(f"lib{family}.so")
    return next((row for row, found in zip(FAMILIES, match.groups()[1:]) if found), None) if match else None


def is_numbered(family: str, how: str) -> bool:
    """Whether the number in its names is CUDA's (``cuda``), or one ``apart`` from its release."""
    row = row_of(family)
    return row is not None and row.numbered == how
